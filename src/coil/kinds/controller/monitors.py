"""ServiceMonitors are read one by one: many clusters do not serve the kind, so it cannot be watched.

A Controller that wants none costs one request after each change of its spec, and none in between.
"""

import msgspec

from coil.api import names
from coil.api.controller import Controller
from coil.build import controller as build
from coil.kinds.resources import SERVICE_MONITORS
from coil.kube.client import Client
from coil.kube.errors import ApiError, NotFound
from coil.kube.views import ManifestView
from coil.support.objects import ObjectKey


class Monitor(msgspec.Struct, frozen=True):
    """What is known: `relevant` is false when there is nothing to do, `error` says why it is not known."""

    relevant: bool = False
    live: ManifestView | None = None
    error: str = ""


class Monitors:
    """Finds the ServiceMonitor of a Controller."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._none_at: dict[ObjectKey, tuple[str, int]] = {}

    async def find(self, controller: Controller) -> Monitor:
        """Read it, unless none is wanted and none was there at this generation."""
        meta = controller.metadata
        wanted = build.service_monitor(controller) is not None
        if not wanted and self._none_at.get(meta.key) == (meta.uid, meta.generation):
            return Monitor()
        try:
            live = await self._client.get(SERVICE_MONITORS, names.controller(meta.name), meta.namespace)
        except NotFound as error:
            # Without details it is the kind that is not there, not the object.
            if wanted:
                return Monitor(relevant=bool(error.details))
            self._none_at[meta.key] = (meta.uid, meta.generation)
            return Monitor()
        except ApiError as error:
            return Monitor(relevant=True, error=str(error))
        self._none_at.pop(meta.key, None)
        return Monitor(relevant=True, live=live)

    def forget(self, key: ObjectKey) -> None:
        """The Controller is gone."""
        self._none_at.pop(key, None)

"""The end of pods, as kubelets play it: a pod whose deletion has begun is gone at once.

kwok could do it, but deletes by name alone, and again when it is behind: so it ends the pod that was just
made under the same name, and a roll never ends.
"""

import asyncio

from coil.kube import core
from coil.kube.client import Client
from coil.kube.errors import Conflict, NotFound
from coil.kube.store import Change, ChangeKind
from coil.kube.views import PodView

LANES = 32


class Departures:
    """Ends each incarnation of a pod once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: asyncio.Queue[PodView] = asyncio.Queue()
        self._known: set[str] = set()

    def seen(self, change: Change[PodView]) -> None:
        """Listen to a store of `core.PODS`."""
        pod = change.latest
        if change.kind is ChangeKind.DELETED:
            self._known.discard(pod.metadata.uid)
        elif pod.terminating and pod.metadata.uid not in self._known:
            self._known.add(pod.metadata.uid)
            self._waiting.put_nowait(pod)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as lanes:
            for number in range(LANES):
                lanes.create_task(self._lane(), name=f"departures/{number}")

    async def _lane(self) -> None:
        while True:
            meta = (await self._waiting.get()).metadata
            try:
                await self._client.delete(core.PODS, meta.name, meta.namespace, uid=meta.uid, grace_seconds=0)
            except (NotFound, Conflict):
                continue

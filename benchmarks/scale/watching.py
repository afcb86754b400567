"""The pods as anybody sees them: how many are there and ready, and when a pod's conditions changed."""

import asyncio
from collections.abc import Callable

from coil.kube.store import Change, ChangeKind
from coil.kube.views import PodView

PREFIX = "SlurmNodeState"


class Timeout(Exception):
    """What was waited for did not come; the text says how far it got."""


class Watched:
    """Pods of one namespace whose name begins with `prefix`, kept up to date by a watch."""

    def __init__(self, namespace: str, prefix: str) -> None:
        self._namespace = namespace
        self._prefix = prefix
        self._changed = asyncio.Event()
        self.pods: dict[str, PodView] = {}
        self.ready: set[str] = set()

    def seen(self, change: Change[PodView]) -> None:
        """Listen to a store of `core.PODS`."""
        pod, name = change.latest, change.key.name
        if change.key.namespace != self._namespace or not name.startswith(self._prefix):
            return
        self.ready.discard(name)
        if change.kind is ChangeKind.DELETED:
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod
            if pod.ready and not pod.terminating:
                self.ready.add(name)
        self._changed.set()

    async def until(self, condition: Callable[[], bool], within: float, what: str) -> None:
        """Wait for a condition on the pods.

        Raises:
            Timeout: not within so many seconds.
        """
        try:
            async with asyncio.timeout(within):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            state = f"{len(self.pods)} pods, {len(self.ready)} ready"
            raise Timeout(f"not within {within:g} s: {what} ({state})") from None

    def shows(self, name: str, state: str, message: str | None = None) -> bool:
        """Whether the pod has the condition for a Slurm state, with that message if one is given."""
        pod = self.pods.get(name)
        found = pod and pod.status.condition(PREFIX + state)
        return bool(found and found.status == "True" and message in (None, found.message))

"""Events that tell a person what the operator did or could not do (events.k8s.io/v1).

    events = Events(client, instance=socket.gethostname())
    recorder = events.recorder("nodeset-controller")
    tasks.spawn("events", events.run())
    recorder.event(reference(NODESETS, nodeset), "Normal", "ScalingUp", "ScaleUp", "creating 3 pods")

Recording never delays or fails a pass: `event` only notes, `run` sends one request after the other,
and what cannot be sent is counted and dropped.
"""

import asyncio
import secrets
from collections import deque
from typing import TypeVar

from coil.kube.client import Client
from coil.kube.core import EVENTS
from coil.kube.errors import ApiError, NotFound, TooManyRequests, Unavailable
from coil.kube.resource import KubeObject, Resource
from coil.kube.series import Aggregator, EventType, Happening, ObjectRef, Series, Topic
from coil.support import metrics
from coil.support.clock import micro_time, utc_now
from coil.support.log import get_logger
from coil.support.objects import JsonObject

T = TypeVar("T", bound=KubeObject)

log = get_logger("events")

NOTE_BYTES = 1024
"""Longest note the API server accepts."""

BUFFER = 1000
"""Event objects noted and not yet made; more are dropped."""

SWEEP = 60.0
"""Seconds between two looks for series to write."""

TRIES = 3
"""Attempts to make an Event while the server is unwell."""


def reference(resource: Resource[T], item: T) -> ObjectRef:
    """Refer to an object that was read as `resource`."""
    meta = item.metadata
    return ObjectRef(
        api_version=resource.api_version,
        kind=resource.kind,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
    )


class Events:
    """Sends the events of all controllers of this process.

    Args:
        client: an open client.
        instance: this replica, such as its pod's name.
    """

    def __init__(self, client: Client, instance: str) -> None:
        self._client = client
        self._instance = instance
        self._aggregator = Aggregator()
        self._new: deque[Series] = deque()
        self._news = asyncio.Event()

    def recorder(self, controller: str) -> "EventRecorder":
        """The recorder of one controller; `controller` becomes the reporting controller."""
        return EventRecorder(self, controller)

    def note(self, happening: Happening) -> None:
        """Remember to send a happening; never blocks, never fails."""
        if len(self._new) >= BUFFER:
            metrics.events_dropped.labels("buffer full").inc()
            return
        name = f"{happening.topic.regarding.name[:230]}.{secrets.token_hex(8)}"
        now = asyncio.get_running_loop().time()
        series = self._aggregator.observe(happening, name, utc_now(), now)
        if series is not None:
            self._new.append(series)
            self._news.set()

    async def run(self) -> None:
        """Send what was noted, until cancelled."""
        clock = asyncio.get_running_loop().time
        sweep = clock() + SWEEP
        while True:
            await self._wait(until=sweep)
            await self.flush()
            if clock() >= sweep:
                await self._write_series()
                sweep = clock() + SWEEP

    async def _wait(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    async def flush(self) -> None:
        """Send all Event objects noted so far; call it once more when the process ends."""
        while self._new:
            await self._make(self._new.popleft())

    async def _make(self, series: Series) -> None:
        try:
            await self._create(self._body(series), _namespace(series))
        except ApiError as error:
            metrics.events_dropped.labels(error.reason or type(error).__name__).inc()
            self._aggregator.forget(series)
            # Where a namespace ends nobody can be told any more, and nobody needs to.
            tell = log.debug if error.namespace_terminating else log.warning
            tell("event not recorded", note=series.happening.note, error=str(error))

    async def _create(self, body: JsonObject, namespace: str) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                await self._client.create(EVENTS, body, namespace)
            except (Unavailable, TooManyRequests):
                if attempt == TRIES:
                    raise
                await asyncio.sleep(2.0**attempt)
            else:
                return

    async def _write_series(self) -> None:
        for series in self._aggregator.due(asyncio.get_running_loop().time()):
            count = series.count
            patch = {"series": {"count": count, "lastObservedTime": micro_time(series.last)}}
            try:
                await self._client.patch(EVENTS, series.name, patch, _namespace(series))
            except NotFound:
                self._aggregator.forget(series)  # it has expired on the server
            except ApiError as error:
                log.debug("event series not written", name=series.name, error=str(error))
            else:
                self._aggregator.written(series, count, asyncio.get_running_loop().time())

    def _body(self, series: Series) -> JsonObject:
        happening, topic = series.happening, series.happening.topic
        body: JsonObject = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": series.name, "namespace": _namespace(series)},
            "eventTime": micro_time(series.first),
            "reportingController": topic.controller,
            "reportingInstance": f"{topic.controller}-{self._instance}"[:128],
            "type": topic.type,
            "reason": topic.reason,
            "action": topic.action,
            "regarding": topic.regarding,
            "note": happening.note,
        }
        return body | ({"related": happening.related} if happening.related else {})


class EventRecorder:
    """Records events in the name of one controller."""

    def __init__(self, events: Events, controller: str) -> None:
        self._events = events
        self._controller = controller

    def event(
        self,
        regarding: ObjectRef,
        type: EventType,  # noqa: A002 -- the API's word
        reason: str,
        action: str,
        note: str,
        related: ObjectRef | None = None,
    ) -> None:
        """Tell that something happened to `regarding`; never blocks, never fails.

        Args:
            regarding: the object in whose `kubectl describe` the event shows up.
            type: Normal or Warning.
            reason: why, in CamelCase, such as `FailedCreate`.
            action: what was done or tried, such as `Create`.
            note: for people; cut to what the API accepts.
            related: a second object that matters, such as the pod created.
        """
        # The API refuses events with an empty reason or action, and a lost event helps nobody.
        topic = Topic(self._controller, regarding, type, reason or "Unknown", action or reason or "Unknown")
        self._events.note(Happening(topic, related, _cut(note)))


def _namespace(series: Series) -> str:
    """Events about cluster-scoped objects live in `default`; the API insists."""
    return series.happening.topic.regarding.namespace or "default"


def _cut(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= NOTE_BYTES:
        return note
    return encoded[: NOTE_BYTES - 3].decode(errors="ignore") + "..."

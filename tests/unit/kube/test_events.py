"""The recorder in virtual time: it never blocks or fails, and an unchanged situation costs little (I8)."""

import asyncio
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from coil.kube.core import PODS
from coil.kube.errors import Forbidden, NotFound, Unavailable
from coil.kube.events import BUFFER, NOTE_BYTES, EventRecorder, Events, reference
from coil.kube.series import ObjectRef
from coil.kube.views import PodView
from coil.support.objects import JsonObject, ObjectMeta
from coil.support.tasks import Tasks

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

NODESET = ObjectRef(api_version="x/v1", kind="NodeSet", name="workers", namespace="slurm", uid="u1")
POD = ObjectRef(api_version="v1", kind="Pod", name="workers-0", namespace="slurm", uid="u2")


class Sink:
    """Takes events as the server would, or answers with `errors` first."""

    def __init__(self, *errors: Exception, seconds: float = 0.01) -> None:
        self.errors = list(errors)
        self.seconds = seconds
        self.created: list[JsonObject] = []
        self.patched: list[tuple[float, str, JsonObject]] = []

    async def _answer(self) -> None:
        await asyncio.sleep(self.seconds)
        if self.errors:
            raise self.errors.pop(0)

    async def create(self, _resource: object, body: JsonObject, namespace: str) -> None:
        await self._answer()
        assert body["metadata"]["namespace"] == namespace
        self.created.append(msgspec.json.decode(msgspec.json.encode(body)))

    async def patch(self, _resource: object, name: str, body: JsonObject, _namespace: str) -> None:
        await self._answer()
        self.patched.append((asyncio.get_running_loop().time(), name, body))


class Recording:
    def __init__(self, sink: Any) -> None:
        self.events = Events(sink, "operator-0")
        self.recorder: EventRecorder = self.events.recorder("nodeset-controller")

    def say(self, note: str = "creating 3 pods", related: ObjectRef | None = None) -> None:
        self.recorder.event(NODESET, "Normal", "ScalingUp", "ScaleUp", note, related)


async def test_an_event_has_every_member_the_server_asks_for() -> None:
    sink = Sink()
    recording = Recording(sink)
    recording.say(related=POD)
    await recording.events.flush()
    [event] = sink.created
    assert event.pop("eventTime").endswith("Z")
    assert event["metadata"].pop("name").startswith("workers.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "slurm"},
        "reportingController": "nodeset-controller",
        "reportingInstance": "nodeset-controller-operator-0",
        "type": "Normal",
        "reason": "ScalingUp",
        "action": "ScaleUp",
        "note": "creating 3 pods",
        "regarding": {
            "apiVersion": "x/v1",
            "kind": "NodeSet",
            "name": "workers",
            "namespace": "slurm",
            "uid": "u1",
        },
        "related": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "workers-0",
            "namespace": "slurm",
            "uid": "u2",
        },
    }


async def test_recording_waits_for_nothing() -> None:
    recording = Recording(Sink(seconds=1000))
    for number in range(100):
        recording.say(f"note {number}")
    assert asyncio.get_running_loop().time() == 0


async def test_run_sends_what_is_noted_as_it_comes() -> None:
    sink = Sink()
    recording = Recording(sink)
    async with Tasks() as tasks:
        tasks.spawn("events", recording.events.run())
        recording.say("one")
        await asyncio.sleep(1)
        recording.say("two")
        await asyncio.sleep(1)
    assert [event["note"] for event in sink.created] == ["one", "two"]


async def test_an_unchanged_situation_costs_a_write_in_five_minutes() -> None:
    """A reconcile that says the same every 30 s for an hour (I8)."""
    sink = Sink()
    recording = Recording(sink)
    async with Tasks() as tasks:
        tasks.spawn("events", recording.events.run())
        for _ in range(120):
            recording.say()
            await asyncio.sleep(30)
    assert len(sink.created) == 1
    assert 10 <= len(sink.patched) <= 12
    _, name, patch = sink.patched[-1]
    assert name == sink.created[0]["metadata"]["name"]
    assert patch["series"]["count"] > 100


async def test_a_busy_recorder_still_writes_its_series() -> None:
    sink = Sink()
    recording = Recording(sink)
    async with Tasks() as tasks:
        tasks.spawn("events", recording.events.run())
        for second in range(1200):
            recording.say()
            about = ObjectRef(api_version="v1", kind="Pod", name=f"p{second}", namespace="slurm")
            recording.recorder.event(about, "Normal", "Tick", "Tick", "n")
            await asyncio.sleep(1)
    assert any(patch["series"]["count"] > 200 for _, _, patch in sink.patched)


async def test_a_series_whose_event_has_expired_becomes_a_new_event() -> None:
    sink = Sink()
    recording = Recording(sink)
    async with Tasks() as tasks:
        tasks.spawn("events", recording.events.run())
        recording.say()
        recording.say()
        await asyncio.sleep(100)
        sink.errors = [NotFound(404, "NotFound")]
        await asyncio.sleep(400)
        recording.say()
        await asyncio.sleep(1)
    assert len(sink.created) == 2


async def test_a_server_that_is_unwell_is_tried_again() -> None:
    sink = Sink(Unavailable(503), Unavailable(503))
    recording = Recording(sink)
    recording.say()
    await recording.events.flush()
    assert len(sink.created) == 1


@pytest.mark.parametrize(
    ("errors", "cause"),
    [([Forbidden(403, "Forbidden")], "Forbidden"), ([Unavailable(message="down")] * 3, "Unavailable")],
)
async def test_what_cannot_be_sent_is_dropped_counted_and_said_once(
    errors: list[Exception], cause: str
) -> None:
    def dropped() -> float:
        return REGISTRY.get_sample_value("coil_events_dropped_total", {"cause": cause}) or 0.0

    sink, before = Sink(*errors), dropped()
    recording = Recording(sink)
    recording.say("lost")
    recording.say("kept")
    await recording.events.flush()
    assert [event["note"] for event in sink.created] == ["kept"]
    assert dropped() == before + 1


async def test_a_full_buffer_drops_instead_of_growing() -> None:
    recording = Recording(Sink(seconds=1000))
    for number in range(2 * BUFFER):
        about = ObjectRef(api_version="v1", kind="Pod", name=f"p{number}", namespace="slurm")
        recording.recorder.event(about, "Normal", "R", "A", "n")
    assert len(recording.events._new) == BUFFER


async def test_long_notes_are_cut_between_characters() -> None:
    sink = Sink()
    recording = Recording(sink)
    recording.say("ä" * NOTE_BYTES)
    await recording.events.flush()
    note = sink.created[0]["note"]
    assert len(note.encode()) <= NOTE_BYTES
    assert note.endswith("ä...")


async def test_empty_members_are_filled_since_the_server_refuses_them() -> None:
    sink = Sink()
    recording = Recording(sink)
    recording.recorder.event(NODESET, "Warning", "", "", "x")
    recording.recorder.event(NODESET, "Warning", "Reason", "", "x")
    await recording.events.flush()
    assert [(event["reason"], event["action"]) for event in sink.created] == [
        ("Unknown", "Unknown"),
        ("Reason", "Reason"),
    ]


async def test_a_cluster_scoped_object_has_its_events_in_default() -> None:
    sink = Sink()
    recording = Recording(sink)
    node = ObjectRef(api_version="v1", kind="Node", name="n1")
    recording.recorder.event(node, "Normal", "R", "A", "n")
    await recording.events.flush()
    assert sink.created[0]["metadata"]["namespace"] == "default"


async def test_long_names_still_give_a_valid_event_name() -> None:
    sink = Sink()
    recording = Recording(sink)
    about = ObjectRef(api_version="v1", kind="Pod", name="p" * 253, namespace="slurm")
    recording.recorder.event(about, "Normal", "R", "A", "n")
    await recording.events.flush()
    assert len(sink.created[0]["metadata"]["name"]) <= 253


async def test_a_reference_names_kind_and_identity() -> None:
    pod = PodView(metadata=ObjectMeta(name="a", namespace="ns", uid="u", resource_version="7"))
    assert reference(PODS, pod) == ObjectRef(api_version="v1", kind="Pod", name="a", namespace="ns", uid="u")


async def test_cancelling_run_ends_it_at_once_and_keeps_what_was_not_sent() -> None:
    sink = Sink(seconds=10)
    recording = Recording(sink)
    async with Tasks() as tasks:
        tasks.spawn("events", recording.events.run())
        recording.say("under way")
        recording.say("waiting")
        await asyncio.sleep(1)
    assert asyncio.get_running_loop().time() == 1
    await recording.events.flush()
    assert [event["note"] for event in sink.created] == ["waiting"]

"""Record events about the objects of one kind, as one controller."""

from typing import Protocol

from coil.kube.events import EventRecorder, EventType, ObjectRef, reference
from coil.kube.resource import KubeObject, Resource


class Record(Protocol):
    """Records an event about an object; never fails, never waits."""

    def __call__(
        self,
        regarding: KubeObject,
        type_: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectRef | None = None,
    ) -> None:
        """Record it (spec: control-plane 12)."""
        ...


def recorder(events: EventRecorder, resource: Resource[KubeObject]) -> Record:
    """Record about objects that were read as `resource`."""

    def record(
        regarding: KubeObject,
        type_: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectRef | None = None,
    ) -> None:
        events.event(reference(resource, regarding), type_, reason, action, note, related)

    return record

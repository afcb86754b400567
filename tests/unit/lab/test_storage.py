"""Which claims get a volume, and which volumes go."""

from typing import Any

import pytest
from lightkube.models.core_v1 import (
    PersistentVolumeClaimSpec,
    PersistentVolumeStatus,
    VolumeResourceRequirements,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim

from lab import storage


def _claim(**changes: Any) -> PersistentVolumeClaim:
    members: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "local",
        "resources": VolumeResourceRequirements(requests={"storage": "1Gi"}),
    }
    spec = PersistentVolumeClaimSpec(**members | changes)
    return PersistentVolumeClaim(metadata=ObjectMeta(name="state", namespace="slurm", uid="u-1"), spec=spec)


def _volume(phase: str) -> PersistentVolume:
    volume = storage.volume_for(_claim())
    assert volume is not None
    volume.status = PersistentVolumeStatus(phase=phase)
    return volume


def test_a_claim_gets_what_it_asks_for_on_any_node() -> None:
    volume = storage.volume_for(_claim())

    assert volume is not None
    assert volume.metadata is not None
    assert volume.metadata.name == "pvc-u-1"
    spec = volume.spec
    assert spec is not None
    assert (spec.accessModes, spec.capacity) == (["ReadWriteMany"], {"storage": "1Gi"})
    assert spec.claimRef is not None
    assert (spec.claimRef.namespace, spec.claimRef.name, spec.claimRef.uid) == ("slurm", "state", "u-1")


@pytest.mark.parametrize(
    "change",
    [
        {"storageClassName": "other"},
        {"storageClassName": ""},
        {"volumeName": "chosen-by-hand"},
        {"volumeMode": "Block"},
    ],
)
def test_a_claim_that_waits_for_something_else_gets_nothing(change: dict[str, str]) -> None:
    assert storage.volume_for(_claim(**change)) is None


def test_only_released_volumes_of_ours_go() -> None:
    assert storage.abandoned(_volume("Released"))
    assert not storage.abandoned(_volume("Bound"))
    foreign = _volume("Released")
    foreign.metadata = ObjectMeta(name="of-somebody-else")
    assert not storage.abandoned(foreign)

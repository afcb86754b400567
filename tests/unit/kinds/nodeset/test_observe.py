"""What of Slurm's answers counts (invariant I2)."""

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from coil.kinds.nodeset.observe import STALE_S, _slurm
from coil.kinds.nodeset.snapshot import Known, Unknown
from coil.slurm.clusters import Cluster
from coil.slurm.errors import SlurmError, Unauthorized
from coil.slurm.view import ClusterView
from tests.support.workers import record, view

SEEN = view([record("gpu-0")])


def cluster(age: float | None, error: SlurmError | None = None) -> Cluster:
    poller = SimpleNamespace(view=SEEN, tried=True, age=lambda: age, health=SimpleNamespace(error=error))
    client = SimpleNamespace(release="26.05.5", data_parser="v0.0.45")
    return cast("Cluster", SimpleNamespace(poller=poller, client=client))


@pytest.mark.parametrize(
    ("age", "answer", "counts"),
    [
        (1, None, True),
        (STALE_S, None, True),
        (STALE_S + 1, None, False),
        (STALE_S + 1, SEEN, True),
    ],
)
def test_what_slurm_said_long_ago_counts_no_more(
    age: float, answer: ClusterView | None, *, counts: bool
) -> None:
    """A slurmrestd that takes half a minute for each answer fails no read, and still nobody can act on it."""
    seen, slurm = _slurm(cluster(age), answer, new=False)
    assert (seen is not None) is counts
    if counts:
        assert isinstance(slurm, Known)
    else:
        assert slurm == Unknown(reason="Unreachable", message="no answer of Slurm for 30 s")


def test_a_failed_read_counts_more_than_the_view_before_it() -> None:
    seen, slurm = _slurm(cluster(1, Unauthorized("GET nodes/", "401")), None, new=False)
    assert seen is None
    assert isinstance(slurm, Unknown)
    assert slurm.reason == "Unauthorized"


def test_a_list_that_lost_half_of_its_nodes_says_nothing_of_the_others() -> None:
    """Another slurmctld behind the same address would call every node of its state idle."""
    half = msgspec.structs.replace(SEEN, node_doubts=("2 of 4 gone",), vanished="2 of 4 gone")
    seen, slurm = _slurm(cluster(1), half, new=False)
    assert seen is None
    assert slurm == Unknown(reason="IncompleteAnswer", message="2 of 4 gone")

"""How soon workers go and are replaced when all of them have jobs (`make soak`; docs/nodeset.md)."""

import os
import random
import time
from collections.abc import Callable

import pytest

from coil.api import keys
from tests.support import chaos
from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
    pytest.mark.skipif("COIL_SOAK_SECONDS" not in os.environ, reason="takes minutes: `make soak`"),
]

LONGEST = 25
"""Seconds of the longest job."""
WORKERS = 5


@pytest.fixture
def busy(new_cluster: Callable[[], SlurmCluster]) -> SlurmCluster:
    """Five workers, two of which may be out for an update."""
    cluster = new_cluster()
    chaos.create(cluster, WORKERS)
    return cluster


def test_scale_in_takes_the_longest_job_and_a_little(busy: SlurmCluster) -> None:
    """5 to 2 within the longest job and 5 s; every job ends well."""
    jobs = [
        busy.submit(f"sleep {seconds}", "--exclusive")
        for seconds in (LONGEST, LONGEST - 5, LONGEST - 10, 12, 8)
    ]
    for job in jobs:
        busy.wait_job(job, "RUNNING")
    began = time.monotonic()
    busy.scale(2)
    wait_until(lambda: len(busy.workers()) == 2, within=120, what="two workers are left", every=0.2)
    took = time.monotonic() - began
    print(f"\n5 to 2 workers with jobs of up to {LONGEST} s: {took:.1f} s")
    for job in jobs:
        assert busy.wait_job(job, "COMPLETED")["Restarts"] == "0"
    assert took <= LONGEST + 5


def test_a_roll_takes_its_rounds_and_a_little(busy: SlurmCluster) -> None:
    """With jobs waiting all the time, each round takes the longest job and 8 s."""
    rounds = -(-WORKERS // chaos.MAX_UNAVAILABLE)
    dice = random.Random(1)  # noqa: S311 -- to be repeated, not to be secret
    with chaos.Backlog(busy, dice, (LONGEST // 2, LONGEST)).running():
        wait_until(lambda: not busy.idle(), within=60, what="all workers are busy")
        (old,) = set(revisions(busy).values())
        began = time.monotonic()
        chaos.tag_next_image()
        chaos.set_image(busy, chaos.NEXT_IMAGE)

        def replaced() -> bool:
            found = revisions(busy)
            return len(found) == WORKERS and old not in found.values() and all(in_service(busy))

        wait_until(replaced, within=400, what="all workers are new and in service", every=0.5)
        took = time.monotonic() - began
    print(f"\na roll of {WORKERS} workers in {rounds} rounds, jobs of up to {LONGEST} s: {took:.1f} s")
    assert took <= rounds * (LONGEST + 8)
    fates = {(job["JobState"], job["Restarts"]) for job in chaos.job_records(busy).values()}
    assert fates <= {(state, "0") for state in ("COMPLETED", "COMPLETING", "RUNNING", "PENDING")}


def revisions(cluster: SlurmCluster) -> dict[str, str]:
    """Revision of each worker."""
    return {name: pod["metadata"]["labels"][keys.LABEL_REVISION] for name, pod in cluster.workers().items()}


def in_service(cluster: SlurmCluster) -> list[bool]:
    """Of each Slurm node whether it takes or has jobs."""
    return [state in ("idle", "allocated", "mixed", "completing") for state in cluster.nodes().values()]

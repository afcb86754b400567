"""Jobs run on while everything around them is scaled, rolled, reconfigured and killed.

A short form here; `make soak` does it for ten minutes (COIL_SOAK_SECONDS), with jobs of 5 to 60 s.
COIL_SOAK_SEED repeats a run's decisions.
"""

import os
import random
import secrets
import time
from collections.abc import Callable

import pytest

from coil.api import keys
from tests.support import chaos
from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

SECONDS = float(os.environ.get("COIL_SOAK_SECONDS", "60"))
LONG = SECONDS > 120
JOBS = (5, 60) if LONG else (3, 12)
PAUSE = (5.0, 20.0) if LONG else (7.0, 10.0)

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(SECONDS + 600)]


def test_no_job_notices(new_cluster: Callable[[], SlurmCluster]) -> None:
    """Every job ends well and ran once; an admin's drain stays; updates keep to maxUnavailable."""
    seed = os.environ.get("COIL_SOAK_SEED") or str(secrets.randbelow(10**6))
    print(f"\nCOIL_SOAK_SEED={seed}")
    cluster = new_cluster()
    chaos.tag_next_image()
    chaos.create(cluster)
    cluster.drain("cpu-0", "bad DIMM")
    trouble = chaos.Trouble(cluster, dice(seed))
    witness = chaos.Witness(cluster)
    with witness.watching():
        with chaos.Backlog(cluster, dice(seed), JOBS).running():
            trouble.make(SECONDS, PAUSE)
        cluster.scale(chaos.WANTED)
        ended = time.monotonic()
        try:
            wait_until(lambda: is_over(cluster), within=300, what="all jobs to end", every=1)
            wait_until(lambda: is_steady(cluster), within=180, what="six workers in service", every=1)
        except AssertionError:
            print(chaos.describe(cluster))
            raise
    print(f"steady {time.monotonic() - ended:.0f} s after the last trouble")
    judge_jobs(cluster)
    assert cluster.drain_reason("cpu-0") == "bad DIMM"
    print(f"{dict(trouble.done)}; {len(witness.samples)} samples, most out at once {max(witness.samples)}")
    assert max(witness.samples) <= chaos.MAX_UNAVAILABLE


def dice(seed: str) -> random.Random:
    """A thread's own source of decisions."""
    return random.Random(seed)  # noqa: S311 -- to be repeated, not to be secret


def is_over(cluster: SlurmCluster) -> bool:
    """Nothing waits or runs; slurmctld says so."""
    return cluster.try_slurm("sh", "-c", 'n=$(squeue --noheader) && echo "left: $n"').strip() == "left:"


def is_steady(cluster: SlurmCluster) -> bool:
    """As many workers as wanted, all of one revision, and all but the one with the bad DIMM idle."""
    pods = cluster.workers().values()
    revisions = {pod["metadata"]["labels"][keys.LABEL_REVISION] for pod in pods}
    marked = [pod for pod in pods if keys.ANNOTATION_POD_CORDON in pod["metadata"].get("annotations", {})]
    names = {pod["metadata"]["name"] for pod in pods}
    idle = cluster.idle() & names
    told = cluster.condition("nodeset", "cpu", "Reconciled")
    return (
        len(pods) == chaos.WANTED
        and len(revisions) == 1
        and not marked
        and len(idle) == chaos.WANTED - 1
        and told.get("status") == "True"
    )


def judge_jobs(cluster: SlurmCluster) -> None:
    """Every job COMPLETED with exit code 0, was never requeued, and says itself that it ran once."""
    records, said = chaos.job_records(cluster), chaos.journal(cluster)
    print(f"{len(records)} jobs")
    bad = [
        record
        for record in records.values()
        if (record["JobState"], record["ExitCode"], record["Restarts"]) != ("COMPLETED", "0:0", "0")
    ]
    assert not bad, bad
    assert len(records) >= SECONDS / 10
    assert said == {f"{number} {word}": 1 for number in records for word in ("begin", "end")}

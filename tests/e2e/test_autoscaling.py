"""`make autoscaling`: clusters that scale themselves with the examples of docs/autoscaling.md.

Not a part of `make test`: a round takes minutes, and KEDA ten minutes of a processor to build. Set
COIL_AUTOSCALING to a number of rounds; COIL_AUTOSCALING_RECORD names a file for what happened, which
`python -m benchmarks.autoscaling` draws.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import keda
from tests.support.autoscaling import EXAMPLES, Scaled, first, turns
from tests.support.external_metrics import Rule, served
from tests.support.kubectl import Kubectl, wait_until
from tests.support.monitored import create
from tests.support.slurm_cluster import SlurmCluster

ROUNDS = int(os.environ.get("COIL_AUTOSCALING", "0"))
RECORD = os.environ.get("COIL_AUTOSCALING_RECORD", "")
SECONDS = 20
"""What each job takes."""
SERIES = {
    "jobs pending": 'slurm_partition_jobs_pending{{partition="cpu"}}',
    "nodes wanted": 'coil_partition_nodes_wanted{{namespace="{0}"}}',
    "replicas": 'coil_nodeset_workers{{namespace="{0}", state="desired"}}',
    "workers": 'coil_nodeset_workers{{namespace="{0}", state="existing"}}',
    "nodes in Slurm": "slurm_nodes",
    "nodes at work": 'coil_nodeset_slurm_nodes{{namespace="{0}", state="allocated"}}',
}

pytestmark = [
    pytest.mark.skipif(not ROUNDS, reason="takes minutes: `make autoscaling`, or set COIL_AUTOSCALING=1"),
    pytest.mark.timeout(900 + 300 * ROUNDS),
]


@pytest.fixture
def scaled(new_cluster: Callable[[], SlurmCluster], kubectl: Kubectl) -> Scaled:
    """A cluster without workers, and its Prometheus."""
    cluster = new_cluster()
    return Scaled(kubectl, cluster, create(cluster, kubectl, replicas=0))


@pytest.fixture
def with_keda(scaled: Scaled, kubectl: Kubectl) -> Iterator[Scaled]:
    """The cluster with the example for KEDA."""
    keda.install()
    kubectl.apply(scaled.example("keda.yaml"))
    where = ("--namespace", scaled.cluster.name, "--timeout=60s")
    kubectl.run("wait", "scaledobject/cpu", "--for=condition=Ready", *where, within=70)
    yield scaled
    keda.remove()


@pytest.fixture
def with_hpa(scaled: Scaled, kubectl: Kubectl, tmp_path: Path) -> Iterator[Scaled]:
    """The cluster with the example for a metrics adapter."""
    rule = Rule.read(EXAMPLES / "prometheus-adapter-values.yaml")
    with served(kubectl, rule, scaled.prometheus, tmp_path):
        kubectl.apply(scaled.example("hpa.yaml"))
        yield scaled


def test_from_zero_to_the_maximum_and_back(with_keda: Scaled) -> None:
    """Field case SCL-02: jobs wait for a NodeSet of no workers, which grows, works and goes again."""
    for _ in range(ROUNDS):
        _keep(_round(with_keda, "eight jobs of one node", (1,) * 8))


def test_jobs_of_several_nodes_count_with_them(with_keda: Scaled) -> None:
    """Each finds its nodes, in turn; the last wants all that there may be."""
    _keep(_round(with_keda, "jobs of 3, 2, 2 and 4 nodes", (3, 2, 2, 4)))


def _keep(told: dict[str, object]) -> None:
    """Add a round to the record, whatever the next one does."""
    if RECORD:
        record = Path(RECORD)
        known = json.loads(record.read_text()) if record.exists() else []
        record.write_text(json.dumps([*known, told]))


def _round(scaled: Scaled, title: str, nodes: tuple[int, ...]) -> dict[str, object]:
    """Submit to an empty partition and wait until it is empty again; what happened, by second."""
    assert not scaled.cluster.workers()
    begin = time.time()
    jobs = scaled.submit(*nodes, seconds=SECONDS)
    scaled.wait_completed(jobs, within=240)
    completed = time.time() - begin
    scaled.wait_workers(0, within=300)
    empty = time.time()
    replicas = SERIES["replicas"].format(scaled.cluster.name)
    wait_until(
        lambda: [value for _, value in scaled.history(replicas, empty, time.time())][-1:] == [0],
        within=20,
        what="Prometheus has read the last of it",
    )
    end = time.time()
    seen = {
        name: scaled.history(query.format(scaled.cluster.name), begin, end) for name, query in SERIES.items()
    }
    assert max(value for _, value in seen["replicas"]) == 4
    assert turns(seen["replicas"]) == 1, "up once, down once: anything else is flapping"
    times = {
        "first replica wanted": next(at for at, value in seen["replicas"] if value),
        "four replicas wanted": first(seen["replicas"], 4),
        "four nodes at work": first(seen["nodes at work"], 4),
        "last job completed": completed,
        "back at zero": empty - begin,
    }
    print(title, {name: round(seconds) for name, seconds in times.items()})
    return {"title": title, "times": times, "series": seen}


def test_a_plain_autoscaler_follows_the_queue(with_hpa: Scaled) -> None:
    """From the one worker that such an autoscaler always leaves, to three, and back to one."""
    with_hpa.cluster.scale(1)
    with_hpa.cluster.wait_idle(1)
    jobs = with_hpa.submit(3, seconds=5)
    with_hpa.wait_completed(jobs, within=120)
    with_hpa.wait_workers(1, within=240)
    held = with_hpa.submit(1, seconds=1)
    with_hpa.wait_completed(held, within=30)

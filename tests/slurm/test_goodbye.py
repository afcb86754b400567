"""The good-bye of a stopping worker, with a real scontrol and slurmctld."""

import pytest

from coil.build import scripts
from tests.support.slurm import SlurmCluster

pytestmark = pytest.mark.slurm

NODE = "ctl"
"""Commands of `SlurmCluster.run` see this host name."""


@pytest.mark.parametrize(
    ("reason", "afterwards"),
    [
        ("", "slurm-operator: Pod is terminating"),
        ("slurm-operator: NodeSet gpu scales in", "slurm-operator: Pod is terminating"),
        ('bad fan [rack 4] : it\'s "hot"', 'bad fan [rack 4] : it\'s "hot"'),
        ("first line\nsecond line", "first line\nsecond line"),
    ],
)
def test_the_node_is_down_and_only_our_reasons_change(
    cluster: SlurmCluster, reason: str, afterwards: str
) -> None:
    """Invariant I3."""
    cluster.create_nodes(NODE)
    if reason:
        cluster.run("scontrol", "update", f"nodename={NODE}", "state=fail", f'reason="{reason}"')
    assert cluster.run("sh", "-c", scripts.GOODBYE) == ""
    line = cluster.run("scontrol", "show", "node", NODE)
    assert "State=DOWN+" in line
    told = line.partition("Reason=")[2].replace("\n          ", "\n").rstrip()
    first, _, more = afterwards.partition("\n")
    assert told.startswith(f"{first} [root@")
    assert told.endswith(f"]\n{more}" if more else "]")


def test_a_node_that_an_admin_drained_is_left_as_it_is(cluster: SlurmCluster) -> None:
    """A successor of the worker is drained then, and not DOWN as well."""
    cluster.start_worker(NODE)
    cluster.run("scontrol", "update", f"nodename={NODE}", "state=drain", "reason=bad fan")
    assert "State=IDLE+DRAIN+" in cluster.run("scontrol", "show", "node", NODE)
    assert cluster.run("sh", "-c", scripts.GOODBYE) == ""
    after = cluster.run("scontrol", "show", "node", NODE)
    assert "State=IDLE+DRAIN+" in after
    assert "Reason=bad fan [" in after


def test_a_node_that_slurm_does_not_know_is_left_alone(cluster: SlurmCluster) -> None:
    cluster.create_nodes("other")
    assert cluster.run("sh", "-c", scripts.GOODBYE).strip() == f"Node {NODE} not found"

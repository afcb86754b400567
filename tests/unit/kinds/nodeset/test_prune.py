"""Records of workers that are gone for good (spec: nodeset 18; field case REG-16; design: record pruning)."""

import msgspec
import pytest

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.actions import Prune
from coil.kinds.nodeset.identity import PodInfo, encode_comment
from coil.kinds.nodeset.prune import ghosts, plan_pruning
from coil.kinds.nodeset.snapshot import Snapshot
from coil.kube.views import NodeView, PodView
from coil.slurm.wire import SlurmNode
from tests.support.workers import nodeset, pod, record, replace, snapshot

DEAD = "DOWN+NOT_RESPONDING"


def comment(pod_name: str, node: str = "kn-9", **members: str) -> str:
    info = PodInfo(
        namespace="slurm", pod_name=pod_name, node=node, node_set_name="gpu", node_set_uid="uid-gpu"
    )
    return encode_comment(msgspec.structs.replace(info, **members))


def dead(name: str, text: str, state: str = DEAD) -> SlurmNode:
    return record(name, state, "Not responding", comment=text)


def pruned(
    *records: SlurmNode,
    pods: tuple[PodView, ...] = (),
    nodes: tuple[NodeView, ...] = (),
    policy: str = "NodeNotFound",
    mode: str = "StatefulSet",
) -> list[str]:
    of: NodeSet = nodeset(replicas=2, pruneSlurmNodeRecords=policy, scalingMode=mode)
    seen: Snapshot = snapshot(pods, records, of=of, nodes=nodes, ghosts=ghosts(records))
    actions: list[Prune] = plan_pruning(seen)
    return [name for action in actions for name in action.nodes]


def test_a_record_beyond_the_wanted_ordinals_goes() -> None:
    assert pruned(dead("gpu-7", comment("gpu-7"))) == ["gpu-7"]


@pytest.mark.parametrize("reason", ["", "slurm-operator: Pod is terminating", "Not responding"])
def test_the_reasons_of_slurm_and_of_the_operator_keep_no_record(reason: str) -> None:
    assert pruned(replace(dead("gpu-7", comment("gpu-7")), reason=reason)) == ["gpu-7"]


def test_nothing_goes_by_default() -> None:
    assert pruned(dead("gpu-7", comment("gpu-7")), policy="Never") == []


@pytest.mark.parametrize(
    "kept",
    [
        dead("gpu-1", comment("gpu-1")),
        dead("gpu-7", comment("gpu-7"), "DOWN"),
        dead("gpu-7", comment("gpu-7"), "IDLE+NOT_RESPONDING"),
        dead("gpu-7", "rack 7"),
        dead("gpu-7", comment("gpu-7", node_set_uid="")),
        dead("gpu-7", comment("gpu-7", node_set_uid="uid-before")),
        dead("gpu-7", comment("gpu-7", namespace="other")),
        dead("gpu-7", comment("gpu-7", node="")),
        dead("gpu-7", comment("")),
        replace(dead("gpu-7", comment("gpu-7")), reason="bad fan"),
        replace(dead("gpu-7", comment("gpu-7")), reason="Not responding, RMA 12"),
        replace(dead("gpu-7", comment("gpu-7")), reason_user="anna"),
        replace(dead("gpu-7", comment("gpu-7")), reservation="weekly"),
    ],
)
def test_what_is_not_proven_to_be_gone_stays(kept: SlurmNode) -> None:
    assert pruned(kept) == []


def test_a_record_whose_pod_exists_stays() -> None:
    assert pruned(dead("gpu-7", comment("gpu-7")), pods=(pod(7),)) == []


def test_in_daemon_mode_a_record_goes_with_its_machine() -> None:
    gone = dead("kn-9", comment("gpu-xyz"))
    assert pruned(gone, mode="DaemonSet") == ["kn-9"]
    node = msgspec.convert({"metadata": {"name": "kn-9.rack.test"}}, NodeView)
    assert pruned(gone, mode="DaemonSet", nodes=(node,)) == []
    annotations = {keys.ANNOTATION_HOSTNAME_OVERRIDE: "kn-9"}
    other = msgspec.convert({"metadata": {"name": "kn-1", "annotations": annotations}}, NodeView)
    assert pruned(gone, mode="DaemonSet", nodes=(other,)) == []


def test_nothing_goes_while_slurm_is_silent() -> None:
    of = nodeset(replicas=2, pruneSlurmNodeRecords="NodeNotFound")
    assert plan_pruning(snapshot([], None, of=of)) == []

"""Workers that come back to their nodes (spec: nodeset 14.3)."""

import msgspec

from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.eligibility import placement
from coil.kinds.nodeset.pins import pin_of, pins
from coil.kinds.nodeset.snapshot import Snapshot
from coil.kube.views import NodeView, PodView
from tests.support.workers import nodeset, pod, snapshot


def node(name: str, pool: str = "gpu") -> NodeView:
    return msgspec.convert({"metadata": {"name": name, "labels": {"pool": pool}}}, NodeView)


def seen(*pods: PodView, before: dict[str, str], of: NodeSet | None = None) -> Snapshot:
    given = of or nodeset(replicas=3, pinToNode=True)
    status = msgspec.structs.replace(given.status, ordinal_to_node=before)
    nodes = (node("kn-0"), node("kn-1"), node("kn-2", pool="cpu"))
    return snapshot(
        pods,
        [],
        of=msgspec.structs.replace(given, status=status),
        nodes=nodes,
        placement=placement({"nodeSelector": {"pool": "gpu"}}),
    )


def test_running_pods_are_remembered_and_old_places_kept() -> None:
    assert pins(seen(pod(0), before={"1": "kn-1"})) == {"0": "kn-0", "1": "kn-1"}


def test_a_pod_that_is_not_ready_is_remembered_and_a_pending_one_is_not() -> None:
    assert pins(seen(pod(0, ready=False), pod(1, phase="Pending"), before={})) == {"0": "kn-0"}


def test_places_that_take_no_worker_are_forgotten() -> None:
    assert pins(seen(before={"0": "kn-2", "1": "kn-9"})) == {}


def test_a_new_pod_is_pinned_where_its_ordinal_ran() -> None:
    before = {"0": "kn-1", "2": "kn-2"}
    assert pin_of(seen(before=before), 0) == "kn-1"
    assert pin_of(seen(before=before), 1) == ""
    assert pin_of(seen(before=before), 2) == ""


def test_without_the_option_nothing_is_remembered() -> None:
    plain = nodeset(replicas=3)
    assert pins(seen(pod(0), before={"0": "kn-0"}, of=plain)) == {}
    assert pin_of(seen(before={"0": "kn-0"}, of=plain), 0) == ""


def test_nothing_is_forgotten_while_no_pod_can_be_built() -> None:
    blind = msgspec.structs.replace(seen(before={"0": "kn-2"}), placement=None)
    assert pins(blind) == {"0": "kn-2"}

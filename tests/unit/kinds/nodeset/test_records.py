"""Comments, topology and features of Slurm nodes (spec: nodeset 20, 21, 24.1, 32)."""

from coil.api import keys
from coil.kinds.nodeset.actions import SetComment, SetFeatures, SetTopology
from coil.kinds.nodeset.identity import encode_comment, pod_info
from coil.kinds.nodeset.records import (
    merge_features,
    plan_comments,
    plan_features,
    plan_topology,
)
from coil.kinds.nodeset.snapshot import Known, Snapshot
from coil.kinds.nodeset.starting import CALM, FEW, PATIENCE
from coil.kinds.nodeset.times import text
from tests.support.workers import NOW, host, nodeset, pod, record, replace, snapshot

COMMENT = encode_comment(pod_info(nodeset(), pod(0)))


def comments(seen: Snapshot, now: float = NOW) -> list[SetComment]:
    return plan_comments(seen, (), now)[0]


def test_a_healthy_workers_record_names_its_pod() -> None:
    seen = snapshot([pod(0)], [record("gpu-0", comment="rack 7")])
    assert comments(seen) == [SetComment(node="gpu-0", comment=COMMENT)]
    assert plan_comments(seen, {"gpu-0"}, NOW)[0] == [], "a node that is revived keeps its comment"


def test_a_right_comment_and_an_unready_pod_need_no_write() -> None:
    assert comments(snapshot([pod(0)], [record("gpu-0", comment=COMMENT)])) == []
    assert comments(snapshot([pod(0, ready=False)], [record("gpu-0")])) == []


def test_many_comments_wait_until_no_worker_turns_ready_any_more() -> None:
    start = snapshot([pod(0)]).workers[0].ready_since
    few, many = (
        snapshot([pod(n) for n in range(count)], [record(f"gpu-{n}") for n in range(count)])
        for count in (FEW, FEW + 1)
    )
    assert len(comments(few, start + 1)) == FEW
    assert plan_comments(many, (), start + 1) == ([], CALM - 1)
    assert len(comments(many, start + CALM)) == FEW + 1


def test_many_comments_wait_for_workers_that_were_just_made() -> None:
    seen = snapshot([pod(n) for n in range(FEW + 1)], [record(f"gpu-{n}") for n in range(FEW + 1)])
    start = seen.workers[0].ready_since
    made = snapshot([pod(99, ready=False, created=text(start - 20))]).workers
    starting = replace(seen, workers=(*seen.workers, *made))
    assert plan_comments(starting, (), start + 10) == ([], PATIENCE - 30)
    ended = replace(seen, workers=(*seen.workers, *snapshot([pod(99, phase="Failed")]).workers))
    assert len(comments(ended, start + 10)) == FEW + 1


def test_many_comments_do_not_wait_for_ever() -> None:
    seen = snapshot([pod(n) for n in range(FEW + 2)], [record(f"gpu-{n}") for n in range(FEW + 2)])
    start = seen.workers[0].ready_since
    late = snapshot([pod(99, ready_since=text(start + PATIENCE))]).workers
    still = replace(seen, workers=(*seen.workers, *late))
    assert plan_comments(still, (), start + PATIENCE - 1) == ([], 1)
    assert len(comments(still, start + PATIENCE)) == FEW + 2


def test_larger_nodesets_may_take_longer_to_start() -> None:
    seen = snapshot([pod(n) for n in range(2_000)], [record(f"gpu-{n}") for n in range(2_000)])
    start = seen.workers[0].ready_since
    late = snapshot([pod(2_000, ready_since=text(start + 2 * PATIENCE))]).workers
    still = replace(seen, workers=(*seen.workers[1:], *late))
    assert plan_comments(still, (), start + 2 * PATIENCE - 1) == ([], 1)
    assert len(comments(still, start + 2 * PATIENCE)) == 1_999


def test_no_comment_is_written_again_before_slurm_has_shown_it() -> None:
    seen = snapshot([pod(0)], [record("gpu-0")])
    assert isinstance(seen.slurm, Known)
    assert comments(replace(seen, commented_at=seen.slurm.observed_at)) == []
    assert comments(replace(seen, commented_at=seen.slurm.observed_at - 1))


def test_features_of_the_specification() -> None:
    assert merge_features(("baseline", "k8s/old", "ext"), "new") == ("baseline", "ext", "k8s/new")
    assert merge_features(("b",), " x , ,y=1,x") == ("b", "k8s/x", "k8s/y=1")


def test_features_follow_the_kubernetes_node() -> None:
    hosts = [host(f"kn-{n}", annotations={keys.ANNOTATION_FEATURES: "ib"}) for n in range(2)]
    records = [record(f"gpu-{n}", features=("gpu",), active_features=("gpu",)) for n in range(2)]
    seen = snapshot([pod(0), pod(1)], records, hosts=hosts)
    wanted = ("gpu", "k8s/ib")
    assert plan_features(seen.workers) == [
        SetFeatures(nodes=("gpu-0", "gpu-1"), features=wanted, active=wanted)
    ]


def test_removing_the_annotation_removes_only_our_features() -> None:
    node = record("gpu-0", features=("gpu", "k8s/ib"), active_features=("k8s/ib",))
    (change,) = plan_features(snapshot([pod(0)], [node]).workers)
    assert (change.features, change.active) == (("gpu",), ())


def test_right_features_in_another_order_need_no_write() -> None:
    node = record("gpu-0", features=("z", "a"), active_features=("z", "a"))
    assert plan_features(snapshot([pod(0)], [node]).workers) == []


def test_topology_is_set_for_all_nodes_of_one_value_at_once() -> None:
    hosts = [host(f"kn-{n}", annotations={keys.ANNOTATION_TOPOLOGY: "topo-switch:s2"}) for n in range(2)]
    records = [record("gpu-0"), record("gpu-1", topology="topo-switch:s1")]
    seen = snapshot([pod(0), pod(1)], records, hosts=hosts)
    assert plan_topology(seen) == [SetTopology(nodes=("gpu-0", "gpu-1"), topology="topo-switch:s2")]


def test_topology_that_slurm_chose_itself_is_left_alone() -> None:
    seen = snapshot([pod(0)], [record("gpu-0", topology="topo-switch:s1")])
    assert plan_topology(seen) == []


def test_a_topology_taken_off_the_node_is_taken_off_in_slurm() -> None:
    before = pod(0, annotations={keys.ANNOTATION_TOPOLOGY: "topo-switch:s1"})
    seen = snapshot([before], [record("gpu-0", topology="topo-switch:s1")])
    assert plan_topology(seen) == [SetTopology(nodes=("gpu-0",), topology="")]


def test_a_topology_that_slurm_never_shows_is_told_once() -> None:
    hosts = [host("kn-0", annotations={keys.ANNOTATION_TOPOLOGY: "topo-switch:s2"})]
    seen = snapshot([pod(0)], [record("gpu-0")], hosts=hosts)
    assert plan_topology(seen)
    told = replace(seen, placed={"uid-gpu-0": ("topo-switch:s2", "")})
    assert plan_topology(told) == []
    assert plan_topology(replace(seen, placed={"uid-gpu-0": ("topo-switch:s1", "")})), "another is wanted"
    assert plan_topology(replace(seen, placed={"uid-before": ("topo-switch:s2", "")})), "another pod"
    moved = snapshot([pod(0)], [record("gpu-0", topology="topo-switch:s9")], hosts=hosts)
    assert plan_topology(replace(moved, placed=told.placed)), "somebody changed it"

"""What a view knows, what it does not, and what changed since the last one."""

from hypothesis import given
from hypothesis import strategies as st

from coil.slurm.view import ClusterView, changed_nodes, index_jobs, share_nodes
from coil.slurm.wire import SlurmJob, SlurmNode, number


def node(name: str, *state: str, reason: str = "") -> SlurmNode:
    return SlurmNode(name=name, state=frozenset(state or ("IDLE",)), reason=reason)


def job(ident: int, nodes: str, *state: str, start: int = 0, minutes: int = 1) -> SlurmJob:
    return SlurmJob(
        job_id=ident,
        state=frozenset(state or ("RUNNING",)),
        nodes=nodes,
        start_time=number(start),
        time_limit=number(minutes),
    )


def view(
    *nodes: SlurmNode, jobs: tuple[SlurmJob, ...] = (), node_doubts: tuple[str, ...] = ()
) -> ClusterView:
    index = index_jobs(jobs)
    return ClusterView(
        nodes={node.name: node for node in nodes},
        jobs_by_node=index.by_node,
        deadlines=index.deadlines,
        observed_at=0,
        node_doubts=node_doubts,
        job_doubts=index.doubts,
    )


def test_jobs_are_found_by_node_and_the_latest_running_one_is_the_deadline() -> None:
    index = index_jobs(
        [
            job(1, "n[1-2]", minutes=10),
            job(2, "n2", minutes=5),
            job(3, "n2", "SUSPENDED", minutes=99),
            job(4, "n3", "COMPLETED"),
            job(5, "", "PENDING"),
        ]
    )
    assert {name: [held.job_id for held in jobs] for name, jobs in index.by_node.items()} == {
        "n1": [1],
        "n2": [1, 2, 3],
    }
    assert index.deadlines == {"n1": 600, "n2": 600}


def test_a_job_on_nodes_we_cannot_read_makes_no_node_free() -> None:
    found = view(node("n1", "IDLE", "DRAIN"), jobs=(job(7, "n[1"), job(8, "n2")))
    assert not found.idle_and_drained("n1")
    assert not found.complete
    assert "job 7" in found.job_doubts[0]
    assert found.jobs_by_node.keys() == {"n2"}


def test_idle_and_drained_needs_both_witnesses() -> None:
    drained = node("n1", "IDLE", "DRAIN")
    assert view(drained).idle_and_drained("n1")
    assert not view(drained, jobs=(job(1, "n1", "SUSPENDED"),)).idle_and_drained("n1")
    assert not view(node("n1", "MIXED", "DRAIN")).idle_and_drained("n1")
    assert not view().idle_and_drained("n1")


def test_absence_needs_a_list_without_doubts() -> None:
    """Field case REG-06."""
    assert view(node("n1")).absent("n2")
    assert not view(node("n1")).absent("n1")
    assert not view(node("n1"), node_doubts=("unreadable record",)).absent("n2")


def test_a_doubt_about_absence_does_not_hide_what_is_there() -> None:
    assert view(node("n1", "IDLE", "DRAIN"), node_doubts=("some are missing",)).idle_and_drained("n1")


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["IDLE", "DOWN"])), st.data())
def test_exactly_the_changed_nodes_are_named(before: dict[str, str], data: st.DataObject) -> None:
    after = data.draw(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["IDLE", "DOWN"])))
    old, new = (view(*(node(name, state) for name, state in states.items())) for states in (before, after))
    assert changed_nodes(old, new) == {
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    }


def test_a_job_that_comes_or_goes_changes_its_nodes() -> None:
    nodes = [node("n1"), node("n2")]
    idle, working = view(*nodes), view(*nodes, jobs=(job(1, "n2"),))
    assert changed_nodes(idle, working) == changed_nodes(working, idle) == {"n2"}


def test_everything_changes_with_the_first_view_and_with_doubts() -> None:
    nodes = [node("n1"), node("n2")]
    assert changed_nodes(None, view(*nodes)) == {"n1", "n2"}
    assert changed_nodes(view(*nodes, node_doubts=("x",)), view(*nodes)) == {"n1", "n2"}


def test_unchanged_records_are_shared() -> None:
    old = {name: node(name) for name in ("n1", "n2")}
    new = share_nodes([node("n1"), node("n2", "DOWN"), node("n3")], old)
    assert new["n1"] is old["n1"]
    assert list(new) == ["n1", "n2", "n3"]
    assert new["n2"].base_state == "DOWN"

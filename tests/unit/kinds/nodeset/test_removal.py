"""May a pod be deleted now (invariants I1, I2; spec: nodeset 32; field cases DRN-07, DRN-14, REG-06)."""

import pytest

from coil.kinds.nodeset import times
from coil.kinds.nodeset.removal import MASS_GRACE, REGISTRATION_GRACE, Verdict, may_delete
from coil.kinds.nodeset.snapshot import Known
from coil.kube.views import NodeView, PodView
from coil.slurm.wire import SlurmJob, SlurmNode
from tests.support.workers import NOW, host, job, pod, record, replace, snapshot

OTHER = record("other-0")
NEW = times.text(NOW - REGISTRATION_GRACE / 2)


def verdict(
    view: PodView,
    *records: SlurmNode,
    jobs: tuple[SlurmJob, ...] = (),
    hosts: tuple[NodeView, ...] = (),
    silent: bool = False,
    absent_for: float = 3600.0,
) -> Verdict:
    seen = snapshot([view], None if silent else records, jobs=jobs, hosts=hosts, absent_for=absent_for)
    return may_delete(seen.workers[0], seen)


@pytest.mark.parametrize(
    ("state", "drained"),
    [
        ("IDLE+DRAIN", True),
        ("DOWN+DRAIN", True),
        ("ALLOCATED+DRAIN", False),
        ("MIXED+DRAIN", False),
        ("IDLE+COMPLETING+DRAIN", False),
        ("IDLE+DRAIN+UNDRAIN", False),
        ("IDLE", False),
        ("ALLOCATED+COMPLETING", False),
        ("DOWN", False),
    ],
)
def test_a_registered_worker_goes_only_drained(state: str, *, drained: bool) -> None:
    found = verdict(pod(0), record("gpu-0", state))
    assert found.allowed is drained
    assert found.needs_fresh is drained
    assert found.exact is drained


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "OF_THE_FUTURE"])
def test_a_job_on_a_node_that_looks_idle_holds_it(state: str) -> None:
    found = verdict(pod(0), record("gpu-0", "IDLE+DRAIN"), jobs=(job(7, "gpu-[0-1]", state),))
    assert not found.allowed
    assert "job 7" in found.why


@pytest.mark.parametrize("ready", [True, False])
def test_silence_of_slurm_keeps_every_pod_that_may_run(*, ready: bool) -> None:
    assert not verdict(pod(0, ready=ready), silent=True).allowed


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_an_ended_pod_goes_without_asking_slurm(phase: str) -> None:
    found = verdict(pod(0, phase=phase), silent=True)
    assert found.allowed
    assert found.exact


def test_an_unscheduled_pod_goes_without_asking_slurm() -> None:
    found = verdict(pod(0, phase="Pending", node=""), silent=True)
    assert found.allowed
    assert found.exact


def test_a_pod_whose_image_cannot_be_pulled_goes_without_asking_slurm() -> None:
    found = verdict(pod(0, phase="Pending", waiting="ImagePullBackOff"), silent=True)
    assert found.allowed
    assert found.exact


def test_a_pod_that_waits_on_a_dead_kubelet_is_not_believed() -> None:
    dead = NodeView(metadata=host("kn-0").metadata)
    assert not verdict(
        pod(0, phase="Pending", waiting="ImagePullBackOff"), hosts=(dead,), silent=True
    ).allowed


@pytest.mark.parametrize("state", ["IDLE", "ALLOCATED", "MIXED+DRAIN"])
def test_a_pod_that_registered_before_the_kubelet_told_is_drained_first(state: str) -> None:
    starting = pod(0, phase="Pending", waiting="PodInitializing")
    assert not verdict(starting, record("gpu-0", state)).allowed


@pytest.mark.parametrize("state", ["DOWN", "DOWN+DRAIN", "IDLE+DRAIN"])
def test_the_record_of_a_predecessor_does_not_hold_a_pod_that_never_ran(state: str) -> None:
    starting = pod(0, phase="Pending", waiting="ImagePullBackOff")
    assert verdict(starting, record("gpu-0", state)).allowed


def test_jobs_count_more_than_what_the_kubelet_has_told_so_far() -> None:
    starting = pod(0, phase="Pending", waiting="PodInitializing")
    for state in ("DOWN", "IDLE+DRAIN"):
        assert not verdict(starting, record("gpu-0", state), jobs=(job(7, "gpu-0"),)).allowed
    assert not verdict(starting, OTHER, jobs=(job(7, "gpu-0"),)).allowed


def test_a_scheduled_pod_without_word_from_the_kubelet_is_not_believed() -> None:
    view = pod(0, phase="Pending", created=NEW)
    assert not verdict(view, OTHER).allowed


def test_a_crash_looping_pod_ran_already() -> None:
    view = pod(0, phase="Running", ready=False, waiting="CrashLoopBackOff")
    assert not verdict(view, silent=True).allowed


def test_an_unregistered_worker_gets_time_to_register() -> None:
    found = verdict(pod(0, ready=False, created=NEW), OTHER)
    assert not found.allowed
    assert found.retry_after == REGISTRATION_GRACE / 2


def test_readiness_starts_the_time_to_register_anew() -> None:
    assert not verdict(pod(0, ready_since=NEW), OTHER).allowed


def test_a_worker_that_never_registered_goes() -> None:
    found = verdict(pod(0, ready=False), OTHER)
    assert found.allowed
    assert found.exact
    assert found.needs_fresh


def on_host(name: str, ip: str = "") -> PodView:
    made = pod(0, node=name)
    return replace(made, spec=replace(made.spec, host_network=True), status=replace(made.status, pod_ip=ip))


@pytest.mark.parametrize(
    "other",
    [
        record("node-1"),
        record("NODE-1", "ALLOCATED"),
        record("n1", hostname="node-1.rack"),
        record("n1", address="10.0.0.7"),
        record("n1", comment='{"namespace":"slurm","podName":"gpu-0","node":"kn-9"}'),
    ],
)
def test_a_worker_that_may_be_registered_under_another_name_stays(other: SlurmNode) -> None:
    found = verdict(on_host("node-1.example.com", "10.0.0.7"), OTHER, other)
    assert not found.allowed
    assert other.name in found.why


@pytest.mark.parametrize(
    "other", [record("node-2"), record("n1", address="10.0.0.8"), record("n1", comment="node-1")]
)
def test_other_records_do_not_hold_a_worker(other: SlurmNode) -> None:
    assert verdict(on_host("node-1.example.com", "10.0.0.7"), OTHER, other).allowed
    assert verdict(on_host("node-1.example.com"), OTHER, other).allowed


def test_a_node_that_vanished_just_now_is_waited_for() -> None:
    found = verdict(pod(0, ready=False), OTHER, absent_for=10.0)
    assert not found.allowed
    assert found.retry_after == REGISTRATION_GRACE - 10


@pytest.mark.parametrize(("missing", "allowed"), [(1, True), (2, False), (3, False), (4, False)])
def test_when_half_of_the_ready_workers_are_missing_slurm_may_have_lost_its_state(
    missing: int, *, allowed: bool
) -> None:
    pods = [pod(number) for number in range(4)]
    records = [record(f"gpu-{number}") for number in range(missing, 4)]
    seen = snapshot(pods, [OTHER, *records], absent_for=REGISTRATION_GRACE)
    assert may_delete(seen.workers[0], seen).allowed is allowed
    later = snapshot(pods, [OTHER, *records], absent_for=MASS_GRACE)
    assert may_delete(later.workers[0], later).allowed


def test_any_doubt_about_the_answer_keeps_a_worker_that_is_missing() -> None:
    seen = snapshot([pod(0)], [OTHER])
    assert isinstance(seen.slurm, Known)
    doubtful = replace(seen, slurm=replace(seen.slurm, doubt="a job could not be read"))
    assert not may_delete(seen.workers[0], doubtful).allowed


def test_absence_from_an_empty_list_means_nothing() -> None:
    assert not verdict(pod(0, ready=False)).allowed


def test_a_job_that_names_an_unregistered_node_keeps_the_pod() -> None:
    assert not verdict(pod(0, ready=False), OTHER, jobs=(job(7, "gpu-0"),)).allowed


def test_a_pod_without_a_slurm_name_is_unknown() -> None:
    view = pod(0, node="", phase="Running")
    assert not verdict(view, silent=True).allowed

"""May a pod be deleted now (invariants I1, I2; spec: nodeset 32; field cases DRN-07, DRN-14, REG-06)."""

import pytest

from coil.kinds.nodeset import times
from coil.kinds.nodeset.removal import REGISTRATION_GRACE, Verdict, may_delete
from coil.kube.views import NodeView, PodView
from coil.slurm.wire import SlurmJob, SlurmNode
from tests.support.workers import NOW, host, job, pod, record, snapshot

OTHER = record("other-0")
NEW = times.text(NOW - REGISTRATION_GRACE / 2)


def verdict(
    view: PodView,
    *records: SlurmNode,
    jobs: tuple[SlurmJob, ...] = (),
    hosts: tuple[NodeView, ...] = (),
    silent: bool = False,
) -> Verdict:
    seen = snapshot([view], None if silent else records, jobs=jobs, hosts=hosts)
    return may_delete(seen.workers[0], seen.slurm)


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


def test_absence_from_an_empty_list_means_nothing() -> None:
    assert not verdict(pod(0, ready=False)).allowed


def test_a_job_that_names_an_unregistered_node_keeps_the_pod() -> None:
    assert not verdict(pod(0, ready=False), OTHER, jobs=(job(7, "gpu-0"),)).allowed


def test_a_pod_without_a_slurm_name_is_unknown() -> None:
    view = pod(0, node="", phase="Running")
    assert not verdict(view, silent=True).allowed

"""What may happen around the NodeSet operator: to pods, to Slurm, and what users want.

`MOVES` names every happening with its weight. A happening that makes no sense at the moment does nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

from coil.api import keys
from tests.support.nodeset_world import Pod, Record, World

REVISIONS = ("rev-0", "rev-1", "rev-2")
REASONS = ("bad fan", "xid 79")


class Move(NamedTuple):
    """One happening; `happen(world, which)` picks what it happens to by counting to `which`."""

    happen: Callable[[World, int], None]
    weight: int


def to_pod(
    change: Callable[[World, Pod], None], applies: Callable[[World, Pod], object]
) -> Callable[[World, int], None]:
    """A happening to one of the pods it applies to; the API server gives the pod a new version."""

    def happen(world: World, which: int) -> None:
        pods = [pod for _, pod in sorted(world.pods.items()) if applies(world, pod)]
        if pods:
            pod = pods[which % len(pods)]
            change(world, pod)
            world.touch(pod)

    return happen


def to_record(
    change: Callable[[World, str, Record], None], applies: Callable[[World, str, Record], object]
) -> Callable[[World, int], None]:
    """A happening to one of the Slurm nodes it applies to."""

    def happen(world: World, which: int) -> None:
        found = [
            item for item in sorted(world.records.items()) if item[0] != "other-0" and applies(world, *item)
        ]
        if found:
            change(world, *found[which % len(found)])

    return happen


def step_all(world: World, _which: int = 0) -> None:
    """Scheduler, kubelets and slurmds take their next step for every pod."""
    for pod in list(world.pods.values()):
        step(world, pod)


def step(world: World, pod: Pod) -> None:
    """What happens next to one pod if all goes well."""
    if pod.terminating:
        _end(world, pod)
        return
    if not pod.node:
        pod.node = next(host for host in world.hosts if host not in {p.node for p in world.pods.values()})
        world.touch(pod)
    elif pod.phase == "Pending":
        _start(world, pod)
        world.touch(pod)
    elif pod.running and not pod.ready and pod.revision not in world.broken:
        _turn_ready(world, pod)
        world.touch(pod)
    if pod.running and world.slurm_up:
        world.records.setdefault(pod.name, Record()).silent = False


def heal(world: World) -> None:
    """All trouble ends: what others did is undone, all servers answer, jobs are over."""
    world.slurm_up, world.doubts, world.fault = True, (), False
    world.broken.clear()
    world.jobs.clear()
    world.cordoned.clear()
    for record in world.records.values():
        # An admin who resumes a node between two looks of the operator may have to do so again.
        if record.foreign or record.reason in REASONS or record.reason.startswith("Not responding"):
            _admin_resumes(world, "", record)
        record.silent = False
    for pod in world.pods.values():
        if pod.users_cordon:
            _users_uncordon(world, pod)
            world.touch(pod)


def is_as_wanted(world: World) -> bool:
    """As many workers as wanted, all of the wanted revision, in service and unmarked."""
    pods = world.pods.values()
    return len(pods) == world.replicas and all(
        pod.healthy
        and pod.revision == world.revision
        and keys.ANNOTATION_POD_CORDON not in pod.annotations
        and (record := world.records.get(pod.name)) is not None
        and record.base == "IDLE"
        and not record.drain
        for pod in pods
    )


def _start(_world: World, pod: Pod) -> None:
    pod.phase, pod.ran, pod.waiting = "Running", True, None


def _turn_ready(world: World, pod: Pod) -> None:
    pod.ready, pod.ready_since = True, world.clock


def _turn_unready(_world: World, pod: Pod) -> None:
    pod.ready = False


def _pull_fails(world: World, pod: Pod) -> None:
    pod.node = pod.node or world.hosts[-1]
    pod.waiting = "ImagePullBackOff"


def _comes_alive(world: World, pod: Pod) -> None:
    """It starts, registers and gets a job before any cache shows it."""
    _start(world, pod)
    _turn_ready(world, pod)
    if world.slurm_up and pod.name not in world.records:
        world.records[pod.name] = Record()
        world.jobs[world.number()] = pod.name


def _evict(world: World, pod: Pod) -> None:
    world.stop_daemon(pod)
    pod.phase, pod.ready = "Failed", False


def _user_deletes(_world: World, pod: Pod) -> None:
    pod.terminating = True


def _says_good_bye(world: World, pod: Pod) -> None:
    world.stop_daemon(pod)


def _end(world: World, pod: Pod) -> None:
    world.stop_daemon(pod)
    pod.gone = True
    del world.pods[pod.name]


def _vanish(world: World, pod: Pod) -> None:
    """Deleted by force: no good-bye, the record keeps its state; its jobs are lost."""
    pod.gone = True
    world.drop_jobs(pod.name)
    del world.pods[pod.name]


def _users_cordon(_world: World, pod: Pod) -> None:
    pod.annotations[keys.ANNOTATION_POD_CORDON] = "true"
    pod.annotations.pop(keys.ANNOTATION_POD_CORDON_CAUSE, None)
    pod.users_cordon = True


def _users_uncordon(_world: World, pod: Pod) -> None:
    pod.annotations.pop(keys.ANNOTATION_POD_CORDON, None)
    pod.users_cordon = False


def _goes_silent(world: World, name: str, record: Record) -> None:
    record.base, record.silent = "DOWN", True
    record.reason = record.reason or "Not responding"
    record.reason_at = world.clock
    world.drop_jobs(name)


def _admin_drains(world: World, name: str, record: Record) -> None:
    reason = REASONS[len(name) % 2]
    record.drain, record.reason, record.foreign = True, reason, reason
    record.reason_at = world.clock


def _admin_takes_down(world: World, name: str, record: Record) -> None:
    _admin_drains(world, name, record)
    record.drain, record.base = False, "DOWN"
    world.drop_jobs(name)


def _admin_resumes(_world: World, _name: str, record: Record) -> None:
    record.drain, record.base, record.reason, record.foreign = False, "IDLE", "", ""


def _admin_deletes(world: World, name: str, _record: Record) -> None:
    del world.records[name]


def _cordon_host(world: World, which: int) -> None:
    nodes = sorted(pod.node for pod in world.pods.values() if pod.node)
    if nodes:
        world.cordoned.add(nodes[which % len(nodes)])


def _uncordon_hosts(world: World, _which: int) -> None:
    world.cordoned.clear()


def _scale(world: World, which: int) -> None:
    world.replicas = which % 7


def _update(world: World, which: int) -> None:
    world.revision = REVISIONS[which % 3]


def _break_revision(world: World, which: int) -> None:
    world.broken.add(REVISIONS[1 + which % 2])


def _repair_revisions(world: World, _which: int) -> None:
    world.broken.clear()


def _controller_goes(world: World, which: int) -> None:
    world.fault = which % 2 == 0


def _time_passes(world: World, which: int) -> None:
    world.clock += (1, 5, 31, 61, 301)[which % 5]


def _end_job(world: World, which: int) -> None:
    if world.jobs:
        del world.jobs[sorted(world.jobs)[which % len(world.jobs)]]


def _slurm_turns(world: World, which: int) -> None:
    world.slurm_up = which % 3 != 0


def _answers_partially(world: World, which: int) -> None:
    world.doubts = ("one node could not be read",) if which % 3 == 0 else ()


def _alive(_world: World, pod: Pod) -> bool:
    return pod.running and not pod.terminating


def _pending(_world: World, pod: Pod) -> bool:
    return pod.phase == "Pending" and not pod.terminating


MOVES = {
    "everything takes its next step": Move(step_all, 6),
    "one pod takes its next step": Move(to_pod(step, lambda _w, p: not p.terminating), 2),
    "a pod ends": Move(to_pod(_end, lambda _w, p: p.terminating), 3),
    "a pod says good-bye to Slurm": Move(
        to_pod(_says_good_bye, lambda _w, p: p.running and p.terminating), 1
    ),
    "a pod comes alive": Move(to_pod(_comes_alive, _pending), 2),
    "a pull fails": Move(to_pod(_pull_fails, _pending), 2),
    "a pod turns unready": Move(to_pod(_turn_unready, lambda _w, p: p.ready), 2),
    "a pod is evicted": Move(to_pod(_evict, _alive), 1),
    "a user deletes a pod": Move(to_pod(_user_deletes, lambda _w, p: not p.terminating), 1),
    "a user deletes a pod by force": Move(to_pod(_vanish, lambda _w, _p: True), 1),
    "a user cordons a pod": Move(
        to_pod(_users_cordon, lambda _w, p: keys.ANNOTATION_POD_CORDON not in p.annotations), 2
    ),
    "a user uncordons a pod": Move(to_pod(_users_uncordon, lambda _w, p: p.users_cordon), 1),
    "a machine is cordoned": Move(_cordon_host, 2),
    "machines are uncordoned": Move(_uncordon_hosts, 1),
    "a user scales": Move(_scale, 4),
    "a user changes the template": Move(_update, 3),
    "an image is bad": Move(_break_revision, 2),
    "images are good": Move(_repair_revisions, 1),
    "the Controller goes or comes": Move(_controller_goes, 1),
    "time passes": Move(_time_passes, 3),
    "a job starts": Move(World.start_job, 6),
    "a job ends": Move(_end_job, 4),
    "a node goes silent": Move(to_record(_goes_silent, lambda _w, _n, r: r.base != "DOWN"), 1),
    "an admin drains": Move(to_record(_admin_drains, lambda _w, _n, r: not r.foreign), 2),
    "an admin takes a node down": Move(to_record(_admin_takes_down, lambda _w, _n, r: not r.foreign), 1),
    "an admin resumes": Move(to_record(_admin_resumes, lambda _w, _n, r: r.drain or r.base == "DOWN"), 2),
    "an admin deletes a record": Move(to_record(_admin_deletes, lambda w, n, _r: not w.busy(n)), 1),
    "slurmrestd stops or starts": Move(_slurm_turns, 2),
    "slurmrestd answers partially": Move(_answers_partially, 1),
}

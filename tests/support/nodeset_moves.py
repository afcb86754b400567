"""What may happen around the NodeSet operator: to pods, to Slurm, and what users want.

`MOVES` names every happening with its weight. A happening that makes no sense at the moment does nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

from coil.api import keys
from coil.kinds.nodeset.drain import POD_TERMINATING
from tests.support.nodeset_world import HOST_NETWORK, Host, Pod, Record, World

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
    if pod.node and pod.node not in world.hosts:
        _vanish(world, pod)  # the garbage collector of Kubernetes
        return
    if pod.terminating:
        _end(world, pod)
        return
    if not pod.node:
        _schedule(world, pod)
    elif pod.phase == "Pending":
        _start(world, pod)
        world.touch(pod)
    elif pod.running and not pod.ready and pod.revision not in world.broken:
        _turn_ready(world, pod)
        world.touch(pod)
    if pod.running and world.slurm_up:
        world.records.setdefault(pod.slurm, Record()).silent = False


def _schedule(world: World, pod: Pod) -> None:
    taken = {other.node for other in world.pods.values()}
    if world.daemon:
        free = [pod.pinned] if pod.pinned in world.eligible() else []
    else:
        free = [host for host in world.hosts if host not in taken]
    if free:
        pod.node = free[0]
        if world.kind == HOST_NETWORK:
            pod.slurm = pod.node
        world.touch(pod)


def heal(world: World) -> None:
    """All trouble ends: what others did is undone, all servers answer, jobs are over."""
    world.slurm_up, world.doubts, world.fault = True, (), False
    world.broken.clear()
    world.jobs.clear()
    world.cordoned.clear()
    world.rivals.clear()
    for host in world.hosts.values():
        host.taint = host.override = ""
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
    if world.daemon and sorted((p.node, p.slurm) for p in pods) != [
        (host, world.hostname(host)) for host in world.eligible()
    ]:
        return False
    return len(pods) == world.wanted and all(
        pod.healthy
        and pod.revision == world.revision
        and keys.ANNOTATION_POD_CORDON not in pod.annotations
        and (record := world.records.get(pod.slurm)) is not None
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
    if not pod.node:
        _schedule(world, pod)
    pod.waiting = "ImagePullBackOff" if pod.node else None


def _comes_alive(world: World, pod: Pod) -> None:
    """It starts, registers and gets a job before any cache shows it."""
    if not pod.node:
        _schedule(world, pod)
    if not pod.node:
        return
    _start(world, pod)
    _turn_ready(world, pod)
    if world.slurm_up and pod.slurm not in world.records:
        world.records[pod.slurm] = Record()
        world.jobs[world.number()] = pod.slurm


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
    world.drop_jobs(pod.slurm)
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


def _machine_comes(world: World, which: int) -> None:
    if len(world.hosts) < 7:
        world.hosts.setdefault(f"kn-{which % 8}", Host())


def _machine_goes(world: World, which: int) -> None:
    """Its pods are there until they are collected; nothing says good-bye, and jobs are lost."""
    if world.hosts:
        name = sorted(world.hosts)[which % len(world.hosts)]
        del world.hosts[name]
        world.cordoned.discard(name)
        for pod in world.pods.values():
            if pod.node == name:
                world.drop_jobs(pod.slurm)


def to_host(change: Callable[[Host, int], None]) -> Callable[[World, int], None]:
    """A happening to one of the machines."""

    def happen(world: World, which: int) -> None:
        if world.hosts:
            change(world.hosts[sorted(world.hosts)[which % len(world.hosts)]], which)

    return happen


def _relabel(host: Host, _which: int) -> None:
    host.pool = "cpu" if host.pool == "gpu" else "gpu"


def _taint(host: Host, which: int) -> None:
    host.taint = "" if host.taint else ("NoSchedule", "NoExecute")[which % 2]


def _rename(host: Host, which: int) -> None:
    """Names that collide with one another, with those of other machines, and that are none."""
    host.override = ("", "gpu-017", "kn-1", "gpu-018", "a.b")[which % 5]


def _rival_comes(world: World, which: int) -> None:
    names = sorted({pod.slurm for pod in world.pods.values()} - {""})
    if names:
        world.rivals.add(names[which % len(names)])


def _rival_is_drained(world: World, which: int) -> None:
    """By the operator, as it works for the other NodeSet."""
    names = [n for n in sorted(world.rivals & world.records.keys()) if not world.records[n].foreign]
    if names:
        record = world.records[names[which % len(names)]]
        if not record.drain and record.base == "IDLE":
            record.drain, record.reason_at = True, world.clock
            record.reason = "slurm-operator: Pod (slurm/cpu-0) is pending termination for scale-in"


def _rival_goes(world: World, which: int) -> None:
    """With its good-bye, unless somebody holds the node: then it leaves the reason alone."""
    if world.rivals:
        name = sorted(world.rivals)[which % len(world.rivals)]
        world.rivals.discard(name)
        if (record := world.records.get(name)) is not None and not record.foreign:
            world.set_down(record, POD_TERMINATING)
            world.drop_jobs(name)


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

RIVALS = {
    "another NodeSet's pod gets the name of one of ours": Move(_rival_comes, 6),
    "another NodeSet's pod is drained": Move(_rival_is_drained, 6),
    "another NodeSet's pod goes": Move(_rival_goes, 2),
}
"""What happens besides where Slurm names are those of machines."""

MACHINES = RIVALS | {
    "a machine comes": Move(_machine_comes, 4),
    "a machine goes": Move(_machine_goes, 2),
    "a machine is put into or out of the pool": Move(to_host(_relabel), 4),
    "a machine is tainted or not": Move(to_host(_taint), 3),
    "a machine is renamed": Move(to_host(_rename), 3),
}
"""What happens besides where every machine has its worker."""

"""Bring a changed configuration to the running slurmctld, without a restart. Pure (docs: configuration).

    ConfigMap written -> Refresh: an annotation of the pods changes, the kubelet renews their files at once
                      -> Reconfigure: slurmctld reads them and hands them to the slurmds
                      -> Live: slurmctld's hash of its slurm.conf is the wanted one

No one tells when the files are there, but slurmctld tells what it has read: when it read too early, both
steps are done once more. All files lie in one volume that the kubelet replaces as a whole, and slurm.conf
names the content of the others, so one hash speaks for all.
"""

from collections.abc import Iterable, Mapping

import msgspec

from coil.api import keys
from coil.kube.views import PodView
from coil.slurm.wire import RunningConfiguration, SlurmNode

FILES_S = 0.8
"""From a pod's changed annotation to its new files; measured: 0.3 to 0.6 s."""
READ_S = 0.4
"""From a reconfigure to the first look at what slurmctld runs with; it takes 20 to 60 ms when idle."""
UNTOLD_S = 2.0
"""Replaces FILES_S where slurmctld does not tell what it runs with: there is no second try."""
LONGEST_S = 30.0
"""Most that is waited between two tries."""
NO_WAY = "no RestApi leads to slurmctld"
CLOCKS_S = 2
"""Clocks of two nodes may differ by so much."""


class Target(msgspec.Struct, frozen=True, gc=False):
    """The wanted configuration.

    Attributes:
        generation: names it: changes with any file, and with nothing else.
        hash: what slurmctld will say when it runs with it; None when that cannot be known beforehand.
        key: the JWT key that it shall have; empty when new pods bring it, or it is missing.
    """

    generation: str
    hash: int | None
    key: bytes = b""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far one configuration has come; times by a monotonic clock, seconds."""

    generation: str
    tries: int = 1
    refreshed_at: float
    reconfigured_at: float | None = None


class Outcome(msgspec.Struct, frozen=True):
    """How things stand after a step.

    Attributes:
        generation: of the wanted configuration.
        live: slurmctld runs with it.
        message: why it is not live; with `live`, what is not known for certain.
        refused: slurmctld does not take it and said what `message` holds.
        again_s: seconds until the next step is due; None when only an event brings one.
        since: Unix seconds since when slurmctld runs with it, when it told.
        nodes: of the cluster, as last seen.
    """

    generation: str
    live: bool
    message: str = ""
    again_s: float | None = None
    since: int | None = None
    nodes: Mapping[str, SlurmNode] | None = None
    refused: bool = False


class Refresh(msgspec.Struct, frozen=True):
    """Give the pods this value of the annotation."""

    value: str
    tries: int


class Reconfigure(msgspec.Struct, frozen=True):
    """Let slurmctld read its files."""


class Wait(msgspec.Struct, frozen=True):
    """Look again after so many seconds."""

    seconds: float


class Live(msgspec.Struct, frozen=True):
    """slurmctld runs with it; `told` is false when slurmctld could not be asked."""

    told: bool


Step = Refresh | Reconfigure | Wait | Live


def next_step(
    target: Target,
    running: RunningConfiguration | None,
    progress: Progress | None,
    pods: Iterable[PodView],
    now: float,
    *,
    keyed: bool = True,
) -> Step:
    """What brings the target one step further.

    Args:
        target: the wanted configuration, which the ConfigMap holds already.
        running: what slurmctld says; None when its API does not tell.
        progress: of this or an earlier configuration; None after a start of the operator.
        pods: those of slurmctld.
        now: a monotonic clock, seconds.
        keyed: slurmctld has the JWT key, or is not to get one this way.
    """
    told = running is not None and target.hash is not None
    if told and running is not None and running.hash == target.hash and keyed:
        return Live(told=True)
    if progress is None or progress.generation != target.generation:
        if not told and keyed and all(_asked_for(pod) == target.generation for pod in pods):
            return Live(told=False)
        return Refresh(target.generation, 1)
    return _further(progress, now, told=told or not keyed)


def _further(progress: Progress, now: float, *, told: bool) -> Step:
    files_at = progress.refreshed_at + (FILES_S if told else UNTOLD_S)
    if now < files_at:
        return Wait(files_at - now)
    if progress.reconfigured_at is None:
        return Reconfigure()
    if not told:
        return Live(told=False)
    again_at = progress.reconfigured_at + min(LONGEST_S, READ_S * 2 ** (progress.tries - 1))
    if now < again_at:
        return Wait(again_at - now)
    # The kubelet acts on a changed value only.
    return Refresh(f"{progress.generation}.{progress.tries}", progress.tries + 1)


def _asked_for(pod: PodView) -> str | None:
    return pod.metadata.annotations.get(keys.ANNOTATION_LIVE_CONFIG)


def nodes_with(since: int, nodes: Mapping[str, SlurmNode]) -> int:
    """How many slurmds have begun after slurmctld did: each starts with what slurmctld has.

    A reconfigure starts the programs of both anew (measured with Slurm 26.05).
    """
    return sum(node.started_at.number >= since - CLOCKS_S for node in nodes.values())


def late(since: int, nodes: Mapping[str, SlurmNode]) -> list[str]:
    """The nodes whose slurmds have begun before slurmctld did; those that never came are none."""
    return [name for name, node in nodes.items() if 0 < node.started_at.number < since - CLOCKS_S]


def present(nodes: Mapping[str, SlurmNode]) -> dict[str, SlurmNode]:
    """The nodes that answer; others get the configuration when they come back."""
    gone = {"DOWN", "NOT_RESPONDING", "FUTURE", "POWERED_DOWN", "UNKNOWN"}
    return {name: node for name, node in nodes.items() if node.state.isdisjoint(gone)}

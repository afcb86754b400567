"""Try a changed configuration before the running slurmctld gets it (invariant I11). Pure.

    wanted differs from the live one -> Begin: a candidate beside it and a pod that tries it
    the pod has ended                -> Accept: the live one is written, or Refuse: it is left alone
    the wanted one is live           -> candidate and pod go

All memory is on objects: what is accepted is in the live ConfigMap, what was refused is noted on the
candidate, what runs is a pod. When a trial cannot be run nothing is written; it is begun anew from time to
time, and a condition says so (docs: configuration).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from coil.api import keys
from coil.api.controller import Controller
from coil.build.isolated import offending_line
from coil.kinds.podwaits import why_not_ready
from coil.kube.views import ManifestView, PodView, TerminatedView
from coil.support.clock import parse_time

OFF = "off"
LIMIT_S = 45.0
"""A pod that has not ended this long after its creation is not waited for."""
RETRY_S = 60.0
"""A trial that told nothing is begun anew this long after its creation."""
ACCEPTED, REFUSED, UNTRIED, UNDECIDED = 0, 1, 3, 4
"""Exit codes of the script (build/scripts/rehearse.sh)."""
REFUSED_REASON = "RefusedBySlurmctld"
_LINES = 4
_NOISE = (
    "Configured MailProg is invalid",
    "System GPU detection failed",
    "High latency for",
    "specified more than once, latest value used",
    "####",
)
"""Errors that slurmctld logs in every rehearsal, or daemons everywhere."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How a wanted configuration stands.

    Attributes:
        generation: names it.
        open: it may be written.
        tried: this very pass has learnt that slurmctld takes it.
        reason: why it is not written; empty while that is being tried.
        message: the same for people.
        again_s: seconds until the next look; None when only an event brings one.
    """

    generation: str
    open: bool = False
    tried: bool = False
    reason: str = ""
    message: str = ""
    again_s: float | None = None


class Begin(msgspec.Struct, frozen=True):
    """Make candidate and pod; pods of other configurations go first."""


class Wait(msgspec.Struct, frozen=True):
    """The pod has not ended; look again after so many seconds at the latest."""

    seconds: float


class Accept(msgspec.Struct, frozen=True):
    """Write what is wanted."""


class Refuse(msgspec.Struct, frozen=True):
    """slurmctld does not take it; `noted` when the candidate says so already."""

    message: str
    noted: bool


class Doubt(msgspec.Struct, frozen=True):
    """The trial told nothing; it is begun anew after so many seconds."""

    reason: str
    message: str
    seconds: float


class Again(msgspec.Struct, frozen=True):
    """Delete the pod that told nothing; its going begins the next trial."""

    pod: PodView


Step = Begin | Wait | Accept | Refuse | Doubt | Again


def needed(controller: Controller, pods: Iterable[PodView], complaint: str) -> bool:
    """Whether there is a running slurmctld to protect, and nobody has turned rehearsals off.

    A slurmctld that ends at each start (`complaint`) has nothing to lose.
    """
    if controller.metadata.annotations.get(keys.ANNOTATION_REHEARSAL, "").lower() == OFF:
        return False
    running = [pod for pod in pods if pod.status.phase == "Running" and not pod.terminating]
    return bool(running) and (not complaint or any(pod.ready for pod in running))


def next_step(
    trial: str,
    files: Mapping[str, str],
    candidate: ManifestView | None,
    pods: Iterable[PodView],
    now: datetime,
) -> Step:
    """What comes next for a wanted configuration that is not the live one.

    Args:
        trial: names it, and what it is tried with.
        files: its files.
        candidate: the ConfigMap beside the live one, if it is there.
        pods: in which configurations are tried.
        now: the present moment.
    """
    noted = candidate.metadata.annotations if candidate is not None else {}
    if noted.get(keys.ANNOTATION_REHEARSED) == trial and keys.ANNOTATION_REFUSED in noted:
        return Refuse(noted[keys.ANNOTATION_REFUSED], noted=True)
    pod = next((pod for pod in pods if trial_of(pod) == trial), None)
    if pod is None:
        return Begin()
    ended = _ended(pod)
    if ended is not None and ended.exit_code in (ACCEPTED, REFUSED):
        accepted = ended.exit_code == ACCEPTED
        return Accept() if accepted else Refuse(refusal(ended.message, files), noted=False)
    return _without_outcome(pod, ended, now)


def _without_outcome(pod: PodView, ended: TerminatedView | None, now: datetime) -> Step:
    age = (now - parse_time(pod.metadata.creation_timestamp)).total_seconds()
    if pod.status.phase != "Failed" and ended is None and age < LIMIT_S:
        return Wait(LIMIT_S - age)
    if pod.terminating:
        return Wait(RETRY_S)
    if age >= RETRY_S:
        return Again(pod)
    return Doubt(*_why_nothing(pod, ended), RETRY_S - age)


def trial_of(pod: PodView) -> str:
    """What is tried in a pod."""
    return pod.metadata.annotations.get(keys.ANNOTATION_REHEARSED, "")


def _ended(pod: PodView) -> TerminatedView | None:
    statuses = (status for status in pod.status.container_statuses if status.name == keys.SLURMCTLD)
    return next((status.state.terminated for status in statuses), None)


def _why_nothing(pod: PodView, ended: TerminatedView | None) -> tuple[str, str]:
    """Reason of the condition, and what is known, without the parts that change from try to try."""
    if ended is not None and ended.exit_code == UNDECIDED:
        said = "; ".join(reasons(ended.message)[-1:]) or "nothing"
        return "RehearsalUndecided", f"slurmctld neither came up nor refused it; the last error: {said}"
    if ended is not None:
        said = "; ".join(ended.message.splitlines()[-_LINES:])[:500]
        told = f"{ended.reason or 'Error'}, exit code {ended.exit_code}"
        return "RehearsalFailed", f"the rehearsal ended with {told}{f': {said}' if said else ''}"
    if pod.status.phase == "Failed":
        return (
            "RehearsalFailed",
            f"the rehearsal pod failed: {pod.status.reason} {pod.status.message}".strip(),
        )
    scheduled = pod.status.condition("PodScheduled")
    why = scheduled.message if scheduled is not None and scheduled.status == "False" else ""
    waits = why_not_ready(pod).text
    return "RehearsalNotRun", f"the rehearsal pod does not run{waits}{f': {why}' if why else ''}"


def refusal(said: str, files: Mapping[str, str]) -> str:
    """The daemon's own reasons in one line, with the line of the file that they are about."""
    found = reasons(said) or [said.strip()[-500:] or "slurmctld ended without a word"]
    line = next(filter(None, (offending_line(reason, files) for reason in found)), "")
    told = "; ".join(found[-_LINES:])
    return f"{told} ({line})" if line else told


def reasons(said: str) -> list[str]:
    """The texts of errors, without their time, what is always said, and repetitions."""
    found: list[str] = []
    for line in said.splitlines():
        for mark in ("error: ", "fatal: "):
            _, there, text = line.partition(mark)
            if there and text not in found and not any(noise in text for noise in _NOISE):
                found.append(text)
            if there:
                break
    return found

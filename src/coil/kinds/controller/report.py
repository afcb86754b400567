"""What a Controller's conditions say (docs: manager). Pure.

The reference fills no conditions; these are coil's own:

| type | true when |
|---|---|
| Reconciled | every child object is as wanted |
| Available | the slurmctld pod that the Service points at is ready |
| SlurmReachable | the operator gets answers from Slurm |
| ConfigurationLive | slurmctld runs with the wanted configuration, no slurmd with an earlier one |
| ConfigurationRejected | the wanted configuration is refused and an earlier one stays; Unknown: not tried |
| NeedsAttention | something can be built, but hardly does what was meant |
"""

from collections.abc import Iterable, Sequence

import msgspec

from coil.api.accounting import Accounting
from coil.api.conditions import find
from coil.api.controller import Controller
from coil.api.meta import Condition
from coil.kinds.controller.differing import NODES_DIFFER, few, unfit
from coil.kinds.controller.live import NO_WAY, Outcome, nodes_with, present
from coil.kinds.controller.rehearsal import REFUSED_REASON, Verdict
from coil.kinds.podwaits import why_not_ready
from coil.kinds.status import AVAILABLE, SLURM_REACHABLE, Truth, condition
from coil.kube.views import PodView

NEEDS_ATTENTION = "NeedsAttention"
CONFIGURATION_LIVE = "ConfigurationLive"
CONFIGURATION_REJECTED = "ConfigurationRejected"
GOES_ON = "which goes on with the one before but would not start with this"
MEND = "mend what only slurmd reads (gres.conf, cgroup.conf); it goes through by itself"


class Slurm(msgspec.Struct, frozen=True, gc=False):
    """What is known about the way to Slurm."""

    reachable: Truth
    reason: str
    message: str


def available(
    controller: Controller, pods: Iterable[PodView], chosen: str | None, obstacles: str = ""
) -> Condition:
    """Whether the pod with the active label is ready; for an external slurmctld nobody here knows.

    `obstacles` are added to the message while it is not.
    """
    if controller.spec.external:
        return condition(controller, AVAILABLE, "Unknown", "External", "slurmctld runs outside Kubernetes")
    pod = next((pod for pod in pods if pod.metadata.name == chosen), None)
    if pod is None:
        return condition(controller, AVAILABLE, "False", "NoPod", "there is no active slurmctld pod")
    if pod.terminating:
        return condition(controller, AVAILABLE, "False", "Terminating", f"pod {chosen} is being replaced")
    if not pod.ready:
        message = f"pod {chosen} is not ready{why_not_ready(pod).text}{obstacles}"
        return condition(controller, AVAILABLE, "False", "NotReady", message)
    return condition(controller, AVAILABLE, "True", "Ready", f"slurmctld runs in pod {chosen}")


def obstacles(accounting: Accounting | None, complaint: str) -> str:
    """What may keep slurmctld from starting: a slurmdbd that is not there, else its own fatal error.

    A slurmctld that waits for slurmdbd is killed by its probes and calls that fatal.
    """
    dbd = find(accounting.status.conditions, AVAILABLE) if accounting is not None else None
    if accounting is not None and dbd is not None and dbd.status == "False":
        return f"; Accounting {accounting.metadata.name} is not available: a new slurmctld waits for it"
    return f"; slurmctld says: {complaint}" if complaint else ""


def slurm_reachable(
    controller: Controller, slurm: Slurm | None, live: Sequence[Condition]
) -> Condition | None:
    """What the operator's own client meets; what was said before stays while nothing new is known.

    An outage keeps its first message: what the network says differs from try to try, and each difference
    would be a write.
    """
    old = find(live, SLURM_REACHABLE)
    if slurm is None:
        return old
    told = condition(controller, SLURM_REACHABLE, slurm.reachable, slurm.reason, slurm.message)
    if slurm.reachable == "False" and old is not None and old.reason == slurm.reason:
        return msgspec.structs.replace(told, message=old.message)
    return told


def needs_attention(
    controller: Controller, advice: Sequence[str], live: Sequence[Condition]
) -> Condition | None:
    """The advice; None while there is none and never was any."""
    if advice:
        return condition(controller, NEEDS_ATTENTION, "True", "Advice", "; ".join(advice))
    if find(live, NEEDS_ATTENTION) is None:
        return None
    return condition(controller, NEEDS_ATTENTION, "False", "NoAdvice", "nothing looks unintended")


def configuration_live(
    controller: Controller, outcome: Outcome, differing: Sequence[str] = (), words: str = ""
) -> Condition:
    """Which configuration slurmctld runs with, and how many slurmds have got it from there.

    Args:
        controller: it.
        outcome: of this pass.
        differing: nodes that go on with an earlier configuration.
        words: what one of them says about it.
    """
    name = f"configuration {outcome.generation}"
    if outcome.refused:
        message = f"{name} is refused by slurmctld, {GOES_ON}: {outcome.message}"
        return condition(controller, CONFIGURATION_LIVE, "False", REFUSED_REASON, message)
    if not outcome.live:
        if outcome.message == NO_WAY:
            return condition(controller, CONFIGURATION_LIVE, "Unknown", "NoRestApi", f"{name}: {NO_WAY}")
        message = f"{name} is not live: {outcome.message}"
        return condition(controller, CONFIGURATION_LIVE, "False", "Applying", message)
    if outcome.since is None:
        message = f"{name} was handed to slurmctld, which does not tell whether it runs with it"
        return condition(controller, CONFIGURATION_LIVE, "True", "Applied", message)
    if differing:
        message = f"{nodes_differ(outcome, differing)}: {words or 'its log says why'}; {MEND}"
        return condition(controller, CONFIGURATION_LIVE, "False", NODES_DIFFER, message)
    message = f"{_live_on(outcome, outcome.since)}{unfit(present(outcome.nodes or {}))}"
    return condition(controller, CONFIGURATION_LIVE, "True", "Live", message)


def nodes_differ(outcome: Outcome, differing: Sequence[str]) -> str:
    """How the message begins when nodes go on with an earlier configuration."""
    told = _live_on(outcome, outcome.since or 0)
    return f"{told}; an earlier one stays on {few(differing)}; slurmd of {differing[0]} says"


def _live_on(outcome: Outcome, since: int) -> str:
    here = present(outcome.nodes or {})
    where = f"on slurmctld and {nodes_with(since, here)} of {len(here)} nodes"
    return f"configuration {outcome.generation} is live {where}"


def configuration_rejected(
    controller: Controller, verdict: Verdict | None, live: Sequence[Condition]
) -> Condition | None:
    """Whether the wanted configuration is kept from slurmctld; what was said before stays during a trial."""
    old = find(live, CONFIGURATION_REJECTED)
    if verdict is None or (not verdict.open and not verdict.reason):
        return old
    name = f"configuration {verdict.generation}"
    if verdict.open:
        if not verdict.tried and (old is None or old.status == "False"):
            return old
        return condition(controller, CONFIGURATION_REJECTED, "False", "Accepted", f"{name} may be applied")
    kept = "the one before stays in place"
    if verdict.reason == REFUSED_REASON:
        message = f"{name} is refused by slurmctld, {kept}: {verdict.message}"
        return condition(controller, CONFIGURATION_REJECTED, "True", REFUSED_REASON, message)
    message = f"{name} could not be tried, {kept}: {verdict.message}"
    return condition(controller, CONFIGURATION_REJECTED, "Unknown", verdict.reason, message)

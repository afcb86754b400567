"""What a pass over a RestApi does, and why (spec: control-plane 7). Pure."""

from collections.abc import Sequence

import msgspec

from coil.api.controller import Controller
from coil.api.meta import Condition
from coil.api.restapi import RestApi
from coil.build import restapi as build
from coil.build.errors import BuildError
from coil.kinds.references import missing_controller
from coil.kinds.status import AVAILABLE, Problem, condition, reconciled
from coil.kinds.steps import Apply, Failed, Step
from coil.kube.views import ManifestView

SERVICE = "Service"
DEPLOYMENT = "Deployment"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The caches at the start of the pass, as far as they concern this RestApi.

    Attributes:
        restapi: with the operator's defaults filled in.
        controller: the one referred to, if it exists.
        service: the live child.
        deployment: the live child.
    """

    restapi: RestApi
    controller: Controller | None = None
    service: ManifestView | None = None
    deployment: ManifestView | None = None


def steps(snapshot: Snapshot) -> tuple[Step, ...]:
    """Both steps, in order; the Service needs no Controller."""
    return (_service(snapshot), _deployment(snapshot))


def conditions(snapshot: Snapshot, problems: Sequence[Problem]) -> list[Condition]:
    """Whether the objects are as wanted, and whether slurmrestd can be reached."""
    return [reconciled(snapshot.restapi, problems), _available(snapshot)]


def _service(snapshot: Snapshot) -> Step:
    try:
        wanted = build.service(snapshot.restapi)
    except BuildError as error:
        return Failed(name=SERVICE, reason="Invalid", message=str(error))
    return Apply(name=SERVICE, wanted=wanted, live=snapshot.service)


def _deployment(snapshot: Snapshot) -> Step:
    """A running slurmrestd stays when its Controller goes: its jobs are not the operator's to break off."""
    if snapshot.controller is None:
        missing = missing_controller(snapshot.restapi.spec.controller_ref.name)
        return Failed(name=DEPLOYMENT, reason=missing.reason, message=missing.message)
    try:
        wanted = build.deployment(snapshot.restapi, snapshot.controller)
    except BuildError as error:
        return Failed(name=DEPLOYMENT, reason="Invalid", message=str(error))
    return Apply(name=DEPLOYMENT, wanted=wanted, live=snapshot.deployment)


def _available(snapshot: Snapshot) -> Condition:
    restapi, deployment = snapshot.restapi, snapshot.deployment
    if deployment is None:
        return condition(restapi, AVAILABLE, "False", "NoDeployment", "there is no slurmrestd yet")
    if deployment.status.get("availableReplicas"):
        return condition(restapi, AVAILABLE, "True", "Available", "slurmrestd can be reached")
    return condition(restapi, AVAILABLE, "False", "NotReady", "no slurmrestd pod is ready")

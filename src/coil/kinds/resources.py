"""Our six kinds as the client and the caches want them named."""

from typing import Any, NamedTuple, TypeVar

from coil.api import keys
from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.kinds import KINDS
from coil.api.loginset import LoginSet
from coil.api.meta import GROUP, VERSION
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.api.token import Token
from coil.kube import core
from coil.kube.resource import KubeObject, Resource
from coil.kube.views import ManifestView

T = TypeVar("T", bound=KubeObject)


def _ours(view: type[T]) -> Resource[T]:
    kind = next(kind for kind in KINDS if kind.view is view)
    return Resource(group=GROUP, version=VERSION, plural=kind.plural, kind=kind.kind, view=view)


CONTROLLERS = _ours(Controller)
ACCOUNTINGS = _ours(Accounting)
RESTAPIS = _ours(RestApi)
NODESETS = _ours(NodeSet)
LOGINSETS = _ours(LoginSet)
TOKENS = _ours(Token)

SERVICE_MONITORS = Resource(
    group="monitoring.coreos.com",
    version="v1",
    plural="servicemonitors",
    kind="ServiceMonitor",
    view=ManifestView,
)
"""Prometheus operator; many clusters do not serve it, so it is never watched."""


class Selection(NamedTuple):
    """Which objects of a kind are worth caching; None is all."""

    labels: str | None = None
    fields: str | None = None


SELECTIONS: dict[Resource[Any], Selection] = {
    core.STATEFUL_SETS: Selection(labels=f"{keys.LABEL_NAME} in ({keys.SLURMCTLD},{keys.SLURMDBD})"),
    core.DEPLOYMENTS: Selection(labels=f"{keys.LABEL_NAME} in ({keys.SLURMRESTD},{keys.LOGIN})"),
    core.SECRETS: Selection(fields="type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token"),
    core.CONFIG_MAP_MANIFESTS: Selection(fields="metadata.name!=kube-root-ca.crt"),
}
"""A cluster holds many objects that have nothing to do with Slurm: its memory is not ours to spend.

A child that loses the label vanishes from the cache; making it anew then meets AlreadyExists, and the patch
that follows gives the label back. Pods have no selection: one that only lost a label must not look deleted.
"""

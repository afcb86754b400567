"""The objects beside the pods: Service and budget of the cluster, sshd_config (spec: nodeset 6). Pure."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from coil.api.nodeset import NodeSet
from coil.build import nodeset as build
from coil.build.errors import BuildError
from coil.kinds.steps import Apply, Failed, Step
from coil.kube.views import ManifestView
from coil.support.objects import JsonObject

SERVICE = "ClusterWorkerService"
BUDGET = "ClusterWorkerPDB"
SSH_CONFIG = "SSHConfig"


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """The companions that the caches hold."""

    service: ManifestView | None = None
    budget: ManifestView | None = None
    ssh_config: ManifestView | None = None


def steps(nodeset: NodeSet, siblings: Iterable[NodeSet], live: Live) -> Iterator[Step]:
    """Make the companions; `siblings` are all NodeSets of the cluster, which own the shared ones together."""
    cluster, owners = nodeset.controller_key, list(siblings)
    yield _step(SERVICE, lambda: build.worker_service(cluster, owners), live.service)
    yield _step(BUDGET, lambda: build.worker_budget(cluster, owners), live.budget)
    if nodeset.spec.ssh.enabled:
        yield _step(SSH_CONFIG, lambda: build.ssh_config(nodeset) or {}, live.ssh_config)


def _step(name: str, make: Callable[[], JsonObject], live: ManifestView | None) -> Step:
    try:
        return Apply(name=name, wanted=make(), live=live)
    except BuildError as error:
        return Failed(name=name, reason="Invalid", message=str(error))

"""Everything one pass over a Controller knows."""

from collections.abc import Mapping

import msgspec

from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.kinds.controller.monitors import Monitor
from coil.kinds.controller.rekeying import JwtKey
from coil.kinds.controller.report import Slurm
from coil.kube.views import ManifestView, PodView

NO_RESTAPI = Slurm("Unknown", "NoRestApi", "no RestApi refers to this Controller")


class Children(msgspec.Struct, frozen=True, kw_only=True):
    """The child objects that are there."""

    internal_service: ManifestView | None = None
    service: ManifestView | None = None
    config: ManifestView | None = None
    stateful_set: ManifestView | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The caches at the start of the pass, as far as they concern this Controller.

    Attributes:
        controller: with the operator's defaults filled in.
        nodesets: of this Controller.
        unreadable: NodeSets of the namespace, of whichever Controller, that were never readable.
        accounting: the one referred to, if it exists.
        config_maps: `data` of the ConfigMaps referred to that exist, by name.
        secrets: data of the Secrets referred to that exist, by name.
        claim: the existing claim named for the state, if it is there.
        monitor: the ServiceMonitor.
        pods: with the Controller's selector labels.
        complaint: the fatal error of a slurmctld that does not start; empty when there is none.
        candidate: the ConfigMap with a configuration that is tried or was refused.
        rehearsals: pods in which configurations are tried.
        slurm: how the operator's client fares; None while that is not known yet.
        jwt_key: what is known about the JWT key of the running slurmctld.
    """

    controller: Controller
    nodesets: tuple[NodeSet, ...] = ()
    unreadable: tuple[str, ...] = ()
    accounting: Accounting | None = None
    config_maps: Mapping[str, Mapping[str, str]] = {}
    secrets: Mapping[str, Mapping[str, bytes]] = {}
    claim: ManifestView | None = None
    live: Children = Children()
    monitor: Monitor = Monitor()
    pods: tuple[PodView, ...] = ()
    complaint: str = ""
    candidate: ManifestView | None = None
    rehearsals: tuple[PodView, ...] = ()
    slurm: Slurm | None = NO_RESTAPI
    jwt_key: JwtKey = JwtKey()

"""The six kinds as the API server knows them (spec: control-plane 1, nodeset 2.1)."""

from typing import Any

import msgspec

from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.api.meta import GROUP
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.api.token import Token


class Column(msgspec.Struct, frozen=True, gc=False):
    """A column that kubectl prints."""

    name: str
    path: str
    type: str = "integer"
    priority: int = 0


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Names and views of one kind; all are namespaced and have a status subresource."""

    kind: str
    view: type[Any]
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    scale: bool = False

    @property
    def singular(self) -> str:
        """Singular name, in lower case."""
        return self.kind.lower()

    @property
    def crd_name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


AGE = Column("AGE", ".metadata.creationTimestamp", "date")

CONTROLLER = Kind(
    kind="Controller", view=Controller, plural="controllers", short_names=("slurmctld",), columns=(AGE,)
)
ACCOUNTING = Kind(
    kind="Accounting", view=Accounting, plural="accountings", short_names=("slurmdbd",), columns=(AGE,)
)
RESTAPI = Kind(kind="RestApi", view=RestApi, plural="restapis", short_names=("slurmrestd",), columns=(AGE,))
LOGINSET = Kind(
    kind="LoginSet",
    view=LoginSet,
    plural="loginsets",
    short_names=("loginsets", "lss", "sackd"),
    columns=(Column("REPLICAS", ".status.replicas"), AGE),
    scale=True,
)
TOKEN = Kind(
    kind="Token",
    view=Token,
    plural="tokens",
    short_names=("tokens", "jwt"),
    columns=(Column("USER", ".spec.username", "string"), Column("IAT", ".status.issuedAt", "date"), AGE),
)
NODESET = Kind(
    kind="NodeSet",
    view=NodeSet,
    plural="nodesets",
    short_names=("nodesets", "nss", "slurmd"),
    columns=(
        Column("DESIRED", ".status.desired"),
        Column("REPLICAS", ".status.replicas"),
        Column("UPDATED", ".status.updatedReplicas"),
        Column("READY", ".status.readyReplicas"),
        Column("IDLE", ".status.slurmIdle", priority=1),
        Column("ALLOCATED", ".status.slurmAllocated", priority=1),
        Column("DOWN", ".status.slurmDown", priority=1),
        Column("DRAIN", ".status.slurmDrain", priority=1),
        AGE,
    ),
    scale=True,
)

KINDS = (ACCOUNTING, CONTROLLER, LOGINSET, NODESET, RESTAPI, TOKEN)
"""All kinds, by name."""

__all__ = [
    "ACCOUNTING",
    "CONTROLLER",
    "KINDS",
    "LOGINSET",
    "NODESET",
    "RESTAPI",
    "TOKEN",
    "Column",
    "Kind",
]

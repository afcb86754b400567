"""Small custom resources for tests of builders."""

from typing import Any

import msgspec

from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi

NAMESPACE = "ns"


def controller(name: str = "slurm", metadata: dict[str, Any] | None = None, **spec: Any) -> Controller:
    """A Controller without a claim; members of `spec` in wire names replace the defaults."""
    given = {
        "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
        "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
        "persistence": {"enabled": False},
        "slurmctld": {"image": "registry.example/slurmctld:1"},
        "logfile": {"image": "registry.example/tools:1"},
    }
    return _read(Controller, name, given | spec, metadata)


def nodeset(name: str = "gpu", metadata: dict[str, Any] | None = None, **spec: Any) -> NodeSet:
    """A NodeSet of the Controller `slurm`."""
    given = {
        "controllerRef": {"name": "slurm"},
        "slurmd": {"image": "registry.example/slurmd:1"},
        "logfile": {"image": "registry.example/tools:1"},
    }
    return _read(NodeSet, name, given | spec, metadata)


def restapi(name: str = "slurm", metadata: dict[str, Any] | None = None, **spec: Any) -> RestApi:
    """A RestApi of the Controller `slurm`."""
    given = {
        "controllerRef": {"name": "slurm"},
        "slurmrestd": {"image": "registry.example/slurmrestd:1"},
    }
    return _read(RestApi, name, given | spec, metadata)


def accounting(name: str = "acct", metadata: dict[str, Any] | None = None, **spec: Any) -> Accounting:
    """An Accounting with a database."""
    given = {
        "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
        "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
        "storageConfig": {"host": "db", "passwordKeyRef": {"name": "db", "key": "pw"}},
        "slurmdbd": {"image": "registry.example/slurmdbd:1"},
    }
    return _read(Accounting, name, given | spec, metadata)


def _read(view: type[Any], name: str, spec: dict[str, Any], metadata: dict[str, Any] | None) -> Any:
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", **(metadata or {})}
    return msgspec.convert({"metadata": meta, "spec": spec}, view)

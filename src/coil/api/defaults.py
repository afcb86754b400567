"""What the operator assumes where an object says nothing; never written back.

Reading an object already fills members that have one fixed default. Here are the defaults that depend on
other members, or on the absence of a whole object (spec: control-plane 4, nodeset 2.2).
"""

from typing import TypeVar

import msgspec

from coil.api import keys
from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.api.restapi import RestApi
from coil.api.storage import Persistence
from coil.api.token import Token

K = TypeVar("K")

_SERVICE_PORTS: dict[type, int] = {
    Controller: keys.PORT_SLURMCTLD,
    Accounting: keys.PORT_SLURMDBD,
    RestApi: keys.PORT_SLURMRESTD,
    LoginSet: keys.PORT_SSH,
}


def with_defaults(obj: K) -> K:
    """The object with every operator-side default filled in; the object itself is not changed."""
    if isinstance(obj, Controller) and obj.spec.persistence is None:
        return _with_port(_replace_spec(obj, persistence=Persistence()))
    if isinstance(obj, Token) and not obj.spec.lifetime:
        return _replace_spec(obj, lifetime="15m")
    return _with_port(obj)


def _with_port(obj: K) -> K:
    port = _SERVICE_PORTS.get(type(obj))
    if port is None or obj.spec.service.port:  # type: ignore[attr-defined]
        return obj
    return _replace_spec(obj, service=msgspec.structs.replace(obj.spec.service, port=port))  # type: ignore[attr-defined]


def _replace_spec(obj: K, **changes: object) -> K:
    spec = msgspec.structs.replace(obj.spec, **changes)  # type: ignore[attr-defined]
    return msgspec.structs.replace(obj, spec=spec)  # type: ignore[type-var]

"""The typed round trip: what is left of a JSON object after Kubernetes has read and written it.

A schemaless member of a custom resource (a container, a pod spec) is plain JSON. Kubernetes reads it
into a type and writes it again: unknown members vanish, quantities get their canonical spelling, empty
members are left out, required ones and some structs are always there. coil does the same before it
hashes (spec: nodeset 11.1), merges and compares, so that a typing error is found here, with its path,
and not by the API server.

The members of each type come from lightkube-models. What those do not say, namely which scalars may be
explicitly zero and which structs are always written, is listed here; it is part of the API's Go types.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from lightkube.models import core_v1

from coil.build import quantity
from coil.build.errors import BuildError
from coil.support.objects import JsonObject

EXPLICIT_ZERO = frozenset(
    {
        "activeDeadlineSeconds",
        "allocateLoadBalancerNodePorts",
        "allowPrivilegeEscalation",
        "apiGroup",
        "automountServiceAccountToken",
        "defaultMode",
        "enableServiceLinks",
        "expirationSeconds",
        "fsGroup",
        "hostProcess",
        "hostUsers",
        "hostnameOverride",
        "maxSurge",
        "maxUnavailable",
        "minAvailable",
        "minDomains",
        "mode",
        "optional",
        "partition",
        "priority",
        "privileged",
        "progressDeadlineSeconds",
        "readOnlyRootFilesystem",
        "replicas",
        "revisionHistoryLimit",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "service",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "storageClassName",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
    }
)
"""Members that Go holds behind a pointer: zero, false and empty text mean something and are kept."""

ALWAYS = frozenset(
    {
        ("Container", "resources"),
        ("EphemeralContainer", "resources"),
        ("PersistentVolumeClaimSpec", "resources"),
        ("PersistentVolumeClaimTemplate", "metadata"),
    }
)
"""Structs that Go writes even when they are empty."""

_QUANTITY = "resource.Quantity"
_QUANTITY_MAPS = frozenset({"limits", "requests", "overhead", "capacity", "hard"})
_SCALARS = {str: "text", bool: "true or false", int: "a whole number"}

Read = Callable[[Any, str], Any]


class _Member(NamedTuple):
    name: str
    forced: bool
    read: Read
    zero: Callable[[], Any]


def container(value: JsonObject, where: str) -> JsonObject:
    """A core/v1 Container as Kubernetes writes it; `where` is the path for errors.

    Raises:
        BuildError: a member has the wrong type or holds no quantity where one is needed.
    """
    return struct(core_v1.Container, value, where)


def pod_spec(value: JsonObject, where: str) -> JsonObject:
    """A core/v1 PodSpec as Kubernetes writes it (`containers` is always there, null if absent)."""
    return struct(core_v1.PodSpec, value, where)


def struct(kind: type[msgspec.Struct], value: Any, where: str) -> JsonObject:
    """`value` read as `kind` and written again."""
    if not isinstance(value, dict):
        raise BuildError(where, f"is {value!r}, must be an object")
    written: JsonObject = {}
    for name, forced, read, zero in _members(kind):
        item = value.get(name)
        if item is not None:
            item = read(item, f"{where}.{name}")
        if item is not None:
            written[name] = item
        elif forced:
            written[name] = zero()
    return written


@cache
def _members(kind: type[msgspec.Struct]) -> tuple[_Member, ...]:
    members: list[_Member] = []
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        forced = field.required or (kind.__name__, name) in ALWAYS
        plain = _without_none(field.type)
        read = _quantity if _QUANTITY in str(kind.__annotations__[field.name]) else _reader(plain, name)
        keep = forced or name in EXPLICIT_ZERO
        members.append(_Member(name, forced, read if keep else _non_zero(plain, read), _zero(plain)))
    return tuple(members)


def _without_none(kind: Any) -> Any:
    options = [option for option in get_args(kind) if option is not NoneType]
    return options[0] if len(options) == 1 and NoneType in get_args(kind) else kind


def _non_zero(kind: Any, read: Read) -> Read:
    """Leave out a zero value, except a struct's: an empty object there says that it is present."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return read
    return lambda item, where: read(item, where) or None


def _zero(kind: Any) -> Callable[[], Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return lambda: struct(kind, {}, kind.__name__)
    return {str: str, int: int, bool: bool}.get(kind, lambda: None)


def _reader(kind: Any, name: str) -> Read:
    if kind in _SCALARS:
        return _scalar(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return lambda item, where: struct(kind, item, where)
    if kind is dict or get_origin(kind) is dict:
        return _map(_quantity if name in _QUANTITY_MAPS else _scalar(str))
    if get_origin(kind) is list:
        return _list(_reader(get_args(kind)[0], name))
    if set(get_args(kind)) == {int, str}:
        return _int_or_string
    return lambda item, _where: item


def _scalar(kind: type) -> Read:
    def read(item: Any, where: str) -> Any:
        if not isinstance(item, kind) or (kind is int and isinstance(item, bool)):
            raise BuildError(where, f"is {item!r}, must be {_SCALARS[kind]}")
        return item

    return read


def _int_or_string(item: Any, where: str) -> Any:
    if isinstance(item, bool) or not isinstance(item, int | str):
        raise BuildError(where, f"is {item!r}, must be a number or a name")
    return item


def _quantity(item: Any, where: str) -> str:
    try:
        return quantity.canonical(item)
    except BuildError as error:
        raise BuildError(where, error.what) from None


def _map(read: Read) -> Read:
    def read_map(item: Any, where: str) -> JsonObject:
        if not isinstance(item, dict):
            raise BuildError(where, f"is {item!r}, must be an object")
        return {name: read(value, f"{where}.{name}") for name, value in item.items()}

    return read_map


def _list(read: Read) -> Read:
    def read_list(item: Any, where: str) -> list[Any]:
        if not isinstance(item, list):
            raise BuildError(where, f"is {item!r}, must be a list")
        return [read(value, f"{where}[{index}]") for index, value in enumerate(item)]

    return read_list

"""Strategic merge of what a user asks for over what coil builds.

Use:

    container = merge_container(built, spec.slurmctld)
    pod_spec = merge_pod_spec(built, spec.template.spec)

Rules (spec: control-plane 3.3 and 3.4, nodeset 5.6): zero values of the override count as not given;
objects merge member by member; some lists merge by a key, all others are replaced; `args` are added.
Two deviations, both only where the API server would refuse the plain result: members of which one
excludes the others (probe and lifecycle handlers, `value` and `valueFrom`) are not mixed, and a probe
override without a handler keeps the built handler.

Nothing here changes its arguments; results share structure with them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from coil.support.objects import JsonObject

MERGE_KEYS = {
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "volumes": "name",
    "resourceClaims": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""Lists whose items merge by a member; every other list is replaced."""

_HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})
_SOURCES = frozenset({"value", "valueFrom"})
_ONE_OF = {
    "livenessProbe": _HANDLERS,
    "readinessProbe": _HANDLERS,
    "startupProbe": _HANDLERS,
    "preStop": _HANDLERS,
    "postStart": _HANDLERS,
    "env": _SOURCES,
}
"""Objects (for `env`: items) of which at most one of the named members may be set."""


def prune(value: JsonObject) -> JsonObject:
    """`value` without members that are null, false, 0, empty text or, after pruning, an empty object.

    Lists are not entered and empty lists stay. So an override cannot say `runAsUser: 0`.
    """
    pruned = {name: prune(item) if isinstance(item, dict) else item for name, item in value.items()}
    return {name: item for name, item in pruned.items() if isinstance(item, list) or item}


def merge(base: JsonObject, override: JsonObject) -> JsonObject:
    """Strategic merge of a pruned `override` over `base`."""
    merged = dict(base)
    for name, item in override.items():
        merged[name] = _merge_member(name, base[name], item) if name in base else _collapse(name, item)
    return merged


def merge_container(base: JsonObject, override: JsonObject) -> JsonObject:
    """The built container with the user's container merged over it; arguments are added, not replaced."""
    args = [*base.get("args", ()), *override.get("args", ())]
    merged = merge(base, prune({name: item for name, item in override.items() if name != "args"}))
    if args:
        merged["args"] = args
    return merged


def merge_pod_spec(base: JsonObject, override: JsonObject) -> JsonObject:
    """The built pod spec with the user's merged over it; containers are added, never merged by name."""
    added = ("containers", "initContainers")
    merged = merge(base, prune({name: item for name, item in override.items() if name not in added}))
    for name in added:
        both = [*(base.get(name) or ()), *(override.get(name) or ())]
        if both:
            merged[name] = both
    return merged


def merge_lists(base: Sequence[Any], override: Sequence[Any], key: str, name: str = "") -> list[Any]:
    """Merge two lists of objects by member `key`.

    Both relative orders are kept; where they leave a choice, items of `override` come first. Items of
    `override` with the same key become one, the later members winning.
    """
    position = {item.get(key): index for index, item in enumerate(base)}
    wanted = _by_key(override, key, name)
    rest = [(index, item) for index, item in enumerate(base) if item.get(key) not in wanted]
    merged: list[Any] = []
    for value, item in wanted.items():
        partner = position.get(value)
        if partner is not None:
            while rest and rest[0][0] < partner:
                merged.append(rest.pop(0)[1])
            merged.append(_merge_objects(name, base[partner], item))
        else:
            merged.append(item)
    return merged + [item for _, item in rest]


def _merge_member(name: str, base: Any, item: Any) -> Any:
    if isinstance(base, dict) and isinstance(item, dict):
        return _merge_objects(name, base, item)
    if name in MERGE_KEYS and isinstance(base, list) and isinstance(item, list):
        return merge_lists(base, item, MERGE_KEYS[name], name)
    return _collapse(name, item)


def _merge_objects(name: str, base: JsonObject, item: JsonObject) -> JsonObject:
    exclusive = _ONE_OF.get(name, frozenset())
    if exclusive.intersection(item):
        base = {member: value for member, value in base.items() if member not in exclusive}
    return merge(base, item)


def _collapse(name: str, item: Any) -> Any:
    """`item` as it is when there is nothing to merge it over, repeated list items made one."""
    if isinstance(item, dict):
        return merge({}, item)
    key = MERGE_KEYS.get(name)
    return list(_by_key(item, key, name).values()) if key and isinstance(item, list) else item


def _by_key(items: Iterable[JsonObject], key: str, name: str) -> dict[Any, JsonObject]:
    found: dict[Any, JsonObject] = {}
    for item in items:
        value = item.get(key)
        found[value] = _merge_objects(name, found.get(value, {}), item)
    return found

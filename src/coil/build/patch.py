"""What to send so that a live object becomes the wanted one; nothing when it already is.

    merge_patch(live, wanted)   # a JSON merge patch, {} when there is nothing to do

`live` is the object as the API server returned it, `wanted` as a builder made it. Which members may
change is a rule per kind (spec: control-plane 3.6). Defaults that the server fills in count as wanted
and members that it allocates are kept, so a second pass over an unchanged world writes nothing (Q13).
"""

from typing import Any

from coil.build import templates
from coil.build.defaults import with_server_defaults
from coil.support.objects import JsonObject

_SPEC_MEMBERS = {
    "Deployment": ("minReadySeconds", "replicas", "strategy", "template"),
    "StatefulSet": (
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "template",
        "updateStrategy",
    ),
    "PodDisruptionBudget": ("maxUnavailable", "minAvailable", "selector"),
    "ServiceMonitor": ("endpoints", "namespaceSelector", "selector"),
}
_WORKLOADS = frozenset({"Deployment", "StatefulSet"})
_DATA = {"ConfigMap": ("data", "binaryData"), "Secret": ("data",)}
_CLUSTER_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def merge_patch(live: JsonObject, wanted: JsonObject) -> JsonObject:
    """The JSON merge patch that makes `live` what `wanted` asks for.

    Labels and annotations of others stay. An immutable ConfigMap or Secret is left alone. Whether a pod
    template becomes the built one or stays is decided by `coil.build.templates`.

    Raises:
        BuildError: `wanted` has a member of a type that the API server refuses.
    """
    kind = wanted["kind"]
    if kind in _DATA and live.get("immutable"):
        return {}
    complete = with_server_defaults(wanted)
    if kind in _WORKLOADS:
        complete = templates.settled(live, complete)
    patch: JsonObject = {}
    if metadata := _metadata(live["metadata"], complete["metadata"]):
        patch["metadata"] = metadata
    if kind in _DATA:
        patch |= difference(_pick(live, _DATA[kind]), _pick(complete, _DATA[kind]))
    elif spec := _spec(kind, live.get("spec") or {}, complete["spec"]):
        patch["spec"] = spec
    return patch


def difference(live: JsonObject, wanted: JsonObject) -> JsonObject:
    """JSON merge patch (RFC 7386) from `live` to `wanted`; null and absent mean the same."""
    patch: JsonObject = {}
    for name in live.keys() | wanted.keys():
        old, new = live.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := difference(old, new):
                patch[name] = inner
        elif not _same(old, new):
            patch[name] = new
    return dict(sorted(patch.items()))


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        return not difference(old, new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return old == new


def _metadata(live: JsonObject, wanted: JsonObject) -> JsonObject:
    patch: JsonObject = {}
    for name in ("annotations", "labels"):
        current = live.get(name) or {}
        changed = {key: value for key, value in wanted.get(name, {}).items() if current.get(key) != value}
        if changed:
            patch[name] = changed
    owners = _owners(live.get("ownerReferences") or [], wanted.get("ownerReferences", []))
    if owners is not None:
        patch["ownerReferences"] = owners
    return patch


def _owners(live: list[JsonObject], wanted: list[JsonObject]) -> list[JsonObject] | None:
    """The owners to write, None when they are right.

    An object with a controller has exactly the wanted owners. An object shared by several owners
    gets the missing ones; the garbage collector removes those that are gone.
    """
    if any(owner.get("controller") for owner in wanted):
        return None if _same(live, wanted) else wanted
    known = {owner["uid"] for owner in live}
    missing = [owner for owner in wanted if owner["uid"] not in known]
    return [*live, *missing] if missing else None


def _spec(kind: str, live: JsonObject, wanted: JsonObject) -> JsonObject:
    if kind == "Service":
        return difference(live, _with_allocated(live, wanted))
    if kind in _SPEC_MEMBERS:
        live, wanted = _pick(live, _SPEC_MEMBERS[kind]), _pick(wanted, _SPEC_MEMBERS[kind])
    if "updateStrategy" in wanted:
        _keep_rolling_defaults(live, wanted)
    return difference(live, wanted)


def _pick(value: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: value[name] for name in names if value.get(name) is not None}


def _keep_rolling_defaults(live: JsonObject, wanted: JsonObject) -> None:
    """Newer servers fill in members of the rolling update that this one does not name."""
    rolling = (live.get("updateStrategy") or {}).get("rollingUpdate") or {}
    strategy = wanted["updateStrategy"]
    if "rollingUpdate" in strategy:
        wanted["updateStrategy"] = strategy | {"rollingUpdate": rolling | strategy["rollingUpdate"]}


def _with_allocated(live: JsonObject, wanted: JsonObject) -> JsonObject:
    """`wanted` with what the server chose for the live Service and would choose again."""
    kept: JsonObject = {}
    if wanted["type"] != "ExternalName":
        kept = _pick(live, _CLUSTER_ADDRESSES)
    if wanted["type"] == "LoadBalancer" and wanted["externalTrafficPolicy"] == "Local":
        kept |= _pick(live, ("healthCheckNodePort",))
    if "ports" in wanted and wanted["type"] in {"NodePort", "LoadBalancer"}:
        ports = {_port_key(port): port for port in live.get("ports") or ()}
        wanted = wanted | {"ports": [_with_node_port(ports, port) for port in wanted["ports"]]}
    return kept | wanted


def _port_key(port: JsonObject) -> tuple[int, str]:
    return port["port"], port.get("protocol", "TCP")


def _with_node_port(live: dict[tuple[int, str], JsonObject], wanted: JsonObject) -> JsonObject:
    allocated = live.get(_port_key(wanted), {}).get("nodePort")
    return {"nodePort": allocated, **wanted} if allocated else wanted

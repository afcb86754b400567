"""Which pod template a workload gets: the one that is built now, or the one that it has.

    manifest = templates.marked(manifest, owner, apart=...)   # by every builder of a workload
    wanted = templates.settled(live, complete)                # when it is compared with the live one

Pods are made anew when their resource asks for something else, never because another program builds them:
another operator before this one, or another version of this one (docs/adr/0071). What was asked for last
is remembered on the workload itself, in its annotation `pod-template`: `ASKED.LEFT`, two hashes.

| live workload | pod template |
|---|---|
| without the mark: of another operator | stays, unless it shows that the resource was changed meanwhile |
| ASKED as now, and the template as it was LEFT | stays, whatever would be built now |
| ASKED as now, but somebody changed the template | built: drift is repaired |
| another ASKED | built |
"""

import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any, Protocol

import msgspec

from coil.api import keys
from coil.build.defaults import with_server_defaults
from coil.build.metadata import Owner, counted
from coil.support.objects import JsonObject

_LENGTH = 16
_HASHES = frozenset(
    {
        keys.ANNOTATION_SLURM_KEY_HASH,
        keys.ANNOTATION_JWT_KEY_HASH,
        keys.ANNOTATION_SLURM_CONFIG_HASH,
        keys.ANNOTATION_SLURMDBD_CONF_HASH,
        keys.ANNOTATION_SSH_HOST_KEYS_HASH,
        keys.ANNOTATION_SSHD_CONF_HASH,
        keys.ANNOTATION_SSSD_CONF_HASH,
    }
)
"""Annotations of a pod template that stand for the content of other objects."""

_USERS_OWN = ("image", "resources")
_USERS_OWN_OF_POD = ("nodeSelector", "tolerations")


class MarkedOwner(Owner, Protocol):
    """A custom resource with a spec."""

    @property
    def spec(self) -> msgspec.Struct:
        """What it asks for."""
        ...


def marked(
    manifest: JsonObject, owner: MarkedOwner, *, apart: Collection[str], also: Any = None
) -> JsonObject:
    """The workload with the mark of what its pods are made from.

    Args:
        manifest: a StatefulSet or Deployment as built.
        owner: the custom resource; its whole `spec` counts, and its labels and annotations.
        apart: members of `spec`, as on the wire, that no pod template depends on.
        also: what else the pod template depends on, such as members of another resource.

    Raises:
        BuildError: the workload has a member of a type that the API server refuses.
    """
    asked = _asked(manifest["spec"]["template"], owner, apart, also)
    left = _left(with_server_defaults(manifest)["spec"]["template"])
    return _with_mark(manifest, f"{asked}.{left}")


def settled(live: JsonObject, wanted: JsonObject) -> JsonObject:
    """`wanted` with the pod template that the live workload shall have, and the mark that goes with it."""
    mark = _mark(wanted)
    template = live["spec"]["template"]
    if mark is not None and _stays(live, wanted):
        asked = mark.partition(".")[0]
        kept = wanted | {"spec": wanted["spec"] | {"template": template}}
        return _with_mark(kept, f"{asked}.{_left(template)}")
    built = _with_restart(template, wanted["spec"]["template"])
    return wanted | {"spec": wanted["spec"] | {"template": built}}


def _stays(live: JsonObject, wanted: JsonObject) -> bool:
    before, now = _mark(live), _mark(wanted) or ""
    template = live["spec"]["template"]
    if before is None:
        return _has_what_users_chose(template, wanted["spec"]["template"])
    asked, _, left = before.partition(".")
    return asked == now.partition(".")[0] and left == _left(template)


def _has_what_users_chose(live: JsonObject, built: JsonObject) -> bool:
    """Whether members that no operator chooses by itself are as in the template that is built.

    Otherwise the resource was changed while no operator looked at it.
    """
    theirs, ours = dict(_containers(live)), dict(_containers(built))
    return all(
        _equal(theirs[name], ours[name], _USERS_OWN) for name in theirs.keys() & ours.keys()
    ) and _equal(live["spec"], built["spec"], _USERS_OWN_OF_POD)


def _equal(one: JsonObject, other: JsonObject, members: Collection[str]) -> bool:
    return all((one.get(member) or None) == (other.get(member) or None) for member in members)


def _containers(template: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for member in ("initContainers", "containers"):
        for container in template["spec"].get(member) or ():
            yield container["name"], container


def _asked(template: JsonObject, owner: MarkedOwner, apart: Collection[str], also: Any) -> str:
    spec: JsonObject = msgspec.to_builtins(owner.spec)
    if given := spec.get("template", {}).get("metadata"):
        spec["template"]["metadata"] = counted(given)
    annotations = template["metadata"].get("annotations", {})
    return _hash(
        {
            "spec": {name: value for name, value in spec.items() if name not in apart},
            "metadata": counted({"labels": owner.metadata.labels, "annotations": owner.metadata.annotations}),
            "hashes": {name: value for name, value in annotations.items() if name in _HASHES},
            "also": also,
        }
    )


def _left(template: JsonObject) -> str:
    """The hash of a template; that somebody restarted the pods does not count."""
    metadata = template.get("metadata") or {}
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != keys.RESTARTED_AT}
    return _hash(_present({**template, "metadata": {**metadata, "annotations": annotations}}))


def _with_restart(live: JsonObject, built: JsonObject) -> JsonObject:
    """`built`; a restart that somebody asked for is not taken back, which would be another one."""
    metadata = built["metadata"]
    restarted = ((live.get("metadata") or {}).get("annotations") or {}).get(keys.RESTARTED_AT)
    if not restarted:
        return built
    annotations = {keys.RESTARTED_AT: restarted, **metadata.get("annotations", {})}
    return built | {"metadata": metadata | {"annotations": annotations}}


def _mark(workload: JsonObject) -> str | None:
    return (workload["metadata"].get("annotations") or {}).get(keys.ANNOTATION_POD_TEMPLATE)


def _with_mark(workload: JsonObject, mark: str) -> JsonObject:
    metadata = workload["metadata"]
    annotations = {**metadata.get("annotations", {}), keys.ANNOTATION_POD_TEMPLATE: mark}
    return workload | {"metadata": metadata | {"annotations": annotations}}


def _present(value: Any) -> Any:
    """`value` without nulls, which mean the same as absent members."""
    if isinstance(value, dict):
        return {name: _present(item) for name, item in value.items() if item is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]

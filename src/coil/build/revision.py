"""The revision of a NodeSet: which of its pods are up to date (spec: nodeset 11.1).

    payload = revision.payload(nodeset.spec as JSON)
    name_suffix = revision.hash_of(payload, collisions=0)

Byte exact: taking over a running cluster with another hash would make every worker anew.
"""

import json
from typing import Any

from coil.build import typed
from coil.support.objects import JsonObject

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619
_NO_SSH = {"enabled": False, "sssdConfRef": {"key": ""}}
_REPLACE = {"$patch": "replace"}
# Go's encoder escapes what could end a script element in HTML, and two characters that are
# line ends in JavaScript.
_GO_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def payload(spec: JsonObject) -> JsonObject:
    """What counts for the revision, from a NodeSet's `spec` as it is on the wire.

    Raises:
        BuildError: a container or the pod template has a member of the wrong type.
    """
    counted: JsonObject = {
        "ordinalPadding": spec.get("ordinalPadding", 0),
        "oversubscribeNode": spec.get("oversubscribeNode", False),
        "slurmd": typed.container(spec.get("slurmd") or {}, "spec.slurmd") | _REPLACE,
        "template": _template(spec.get("template") or {}),
    }
    if spec.get("extraConf"):
        counted["extraConf"] = spec["extraConf"]
    if spec.get("logfile"):
        counted["logfile"] = typed.container(spec["logfile"], "spec.logfile") | _REPLACE
    ssh = _ssh(spec.get("ssh") or {})
    if ssh != _NO_SSH:
        counted["ssh"] = ssh | _REPLACE
    return {"spec": counted}


def encode(value: Any) -> bytes:
    """JSON as Go writes it: sorted keys, no blanks, `<`, `>` and `&` escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_GO_ESCAPES).encode()


def hash_of(value: JsonObject, collisions: int = 0) -> str:
    """The hash that names the revision: FNV-1 over the encoded payload and the collision count."""
    code = _FNV_OFFSET
    for byte in encode(value) + str(collisions).encode():
        code = (code * _FNV_PRIME) % 2**32 ^ byte
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(code))


def _template(template: JsonObject) -> JsonObject:
    metadata = template.get("metadata") or {}
    return {
        "metadata": {name: metadata[name] for name in ("annotations", "labels") if metadata.get(name)},
        "spec": typed.pod_spec(template.get("spec") or {}, "spec.template.spec"),
    } | _REPLACE


def _ssh(ssh: JsonObject) -> JsonObject:
    counted: JsonObject = {"enabled": ssh.get("enabled", False), "sssdConfRef": _selector(ssh)}
    if ssh.get("extraSshdConfig"):
        counted["extraSshdConfig"] = ssh["extraSshdConfig"]
    return counted


def _selector(ssh: JsonObject) -> JsonObject:
    selector = ssh.get("sssdConfRef") or {}
    kept = {name: selector[name] for name in ("name", "optional") if selector.get(name) not in (None, "")}
    return {"key": selector.get("key", ""), **kept}

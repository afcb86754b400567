"""Tells at the start when the installed CRDs are older than the operator (field case HLM-10).

Helm does not upgrade CRDs by itself. The API server drops what an older one does not know with a warning at
most, and a user's setting has no effect. Its OpenAPI document shows what it keeps.
"""

from collections.abc import Iterator

from coil.api.crd import definition
from coil.api.kinds import KINDS, Kind
from coil.api.meta import GROUP, VERSION
from coil.kube.client import Client
from coil.kube.errors import ApiError
from coil.support.log import get_logger
from coil.support.objects import JsonObject

_NAMED = 10
"""So many fields are named in the log."""

log = get_logger("definitions")


async def tell_what_is_dropped(client: Client) -> None:
    """One line in the log for each kind whose installed CRD drops fields that this operator reads."""
    try:
        served = await client.openapi(GROUP, VERSION)
    except ApiError as error:
        log.warning("the installed CRDs cannot be compared with those of this version", error=str(error))
        return
    for kind in KINDS:
        if fields := dropped_of(kind, served):
            log.error(
                "the installed CRD is older than this operator and drops fields:"
                " upgrade the chart slurm-operator-crds first",
                crd=kind.crd_name,
                fields=fields[:_NAMED],
                count=len(fields),
            )


def dropped_of(kind: Kind, served: JsonObject) -> list[str]:
    """Fields of the kind that the server does not keep; all when it does not know the kind.

    Args:
        kind: one of ours.
        served: the server's OpenAPI v3 document of our group.
    """
    domain = ".".join(reversed(GROUP.split(".")))
    schemas = served.get("components", {}).get("schemas", {})
    ours = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return list(_dropped(ours, schemas.get(f"{domain}.{VERSION}.{kind.kind}", {}), ""))


def _dropped(ours: JsonObject, theirs: JsonObject, path: str) -> Iterator[str]:
    if theirs.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = theirs.get("properties", {})
    for name, member in ours.get("properties", {}).items():
        here = f"{path}.{name}".removeprefix(".")
        if name in known:
            yield from _dropped(member, known[name], here)
        else:
            yield here
    for below in ("items", "additionalProperties"):
        if isinstance(ours.get(below), dict):
            yield from _dropped(ours[below], theirs.get(below, {}), f"{path}[]")

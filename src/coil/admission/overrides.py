"""The members of custom resources that hold Kubernetes objects: containers, pod specs, Services, claims.

The schema of the custom resource says nothing about what is inside, so it is looked at here.
"""

from collections.abc import Iterator
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from lightkube.models import core_v1

from coil.admission.verdict import MalformedError, distinct, one_text
from coil.build import typed
from coil.build.advice import ineffective
from coil.build.errors import BuildError
from coil.support.objects import JsonObject

_CONTAINERS = (
    *("slurmctld", "reconfigure", "logfile", "slurmdbd", "slurmrestd"),
    *("login", "initconf", "slurmd"),
)
"""Members of any of our specs that are merged over a container."""


class Override(NamedTuple):
    """A Kubernetes object inside a custom resource; `merged` over one of the operator's."""

    where: str
    kind: type[msgspec.Struct]
    value: JsonObject
    merged: bool = True


def overrides(spec: Any) -> Iterator[Override]:
    """Every Kubernetes object inside a spec of one of our kinds."""
    for name in _CONTAINERS:
        if hasattr(spec, name):
            yield Override(f"spec.{name}", core_v1.Container, getattr(spec, name))
    if hasattr(spec, "template"):
        yield Override("spec.template.spec", core_v1.PodSpec, spec.template.spec)
    if hasattr(spec, "service"):
        yield Override("spec.service.spec", core_v1.ServiceSpec, spec.service.spec, merged=False)
    for index, claim in enumerate(getattr(spec, "volume_claim_templates", ())):
        where = f"spec.volumeClaimTemplates[{index}]"
        yield Override(where, core_v1.PersistentVolumeClaim, claim, merged=False)


def check(spec: Any) -> None:
    """Read every override as Kubernetes will.

    Raises:
        MalformedError: members have the wrong type, or hold no quantity where one is needed.
    """
    wrong: list[str] = []
    for override in overrides(spec):
        try:
            typed.struct(override.kind, override.value, override.where)
        except BuildError as error:
            wrong.append(str(error))
    if wrong:
        raise MalformedError(one_text(distinct(wrong)))


def advice(spec: Any) -> Iterator[str]:
    """What of the overrides has no effect; the overrides were checked before."""
    for override in overrides(spec):
        if override.merged:
            yield from ineffective(override.value, override.where)
        yield from _unknown(override.kind, override.value, override.where)


def no_image(spec: Any, *containers: str) -> Iterator[str]:
    """Containers of the operator that have no image yet: none has a default one."""
    for name in containers:
        if not getattr(spec, name).get("image"):
            yield f"spec.{name}.image: is not set; without it Kubernetes refuses the pods"


def _unknown(kind: type[msgspec.Struct], value: JsonObject, where: str) -> Iterator[str]:
    known = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for name, item in value.items():
        if name not in known:
            yield f"{where}.{name}: has no effect, a {kind.__name__} has no such member"
        else:
            yield from _unknown_inside(known[name], item, f"{where}.{name}")


def _unknown_inside(kind: Any, item: Any, where: str) -> Iterator[str]:
    options = [option for option in get_args(kind) if option is not NoneType]
    if get_origin(kind) is not list and len(options) == 1:
        yield from _unknown_inside(options[0], item, where)
    elif isinstance(item, list) and get_origin(kind) is list:
        for index, part in enumerate(item):
            yield from _unknown_inside(options[0], part, f"{where}[{index}]")
    elif isinstance(item, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _unknown(kind, item, where)

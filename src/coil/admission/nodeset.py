"""Rules for NodeSets (spec: nodeset 2.4)."""

from collections.abc import Iterator
from typing import Any

from lightkube.models.core_v1 import PersistentVolumeClaim

from coil.admission import overrides, rules
from coil.admission.facts import Lookups
from coil.admission.verdict import MalformedError, Verdict, verdict
from coil.api.controller import Controller, ControllerSpec
from coil.api.meta import JsonObject, ObjectMeta, SecretKeySelector
from coil.api.names import padded, worker_service
from coil.api.nodeset import NodeSet
from coil.build import nodeset as build
from coil.build import typed
from coil.build.advice import nodeset_advice
from coil.build.errors import BuildError
from coil.build.nodeconf import extra_conf_problem

MIN_RESERVATION_S = 60
"""Slurm counts reservations in minutes."""


def validate(old: NodeSet | None, new: NodeSet, _lookups: Lookups) -> Verdict:
    """Findings about a new NodeSet, or about a change of `old`.

    Raises:
        MalformedError: the duration of a scheduled update is no duration.
    """
    errors = list(_rules(new))
    added = list(_added_rules(new))
    immutable = _immutable(old, new) if old is not None else ()
    before = _added_rules(old) if old is not None else ()
    warnings = [*_advice(new), *([] if errors or added else _build_advice(new))]
    return verdict([*immutable, *errors, *added], warnings, before)


def _rules(nodeset: NodeSet) -> Iterator[str]:
    spec, strategy = nodeset.spec, nodeset.spec.update_strategy
    yield from rules.needed("spec.controllerRef.name", spec.controller_ref.name)
    limit = strategy.rolling_update.max_unavailable
    if limit == "0%" or (isinstance(limit, int) and limit < 1):
        yield f"spec.updateStrategy.rollingUpdate.maxUnavailable: is {limit}, must be at least 1"
    if strategy.scheduled_update is not None and 0 != _duration(nodeset) < MIN_RESERVATION_S:
        yield (
            f"spec.updateStrategy.scheduledUpdate.duration: is {strategy.scheduled_update.duration}, "
            "must be at least 1m"
        )
    if spec.ssh.enabled:
        yield from rules.needed("spec.ssh.sssdConfRef.name", spec.ssh.sssd_conf_ref.name)
    prefix = nodeset.template_hostname
    if prefix and not rules.is_subdomain(prefix.removesuffix("-")):
        yield (
            f"spec.template.spec.hostname: {prefix[:80]!r} must be lower-case letters, digits, dots and "
            "dashes, as in gpu-"
        )
    if problem := extra_conf_problem(nodeset):
        yield problem


def _duration(nodeset: NodeSet) -> float:
    scheduled = nodeset.spec.update_strategy.scheduled_update
    try:
        return scheduled.duration_s if scheduled and scheduled.duration else 0.0
    except ValueError as error:
        raise MalformedError(f"spec.updateStrategy.scheduledUpdate.duration: {error}") from None


def _added_rules(nodeset: NodeSet) -> Iterator[str]:
    """Rules that the reference does not have: without them no pod can be made, or a line is added."""
    spec, name = nodeset.spec, rules.full_name(nodeset.metadata)
    yield from rules.one_line("spec.partition.config", spec.partition.config)
    service = worker_service(spec.controller_ref.name)
    yield from rules.short("spec.controllerRef.name", service, rules.LABEL_LENGTH, "Service")
    if nodeset.daemon:
        yield from rules.short("metadata.name", name, rules.LABEL_LENGTH, "label")
        return
    last = padded(max(spec.replicas - 1, 0), spec.ordinal_padding)
    yield from rules.short("metadata.name", f"{name}-{last}", rules.LABEL_LENGTH, "pod")
    if prefix := nodeset.template_hostname:
        where = "spec.template.spec.hostname"
        yield from rules.short(where, f"{prefix}{last}", rules.LABEL_LENGTH, "host name")


def _immutable(old: NodeSet, new: NodeSet) -> Iterator[str]:
    was, wanted = old.spec.controller_ref.name, new.spec.controller_ref.name
    yield from rules.unchanged("spec.controllerRef.name", was, wanted)
    before, after = (_claims(nodeset.spec.volume_claim_templates) for nodeset in (old, new))
    if before != after:
        yield "spec.volumeClaimTemplates: cannot be changed; make a new NodeSet with other claims"


def _claims(templates: list[JsonObject]) -> list[Any]:
    """Templates as Kubernetes reads them: spellings of quantities and empty members make no difference."""
    try:
        return [typed.struct(PersistentVolumeClaim, template, "") for template in templates]
    except BuildError:
        return list(templates)


def _advice(nodeset: NodeSet) -> Iterator[str]:
    yield from overrides.advice(nodeset.spec)
    yield from overrides.no_image(nodeset.spec, "slurmd", "logfile")


def _build_advice(nodeset: NodeSet) -> Iterator[str]:
    """What the operator will say of an object that keeps the rules."""
    yield from nodeset_advice(nodeset)
    inputs = build.PodInputs(controller=_stand_in(nodeset))
    try:
        template = build.template(nodeset, inputs, "")
        if not nodeset.daemon:
            build.claims(template, build.stamp_ordinal(template, 0))
    except BuildError as error:
        yield f"{error}; no pod can be made"


def _stand_in(nodeset: NodeSet) -> Controller:
    """A Controller to build a pod with: what it really says has no part in what is checked here."""
    metadata = ObjectMeta(name=nodeset.spec.controller_ref.name, namespace=nodeset.metadata.namespace)
    key = SecretKeySelector(name="key", key="key")
    return Controller(metadata=metadata, spec=ControllerSpec(slurm_key_ref=key))

"""Rules for RestApis (spec: control-plane 13.3)."""

from collections.abc import Iterator

from coil.admission import overrides, rules
from coil.admission.facts import Lookups
from coil.admission.verdict import Verdict, verdict
from coil.api import names
from coil.api.restapi import RestApi
from coil.build.advice import external_addresses


def validate(old: RestApi | None, new: RestApi, _lookups: Lookups) -> Verdict:
    """Findings about a new RestApi, or about a change of `old`."""
    return verdict(_name(new) if old is None else (), _advice(new))


def _name(restapi: RestApi) -> Iterator[str]:
    made = names.restapi(rules.full_name(restapi.metadata))
    yield from rules.short("metadata.name", made, rules.LABEL_LENGTH, "Service")
    yield from rules.no_dots("metadata.name", made, "Service")


def _advice(restapi: RestApi) -> Iterator[str]:
    if not restapi.spec.controller_ref.name:
        yield "spec.controllerRef.name: is not set; no pod can be made"
    yield from external_addresses(restapi.spec.service.spec)
    yield from overrides.advice(restapi.spec)
    yield from overrides.no_image(restapi.spec, "slurmrestd")

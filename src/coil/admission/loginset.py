"""Rules for LoginSets (spec: control-plane 13.4)."""

from collections.abc import Iterator

from coil.admission import overrides, rules
from coil.admission.facts import Lookups
from coil.admission.verdict import Verdict, verdict
from coil.api.loginset import LoginSet
from coil.build.advice import external_addresses


def validate(old: LoginSet | None, new: LoginSet, _lookups: Lookups) -> Verdict:
    """Findings about a new LoginSet, or about a change of `old`."""
    errors = [
        *rules.needed("spec.controllerRef.name", new.spec.controller_ref.name),
        *rules.needed("spec.sssdConfRef.name", new.spec.sssd_conf_ref.name),
    ]
    if old is None:
        errors += _name(new)
    else:
        was, wanted = old.spec.controller_ref.name, new.spec.controller_ref.name
        errors += rules.unchanged("spec.controllerRef.name", was, wanted)
    return verdict(errors, _advice(new))


def _name(loginset: LoginSet) -> Iterator[str]:
    made = rules.full_name(loginset.metadata)
    yield from rules.short("metadata.name", made, rules.LABEL_LENGTH, "Service")
    yield from rules.no_dots("metadata.name", made, "Service")


def _advice(loginset: LoginSet) -> Iterator[str]:
    yield from external_addresses(loginset.spec.service.spec)
    yield from overrides.advice(loginset.spec)
    yield from overrides.no_image(loginset.spec, "login", "initconf")

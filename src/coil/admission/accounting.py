"""Rules for Accountings (spec: control-plane 13.2)."""

from collections.abc import Iterator

from coil.admission import overrides, rules
from coil.admission.facts import Lookups
from coil.admission.verdict import Verdict, verdict
from coil.api import names
from coil.api.accounting import Accounting
from coil.build import accounting as build
from coil.build.advice import external_addresses
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes


def validate(old: Accounting | None, new: Accounting, _lookups: Lookups) -> Verdict:
    """Findings about a new Accounting, or about a change of `old`."""
    errors = list(_lines(new))
    if old is None:
        errors += _name(new)
        return verdict(errors, _advice(new, errors))
    immutable = rules.same_key(old.jwt_ref, new.jwt_ref)
    return verdict([*immutable, *errors], _advice(new, errors), before=_lines(old))


def _name(accounting: Accounting) -> Iterator[str]:
    if not accounting.spec.external:
        made = names.accounting(rules.full_name(accounting.metadata))
        yield from rules.short("metadata.name", made, rules.WORKLOAD_LENGTH, "StatefulSet")
        yield from rules.no_dots("metadata.name", made, "Service")


def _lines(accounting: Accounting) -> Iterator[str]:
    spec = accounting.spec
    if spec.external_config is not None:
        yield from rules.one_word("spec.externalConfig.host", spec.external_config.host)
    if spec.storage_config is not None:
        for member in ("host", "database", "username"):
            # A backslash at the end joins no line here: the value is written in quotes then.
            text = getattr(spec.storage_config, member).rstrip("\\ \t")
            yield from rules.one_line(f"spec.storageConfig.{member}", text)


def _advice(accounting: Accounting, errors: list[str]) -> Iterator[str]:
    yield from external_addresses(accounting.spec.service.spec)
    yield from overrides.advice(accounting.spec)
    if accounting.spec.external or errors:
        return
    yield from overrides.no_image(accounting.spec, "slurmdbd")
    try:
        build.config_secret(accounting, b"password")
        build.service(accounting)
        build.stateful_set(accounting, PodHashes())
    except BuildError as error:
        yield f"{error}; no pod can be made"

"""Rules for Tokens (spec: control-plane 13.5)."""

from collections.abc import Iterator

from coil.admission import rules
from coil.admission.facts import Lookups
from coil.admission.verdict import MalformedError, Verdict, verdict
from coil.api import names
from coil.api.token import Token


def validate(old: Token | None, new: Token, _lookups: Lookups) -> Verdict:
    """Findings about a new Token, or about a change of `old`.

    Raises:
        MalformedError: the lifetime is no duration.
    """
    try:
        lifetime = new.lifetime_s
    except ValueError as error:
        raise MalformedError(f"spec.lifetime: {error}") from None
    errors = () if old is None else rules.same_key(old.jwt_ref, new.jwt_ref)
    return verdict(errors, _advice(new, lifetime))


def _advice(token: Token, lifetime: float) -> Iterator[str]:
    secret, _ = names.token_secret(token)
    if token.metadata.name and not rules.is_subdomain(secret):
        yield (
            f"spec.username: makes the name {secret[:80]!r}, which no Secret can have; "
            "give another with spec.secretRef"
        )
    if lifetime == 0:
        yield f"spec.lifetime: {token.spec.lifetime} makes tokens that are expired at once"

"""What a Token's status says. Pure.

| condition | true when |
|---|---|
| Reconciled | the Secret is as wanted |
| Available | the Secret holds a token that Slurm accepts |
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from coil.api.meta import Condition, JsonObject
from coil.api.token import Token
from coil.kinds.status import AVAILABLE, Problem, StatusMembers, condition, reconciled
from coil.kinds.token.plan import Snapshot
from coil.slurm.tokens import Claims
from coil.support.clock import rfc3339


def conditions(
    snapshot: Snapshot, claims: Claims | None, problems: Sequence[Problem], now: float
) -> list[Condition]:
    """Both conditions. A token that expired as its owner wanted is no problem of the operator (Q14)."""
    return [reconciled(snapshot.token, problems), _available(snapshot, claims, now)]


def members(token: Token, claims: Claims | None) -> StatusMembers:
    """When the stored token was issued; what was known stays while no token can be read."""
    known = token.status.issued_at
    issued = rfc3339(datetime.fromtimestamp(claims.issued_at, UTC)) if claims is not None else known
    return StatusMembers(live=_issued(known), wanted=_issued(issued))


def _issued(text: str | None) -> JsonObject:
    return {"issuedAt": text} if text else {}


def _available(snapshot: Snapshot, claims: Claims | None, now: float) -> Condition:
    token, (name, key) = snapshot.token, snapshot.where
    if claims is not None and not claims.expired(now):
        message = f'key "{key}" of Secret "{name}" holds a token for user {claims.username}'
        return condition(token, AVAILABLE, "True", "Valid", message)
    cure = "" if token.spec.refresh else f'; spec.refresh is false: delete Secret "{name}" to get a new one'
    if claims is not None:
        end = rfc3339(datetime.fromtimestamp(claims.expires_at, UTC))
        return condition(token, AVAILABLE, "False", "Expired", f"the token expired at {end}{cure}")
    if not snapshot.signing_key:
        return condition(token, AVAILABLE, "Unknown", "KeyMissing", "the key to check the token is missing")
    if not snapshot.text:
        return condition(token, AVAILABLE, "False", "NoToken", "there is no token yet")
    message = f'what Secret "{name}" holds is no token signed with the key{cure}'
    return condition(token, AVAILABLE, "False", "NotSigned", message)

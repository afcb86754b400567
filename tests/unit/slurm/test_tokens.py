"""Tokens: the claims slurmctld and other tools read, and who may not sign them."""

import base64
import json
from uuid import UUID

import jwt
import pytest

from coil.slurm.tokens import MAX_LIFETIME_S, Claims, TokenError, TokenSource, mint, verify

KEY = b"a key of at least thirty-two bytes"
NOW = 1_800_000_000.75


def claims_of(token: str) -> dict[str, object]:
    body = token.split(".")[1]
    claims: dict[str, object] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


def test_header_and_claims_are_exactly_as_specified() -> None:
    token = mint(KEY, "slurm", 900, NOW)
    claims = claims_of(token)
    UUID(str(claims.pop("jti")))
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    assert claims == {
        "iss": "slurm-operator",
        "sun": "slurm",
        "iat": 1_800_000_000,
        "nbf": 1_800_000_000,
        "exp": 1_800_000_900,
    }


def test_two_tokens_differ() -> None:
    assert mint(KEY, "slurm", 900, NOW) != mint(KEY, "slurm", 900, NOW)


def test_an_empty_user_is_nobody() -> None:
    assert verify(KEY, mint(KEY, "", 900, NOW)).username == "nobody"


@pytest.mark.parametrize(("lifetime", "kept"), [(-5, 0), (0, 0), (1.9, 1), (10**12, MAX_LIFETIME_S)])
def test_the_lifetime_is_clamped(lifetime: float, kept: int) -> None:
    claims = verify(KEY, mint(KEY, "slurm", lifetime, NOW))
    assert claims.expires_at - claims.issued_at == kept


def test_a_short_key_is_legal() -> None:
    assert verify(b"short", mint(b"short", "slurm", 900, NOW)).username == "slurm"


def test_an_expired_token_is_still_read() -> None:
    """Field case SEC-02: expiry is a reason to renew, not an error that stops the renewal."""
    claims = verify(KEY, mint(KEY, "u", 60, 1000))
    assert claims == Claims("u", 1000, 1060)
    assert (claims.expired(1059.9), claims.expired(1060)) == (False, True)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "garbage",
        "a.b.c",
        mint(b"another key of 32 bytes and some more", "slurm", 900, NOW),
        jwt.encode({"sun": "slurm", "iat": 1, "exp": 2}, "", algorithm="none"),
        jwt.encode({"sun": "slurm"}, KEY, algorithm="HS256"),
    ],
)
def test_what_is_no_token_of_this_key_is_told(token: str) -> None:
    with pytest.raises(TokenError):
        verify(KEY, token)


def test_the_source_renews_after_four_fifths_of_the_life() -> None:
    now = [NOW]
    source = TokenSource(KEY, lifetime_s=900, clock=lambda: now[0])
    first = source()
    now[0] += 719
    assert source() == first
    now[0] += 1
    second = source()
    assert second != first
    assert verify(KEY, second).issued_at == int(NOW) + 720


def test_a_rotated_key_signs_the_next_token() -> None:
    source = TokenSource(KEY, clock=lambda: NOW)
    first = source()
    source.rotate(KEY)
    assert source() == first
    source.rotate(b"the new key, also of thirty-two bytes")
    assert verify(b"the new key, also of thirty-two bytes", source()).username == "slurm"

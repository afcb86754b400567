"""Tokens: the claims slurmctld and other tools read, and who may not sign them."""

import base64
import hmac
import json
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from coil.slurm.jwks import RS256, key_id, key_set
from coil.slurm.tokens import MAX_LIFETIME_S, Claims, TokenError, TokenSource, mint, verify

KEY = b"a key of at least thirty-two bytes"
NOW = 1_800_000_000.75
RSA = rsa.generate_private_key(65537, 2048)
RSA_PEM = RSA.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


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


@pytest.mark.parametrize("key", [RSA_PEM, b"ssh-rsa AAAA", b'{"kty": "oct", "k": "AAAA"}'])
def test_a_key_that_looks_like_something_else_is_a_secret_like_any_other(key: bytes) -> None:
    """Slurm's documentation once said to make the key with `openssl genrsa`; slurmctld takes its bytes."""
    token = mint(key, "slurm", 900, NOW)
    assert verify(key, token).username == "slurm"
    head, body, signature = token.split(".")
    digest = hmac.digest(key, f"{head}.{body}".encode(), "sha256")
    assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == signature


def test_an_rsa_key_signs_for_everybody_who_has_its_public_half() -> None:
    token = mint(RSA_PEM, "ada", 900, NOW, RS256)
    assert jwt.get_unverified_header(token) == {"alg": RS256, "typ": "JWT", "kid": key_id(RSA.public_key())}
    assert verify(RSA_PEM, token, RS256).username == "ada"
    public = jwt.PyJWKSet.from_dict(key_set([RSA_PEM]))[key_id(RSA.public_key())]
    assert jwt.PyJWS().decode(token, public.key, [RS256])


def test_a_token_of_another_algorithm_is_none_of_ours() -> None:
    """The public half is no secret: as one it must not verify anything."""
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for token in (mint(public, "slurm", 900, NOW), mint(KEY, "slurm", 900, NOW)):
        with pytest.raises(TokenError):
            verify(RSA_PEM, token, RS256)
    with pytest.raises(TokenError):
        verify(KEY, mint(RSA_PEM, "slurm", 900, NOW, RS256))


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


NEXT, LAST = b"the new key, also of thirty-two bytes", b"the newest one, of thirty-two bytes"


class Slurmctld:
    """Takes tokens of one key."""

    def __init__(self, key: bytes) -> None:
        self.key, self.asked = key, 0

    def ask(self, source: TokenSource) -> bool:
        """One request as the transport sends it; whether it is answered."""
        token = source()
        while token:
            self.asked += 1
            if takes(self.key, token):
                source.taken(token)
                return True
            token = source.refused(token)
        return False


def takes(key: bytes, token: str) -> bool:
    try:
        verify(key, token)
    except TokenError:
        return False
    return True


def test_no_request_fails_while_a_key_is_replaced() -> None:
    """Field case SEC-07: slurmctld has its new key sooner or later than we."""
    slurmctld, source, told = Slurmctld(KEY), TokenSource(KEY, clock=lambda: NOW), []
    source.on_change(lambda: told.append(source.key))
    source.rotate(KEY)
    assert slurmctld.ask(source)
    source.rotate(NEXT)
    assert slurmctld.ask(source)
    assert (slurmctld.asked, source.key, told) == (2, KEY, [])
    slurmctld.key = NEXT
    assert slurmctld.ask(source)
    assert (slurmctld.asked, source.keys, told) == (4, [NEXT], [NEXT])
    assert slurmctld.ask(source)
    assert slurmctld.asked == 5


def test_several_keys_one_after_another_and_back() -> None:
    slurmctld, source = Slurmctld(KEY), TokenSource(KEY, clock=lambda: NOW)
    for key in (NEXT, LAST, KEY):
        source.rotate(key)
    for key in (KEY, LAST, KEY):
        slurmctld.key = key
        assert slurmctld.ask(source)
        assert source.key == key
    assert source.keys == [KEY]
    for number in range(20):
        source.rotate(b"%d" % number * 32)
    assert len(source.keys) < 6


def test_a_key_that_nobody_gave_us_is_refused_and_said_so() -> None:
    source = TokenSource(KEY, clock=lambda: NOW)
    source.rotate(NEXT)
    assert not Slurmctld(LAST).ask(source)
    assert source.keys == [KEY, NEXT]


def test_a_token_that_was_renewed_under_way_is_not_tried_for_ever() -> None:
    now = [NOW]
    source = TokenSource(KEY, lifetime_s=900, clock=lambda: now[0])
    under_way = source()
    now[0] += 800
    assert source() != under_way
    assert source.refused(under_way) == ""
    source.taken(under_way)
    assert source.key == KEY

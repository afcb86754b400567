"""Claims about when a Token gets a new token, what becomes of its Secret and what is told (spec 9)."""

import base64
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from coil.api import keys
from coil.api.defaults import with_defaults
from coil.api.meta import Condition, OwnerReference
from coil.api.token import Token
from coil.kinds.status import Problem
from coil.kinds.token.plan import Plan, Snapshot, decide, wanted
from coil.kinds.token.report import conditions, members
from coil.kube.views import ObjectMeta, SecretView
from coil.slurm.tokens import mint

KEY, OLD_KEY = b"a key that is long enough for HS256", b"the key that was there before this one"
NOW = 1_800_000_000.0
LIFE_S = 900


def token(**spec: Any) -> Token:
    meta = {"name": "t", "namespace": "ns", "uid": "u", "generation": 2}
    ref = {"name": "jwt", "key": "jwt.key"}
    document = {"metadata": meta, "spec": {"jwtKeyRef": ref, "username": "ada", **spec}}
    return with_defaults(msgspec.convert(document, Token))


def key_secret(**data: bytes) -> SecretView:
    return SecretView(
        metadata=ObjectMeta(name="jwt", namespace="ns", uid="key-uid"), data=data or {"jwt.key": KEY}
    )


def owner(kind: str, api_version: str = "v1") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name="jwt", uid="key-uid", controller=True)


def holding(text: str, **members: Any) -> SecretView:
    """The Secret as it was made for the Token."""
    meta = ObjectMeta(name="t-jwt-ada", namespace="ns", owner_references=[owner("Secret")])
    complete: dict[str, Any] = {"metadata": meta, "data": {"SLURM_JWT": text.encode()}}
    return SecretView(**{**complete, **members})


def aged(seconds: float, *, key: bytes = KEY, username: str = "ada", lifetime_s: float = LIFE_S) -> str:
    """A token that was minted so long ago."""
    return mint(key, username, lifetime_s, NOW - seconds)


def world(secret: SecretView | None = None, **spec: Any) -> Snapshot:
    return Snapshot(token=token(**spec), key_secret=key_secret(), secret=secret)


def signed_by(algorithm: str, key: bytes, secret: SecretView | None = None) -> Snapshot:
    """A Token that asks for an algorithm."""
    asking = token()
    annotations = {keys.ANNOTATION_JWT_ALGORITHM: algorithm}
    asking = msgspec.structs.replace(
        asking, metadata=msgspec.structs.replace(asking.metadata, annotations=annotations)
    )
    return Snapshot(token=asking, key_secret=key_secret(**{"jwt.key": key}), secret=secret)


def test_a_token_of_the_wanted_algorithm_stays_and_one_of_another_is_replaced() -> None:
    private = rsa.generate_private_key(65537, 2048)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    held = mint(pem, "ada", LIFE_S, NOW, "RS256")
    assert not decide(signed_by("RS256", pem, holding(held)), NOW).mint
    for other in (signed_by("HS256", pem, holding(held)), signed_by("RS256", pem, holding(aged(0, key=pem)))):
        assert decide(other, NOW).mint == "the token is not signed with the key"


def test_a_missing_token_is_made_and_looked_at_when_four_fifths_of_its_life_are_over() -> None:
    assert decide(world(), NOW) == Plan(step="Secret", mint="there is no token", again_s=720)


@pytest.mark.parametrize(("age", "again"), [(0, 720), (100, 620), (719, 1), (718.5, 1)])
def test_a_good_token_stays_until_it_is_due(age: float, again: float) -> None:
    plan = decide(world(holding(aged(age))), NOW)
    assert not plan.mint
    assert plan.again_s == pytest.approx(again, abs=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (aged(720), "80 % of its life is over"),
        (aged(899), "80 % of its life is over"),
        (aged(3600 + LIFE_S), "80 % of its life is over"),  # SEC-02: expired an hour ago
        ("garbage", "the token is not signed with the key"),  # SEC-02
        (aged(10, key=OLD_KEY), "the token is not signed with the key"),  # SEC-02, rotation
        ("", "there is no token"),
        (aged(10, username="grace"), "the user is another one"),
        (aged(10, lifetime_s=3600), "the lifetime is another one"),
        (aged(10, lifetime_s=600), "the lifetime is another one"),
    ],
)
def test_what_is_not_as_asked_for_is_replaced_in_one_pass(text: str, why: str) -> None:
    assert decide(world(holding(text)), NOW) == Plan(step="Refresh", mint=why, again_s=720)


@pytest.mark.parametrize(
    ("lifetime", "seconds"), [("", 900), ("1h30m", 5400), ("1.5s", 1.5), ("99999999h", 2**31 - 2)]
)
def test_a_new_token_is_what_the_token_asks_for(lifetime: str, seconds: float) -> None:
    """No lifetime makes two passes disagree."""
    spec = {"lifetime": lifetime} if lifetime else {}
    made = holding(mint(KEY, "ada", seconds, NOW))
    assert not decide(world(made, **spec), NOW + 0.01).mint


def test_an_empty_user_name_is_nobody() -> None:
    spec = {"username": "", "secretRef": {"name": "s", "key": "k"}}
    made = holding("", data={"k": mint(KEY, "", LIFE_S, NOW).encode()})
    assert not decide(world(made, **spec), NOW).mint


@pytest.mark.parametrize("age", [0, 800, 5000])
def test_without_refresh_a_token_is_made_once(age: float) -> None:
    plan = decide(world(holding(aged(age), immutable=True), refresh=False), NOW)
    assert (plan.mint, plan.problem) == ("", None)
    # Looked at when it expires, so that its end is told, and never again (Q14).
    assert plan.again_s == (None if age >= LIFE_S else LIFE_S - age)
    assert decide(world(refresh=False), NOW).mint


@pytest.mark.parametrize(
    ("snapshot", "reason", "words"),
    [
        (Snapshot(token=token()), "SecretMissing", 'Secret "jwt" (spec.jwtKeyRef) not found'),
        (Snapshot(token=token(), key_secret=key_secret(x=b"y")), "SecretKeyMissing", 'no key "jwt.key"'),
        (Snapshot(token=token(), key_secret=key_secret(**{"jwt.key": b""})), "SecretKeyMissing", "no key"),
        (world(jwtKeyRef=None), "Invalid", "jwtKeyRef is not set"),
        (signed_by("RS256", KEY), "Invalid", 'key "jwt.key" of Secret "jwt": no unencrypted private key'),
        (signed_by("ES256", KEY), "Invalid", "'ES256' is neither HS256 nor RS256"),
        (world(lifetime="soon"), "Invalid", "'soon' is no duration"),
        (world(lifetime="-1h"), "Invalid", "over at once"),
        (world(secretRef={"name": "jwt", "key": "SLURM_JWT"}), "Invalid", "holds the signing key"),
        (msgspec.structs.replace(world(), rival="other"), "SecretTaken", 'Token "other" writes to key'),
        (world(holding(aged(800), immutable=True)), "SecretImmutable", "delete it"),
        (
            world(holding("x", metadata=ObjectMeta(owner_references=[owner("LoginSet", "a/v1")]))),
            "SecretTaken",
            'belongs to LoginSet "jwt"',
        ),
    ],
)
def test_what_keeps_a_token_from_being_made_is_told_and_nothing_is_written(
    snapshot: Snapshot, reason: str, words: str
) -> None:
    plan = decide(snapshot, NOW)
    assert not plan.mint
    assert plan.problem is not None
    assert plan.problem.reason == reason
    assert words in plan.problem.message


def test_a_secret_on_its_way_out_is_left_alone() -> None:
    going = holding("", metadata=ObjectMeta(name="t-jwt-ada", deletion_timestamp="2026-01-01T00:00:00Z"))
    assert decide(world(going), NOW) == Plan(step="Refresh")


def test_the_secret_belongs_to_the_signing_keys_secret() -> None:
    """Q15: without that key no token is of any use."""
    manifest = wanted(world(), "text")
    assert manifest["stringData"] == {"SLURM_JWT": "text"}
    (reference,) = manifest["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("Secret", "key-uid", True)
    assert manifest["immutable"] is False


def test_what_else_a_secret_holds_stays() -> None:
    data = {"SLURM_JWT": b"old", "other": b"\xff"}
    encoded = {"other": base64.b64encode(b"\xff").decode()}
    ours = wanted(world(holding("", data=data)), "text")
    assert (ours["data"], ours["stringData"]) == (encoded, {"SLURM_JWT": "text"})
    assert "ownerReferences" in ours["metadata"]
    theirs = wanted(world(holding("", data=data, metadata=ObjectMeta(name="t-jwt-ada"))), "text")
    assert theirs["data"] == encoded
    # It would be deleted together with the signing key.
    assert "ownerReferences" not in theirs["metadata"]
    alone = wanted(world(holding("old", metadata=ObjectMeta(name="t-jwt-ada"))), "text")
    assert "ownerReferences" in alone["metadata"]


def told(snapshot: Snapshot, problems: tuple[Problem, ...] = ()) -> dict[str, Condition]:
    found = conditions(snapshot, snapshot.claims, problems, NOW)
    return {condition.type: condition for condition in found}


@pytest.mark.parametrize(
    ("snapshot", "status", "reason"),
    [
        (world(holding(aged(10))), "True", "Valid"),
        (world(holding(aged(1000), immutable=True), refresh=False), "False", "Expired"),
        (world(holding("garbage"), refresh=False), "False", "NotSigned"),
        (world(), "False", "NoToken"),
        (Snapshot(token=token(), secret=holding(aged(10))), "Unknown", "KeyMissing"),
    ],
)
def test_it_is_available_while_slurm_accepts_what_the_secret_holds(
    snapshot: Snapshot, status: str, reason: str
) -> None:
    available = told(snapshot)["Available"]
    assert (available.status, available.reason) == (status, reason)
    assert available.observed_generation == 2


def test_a_token_that_expired_as_its_owner_wanted_is_no_error() -> None:
    """Q14: it is told, and how to get another one."""
    conditions = told(world(holding(aged(1000), immutable=True), refresh=False))
    assert conditions["Reconciled"].status == "True"
    assert 'delete Secret "t-jwt-ada"' in conditions["Available"].message


def test_problems_are_told() -> None:
    reconciled = told(world(), (Problem("Secret", "SecretMissing", "gone"),))["Reconciled"]
    assert (reconciled.status, reconciled.reason) == ("False", "SecretMissing")


def test_the_status_says_when_the_token_was_issued_and_keeps_it_while_it_cannot_be_read() -> None:
    snapshot = world(holding(aged(0)))
    assert members(snapshot.token, snapshot.claims).wanted == {"issuedAt": "2027-01-15T08:00:00Z"}
    assert members(snapshot.token, None).wanted == {}
    before = msgspec.convert({"status": {"issuedAt": "2026-01-01T00:00:00Z"}}, Token)
    kept = members(before, None)
    assert kept.wanted == kept.live == {"issuedAt": "2026-01-01T00:00:00Z"}

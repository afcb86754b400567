"""Tokens on a real API server: what is in the Secret, whose it is, and what brings a new one."""

import base64
import signal
import time
from typing import Any

import pytest

from coil.api import keys
from coil.slurm.tokens import Claims, TokenError, mint, verify
from lab.apiserver import ApiServer
from tests.support.manager import Manager, Namespace, controller, eventually, ours, secret

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

KEY, NEW_KEY = "a key that is long enough for HS256", "the key that comes after the first one"
SECRET = "t-jwt-ada"


def key_secret(value: str = KEY) -> dict[str, Any]:
    return secret("jwt", jwt_key=value)


def token(name: str = "t", **spec: Any) -> dict[str, Any]:
    wanted = {"jwtKeyRef": {"name": "jwt", "key": "jwt.key"}, "username": "ada"}
    return ours("Token", name, **{**wanted, **spec})


def claims(space: Namespace, key: str = KEY, name: str = SECRET) -> Claims | None:
    """What the stored token says; None while there is none that the key signed."""
    found = space.get("secret", name)
    text = base64.b64decode((found or {}).get("data", {}).get("SLURM_JWT", "")).decode()
    try:
        return verify(key.encode(), text)
    except TokenError:
        return None


def wait_claims(space: Namespace, key: str = KEY, name: str = SECRET, within: float = 15) -> Claims:
    return eventually(lambda: claims(space, key, name), within=within, what=f"a token in {name}")


def test_a_token_is_made_and_told(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(key_secret(), token())
    made = wait_claims(space)
    assert (made.username, made.expires_at - made.issued_at) == ("ada", 900)
    space.wait_condition("token", "t", "Available=True/Valid")
    status = (space.get("token", "t") or {})["status"]
    assert status["issuedAt"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(made.issued_at))
    (reference,) = (space.get("secret", SECRET) or {})["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["controller"]) == ("Secret", "jwt", True)
    assert [reason for _, reason, _ in space.events("Token", "t")] == ["CreateSucceeded"]


def test_a_rotated_key_makes_new_tokens_within_seconds(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(key_secret(), token(), token("u", username="grace"))
    wait_claims(space)
    wait_claims(space, name="u-jwt-grace")
    space.apply(key_secret(NEW_KEY))
    wait_claims(space, NEW_KEY, within=3)
    wait_claims(space, NEW_KEY, "u-jwt-grace", within=3)


def test_a_rotated_key_replaces_slurmctld_once(space: Namespace, manager: Manager) -> None:
    """Field case SEC-05: one annotation of the pod template changes, once."""

    def template() -> dict[str, Any]:
        return (space.get("statefulset", "alba-controller") or {})["spec"]["template"]

    manager.wait_working()
    space.apply(secret("keys", slurm_key="an auth key"), key_secret())
    space.apply(controller("alba", jwtKeyRef={"name": "jwt", "key": "jwt.key"}))
    space.wait_condition("controller", "alba", "Reconciled=True", within=40)
    before, generation = template(), (space.get("statefulset", "alba-controller") or {})["metadata"]
    space.apply(key_secret(NEW_KEY))
    eventually(lambda: template() != before, what="slurmctld is to be replaced")
    time.sleep(1)
    after = (space.get("statefulset", "alba-controller") or {})["metadata"]
    assert after["generation"] == generation["generation"] + 1
    changed = template()["metadata"]["annotations"].items() ^ before["metadata"]["annotations"].items()
    assert {name for name, _ in changed} == {keys.ANNOTATION_JWT_KEY_HASH}


def test_a_deleted_secret_comes_back(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(key_secret(), token())
    before = wait_claims(space)
    space.kubectl("delete", "secret", SECRET)
    assert wait_claims(space, within=5).issued_at >= before.issued_at


@pytest.mark.parametrize(
    "text",
    [
        mint(KEY.encode(), "ada", 900, time.time() - 4500),
        mint(NEW_KEY.encode(), "ada", 900, time.time()),
        "garbage",
    ],
    ids=["expired", "old key", "garbage"],
)
def test_whatever_a_secret_holds_a_good_token_replaces_it(
    space: Namespace, manager: Manager, text: str
) -> None:
    """Field case SEC-02; other keys of the Secret stay."""
    manager.wait_working()
    stale = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    space.apply({**stale, "stringData": {"SLURM_JWT": text, "other": "x"}}, key_secret())
    space.apply(token(secretRef={"name": "s", "key": "SLURM_JWT"}))
    made = wait_claims(space, name="s")
    assert abs(made.issued_at - time.time()) < 15
    found = space.get("secret", "s") or {}
    assert base64.b64decode(found["data"]["other"]) == b"x"
    assert "ownerReferences" not in found["metadata"]
    space.wait_condition("token", "t", "Available=True")


def test_a_token_is_renewed_in_time(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(key_secret(), token(lifetime="5s"))
    first = wait_claims(space)
    for _ in range(40):
        now = wait_claims(space)
        assert now.expires_at > time.time()
        time.sleep(0.25)
    assert claims(space) != first
    assert all(reason == "CreateSucceeded" for _, reason, _ in space.events("Token", "t"))


def test_a_token_without_refresh_expires_without_an_error(space: Namespace, manager: Manager) -> None:
    """Q14."""
    manager.wait_working()
    space.apply(key_secret(), token(lifetime="2s", refresh=False))
    first = wait_claims(space)
    assert (space.get("secret", SECRET) or {})["immutable"]
    message = space.wait_condition("token", "t", "Available=False/Expired")
    assert f'delete Secret "{SECRET}"' in message
    space.wait_condition("token", "t", "Reconciled=True")
    assert claims(space) == first
    assert not manager.logged("pass failed")
    space.kubectl("delete", "secret", SECRET)
    space.wait_condition("token", "t", "Available=True/Valid", within=5)


def test_a_token_says_what_it_lacks(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(token(), token("misplaced", secretRef={"name": "jwt", "key": "SLURM_JWT"}))
    assert '"jwt"' in space.wait_condition("token", "t", "Reconciled=False/SecretMissing")
    space.wait_condition("token", "misplaced", "Reconciled=False/SecretMissing")
    space.apply(key_secret())
    space.wait_condition("token", "t", "Reconciled=True")
    space.wait_condition("token", "misplaced", "Reconciled=False/Invalid")
    assert set((space.get("secret", "jwt") or {})["data"]) == {"jwt.key"}


def test_tokens_go_with_the_key_and_stay_without_their_token(space: Namespace, manager: Manager) -> None:
    """Q15: the garbage collector follows the signing key."""
    manager.wait_working()
    space.apply(key_secret(), token(), token("u", username="grace"))
    wait_claims(space)
    wait_claims(space, name="u-jwt-grace")
    space.kubectl("delete", "token", "t")
    time.sleep(1)
    assert claims(space)
    space.kubectl("delete", "secret", "jwt")
    for name in (SECRET, "u-jwt-grace"):
        eventually(lambda name=name: space.get("secret", name) is None, what=f"{name} is gone")


def test_a_second_operator_over_an_unchanged_world_writes_nothing(
    managed_server: ApiServer, space: Namespace
) -> None:
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(key_secret(), token())
        space.wait_condition("token", "t", "Available=True")
        first.end(signal.SIGTERM)
    with Manager(managed_server, namespaces=[space.name]) as second:
        second.wait_working()
        eventually(lambda: passes(second) >= 1, what="the Token had a pass")
        time.sleep(1)
        assert second.writes() == []


def passes(manager: Manager) -> float:
    """Passes over Tokens so far."""
    lines = manager.get(manager.metrics_port, "/metrics").splitlines()
    counts = [line for line in lines if line.startswith("controller_runtime_reconcile_total")]
    return sum(float(line.split()[-1]) for line in counts if '"token"' in line)

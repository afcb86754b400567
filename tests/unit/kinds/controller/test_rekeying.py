"""Claims about a changed JWT key: when slurmctld gets it while it runs, when new pods bring it."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from coil.api import keys
from coil.api.controller import Controller
from coil.build.hashes import map_hash
from coil.kinds.controller.observe import jwt_key
from coil.kinds.controller.rekeying import Has, Hashes, JwtKey, hashes, slurm_key_changed
from coil.kube.views import ManifestView
from coil.slurm.clusters import Cluster
from coil.slurm.errors import SlurmError, Unauthorized, Unreachable
from coil.slurm.tokens import TokenSource

SPLIT = {"slurm": {"slurm.key": b"s"}, "jwt": {"jwt.key": b"new"}}
SPLIT_BEFORE = {"slurm": {"slurm.key": b"s"}, "jwt": {"jwt.key": b"old"}}
SHARED = {"keys": {"slurm.key": b"s", "jwt.key": b"new"}}
SHARED_BEFORE = {"keys": {"slurm.key": b"s", "jwt.key": b"old"}}

Secrets = dict[str, dict[str, bytes]]


def controller(secrets: Secrets) -> Controller:
    names = {key: name for name, data in secrets.items() for key in data}
    slurm = next(key for key in names if key.startswith("slurm."))
    spec = {
        "slurmKeyRef": {"name": names[slurm], "key": slurm},
        "jwtKeyRef": {"name": names["jwt.key"], "key": "jwt.key"},
    }
    return msgspec.convert({"metadata": {"name": "alba", "namespace": "ns"}, "spec": spec}, Controller)


def of(secrets: Secrets) -> Hashes:
    """What a template has that was made for these Secrets."""
    return hashes(controller(secrets), secrets, None, JwtKey())


def stateful_set(found: Hashes, secret: str = "", key: str = "slurm.key") -> ManifestView:
    """With the slurm key of that Secret."""
    template = {keys.ANNOTATION_SLURM_KEY_HASH: found.slurm_key, keys.ANNOTATION_JWT_KEY_HASH: found.jwt_key}
    note = {keys.ANNOTATION_LIVE_KEY: found.note} if found.note else {}
    source = {"secret": {"name": secret, "items": [{"key": key, "path": key}]}}
    document: dict[str, Any] = {
        "metadata": {"name": "alba-controller", "annotations": note},
        "spec": {
            "template": {
                "metadata": {"annotations": template},
                "spec": {"volumes": [{"name": "etc", "projected": {"sources": [source]}}, {"name": "other"}]},
            }
        },
    }
    return msgspec.convert(document, ManifestView)


def after(secrets: Secrets, before: Hashes, has: Has, known: tuple[bytes, ...] = (b"old", b"new")) -> Hashes:
    """What is wanted for the Secrets, over a StatefulSet with the hashes `before`."""
    return hashes(controller(secrets), secrets, stateful_set(before), JwtKey(has=has, known=known))


def rolls(before: Hashes, wanted: Hashes) -> bool:
    return (before.slurm_key, before.jwt_key) != (wanted.slurm_key, wanted.jwt_key)


@pytest.mark.parametrize(
    ("old", "new"), [(SPLIT_BEFORE, SPLIT), (SHARED_BEFORE, SHARED)], ids=["two Secrets", "one Secret"]
)
@pytest.mark.parametrize(
    ("has", "makes_pods"),
    [(Has.UNTOLD, True), (Has.WAITED, False), (Has.WANTED, False), (Has.REFUSED, True)],
)
def test_pods_are_made_anew_only_where_nobody_can_tell_slurmctld_of_the_new_key(
    old: Secrets, new: Secrets, has: Has, makes_pods: bool
) -> None:
    """Field case SEC-05: the change is always noticed; new pods where they are needed, exactly once."""
    before = of(old)
    wanted = after(new, before, has)
    assert rolls(before, wanted) == makes_pods
    assert wanted.note == ("" if makes_pods else of(new).jwt_key)
    if makes_pods:
        assert wanted == of(new)
    for later in (Has.WANTED, Has.WAITED, Has.UNTOLD):
        assert after(new, wanted, later, known=(b"new",)) == wanted


@pytest.mark.parametrize(("old", "new"), [(SPLIT_BEFORE, SPLIT), (SHARED_BEFORE, SHARED)])
def test_an_operator_that_dies_on_the_way_makes_new_pods_if_slurmctld_has_the_old_key(
    old: Secrets, new: Secrets
) -> None:
    """I12: its successor has only the new key, which slurmctld refuses."""
    before = of(old)
    noted = after(new, before, Has.WAITED)
    wanted = after(new, noted, Has.REFUSED, known=(b"new",))
    assert rolls(noted, wanted)
    assert after(new, wanted, Has.WANTED, known=(b"new",)) == wanted
    assert after(new, wanted, Has.REFUSED, known=(b"new",)) == wanted


@pytest.mark.parametrize("has", list(Has))
def test_the_slurm_key_needs_new_pods_in_any_case(has: Has) -> None:
    for secrets in (SPLIT, SHARED):
        before = of(secrets)
        name = next(name for name, data in secrets.items() if "slurm.key" in data)
        other = {**secrets, name: {**secrets[name], "slurm.key": b"t"}}
        wanted = after(other, before, has, known=(b"new",))
        assert wanted.slurm_key == of(other).slurm_key != before.slurm_key


SEVERAL = {"slurm": {"slurm.jwks": b"{}"}, "jwt": {"jwt.key": b"new"}}


def test_several_slurm_keys_are_read_while_slurmctld_runs() -> None:
    before, other = of(SEVERAL), {**SEVERAL, "slurm": {"slurm.jwks": b"{...}"}}
    given = controller(other), other
    live = stateful_set(before, "slurm", "slurm.jwks")
    assert not rolls(before, hashes(*given, live, JwtKey()))
    assert not slurm_key_changed(*given, live, JwtKey())
    # From one key to several: another file, so other pods.
    assert rolls(before, hashes(*given, stateful_set(before, "slurm"), JwtKey()))
    assert not slurm_key_changed(*given, stateful_set(before, "slurm"), JwtKey())


@pytest.mark.parametrize(
    ("secrets", "secret", "has", "changed"),
    [
        (SPLIT, "slurm", Has.WAITED, True),
        (SPLIT, "slurm", Has.UNTOLD, True),
        (SPLIT, "elsewhere", Has.WANTED, False),
        (SHARED, "keys", Has.WANTED, True),
        (SHARED, "keys", Has.WAITED, False),
    ],
    ids=["split", "no-restapi", "another-secret", "shared", "shared-and-jwt-unknown"],
)
def test_another_slurm_key_in_the_same_place_is_noticed(
    secrets: Secrets, secret: str, has: Has, changed: bool
) -> None:
    name = next(name for name, data in secrets.items() if "slurm.key" in data)
    other = {**secrets, name: {**secrets[name], "slurm.key": b"t"}}
    live, jwt = stateful_set(of(secrets), secret), JwtKey(has=has, known=(b"new",))
    assert slurm_key_changed(controller(other), other, live, jwt) == changed
    assert not slurm_key_changed(controller(secrets), secrets, live, jwt)
    assert not slurm_key_changed(controller(secrets), {}, live, jwt)
    assert not slurm_key_changed(controller(other), other, None, jwt)


def test_the_next_key_follows_a_live_one() -> None:
    """What is noted is compared, not what the template still says."""
    third = {"jwt": {"jwt.key": b"third"}, "slurm": SPLIT["slurm"]}
    first = of(SPLIT_BEFORE)
    second = after(SPLIT, first, Has.WANTED)
    last = after(third, second, Has.WAITED, known=(b"new", b"third"))
    assert not rolls(first, last)
    assert last.note == of(third).jwt_key
    assert rolls(last, after(SPLIT, last, Has.UNTOLD))


def test_nothing_is_noted_where_nothing_changed() -> None:
    for has in Has:
        assert after(SPLIT, of(SPLIT), has) == of(SPLIT)


def test_without_a_statefulset_the_hashes_are_those_of_the_secrets() -> None:
    found = of(SPLIT)
    assert (found.slurm_key, found.jwt_key) == (map_hash({"a": b"s"}), map_hash({"a": b"new"}))


@pytest.mark.parametrize(
    ("given", "error", "has"),
    [
        ([b"new"], None, Has.WANTED),
        ([b"old"], None, Has.WAITED),
        ([b"old", b"new"], None, Has.WAITED),
        ([b"new"], Unreachable("GET x", "refused"), Has.WAITED),
        ([b"new"], Unauthorized("GET x", "511"), Has.REFUSED),
        ([b"old", b"new"], Unauthorized("GET x", "511"), Has.REFUSED),
        ([b"old"], Unauthorized("GET x", "511"), Has.WAITED),
    ],
)
def test_what_slurmctld_has_is_concluded_from_the_tokens_that_it_takes(
    given: list[bytes], error: SlurmError | None, has: Has
) -> None:
    tokens = TokenSource(given[0])
    for key in given[1:]:
        tokens.rotate(key)
    poller = SimpleNamespace(health=SimpleNamespace(error=error, ok=error is None))
    cluster = cast("Cluster", SimpleNamespace(tokens=tokens, poller=poller))
    assert jwt_key(controller(SPLIT), cluster, SPLIT) == JwtKey(has=has, known=tuple(given))


def test_with_backups_or_without_a_client_nothing_is_concluded() -> None:
    alba = controller(SPLIT)
    assert jwt_key(alba, None, SPLIT).has is Has.WAITED
    ha = msgspec.convert({"enabled": True, "backups": 1}, type(alba.spec.ha))
    backed = msgspec.structs.replace(alba, spec=msgspec.structs.replace(alba.spec, ha=ha))
    assert jwt_key(backed, None, SPLIT).has is Has.UNTOLD

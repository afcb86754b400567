"""Claims about the steps of an Accounting (spec: control-plane 6)."""

from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.defaults import with_defaults
from coil.build.hashes import map_hash
from coil.kinds.accounting.plan import steps
from coil.kinds.accounting.snapshot import Snapshot
from coil.kinds.steps import Apply, Failed, Step
from tests.support.resources import accounting

SECRETS = {"keys": {"slurm.key": b"s", "jwt.key": b"j"}, "db": {"pw": b"sesame"}}


def snapshot(**spec: Any) -> Snapshot:
    return Snapshot(accounting=with_defaults(accounting(**spec)), secrets=SECRETS)


def without(name: str, key: str = "") -> Snapshot:
    """All Secrets but one, or but one key of it."""
    kept = {other: data for other, data in SECRETS.items() if other != name}
    if key:
        kept[name] = {other: value for other, value in SECRETS[name].items() if other != key}
    return msgspec.structs.replace(snapshot(), secrets=kept)


def outcome(found: Snapshot) -> list[tuple[str, str]]:
    return [
        (step.name, step.reason if isinstance(step, Failed) else type(step).__name__) for step in steps(found)
    ]


def annotations(made: tuple[Step, ...]) -> dict[str, str]:
    last = made[-1]
    assert isinstance(last, Apply)
    return last.wanted["spec"]["template"]["metadata"]["annotations"]


def test_three_children_in_order() -> None:
    assert outcome(snapshot()) == [("Service", "Apply"), ("Config", "Apply"), ("StatefulSet", "Apply")]


def test_an_external_slurmdbd_has_no_steps() -> None:
    assert steps(snapshot(external=True, externalConfig={"host": "dbd.example", "port": 1})) == ()


@pytest.mark.parametrize(
    ("found", "reasons"),
    [
        (without("db"), ["Apply", "SecretMissing", "Waiting"]),
        (without("db", "pw"), ["Apply", "SecretKeyMissing", "Waiting"]),
        (without("keys"), ["Apply", "Apply", "SecretMissing"]),
        (without("keys", "slurm.key"), ["Apply", "Apply", "SecretKeyMissing"]),
        (without("keys", "jwt.key"), ["Apply", "Apply", "SecretKeyMissing"]),
        (snapshot(storageConfig=None), ["Apply", "StorageMissing", "Waiting"]),
        (snapshot(jwksKeyRef={"name": "jwks", "key": "k"}), ["Apply", "Apply", "ConfigMapMissing"]),
        (snapshot(service={"spec": {"ports": 1}}), ["Invalid", "Apply", "Apply"]),
        (snapshot(slurmdbd={"args": 1}), ["Apply", "Apply", "Invalid"]),
    ],
)
def test_what_is_missing_or_wrong_stops_only_what_needs_it(found: Snapshot, reasons: list[str]) -> None:
    assert [reason for _, reason in outcome(found)] == reasons


def test_the_pod_changes_with_the_configuration_wanted_now() -> None:
    """Not with the one that the cache still shows: a new password would need a second rollout."""
    made = steps(snapshot())
    config = made[1]
    assert isinstance(config, Apply)
    hashes = annotations(made)
    assert hashes[keys.ANNOTATION_SLURMDBD_CONF_HASH] == map_hash(config.wanted["stringData"])
    assert hashes[keys.ANNOTATION_JWT_KEY_HASH] == map_hash(SECRETS["keys"])
    other = msgspec.structs.replace(snapshot(), secrets={**SECRETS, "db": {"pw": b"another"}})
    changed = {name for name, value in annotations(steps(other)).items() if value != hashes[name]}
    assert changed == {keys.ANNOTATION_SLURMDBD_CONF_HASH}

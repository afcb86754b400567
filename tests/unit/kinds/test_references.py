"""What is told of an object that is not there."""

import pytest

from coil.api.meta import SecretKeySelector
from coil.kinds.references import missing_controller, missing_key

REF = SecretKeySelector(name="keys", key="slurm.key")


@pytest.mark.parametrize(
    ("data", "reason", "message"),
    [
        (None, "SecretMissing", 'Secret "keys" (spec.x) not found; create it with key "slurm.key"'),
        ({}, "SecretKeyMissing", 'Secret "keys" (spec.x) has no key "slurm.key"; add it'),
    ],
)
def test_a_secret_or_its_key_is_missing(data: dict[str, bytes] | None, reason: str, message: str) -> None:
    missing = missing_key(REF, data, "spec.x")
    assert missing is not None
    assert (missing.reason, missing.message) == (reason, message)


def test_an_empty_value_is_a_value_unless_text_is_needed() -> None:
    assert missing_key(REF, {"slurm.key": b""}) is None
    assert missing_key(REF, {"slurm.key": b""}, needs_text=True) is not None
    assert missing_key(REF, {"slurm.key": b"x"}, needs_text=True) is None


def test_a_missing_controller_says_what_to_do() -> None:
    missing = missing_controller("alba")
    assert missing.reason == "ControllerMissing"
    assert missing.message == 'Controller "alba" not found; create it or correct spec.controllerRef.name'

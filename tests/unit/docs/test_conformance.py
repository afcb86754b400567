"""What docs/conformance.md names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAMED = re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", (ROOT / "docs" / "conformance.md").read_text())


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED)))
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    text = (ROOT / file).read_text()
    assert not test or f"def {test}(" in text


def test_there_is_something_to_check() -> None:
    assert len(NAMED) > 80

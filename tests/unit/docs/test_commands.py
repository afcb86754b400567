"""Every command block of the documentation is run by a test, or says why not."""

from pathlib import Path

import pytest

from tests.support import docs_commands as docs

ROOT = docs.DOCS.parent
PAGES = [pytest.param(page, id=page.stem) for page in docs.pages()]


@pytest.mark.parametrize("page", PAGES)
def test_a_fence_with_commands_is_marked_as_such(page: Path) -> None:
    """Otherwise nobody would run them."""
    unmarked = [
        (line, text)
        for line, language, text in docs.fences(page)
        if language not in ("sh", "console", "yaml", "Dockerfile") and docs.COMMAND.search(text)
    ]
    assert page.name == "STATUS.md" or unmarked == [], "name the fence sh, or console with prompts"


@pytest.mark.parametrize("page", PAGES)
def test_a_command_block_has_commands(page: Path) -> None:
    assert [block.line for block in docs.blocks(page) if not block.script.strip()] == []


def test_the_end_to_end_test_runs_each_page_that_has_something_to_run() -> None:
    """It takes its pages from the same list, so that a new page is run without being named anywhere."""
    text = (ROOT / "tests/e2e/test_docs.py").read_text()
    assert "docs.pages()" in text
    assert "docs.run_here(page)" in text


def test_each_exception_is_about_a_block_and_names_tests_that_exist() -> None:
    used = {block.elsewhere for page in docs.pages() for block in docs.blocks(page)}
    assert set(docs.ELSEWHERE) - used == set()
    named = [word.rstrip(";,") for why in docs.ELSEWHERE.values() for word in why.split() if "/" in word]
    assert [path for path in named if not (ROOT / path).exists()] == []

"""Where the Authorization header comes from and when it is made anew."""

import stat
from pathlib import Path

import pytest
from lightkube.config.models import NameValue, UserExec

from coil.kube.credentials import (
    TOKEN_LIFE,
    Credentials,
    CredentialsError,
    ExecPlugin,
    StaticCredentials,
    TokenFile,
)

pytestmark = pytest.mark.asyncio


async def test_a_certificate_needs_no_header() -> None:
    credentials = Credentials()
    credentials.refused()
    assert await credentials.header(0) is None


async def test_a_static_header_stays() -> None:
    credentials = StaticCredentials("Bearer x")
    credentials.refused()
    assert await credentials.header(0) == "Bearer x"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("one\n")
    return path


async def test_a_token_file_is_read_again_after_its_life(path: Path) -> None:
    credentials = TokenFile(path)
    assert await credentials.header(0) == "Bearer one"
    path.write_text("two\n")
    assert await credentials.header(TOKEN_LIFE - 1) == "Bearer one"
    assert await credentials.header(TOKEN_LIFE) == "Bearer two"


async def test_a_refused_token_is_read_again_at_once(path: Path) -> None:
    credentials = TokenFile(path)
    await credentials.header(0)
    path.write_text("two\n")
    credentials.refused()
    assert await credentials.header(1) == "Bearer two"


async def test_a_token_file_that_cannot_be_read_keeps_the_last_token(path: Path) -> None:
    """The kubelet replaces the file by renaming links: a moment without it is no outage."""
    credentials = TokenFile(path)
    await credentials.header(0)
    path.unlink()
    assert await credentials.header(TOKEN_LIFE) == "Bearer one"


async def test_a_token_file_never_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="nothing"):
        await TokenFile(tmp_path / "nothing").header(0)


def plugin(tmp_path: Path, script: str) -> ExecPlugin:
    command = tmp_path / "plugin"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(stat.S_IRWXU)
    api = "client.authentication.k8s.io/v1"
    return ExecPlugin(
        UserExec(apiVersion=api, command=str(command), args=["a"], env=[NameValue("WHO", "me")])
    )


async def test_a_plugin_prints_the_token_and_runs_again_only_when_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    credentials = plugin(
        tmp_path, f'echo run >> {log}; echo "{{\\"status\\": {{\\"token\\": \\"$WHO-$1\\"}}}}"'
    )
    assert await credentials.header(0) == "Bearer me-a"
    assert await credentials.header(99) == "Bearer me-a"
    assert log.read_text() == "run\n"
    credentials.refused()
    await credentials.header(99)
    assert log.read_text() == "run\nrun\n"


@pytest.mark.parametrize("script", ["exit 3", "echo '{}'; exit 3", "echo '[]'; exit 3"])
async def test_a_plugin_without_a_token_is_an_error_that_names_it(tmp_path: Path, script: str) -> None:
    with pytest.raises(CredentialsError, match="plugin' ended with code 3 and printed no token"):
        await plugin(tmp_path, script).header(0)


async def test_a_plugin_that_is_not_there_is_an_error_with_its_hint() -> None:
    missing = UserExec(apiVersion="x", command="/nothing/here", installHint="get it from the admin")
    with pytest.raises(CredentialsError, match="get it from the admin"):
        await ExecPlugin(missing).header(0)

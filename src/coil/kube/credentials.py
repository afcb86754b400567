"""Who we are to the API server: the Authorization header, and when to make it anew."""

import asyncio
import os
from pathlib import Path

import msgspec
from lightkube.config.models import UserExec

TOKEN_LIFE = 60.0
"""Seconds a token read from a file is used; the kubelet rotates it well before it expires."""


class CredentialsError(Exception):
    """There is nothing to show to the server; the text says where it was looked for."""


class Credentials:
    """Makes the Authorization header, afresh when the token file or plugin has something newer."""

    async def header(self, now: float) -> str | None:
        """The header's value at loop time `now`, or None when the TLS certificate says who we are."""
        del now
        return None

    def refused(self) -> None:
        """The server did not accept the last header: read it anew next time."""


class StaticCredentials(Credentials):
    """A header that never changes: a token or basic authentication."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def header(self, now: float) -> str | None:
        """The header given at the start."""
        del now
        return self._value


class TokenFile(Credentials):
    """A bearer token in a file that somebody else rotates."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._value: str | None = None
        self._read_at = 0.0

    async def header(self, now: float) -> str | None:
        """The token, read again after `TOKEN_LIFE`; an unreadable file keeps the last one."""
        if self._value is None or now - self._read_at >= TOKEN_LIFE:
            self._read(now)
        return self._value

    def _read(self, now: float) -> None:
        try:
            self._value = f"Bearer {self._path.read_text().strip()}"
        except OSError as error:
            if self._value is None:
                raise CredentialsError(f"cannot read the token file {self._path}: {error}") from error
        self._read_at = now

    def refused(self) -> None:
        """Read the file again at the next request."""
        self._read_at = float("-inf")


class ExecPlugin(Credentials):
    """A bearer token printed by a credential plugin (client.authentication.k8s.io)."""

    def __init__(self, plugin: UserExec) -> None:
        self._plugin = plugin
        self._value: str | None = None

    async def header(self, now: float) -> str | None:
        """The token of the last run; the plugin runs again after a refusal."""
        del now
        if self._value is None:
            self._value = f"Bearer {await self._run()}"
        return self._value

    def refused(self) -> None:
        """Run the plugin again at the next request."""
        self._value = None

    async def _run(self) -> str:
        plugin = self._plugin
        environment = os.environ | {item.name: item.value for item in plugin.env or []}
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command, *(plugin.args or []), env=environment, stdout=asyncio.subprocess.PIPE
            )
        except OSError as error:
            hint = plugin.installHint or "install it or put its folder on PATH"
            raise CredentialsError(
                f"cannot run credential plugin {plugin.command!r}: {error}; {hint}"
            ) from error
        return self._token(await self._output(process), process.returncode)

    @staticmethod
    async def _output(process: asyncio.subprocess.Process) -> bytes:
        try:
            return (await process.communicate())[0]
        finally:
            if process.returncode is None:  # cancelled: a plugin must not outlive the request
                process.kill()
                await process.wait()

    def _token(self, output: bytes, code: int | None) -> str:
        try:
            return msgspec.json.decode(output)["status"]["token"]
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise CredentialsError(
                f"credential plugin {self._plugin.command!r} ended with code {code} and printed no token"
            ) from error

"""Where the API server is and who we are to it.

Files are read by lightkube's loader; the order of places is that of kubectl and the reference
(spec: control-plane 15.1): an explicit path, KUBECONFIG, the pod's service account, ~/.kube/config.
"""

import asyncio
import base64
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from lightkube.config.kubeconfig import (
    DEFAULT_KUBECONFIG,
    SERVICE_ACCOUNT,
    KubeConfig,
    SingleConfig,
    StrOrPath,
)
from lightkube.config.models import FileStr, User, UserExec
from lightkube.core.exceptions import ConfigError

TOKEN_LIFE = 60.0
"""Seconds a token read from a file is used; the kubelet rotates it well before it expires."""


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

    def __init__(self, path: StrOrPath) -> None:
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
                raise ConfigError(f"cannot read the token file {self._path}: {error}") from error
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
        process = await asyncio.create_subprocess_exec(
            plugin.command, *(plugin.args or []), env=environment, stdout=asyncio.subprocess.PIPE
        )
        try:
            output, _ = await process.communicate()
        except BaseException:
            process.kill()
            raise
        return self._token(output, process.returncode)

    def _token(self, output: bytes, code: int | None) -> str:
        try:
            return msgspec.json.decode(output)["status"]["token"]
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise ConfigError(
                f"credential plugin {self._plugin.command!r} ended with code {code} and printed no token"
            ) from error


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a client needs to know. `namespace` is the one of the pod or of the context."""

    server: str
    namespace: str = "default"
    tls: ssl.SSLContext | None = None
    credentials: Credentials = Credentials()


def load(kubeconfig: str = "") -> ClusterConfig:
    """Find and read the configuration; ConfigError says which file is wrong and how."""
    try:
        single = _find(kubeconfig).get()
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise ConfigError(f"kubeconfig {kubeconfig or 'found'} is not usable: {error!r}") from error
    if single is None:
        raise ConfigError("the kubeconfig names no current context; set one or pass --kubeconfig")
    return ClusterConfig(
        server=single.cluster.server.rstrip("/"),
        namespace=single.namespace,
        tls=_tls(single),
        credentials=_credentials(single),
    )


def _find(kubeconfig: str) -> KubeConfig:
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    if path:
        return KubeConfig.from_file(path)
    if Path(SERVICE_ACCOUNT, "token").exists():
        return KubeConfig.from_service_account()
    return KubeConfig.from_file(DEFAULT_KUBECONFIG)


def _tls(single: SingleConfig) -> ssl.SSLContext | None:
    if not single.cluster.server.startswith("https:"):
        return None
    cluster = single.cluster
    context = ssl.create_default_context()
    if cluster.certificate_auth_data:
        context.load_verify_locations(cadata=base64.b64decode(cluster.certificate_auth_data).decode())
    elif cluster.certificate_auth:
        context.load_verify_locations(cafile=single.abs_file(cluster.certificate_auth))
    if cluster.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if single.user:
        _client_certificate(context, single.user, single.abs_file)
    return context


def _client_certificate(context: ssl.SSLContext, user: User, absolute: Callable[[str], Any]) -> None:
    certificate = FileStr(user.client_cert_data) or (user.client_cert and absolute(user.client_cert))
    key = FileStr(user.client_key_data) or (user.client_key and absolute(user.client_key))
    if certificate:
        context.load_cert_chain(certificate, key)


def _credentials(single: SingleConfig) -> Credentials:
    user = single.user or User()
    if user.token_file:
        return TokenFile(single.abs_file(user.token_file))
    if user.token:
        return StaticCredentials(f"Bearer {user.token}")
    if user.exec:
        return ExecPlugin(user.exec)
    if user.username and user.password:
        basic = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return StaticCredentials(f"Basic {basic}")
    return Credentials()

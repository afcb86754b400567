"""Where the API server is and who we are to it.

Files are read by lightkube's loader; the order of places is that of kubectl and the reference
(spec: control-plane 15.1): an explicit path, KUBECONFIG, the pod's service account, ~/.kube/config.
"""

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
)
from lightkube.config.models import FileStr, User
from lightkube.core.exceptions import ConfigError

from coil.kube.credentials import Credentials, ExecPlugin, StaticCredentials, TokenFile


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a client needs to know. `namespace` is the one of the pod or of the context."""

    server: str
    namespace: str = "default"
    tls: ssl.SSLContext | None = None
    credentials: Credentials = Credentials()


def load(kubeconfig: str = "") -> ClusterConfig:
    """Find and read the configuration; ConfigError says which file is wrong and how."""
    path = _path(kubeconfig)
    source = "the pod's environment" if path is None else f"kubeconfig {path}"
    try:
        single = _read(path).get()
    except KeyError as error:
        raise ConfigError(f"{source} has no member {error}") from error
    except (TypeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{source} is not usable: {error}") from error
    if single is None:
        raise ConfigError("the kubeconfig names no current context; set one or pass --kubeconfig")
    return ClusterConfig(
        server=single.cluster.server.rstrip("/"),
        namespace=single.namespace,
        tls=_tls(single),
        credentials=_credentials(single),
    )


def _path(kubeconfig: str) -> str | None:
    """The file to read; None for the pod's service account."""
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not path and Path(SERVICE_ACCOUNT, "token").exists():
        return None
    return path or DEFAULT_KUBECONFIG


def _read(path: str | None) -> KubeConfig:
    if path is None:
        return KubeConfig.from_service_account(SERVICE_ACCOUNT)
    return KubeConfig.from_file(path)


def _tls(single: SingleConfig) -> ssl.SSLContext | None:
    if not single.cluster.server.startswith("https:"):
        return None
    context = _trust(single)
    if single.user:
        _client_certificate(context, single.user, single.abs_file)
    return context


def _trust(single: SingleConfig) -> ssl.SSLContext:
    """An authority named in the file is trusted alone; without one, those of the system are."""
    cluster = single.cluster
    data = cluster.certificate_auth_data
    context = ssl.create_default_context(
        cadata=base64.b64decode(data).decode() if data else None,
        cafile=single.abs_file(cluster.certificate_auth) if cluster.certificate_auth else None,
    )
    if cluster.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
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

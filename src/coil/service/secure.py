"""Metrics over HTTPS for those allowed to read them: `--metrics-secure` (spec: control-plane 15.1).

The certificate is made anew at each start and signed by itself: scrapers skip its verification. Who asks is
authenticated by a TokenReview and authorised by a SubjectAccessReview for `get` on the path.
"""

import datetime as dt
import socket
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from coil.kube.client import Client
from coil.kube.errors import ApiError
from coil.kube.resource import Resource
from coil.service.http import Handler, metrics
from coil.service.settings import Address, ProcessSettings, address
from coil.support.clock import utc_now
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectMeta

LIFETIME = dt.timedelta(days=365)

Server = tuple[Address | None, Mapping[str, Handler], ssl.SSLContext | None]
"""Where to serve what, and the context for HTTPS."""

log = get_logger("metrics")


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review as answered: it is stored nowhere, so it has no metadata worth reading."""

    status: JsonObject = {}

    @property
    def metadata(self) -> ObjectMeta:
        """Empty."""
        return ObjectMeta()


TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", plural="tokenreviews", kind="TokenReview", view=Review, namespaced=False
)
ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    view=Review,
    namespaced=False,
)


def metrics_server(settings: ProcessSettings, client: Client) -> Server:
    """The server of a process' metrics, as its flags want it."""
    where, answer = address(settings.metrics_addr), metrics()
    if not settings.metrics_secure:
        return where, {"/metrics": answer}, None
    if where is None:
        log.info("--metrics-secure has no effect: metrics are off")
    return where, {"/metrics": guarded(answer, client)}, self_signed(socket.gethostname())


def guarded(handler: Handler, client: Client) -> Handler:
    """Let only those through whose token may `get` the path: else 401 or 403, and 500 when nobody can say."""

    async def guard(request: web.Request) -> web.StreamResponse:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise web.HTTPUnauthorized
        try:
            user = await _authenticate(client, token.strip())
            if user is None:
                raise web.HTTPUnauthorized
            if not await _allowed(client, user, request.path):
                raise web.HTTPForbidden
        except ApiError as error:
            log.warning("a request for metrics could not be reviewed", error=str(error))
            raise web.HTTPInternalServerError from error
        return await handler(request)

    return guard


async def _authenticate(client: Client, token: str) -> JsonObject | None:
    """The user that a token stands for, None when it stands for nobody."""
    body = {**_head(TOKEN_REVIEWS), "spec": {"token": token}}
    status = (await client.create(TOKEN_REVIEWS, body)).status
    return status.get("user") if status.get("authenticated") else None


async def _allowed(client: Client, user: JsonObject, path: str) -> bool:
    spec = {
        "nonResourceAttributes": {"path": path, "verb": "get"},
        "user": user.get("username", ""),
        "groups": user.get("groups") or [],
        "uid": user.get("uid", ""),
        "extra": user.get("extra") or {},
    }
    status = (await client.create(ACCESS_REVIEWS, {**_head(ACCESS_REVIEWS), "spec": spec})).status
    return bool(status.get("allowed"))


def _head(resource: Resource[Any]) -> JsonObject:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def self_signed(host: str) -> ssl.SSLContext:
    """A server context with a new certificate for `host`; only HTTP/1.1 is offered."""
    from cryptography import x509  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 -- 8 MB that few need

    from coil.support import certificates  # noqa: PLC0415 -- 8 MB that few need

    key, name = certificates.new_key(), certificates.common_name(host[: certificates.MAX_COMMON_NAME])
    hosts = x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost")])
    made = certificates.builder(name, name, key, now=utc_now(), lifetime=LIFETIME)
    certificate = made.add_extension(hosts, critical=False).sign(key, hashes.SHA256())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads keys from files only
        path = Path(folder, "tls.pem")
        path.touch(mode=0o600)
        path.write_bytes(certificates.private_pem(key) + certificates.pem(certificate))
        context.load_cert_chain(path)
    return context

"""Renew the webhook's certificate where nobody else does (chart value `certManager.enabled: false`).

The Secret says all there is to know, so that any replica can take the next step, twice or not at all, and
may die in between. Each step is taken only when the one before is in force:

1. the next pair is put into the Secret beside the present one, its authority among the trusted;
2. the registrations trust every authority of the Secret;
3. the next pair becomes the present one.

The API server never meets a certificate that it does not trust: the earlier authority stays trusted until it
expires, while the kubelet hands the new pair to the pods.
"""

import asyncio
import base64
import datetime as dt
from collections.abc import Iterable, Sequence

import msgspec
from cryptography import x509

from coil.admission.pki import hosts_of, issue
from coil.kube.client import Client
from coil.kube.core import SECRETS
from coil.kube.errors import ApiError, Conflict, NotFound
from coil.kube.resource import Resource
from coil.support.certificates import pem
from coil.support.clock import utc_now
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectMeta

BEFORE = dt.timedelta(days=365)
"""So long before its end a certificate is renewed, or when a third of its life is left if that is later."""

PERIOD_S = 60.0
SETTLE_S = 5.0
"""Seconds after a step: the API server's own view of a registration lags a little."""

log = get_logger("certificates")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What the Secret holds, as PEM texts; empty when absent."""

    certificate: bytes = b""
    authorities: bytes = b""
    next_certificate: bytes = b""
    next_key: bytes = b""


class Prepare(msgspec.Struct, frozen=True):
    """Put a next pair into the Secret, for these hosts."""

    hosts: tuple[str, ...]


class Trust(msgspec.Struct, frozen=True):
    """Let the registrations trust these authorities too (PEM)."""

    authorities: bytes


class Switch(msgspec.Struct, frozen=True):
    """Serve the next pair."""


Step = Prepare | Trust | Switch


def next_step(held: Held, bundles: Iterable[bytes], now: dt.datetime) -> Step | None:
    """What to do next; `bundles` is what each registered webhook trusts (PEM).

    Raises:
        ValueError: somebody spoiled the Secret or a bundle.
    """
    wanted = _valid(held.authorities, now)
    if any(not wanted <= _valid(bundle, now) for bundle in bundles):
        return Trust(_text(wanted))
    if held.next_certificate and held.next_key:
        return Switch()
    present = x509.load_pem_x509_certificate(held.certificate)
    return Prepare(tuple(hosts_of(present))) if _is_due(present, now) else None


def joined(first: bytes, second: bytes, now: dt.datetime) -> bytes:
    """Certificates of both PEM texts, without those that have expired."""
    return _text(_valid(first, now) | _valid(second, now))


def _is_due(certificate: x509.Certificate, now: dt.datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < min(BEFORE, life / 3)


def _valid(text: bytes, now: dt.datetime) -> set[x509.Certificate]:
    found = x509.load_pem_x509_certificates(text) if text.strip() else []
    return {certificate for certificate in found if certificate.not_valid_after_utc > now}


def _text(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(sorted(map(pem, certificates)))


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A validating or mutating webhook configuration."""

    metadata: ObjectMeta
    webhooks: list[JsonObject] = []

    @property
    def bundles(self) -> list[bytes]:
        """What each of its webhooks trusts (PEM)."""
        return [_decoded(hook["clientConfig"].get("caBundle")) for hook in self.webhooks]


def _registration(kind: str) -> Resource[Registration]:
    return Resource(
        group="admissionregistration.k8s.io",
        plural=f"{kind.lower()}s",
        kind=kind,
        view=Registration,
        namespaced=False,
    )


REGISTRATIONS = tuple(map(_registration, ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")))


class Renewal:
    """Keeps the certificate of one Secret good, and the registrations of one name trusting it."""

    def __init__(self, client: Client, namespace: str, secret: str, registration: str) -> None:
        self._client, self._namespace = client, namespace
        self._secret, self._name = secret, registration

    async def run(self) -> None:
        """Look again and again; what fails is logged and tried again."""
        while True:
            step = None
            try:
                step = await self.look(utc_now())
            except Conflict:
                log.debug("another replica renews the certificate", secret=self._secret)
            except (ApiError, ValueError) as error:
                log.warning("the certificate cannot be renewed", secret=self._secret, error=str(error))
            await asyncio.sleep(PERIOD_S if step is None else SETTLE_S)

    async def look(self, now: dt.datetime) -> Step | None:
        """Take the next step, if there is one.

        Raises:
            ApiError: something could not be read or written; Conflict when it changed meanwhile.
            ValueError: the Secret or a registration holds no certificates.
        """
        secret = await self._client.get(SECRETS, self._secret, self._namespace)
        data = secret.data
        held = Held(
            certificate=data.get("tls.crt", b""),
            authorities=data.get("ca.crt", b""),
            next_certificate=data.get("next.crt", b""),
            next_key=data.get("next.key", b""),
        )
        found = await self._registrations()
        step = next_step(held, [bundle for _, each in found for bundle in each.bundles], now)
        version = secret.metadata.resource_version
        match step:
            case Prepare(hosts=hosts):
                new = issue(hosts, now)
                bundle = joined(held.authorities, new.authority, now)
                pair = {"next.crt": new.certificate, "next.key": new.key}
                await self._write(version, {**pair, "ca.crt": bundle})
            case Trust(authorities=authorities):
                await self._trust(found, authorities, now)
            case Switch():
                pair = {"tls.crt": data["next.crt"], "tls.key": data["next.key"]}
                await self._write(version, {**pair, "next.crt": None, "next.key": None})
            case None:
                return None
        log.info("certificate renewal", step=type(step).__name__, secret=self._secret)
        return step

    async def _registrations(self) -> Sequence[tuple[Resource[Registration], Registration]]:
        found: list[tuple[Resource[Registration], Registration]] = []
        for resource in REGISTRATIONS:
            try:
                found.append((resource, await self._client.get(resource, self._name)))
            except NotFound:
                continue
        return found

    async def _write(self, version: str, data: dict[str, bytes | None]) -> None:
        await self._client.patch(
            SECRETS, self._secret, {"data": data}, self._namespace, resource_version=version
        )

    async def _trust(
        self,
        found: Sequence[tuple[Resource[Registration], Registration]],
        authorities: bytes,
        now: dt.datetime,
    ) -> None:
        for resource, registration in found:
            hooks = [_trusting(hook, authorities, now) for hook in registration.webhooks]
            version = registration.metadata.resource_version
            await self._client.patch(resource, self._name, {"webhooks": hooks}, resource_version=version)


def _trusting(hook: JsonObject, authorities: bytes, now: dt.datetime) -> JsonObject:
    client = hook["clientConfig"]
    bundle = joined(_decoded(client.get("caBundle")), authorities, now)
    return {**hook, "clientConfig": {**client, "caBundle": base64.b64encode(bundle).decode()}}


def _decoded(text: str | None) -> bytes:
    return base64.b64decode(text or "")

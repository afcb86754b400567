"""The serving certificate, read again whenever its files change.

    certificates = Certificates(folder)
    tasks.spawn("certificates", certificates.run())
    await certificates.loaded.wait()
    ... serve with certificates.tls

cert-manager, Helm or a person writes a Secret, the kubelet the files. New connections get the new
certificate; those that are open go on.
"""

import asyncio
import os
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509

from coil.admission import metrics
from coil.support.clock import rfc3339
from coil.support.log import get_logger

PERIOD_S = 5.0
"""Seconds between looks at the files: two small reads; notifications miss the kubelet's way of writing."""

log = get_logger("certificates")


class _Pair(NamedTuple):
    certificate: bytes
    key: bytes


class Certificates:
    """The certificate in a folder with `tls.crt` and `tls.key`.

    A pair that cannot be used (half written, no match) changes nothing: the last good one is served on,
    the next look tries again. Without any pair yet, `loaded` is not set.
    """

    def __init__(self, folder: Path) -> None:
        self.tls = _context()
        self.tls.sni_callback = self._choose
        self._current = self.tls
        self.loaded = asyncio.Event()
        self._folder = folder
        self._tried: _Pair | None = None
        self._problem = ""

    async def run(self, period: float = PERIOD_S) -> None:
        """Look at the files again and again."""
        while True:
            self.look()
            await asyncio.sleep(period)

    def look(self) -> None:
        """Use the files' certificate if it is another one than last time."""
        try:
            pair = _Pair(*((self._folder / name).read_bytes() for name in ("tls.crt", "tls.key")))
        except OSError as error:
            self._complain(error)
            return
        if pair == self._tried:
            return
        self._tried = pair
        metrics.certificate_reads.inc()
        try:
            fresh = _context()
            _load(fresh, pair)
            _describe(pair.certificate)
        except (ssl.SSLError, ValueError) as error:
            self._complain(error)
            return
        self._current = fresh
        self._problem = ""
        self.loaded.set()

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Give a new connection the present certificate.

        Loaded into one context, a certificate with another kind of key (RSA, then ECDSA) would stand beside
        the old one, and the client would choose.
        """
        connection.context = self._current

    def _complain(self, error: Exception) -> None:
        """Once for each cause."""
        problem = f"{type(error).__name__}: {error}"
        if problem != self._problem:
            self._problem = problem
            metrics.certificate_errors.inc()
            log.error("certificate cannot be used", folder=str(self._folder), error=problem)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pair: _Pair) -> None:
    """Load exactly these bytes: OpenSSL reads files only, and those on disk may change in between."""
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, b"\n".join(pair))
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _describe(pem: bytes) -> None:
    certificate = x509.load_pem_x509_certificate(pem)
    until = rfc3339(certificate.not_valid_after_utc)
    metrics.certificate_ends.set(certificate.not_valid_after_utc.timestamp())
    log.info("certificate loaded", serial=f"{certificate.serial_number:x}", until=until)

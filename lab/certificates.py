"""A small certificate authority for a cluster that lives for hours, not years."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=365)
# A clock that is a little behind must not make a fresh certificate invalid.
_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Subject:
    """Whom a certificate names: the Kubernetes user, its groups, and where a server is reached."""

    name: str
    groups: Sequence[str] = ()
    hosts: Sequence[str] = ()


@dataclass(frozen=True)
class Credentials:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `name.crt` and `name.key`; the key is readable by its owner only."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.crt").write_bytes(self.certificate)
        key = folder / f"{name}.key"
        key.touch(mode=0o600)
        key.write_bytes(self.key)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """Read what `write` wrote."""
        return cls((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new P-256 key: made in a millisecond, where RSA needs a second for a handful."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as unencrypted PEM, in the form that kube-apiserver reads for service accounts too."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


class Authority:
    """Signs certificates; its own credentials can be written and read back."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._certificate = x509.load_pem_x509_certificate(credentials.certificate)
        key = serialization.load_pem_private_key(credentials.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the lab's authority has an elliptic curve key")
        self._key = key

    @classmethod
    def create(cls, name: str) -> Self:
        """Make a new self-signed authority."""
        key, subject = new_key(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = _key_usage(signs_certificates=True)
        certificate = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(Credentials(_pem(certificate), private_pem(key)))

    def issue(self, subject: Subject) -> Credentials:
        """Sign a certificate that serves as client and, where the subject has hosts, as server."""
        key = new_key()
        name = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.groups]
            + [x509.NameAttribute(NameOID.COMMON_NAME, subject.name)]
        )
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] + [ExtendedKeyUsageOID.SERVER_AUTH] * bool(subject.hosts)
        builder = (
            _builder(name, self._certificate.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if subject.hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in subject.hosts])
            builder = builder.add_extension(names, critical=False)
        return Credentials(_pem(builder.sign(self._key, hashes.SHA256())), private_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

"""A certificate authority for one certificate: its key is forgotten as soon as it has signed."""

import datetime as dt
from collections.abc import Sequence

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from coil.support.certificates import MAX_COMMON_NAME, builder, common_name, new_key, pem, private_pem

LIFETIME = dt.timedelta(days=5 * 365)

_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Issued(msgspec.Struct, frozen=True):
    """PEM texts."""

    authority: bytes
    certificate: bytes
    key: bytes


def issue(hosts: Sequence[str], now: dt.datetime) -> Issued:
    """A certificate for a server of these DNS names, good for `LIFETIME`, by an authority of its own."""
    ca_key, key = new_key(), new_key()
    ca_name = _name(f"{hosts[0]} CA")
    ca = (
        _builder(ca_name, ca_name, ca_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
    )
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    leaf = (
        _builder(_name(hosts[0]), ca_name, key, now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(signer, critical=False)
    )
    return Issued(
        authority=pem(ca.sign(ca_key, hashes.SHA256())),
        certificate=pem(leaf.sign(ca_key, hashes.SHA256())),
        key=private_pem(key),
    )


def hosts_of(certificate: x509.Certificate) -> list[str]:
    """The DNS names that a certificate is for.

    Raises:
        ValueError: it has none.
    """
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound as error:
        raise ValueError("the certificate names no host") from error
    return names.get_values_for_type(x509.DNSName)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    made = builder(subject, issuer, key, now=now, lifetime=LIFETIME)
    return made.add_extension(identifier, critical=False)


def _name(text: str) -> x509.Name:
    # The end of a long text is kept: by it the authority's name differs from the server's.
    return common_name(text[-MAX_COMMON_NAME:])

"""Claims about reading certificates again, without sockets: two ends of TLS in memory."""

import asyncio
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from coil.admission.certificates import PERIOD_S, Certificates
from lab.certificates import Authority, Credentials, Subject

AUTHORITY = Authority.create("coil-test")


def issue(name: str) -> Credentials:
    return AUTHORITY.issue(Subject(name, hosts=["localhost"]))


def issue_rsa(lifetime: dt.timedelta = dt.timedelta(hours=1)) -> Credentials:
    """As cert-manager and Helm make them by default, signed by itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rsa")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return Credentials(certificate.public_bytes(pem), private)


def served(certificates: Certificates, trusted: bytes = AUTHORITY.credentials.certificate) -> bytes:
    """The certificate that a new connection gets."""
    trust = ssl.create_default_context(cadata=trusted.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trust.wrap_bio(to_client, to_server, server_hostname="localhost")
    server = certificates.tls.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ssl.DER_cert_to_PEM_cert(client.getpeercert(binary_form=True) or b"").encode()


def test_a_changed_certificate_is_served_to_new_connections(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    for name in ("first", "second"):
        credentials = issue(name)
        credentials.write(tmp_path, "tls")
        certificates.look()
        assert certificates.loaded.is_set()
        assert served(certificates) == credentials.certificate


def test_a_certificate_with_another_kind_of_key_replaces_the_old_one(tmp_path: Path) -> None:
    """OpenSSL keeps one certificate for each kind of key; from RSA to ECDSA and back, the last counts."""
    certificates = Certificates(tmp_path)
    for credentials in (issue_rsa(), issue("ecdsa"), issue_rsa()):
        credentials.write(tmp_path, "tls")
        certificates.look()
        assert certificates.loaded.is_set()
        both = b"".join((AUTHORITY.credentials.certificate, credentials.certificate))
        assert served(certificates, both) == credentials.certificate


def test_an_expired_certificate_is_replaced_without_a_restart(tmp_path: Path) -> None:
    """One that ran out while nobody renewed it fails for each client, and the next one is served at once."""
    certificates = Certificates(tmp_path)
    expired, renewed = issue_rsa(dt.timedelta(seconds=-1)), issue_rsa()
    expired.write(tmp_path, "tls")
    certificates.look()
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        served(certificates, expired.certificate)
    renewed.write(tmp_path, "tls")
    certificates.look()
    assert served(certificates, renewed.certificate) == renewed.certificate


def test_without_files_nothing_is_loaded_until_they_come(tmp_path: Path) -> None:
    """Field case WHK-04: an empty or half-empty Secret."""
    certificates = Certificates(tmp_path)
    certificates.look()
    (tmp_path / "tls.crt").write_bytes(b"")
    (tmp_path / "tls.key").write_bytes(b"")
    certificates.look()
    assert not certificates.loaded.is_set()
    issue("late").write(tmp_path, "tls")
    certificates.look()
    assert certificates.loaded.is_set()


@pytest.mark.parametrize("half", ["other key", "cut", "text", "gone"])
def test_a_pair_that_cannot_be_used_leaves_the_last_good_one(tmp_path: Path, half: str) -> None:
    good, new = issue("good"), issue("new")
    good.write(tmp_path, "tls")
    certificates = Certificates(tmp_path)
    certificates.look()
    if half == "gone":
        (tmp_path / "tls.crt").unlink()
    else:
        broken = {"other key": new.certificate, "cut": new.certificate[:200], "text": b"not yet"}
        (tmp_path / "tls.crt").write_bytes(broken[half])
    certificates.look()
    assert served(certificates) == good.certificate
    new.write(tmp_path, "tls")
    certificates.look()
    assert served(certificates) == new.certificate


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_the_files_are_looked_at_again_and_again(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    async with asyncio.timeout(3 * PERIOD_S), asyncio.TaskGroup() as group:
        running = group.create_task(certificates.run())
        await asyncio.sleep(1)
        assert not certificates.loaded.is_set()
        issue("late").write(tmp_path, "tls")
        await certificates.loaded.wait()
        assert asyncio.get_running_loop().time() == pytest.approx(PERIOD_S)
        running.cancel()

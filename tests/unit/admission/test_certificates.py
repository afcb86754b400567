"""Claims about reading certificates again, without sockets: two ends of TLS in memory."""

import asyncio
import ssl
from pathlib import Path

import pytest

from coil.admission.certificates import PERIOD_S, Certificates
from lab.certificates import Authority, Credentials, Subject

AUTHORITY = Authority.create("coil-test")


def issue(name: str) -> Credentials:
    return AUTHORITY.issue(Subject(name, hosts=["localhost"]))


def served(certificates: Certificates) -> bytes:
    """The certificate that a new connection gets."""
    trust = ssl.create_default_context(cadata=AUTHORITY.credentials.certificate.decode())
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

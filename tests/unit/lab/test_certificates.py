"""Certificates that Kubernetes and strict clients accept."""

import datetime as dt
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import verification

from lab.certificates import Authority, Credentials, Subject


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test")


def _parse(credentials: Credentials) -> x509.Certificate:
    return x509.load_pem_x509_certificate(credentials.certificate)


def test_a_server_is_trusted_by_its_name_and_by_its_address(authority: Authority) -> None:
    """The verifier is a strict one: key identifiers, usages and constraints must all be there."""
    server = _parse(authority.issue(Subject("api", hosts=["api.example", "192.0.2.7"])))
    store = verification.Store([_parse(authority.credentials)])
    for name in (x509.DNSName("api.example"), x509.IPAddress(ipaddress.ip_address("192.0.2.7"))):
        verifier = verification.PolicyBuilder().store(store).build_server_verifier(name)
        assert verifier.verify(server, []), name


def test_user_and_groups_are_common_name_and_organizations(authority: Authority) -> None:
    subject = _parse(authority.issue(Subject("system:node:a", ["system:nodes", "more"]))).subject

    assert subject.rfc4514_string() == "CN=system:node:a,O=more,O=system:nodes"


def test_a_clock_that_is_a_little_behind_does_not_matter(authority: Authority) -> None:
    certificate = _parse(authority.issue(Subject("user")))

    assert certificate.not_valid_before_utc < dt.datetime.now(dt.UTC) - dt.timedelta(minutes=30)


def test_an_authority_read_back_signs_for_the_same_trust(authority: Authority, tmp_path: Path) -> None:
    authority.credentials.write(tmp_path, "ca")

    again = Authority(Credentials.read(tmp_path, "ca"))

    _parse(again.issue(Subject("user"))).verify_directly_issued_by(_parse(authority.credentials))
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600

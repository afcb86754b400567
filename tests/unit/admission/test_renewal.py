"""The certificate is renewed in steps; any replica may take any of them, twice or never."""

import datetime as dt
import ssl
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from coil.admission.pki import LIFETIME, Issued, hosts_of, issue
from coil.admission.renewal import BEFORE, Held, Prepare, Switch, Trust, joined, next_step

HOSTS = ("slurm-operator-webhook.slinky.svc", "slurm-operator-webhook.slinky")
NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
OLD = issue(HOSTS, NOW - LIFETIME + BEFORE - dt.timedelta(days=1))
"""Its renewal is due."""
FRESH = issue(HOSTS, NOW)


def held(pair: Issued, following: Issued | None = None) -> Held:
    """A Secret with this pair, and perhaps the next one beside it."""
    if following is None:
        return Held(certificate=pair.certificate, authorities=pair.authority)
    return Held(
        certificate=pair.certificate,
        authorities=joined(pair.authority, following.authority, NOW),
        next_certificate=following.certificate,
        next_key=following.key,
    )


def test_a_certificate_is_for_its_hosts_and_trusted_through_its_authority_only(tmp_path: Path) -> None:
    made, other = (issue(HOSTS, dt.datetime.now(dt.UTC)) for _ in range(2))
    assert hosts_of(x509.load_pem_x509_certificate(made.certificate)) == list(HOSTS)
    for host in HOSTS:
        shake_hands(made, other.authority + made.authority, host, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, other.authority, HOSTS[0], tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, made.authority, "elsewhere.svc", tmp_path)


def shake_hands(made: Issued, trusted: bytes, host: str, folder: Path) -> None:
    """A client that trusts these authorities meets a server with that pair, in memory."""
    (folder / "pair.pem").write_bytes(made.certificate + made.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "pair.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trust = ssl.create_default_context(cadata=trusted.decode())
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    client = trust.wrap_bio(to_client, to_server, server_hostname=host)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client, server):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert client.getpeercert()


def test_the_steps_follow_each_other() -> None:
    assert next_step(held(OLD), [OLD.authority], NOW) == Prepare(HOSTS)
    prepared = held(OLD, FRESH)
    assert next_step(prepared, [OLD.authority, prepared.authorities], NOW) == Trust(prepared.authorities)
    assert next_step(prepared, [prepared.authorities] * 2, NOW) == Switch()
    switched = Held(certificate=FRESH.certificate, authorities=prepared.authorities)
    assert next_step(switched, [prepared.authorities] * 2, NOW) is None


def test_it_is_due_a_year_before_its_end_or_in_the_last_third_of_a_short_life() -> None:
    day = dt.timedelta(days=1)
    end = x509.load_pem_x509_certificate(FRESH.certificate).not_valid_after_utc
    assert next_step(held(FRESH), [FRESH.authority], end - BEFORE) is None
    assert isinstance(next_step(held(FRESH), [FRESH.authority], end - BEFORE + day), Prepare)


def test_one_that_ended_long_ago_is_renewed_too() -> None:
    late = NOW + 3 * LIFETIME
    assert next_step(held(FRESH), [FRESH.authority], late) == Prepare(HOSTS)


def test_what_expired_is_trusted_no_longer() -> None:
    late = NOW + LIFETIME + dt.timedelta(days=1)
    assert joined(FRESH.authority, b"", late) == b""


def test_a_registration_that_does_not_know_the_authority_is_told() -> None:
    """Helm's rollback, or a tool that renders without a cluster, wrote another one."""
    assert next_step(held(FRESH), [b"", FRESH.authority], NOW) == Trust(FRESH.authority)


@pytest.mark.parametrize(
    "spoiled", [Held(), Held(certificate=b"no", authorities=b""), Held(certificate=OLD.key)]
)
def test_a_spoiled_secret_is_told_and_not_written(spoiled: Held) -> None:
    with pytest.raises(ValueError, match=r"."):
        next_step(spoiled, [], NOW)


class Cluster:
    """A Secret, two registrations, and pods to which the kubelet hands pairs late or never."""

    def __init__(self) -> None:
        self.held, self.version = held(OLD), 0
        self.bundles = [OLD.authority, OLD.authority]
        self.authority_of = {OLD.certificate: OLD.authority}
        self.serving = {OLD.certificate}

    def write(self, seen: int, **changes: bytes) -> None:
        """As the API server takes it: not over what changed meanwhile."""
        if seen == self.version:
            self.held, self.version = msgspec.structs.replace(self.held, **changes), self.version + 1
            self.serving.add(self.held.certificate)

    def act(self, seen: tuple[Held, list[bytes], int]) -> None:
        """What a replica does that looked at that moment."""
        before, bundles, version = seen
        match next_step(before, bundles, NOW):
            case Prepare(hosts=hosts):
                new = issue(hosts, NOW)
                self.authority_of[new.certificate] = new.authority
                authorities = joined(before.authorities, new.authority, NOW)
                self.write(
                    version,
                    next_certificate=new.certificate,
                    next_key=new.key,
                    authorities=authorities,
                )
            case Trust(authorities=authorities):
                self.bundles = [joined(bundle, authorities, NOW) for bundle in self.bundles]
            case Switch():
                self.write(version, certificate=before.next_certificate, next_certificate=b"", next_key=b"")
            case None:
                pass


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_no_order_of_replicas_serves_what_is_not_trusted(moves: list[tuple[int, bool]]) -> None:
    """Three replicas look, and act later on what they saw."""
    cluster = Cluster()
    seen = [(cluster.held, cluster.bundles, cluster.version)] * 3
    for who, looks in moves:
        if looks:
            seen[who] = (cluster.held, cluster.bundles, cluster.version)
        else:
            cluster.act(seen[who])
        for served in cluster.serving:
            assert all(cluster.authority_of[served] in bundle for bundle in cluster.bundles)
    for _ in range(4):
        cluster.act((cluster.held, cluster.bundles, cluster.version))
    assert cluster.held.certificate != OLD.certificate
    assert next_step(cluster.held, cluster.bundles, NOW) is None

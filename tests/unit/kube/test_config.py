"""Where the API server is: kubeconfig files, the environment, the pod."""

import base64
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from lightkube.core.exceptions import ConfigError

from coil.kube import config
from coil.kube.config import load
from coil.kube.credentials import ExecPlugin, StaticCredentials, TokenFile


def write(
    path: Path, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **top: Any
) -> str:
    document = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "http://one:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "here"}}],
        **top,
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", str(tmp_path / "no-account"))
    monkeypatch.setattr(config, "DEFAULT_KUBECONFIG", str(tmp_path / "no-default"))


def test_a_file_names_server_and_namespace(tmp_path: Path) -> None:
    found = load(write(tmp_path / "kc", {"server": "http://one:1/"}))
    assert (found.server, found.namespace, found.tls) == ("http://one:1", "here", None)


def test_an_explicit_path_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", write(tmp_path / "env", {"server": "http://env"}))
    assert load(write(tmp_path / "flag", {"server": "http://flag"})).server == "http://flag"
    assert load().server == "http://env"


def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod's service account."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("t")
    (folder / "namespace").write_text("slinky")
    (folder / "ca.crt").write_bytes(authority())
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", str(folder))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account(tmp_path, monkeypatch)
    found = load()
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "slinky")
    assert isinstance(found.credentials, TokenFile)
    assert found.tls is not None


def test_the_environment_comes_before_the_pods_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account(tmp_path, monkeypatch)
    monkeypatch.setenv("KUBECONFIG", write(tmp_path / "env", {"server": "http://env"}))
    assert load().server == "http://env"


def test_the_default_file_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "DEFAULT_KUBECONFIG", write(tmp_path / "default", {"server": "http://home"}))
    assert load().server == "http://home"


def test_nothing_anywhere_is_an_error_that_names_the_place() -> None:
    with pytest.raises(ConfigError, match="no-default"):
        load()


def test_users_become_credentials(tmp_path: Path) -> None:
    path = tmp_path / "kc"
    plugin = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "p"}}
    assert isinstance(load(write(path, user={"tokenFile": "t"})).credentials, TokenFile)
    assert isinstance(load(write(path, user={"token": "t"})).credentials, StaticCredentials)
    assert isinstance(
        load(write(path, user={"username": "a", "password": "b"})).credentials, StaticCredentials
    )
    assert isinstance(load(write(path, user=plugin)).credentials, ExecPlugin)


@pytest.mark.parametrize(
    "top",
    [
        {"current-context": "other"},
        {"contexts": [{"name": "c", "context": {"cluster": "other"}}]},
        {"clusters": [{"name": "k"}]},
        {"current-context": None},
    ],
)
def test_a_file_that_contradicts_itself_is_an_error(tmp_path: Path, top: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        load(write(tmp_path / "kc", **top))


def authority() -> bytes:
    """A certificate authority's certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("how", ["data", "file", "relative"])
def test_an_authority_is_trusted_alone(tmp_path: Path, how: str) -> None:
    pem = authority()
    (tmp_path / "ca.crt").write_bytes(pem)
    cluster = {
        "data": {"certificate-authority-data": base64.b64encode(pem).decode()},
        "file": {"certificate-authority": str(tmp_path / "ca.crt")},
        "relative": {"certificate-authority": "ca.crt"},
    }[how]
    tls = load(write(tmp_path / "kc", {"server": "https://one", **cluster})).tls
    assert tls is not None
    assert tls.verify_mode == ssl.CERT_REQUIRED
    assert len(tls.get_ca_certs()) == 1


def test_verification_is_only_left_out_when_asked(tmp_path: Path) -> None:
    tls = load(write(tmp_path / "kc", {"server": "https://one", "insecure-skip-tls-verify": True})).tls
    assert tls is not None
    assert tls.verify_mode == ssl.CERT_NONE


def test_a_file_without_a_member_is_named_with_it(tmp_path: Path) -> None:
    path = tmp_path / "kc"
    path.write_text("{}")
    with pytest.raises(ConfigError, match=f"^kubeconfig {path} has no member 'clusters'$"):
        load(str(path))

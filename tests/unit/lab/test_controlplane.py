"""Files and command lines of a control plane."""

from pathlib import Path

import pytest
import yaml

from lab import binaries, controlplane
from lab.controlplane import ControlPlane, Ports


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlPlane:
    monkeypatch.setattr(binaries, "binary", lambda name: Path("/bin") / name)
    return ControlPlane(
        directory=tmp_path, data=tmp_path / "etcd", address="192.0.2.1", ports=Ports(api=7443)
    )


def test_every_file_that_a_flag_names_is_written(plane: ControlPlane) -> None:
    controlplane.prepare(plane)

    flags = [
        *controlplane.apiserver(plane),
        *controlplane.controller_manager(plane),
        *controlplane.scheduler(plane),
    ]
    files = {
        Path(value) for flag in flags if (value := flag.partition("=")[2]).startswith(str(plane.directory))
    }
    missing = {path for path in files if not path.exists()}
    assert missing == {plane.audit_log}, "kube-apiserver writes the audit log itself"


def test_preparing_again_keeps_the_authority(plane: ControlPlane) -> None:
    controlplane.prepare(plane)
    before = (plane.pki / "ca.crt").read_bytes(), plane.admin_conf.read_bytes()

    controlplane.prepare(plane)

    assert before == ((plane.pki / "ca.crt").read_bytes(), plane.admin_conf.read_bytes())


def test_a_kubeconfig_needs_no_other_file_and_is_private(plane: ControlPlane) -> None:
    controlplane.prepare(plane)

    config = yaml.safe_load(plane.admin_conf.read_text())

    assert config["clusters"][0]["cluster"]["server"] == "https://192.0.2.1:7443"
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert plane.admin_conf.stat().st_mode & 0o777 == 0o600


def test_nobody_but_the_api_server_reaches_etcd(plane: ControlPlane) -> None:
    listening = [flag for flag in controlplane.etcd(plane) if "listen" in flag]

    assert listening
    assert all("//127.0.0.1:" in flag for flag in listening)

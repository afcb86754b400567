"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler: their certificates and command lines.

`ApiServer` (module `lab.apiserver`) starts the first two alone for tests; `lab.cluster` starts all four.
"""

import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from lab import binaries, files
from lab.certificates import Authority, Credentials, Subject, new_key, private_pem
from lab.kubeconfig import kubeconfig

_CLUSTER_DOMAIN = "cluster.local"
_ISSUER = f"https://kubernetes.default.svc.{_CLUSTER_DOMAIN}"
# The built-in group that may do everything.
ADMINISTRATORS = "system:masters"
# A cluster's own traffic is the record of what changed: every write once, reads never.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}],
}


@dataclass(frozen=True)
class Ports:
    """The ports of one control plane, all on one address."""

    etcd: int = 2379
    etcd_peer: int = 2380
    api: int = 6443
    controller_manager: int = 10257
    scheduler: int = 10259


@dataclass(frozen=True)
class ControlPlane:
    """One control plane: where it listens, where its files are, which ranges it serves.

    Attributes:
        directory: certificates, kubeconfigs and policies.
        data: the folder of etcd.
        address: the address on which kube-apiserver is reached.
        first_service: the address of the Service `kubernetes`: the first of `service_range`.
        apiserver_extra: more flags for kube-apiserver.
        controller_manager_extra: more flags for kube-controller-manager.
    """

    directory: Path
    data: Path
    address: str
    ports: Ports = field(default_factory=Ports)
    service_range: str = "10.96.0.0/16"
    first_service: str = "10.96.0.1"
    pod_range: str = "10.244.0.0/16"
    apiserver_extra: Sequence[str] = ()
    controller_manager_extra: Sequence[str] = ()

    @property
    def url(self) -> str:
        """The URL of kube-apiserver."""
        return f"https://{self.address}:{self.ports.api}"

    @property
    def pki(self) -> Path:
        """The folder of certificates and keys."""
        return self.directory / "pki"

    @property
    def admin_conf(self) -> Path:
        """A kubeconfig that may do everything."""
        return self.directory / "admin.conf"

    @property
    def audit_log(self) -> Path:
        """Every write request as one JSON line."""
        return self.directory / "audit.log"

    def authority(self) -> Authority:
        """Return the authority that signs for this cluster."""
        return Authority(Credentials.read(self.pki, "ca"))

    def write_kubeconfig(self, path: Path, subject: Subject) -> None:
        """Write a kubeconfig with a new client certificate for a user."""
        authority = self.authority()
        text = kubeconfig(self.url, authority.credentials.certificate, authority.issue(subject))
        files.write(path, text, private=True)


def prepare(plane: ControlPlane) -> None:
    """Write certificates, kubeconfigs and policies, unless they are there."""
    if plane.admin_conf.exists():
        return
    authority = Authority.create("coil-lab")
    authority.credentials.write(plane.pki, "ca")
    for name, subject in _subjects(plane).items():
        authority.issue(subject).write(plane.pki, name)
    files.write(plane.pki / "service-accounts.key", private_pem(new_key()).decode(), private=True)
    files.write(plane.directory / "audit-policy.yaml", yaml.safe_dump(_AUDIT_POLICY))
    for name in ("controller-manager", "scheduler"):
        plane.write_kubeconfig(plane.directory / f"{name}.conf", Subject(f"system:kube-{name}"))
    plane.write_kubeconfig(plane.admin_conf, Subject("coil-lab-admin", [ADMINISTRATORS]))


def _subjects(plane: ControlPlane) -> Mapping[str, Subject]:
    service = "kubernetes.default.svc"
    names = ["localhost", "127.0.0.1", plane.address, plane.first_service]
    names += ["kubernetes", "kubernetes.default", service, f"{service}.{_CLUSTER_DOMAIN}"]
    return {
        "apiserver": Subject("kube-apiserver", hosts=names),
        "kubelet-client": Subject("kube-apiserver-kubelet-client", [ADMINISTRATORS]),
        "front-proxy-client": Subject("front-proxy-client"),
    }


def etcd(plane: ControlPlane) -> list[str]:
    """Return the command line of etcd, which nobody but this kube-apiserver can reach."""
    client, peer = (f"http://127.0.0.1:{port}" for port in (plane.ports.etcd, plane.ports.etcd_peer))
    return [
        str(binaries.binary("etcd")),
        f"--data-dir={plane.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # A lab that loses power starts anew; without the syncs a slow disk does not matter.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(plane: ControlPlane) -> list[str]:
    """Return the command line of kube-apiserver."""
    pki = plane.pki
    return [
        str(binaries.binary("kube-apiserver")),
        f"--bind-address={plane.address}",
        f"--advertise-address={plane.address}",
        f"--secure-port={plane.ports.api}",
        f"--etcd-servers=http://127.0.0.1:{plane.ports.etcd}",
        f"--service-cluster-ip-range={plane.service_range}",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={pki}/service-accounts.key",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        "--allow-privileged=true",
        # Node names are in no DNS and not in /etc/hosts: logs and exec go to addresses.
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        # Aggregated APIs (custom and resource metrics) need these six.
        f"--requestheader-client-ca-file={pki}/ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
        "--enable-aggregator-routing=true",
        f"--audit-policy-file={plane.directory}/audit-policy.yaml",
        f"--audit-log-path={plane.audit_log}",
        "--audit-log-maxbackup=2",
        *plane.apiserver_extra,
    ]


def controller_manager(plane: ControlPlane) -> list[str]:
    """Return the command line of kube-controller-manager; it is the only one, so it elects no leader."""
    pki = plane.pki
    return [
        str(binaries.binary("kube-controller-manager")),
        *_client_flags(plane, "controller-manager"),
        f"--secure-port={plane.ports.controller_manager}",
        f"--service-account-private-key-file={pki}/service-accounts.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--cluster-cidr={plane.pod_range}",
        "--use-service-account-credentials=true",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        *plane.controller_manager_extra,
    ]


def scheduler(plane: ControlPlane) -> list[str]:
    """Return the command line of kube-scheduler."""
    return [
        str(binaries.binary("kube-scheduler")),
        *_client_flags(plane, "scheduler"),
        f"--secure-port={plane.ports.scheduler}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def _client_flags(plane: ControlPlane, name: str) -> list[str]:
    path = plane.directory / f"{name}.conf"
    flags = [f"--{flag}={path}" for flag in ("kubeconfig", "authentication-kubeconfig")]
    return [
        *flags,
        f"--authorization-kubeconfig={path}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]


def ready(plane: ControlPlane) -> bool:
    """Ask kube-apiserver whether it is ready; every failure to ask means no."""
    context = ssl.create_default_context(cafile=plane.pki / "ca.crt")
    try:
        with urllib.request.urlopen(f"{plane.url}/readyz", timeout=2, context=context) as reply:  # noqa: S310 - https
            return reply.status == 200  # noqa: PLR2004 - HTTP's OK
    except (OSError, urllib.error.URLError):
        return False

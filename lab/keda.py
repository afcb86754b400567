"""KEDA in the lab, for the tests of autoscaling: its two programs in one image, and what they need around it.

KEDA's own manifests name images of a registry and make certificates while they run; here the lab's authority
signs one certificate before anything starts.
"""

import subprocess
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab import baseimages, binaries, cluster, topology
from lab.archives import Image
from lab.certificates import Subject
from lab.progress import step

IMAGE = "coil.local/keda:lab"
NAMESPACE = "keda"
API_SERVICE = "v1beta1.external.metrics.k8s.io"
_MODULE = "github.com/kedacore/keda/v2"
_OPERATOR, _ADAPTER = "keda-operator", "keda-metrics-apiserver"
_CERTIFICATES = "certificates"


def install() -> None:
    """Build KEDA where the cache lacks it, and start it in the running lab.

    Raises:
        LabError: it cannot be built, or does not become available.
    """
    binaries.ensure("keda")
    cluster.load(str(_archive()))
    with step("KEDA: available"):
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(_definitions()))
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(_manifests()))
        for name in (_OPERATOR, _ADAPTER):
            cluster.kubectl("-n", NAMESPACE, "rollout", "status", f"deployment/{name}", "--timeout=90s")
        cluster.kubectl("wait", "--for=condition=Available", f"apiservice/{API_SERVICE}", "--timeout=60s")


def remove() -> None:
    """Take KEDA away, the API of external metrics first: gone but registered it holds up every namespace."""
    cluster.kubectl("delete", "apiservice", API_SERVICE, "--ignore-not-found")
    cluster.kubectl("delete", "scaledobjects", "--all", "--all-namespaces")
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")


def _archive() -> Path:
    programs = {name: binaries.binary(name) for name in ("keda", "keda-adapter")}
    image = Image(IMAGE, programs, ["/keda"], user="65534:65534")
    return baseimages.ensure_image(programs["keda"].parent, image)


def _definitions() -> Path:
    """The folder of the custom resource definitions, in the module that the programs are built from."""
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", _MODULE]
    module = binaries.COMPONENTS["keda"].module
    found = subprocess.run(command, cwd=module, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found) / "config/crd/bases"


def _manifests() -> list[dict[str, Any]]:
    authority = topology.control_plane(topology.recorded_nodes()[0]).authority()
    hosts = [
        f"{name}.{NAMESPACE}.{end}" for name in (_OPERATOR, _ADAPTER) for end in ("svc", "svc.cluster.local")
    ]
    issued, own = authority.issue(Subject(_OPERATOR, hosts=hosts)), authority.credentials.certificate
    files = {"ca.crt": own, "tls.crt": issued.certificate, "tls.key": issued.key}
    encoded = {name: b64encode(content).decode() for name, content in files.items()}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    account = {"kind": "ServiceAccount", "name": _OPERATOR, "namespace": NAMESPACE}
    return [
        _object("v1", "Namespace", NAMESPACE),
        _object("v1", "ServiceAccount", _OPERATOR),
        _object(
            "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "keda", roleRef=role, subjects=[account]
        ),
        _object("v1", "Secret", _CERTIFICATES, data=encoded),
        _service(_OPERATOR, 9666, 9666),
        _service(_ADAPTER, 443, 6443),
        _deployment(_OPERATOR, ["/keda"], {"path": "/readyz", "port": 8081}),
        _deployment(_ADAPTER, _adapter_command(), {"path": "/readyz", "port": 6443, "scheme": "HTTPS"}),
        _object("apiregistration.k8s.io/v1", "APIService", API_SERVICE, spec=_aggregated(encoded["ca.crt"])),
    ]


def _object(api_version: str, kind: str, name: str, **members: Any) -> dict[str, Any]:
    cluster_wide = kind in {"Namespace", "ClusterRoleBinding", "APIService"}
    metadata = {"name": name} | ({} if cluster_wide else {"namespace": NAMESPACE})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


def _adapter_command() -> list[str]:
    files = {"client-ca-file": "ca.crt", "tls-cert-file": "tls.crt", "tls-private-key-file": "tls.key"}
    flags = [f"--{flag}=/certs/{name}" for flag, name in files.items()]
    return ["/keda-adapter", "--secure-port=6443", "--cert-dir=/certs", *flags]


def _service(name: str, port: int, target: int) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]}
    return _object("v1", "Service", name, spec=spec)


def _deployment(name: str, command: list[str], probe: Mapping[str, Any]) -> dict[str, Any]:
    container = {
        "name": name,
        "image": IMAGE,
        "command": command,
        "env": [
            {"name": "WATCH_NAMESPACE", "value": ""},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
        "readinessProbe": {"httpGet": probe, "periodSeconds": 1},
        "volumeMounts": [{"name": "certificates", "mountPath": "/certs", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": _OPERATOR,
        "containers": [container],
        "volumes": [{"name": "certificates", "secret": {"secretName": _CERTIFICATES}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return _object("apps/v1", "Deployment", name, spec=spec)


def _aggregated(authority: str) -> dict[str, Any]:
    version, _, group = API_SERVICE.partition(".")
    return {
        "group": group,
        "version": version,
        "service": {"name": _ADAPTER, "namespace": NAMESPACE},
        "caBundle": authority,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }

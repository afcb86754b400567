"""What a bare cluster lacks: name resolution and a default StorageClass."""

from collections.abc import Mapping
from typing import Any

import yaml

from lab import baseimages
from lab.node import CONTROL_PLANE_LABEL
from lab.topology import CLUSTER_DOMAIN, DNS_ADDRESS

STORAGE_CLASS = "local"
PROVISIONER = "coil.local/volumes"

_COREFILE = f"""\
{CLUSTER_DOMAIN}:53 in-addr.arpa:53 ip6.arpa:53 {{
    errors
    health
    ready
    prometheus :9153
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        ttl 5
    }}
    cache 5
    loadbalance
}}
# Names outside the cluster do not exist, and saying so at once is better than waiting for nobody.
.:53 {{
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""
_NAMESPACE = "kube-system"
_NAME = "coredns"
_LABELS = {"k8s-app": "kube-dns"}


def manifests() -> str:
    """Return everything as YAML for `kubectl apply`."""
    return yaml.safe_dump_all([*_access(), _config(), _deployment(), _service(), _storage_class()])


def _object(api_version: str, kind: str, name: str, **members: Any) -> dict[str, Any]:
    cluster_wide = kind.startswith("Cluster") or kind == "StorageClass"
    metadata = {"name": name} | ({} if cluster_wide else {"namespace": _NAMESPACE})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


def _access() -> list[dict[str, Any]]:
    group, verbs = "rbac.authorization.k8s.io", ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": verbs},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
    ]
    role = {"apiGroup": group, "kind": "ClusterRole", "name": f"system:{_NAME}"}
    account = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
    return [
        _object("v1", "ServiceAccount", _NAME),
        _object(f"{group}/v1", "ClusterRole", role["name"], rules=rules),
        _object(f"{group}/v1", "ClusterRoleBinding", role["name"], roleRef=role, subjects=[account]),
    ]


def _config() -> dict[str, Any]:
    return _object("v1", "ConfigMap", _NAME, data={"Corefile": _COREFILE})


def _deployment() -> dict[str, Any]:
    container = {
        "name": _NAME,
        "image": baseimages.COREDNS,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [_port("dns", 53, "UDP"), _port("dns-tcp", 53, "TCP")],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    pod = {
        "serviceAccountName": _NAME,
        "priorityClassName": "system-cluster-critical",
        # On the control node, so that losing a worker does not lose name resolution.
        "nodeSelector": {CONTROL_PLANE_LABEL: ""},
        "tolerations": [{"key": CONTROL_PLANE_LABEL, "operator": "Exists"}],
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": _NAME}}],
    }
    template = {"metadata": {"labels": _LABELS}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": template}
    return _object("apps/v1", "Deployment", _NAME, spec=spec)


def _port(name: str, number: int, protocol: str) -> Mapping[str, Any]:
    return {"name": name, "containerPort": number, "protocol": protocol}


def _service() -> dict[str, Any]:
    ports = [{"name": name, "port": 53, "protocol": name[-3:].upper()} for name in ("dns-udp", "dns-tcp")]
    spec = {"clusterIP": DNS_ADDRESS, "selector": _LABELS, "ports": ports}
    return _object("v1", "Service", "kube-dns", spec=spec)


def _storage_class() -> dict[str, Any]:
    storage = _object(
        "storage.k8s.io/v1",
        "StorageClass",
        STORAGE_CLASS,
        provisioner=PROVISIONER,
        reclaimPolicy="Delete",
        volumeBindingMode="Immediate",
    )
    storage["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return storage

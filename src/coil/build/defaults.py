"""What the API server fills in, so that coil can tell a real difference from a filled-in default.

    with_server_defaults(manifest)   # what a read after a write would give back

Covers the kinds coil writes, as Kubernetes 1.36 completes them; members that a server allocates
(cluster addresses, node ports, IP families) are not invented. See `coil.build.patch` for their part in
comparing (spec: control-plane 3.6, Q13).
"""

import base64
from collections.abc import Callable

from lightkube.models import apps_v1, core_v1, policy_v1

from coil.build import poddefaults, typed
from coil.support.objects import JsonObject


def with_server_defaults(manifest: JsonObject) -> JsonObject:
    """`manifest` as the API server would return it; kinds coil does not know come back as they are.

    Raises:
        BuildError: a member has a type that the API server refuses.
    """
    complete = _KINDS.get(manifest["kind"])
    return manifest if complete is None else complete(manifest)


def _service(manifest: JsonObject) -> JsonObject:
    spec = typed.struct(core_v1.ServiceSpec, manifest["spec"], "spec")
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {})
        config.setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)
    if spec.get("clusterIP") == "None":
        spec.setdefault("clusterIPs", ["None"])
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
    return manifest | {"spec": spec}


def _config_map(manifest: JsonObject) -> JsonObject:
    empty = {name for name in ("data", "binaryData") if not manifest.get(name)}
    return {name: value for name, value in manifest.items() if name not in empty}


def _secret(manifest: JsonObject) -> JsonObject:
    text = {name: _base64(value) for name, value in (manifest.get("stringData") or {}).items()}
    data = {**(manifest.get("data") or {}), **text}
    kept = {name: value for name, value in manifest.items() if name not in {"data", "stringData"}}
    return {"type": "Opaque", **kept, **({"data": data} if data else {})}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _stateful_set(manifest: JsonObject) -> JsonObject:
    spec = typed.struct(apps_v1.StatefulSetSpec, manifest["spec"], "spec")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    for claim in spec.get("volumeClaimTemplates", ()):
        claim["spec"].setdefault("volumeMode", "Filesystem")
    poddefaults.template(spec["template"])
    return manifest | {"spec": spec}


def _deployment(manifest: JsonObject) -> JsonObject:
    spec = typed.struct(apps_v1.DeploymentSpec, manifest["spec"], "spec")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", "25%")
        rolling.setdefault("maxUnavailable", "25%")
    poddefaults.template(spec["template"])
    return manifest | {"spec": spec}


def _pod(manifest: JsonObject) -> JsonObject:
    spec = typed.pod_spec(manifest["spec"], "spec")
    poddefaults.pod(spec)
    return manifest | {"spec": spec}


def _disruption_budget(manifest: JsonObject) -> JsonObject:
    return manifest | {"spec": typed.struct(policy_v1.PodDisruptionBudgetSpec, manifest["spec"], "spec")}


def _claim(manifest: JsonObject) -> JsonObject:
    spec = typed.struct(core_v1.PersistentVolumeClaimSpec, manifest["spec"], "spec")
    spec.setdefault("volumeMode", "Filesystem")
    metadata = {"finalizers": ["kubernetes.io/pvc-protection"], **manifest["metadata"]}
    return manifest | {"metadata": metadata, "spec": spec}


_KINDS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "Service": _service,
    "ConfigMap": _config_map,
    "Secret": _secret,
    "StatefulSet": _stateful_set,
    "Deployment": _deployment,
    "Pod": _pod,
    "PodDisruptionBudget": _disruption_budget,
    "PersistentVolumeClaim": _claim,
}

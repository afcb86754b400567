"""What the API server fills into pod specs: of pods, and of pod templates in workloads.

Both functions complete the spec in place: it must be one's own copy, as `coil.build.typed` makes it.
Source of the values: Kubernetes API reference ("Defaults to ..."), and for pods the default admission
plugins (ServiceAccount, Priority, DefaultTolerationSeconds).
"""

from collections.abc import Iterable
from typing import Any

from coil.support.objects import JsonObject

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODE_SOURCES = ("configMap", "secret", "downwardAPI", "projected")
_FILE_MODE = 0o644
_TOKEN_LIFETIME = 3600
_LOST_NODE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LOST_NODE_SECONDS = 300


def template(pod_template: JsonObject) -> None:
    """Complete the pod template of a workload."""
    _common(pod_template["spec"])


def pod(spec: JsonObject) -> None:
    """Complete a pod's spec, including what the default admission plugins add."""
    _common(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    if "priorityClassName" not in spec:
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    for container in _containers(spec):
        _requests_from_limits(container["resources"])
        if spec.get("hostNetwork"):
            for port in container.get("ports", ()):
                port.setdefault("hostPort", port["containerPort"])
    if "resources" in spec:
        _requests_from_limits(spec["resources"])
    _tolerate_lost_node(spec)


def _common(spec: JsonObject) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    for container in _containers(spec):
        _container(container)
    for volume in spec.get("volumes", ()):
        _volume(volume)


def _containers(spec: JsonObject) -> Iterable[JsonObject]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _container(container: JsonObject) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for name in _PROBES:
        if name in container:
            _probe(container[name])
    for handler in container.get("lifecycle", {}).values():
        if isinstance(handler, dict):
            _http(handler)
    for variable in container.get("env", ()):
        _field_reference(variable.get("valueFrom", {}))


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if image and (tag == "latest" or not (tag or digest)) else "IfNotPresent"


def _probe(probe: JsonObject) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")
    _http(probe)


def _http(handler: JsonObject) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")


def _field_reference(source: JsonObject) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        source["resourceFieldRef"].setdefault("divisor", "0")


def _volume(volume: JsonObject) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in _MODE_SOURCES:
        if name in volume:
            volume[name].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for item in volume.get("downwardAPI", {}).get("items", ()):
        _field_reference(item)
    for source in volume.get("projected", {}).get("sources") or ():
        _projection(source)
    claim: Any = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if claim:
        claim["spec"].setdefault("volumeMode", "Filesystem")


def _projection(source: JsonObject) -> None:
    if "serviceAccountToken" in source:
        source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_LIFETIME)
    for item in source.get("downwardAPI", {}).get("items", ()):
        _field_reference(item)


def _requests_from_limits(resources: JsonObject) -> None:
    limits = resources.get("limits", {})
    if limits:
        resources["requests"] = {**limits, **resources.get("requests", {})}


def _tolerate_lost_node(spec: JsonObject) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for taint in _LOST_NODE:
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            tolerations.append(
                {
                    "key": taint,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _LOST_NODE_SECONDS,
                }
            )


def _tolerates(toleration: JsonObject, taint: str) -> bool:
    same_effect = toleration.get("effect") in {None, "NoExecute"}
    return same_effect and toleration.get("key") in {None, taint}

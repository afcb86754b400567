"""Pods and nodes as large and as varied as those of a real cluster."""

import json
from typing import Any

JsonObject = dict[str, Any]

CLUSTERS = 1
"""NodeSets among which the pods are shared."""


def _condition(kind: str, status: str = "True") -> JsonObject:
    times = {"lastProbeTime": None, "lastTransitionTime": "2026-01-31T12:00:05Z"}
    return {"type": kind, "status": status, **times}


def _managed(manager: str, fields: JsonObject, subresource: str = "") -> JsonObject:
    entry: JsonObject = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-31T12:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": subresource} if subresource else {})


def _pod_metadata(number: int, version: int) -> JsonObject:
    nodeset = f"workers-{number % CLUSTERS}"
    fields = {
        "f:metadata": {"f:labels": {".": {}, "f:app.kubernetes.io/name": {}}},
        "f:spec": {"f:hostname": {}},
    }
    return {
        "name": f"{nodeset}-{number}",
        "generateName": f"{nodeset}-",
        "namespace": "slurm",
        "uid": f"0c9c2d43-7a5b-4f0e-9d0c-{number:012d}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "labels": {
            "app.kubernetes.io/name": "slurmd",
            "app.kubernetes.io/instance": nodeset,
            "app.kubernetes.io/component": "worker",
            "controller-revision-hash": f"{nodeset}-5d8f9c7b6d",
            "example.net/pod-name": f"{nodeset}-{number}",
        },
        "annotations": {"example.net/deletion-cost": "0", "example.net/hash": "a7c9d1e0f3"},
        "ownerReferences": [
            {
                "apiVersion": "example.net/v1",
                "kind": "NodeSet",
                "name": nodeset,
                "uid": f"7f1e1c2a-0000-4000-8000-{number % CLUSTERS:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [_managed("manager", fields), _managed("kubelet", {"f:status": fields}, "status")],
    }


def _container(name: str) -> JsonObject:
    return {
        "name": name,
        "image": f"registry.example/slurm/{name}:25.11",
        "args": ["-Z", "--conf-server", "slurm-controller:6817", "--conf", "Features=general"],
        "ports": [{"name": name, "containerPort": 6818, "protocol": "TCP"}],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "8", "memory": "32Gi"}, "requests": {"cpu": "8", "memory": "32Gi"}},
        "volumeMounts": [{"name": "etc-slurm", "mountPath": "/etc/slurm", "readOnly": True}],
        "imagePullPolicy": "IfNotPresent",
    }


def _status(name: str, image: str) -> JsonObject:
    return {
        "name": name,
        "image": image,
        "imageID": "sha256:" + "8b" * 32,
        "containerID": "containerd://" + "4f" * 32,
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-31T12:00:04Z"}},
        "lastState": {},
    }


def pod(number: int, version: int, *, ready: bool = True) -> bytes:
    """A worker pod of about 3.4 kB."""
    conditions = [_condition(kind) for kind in ("PodReadyToStartContainers", "Initialized", "PodScheduled")]
    conditions += [_condition(kind, "True" if ready else "False") for kind in ("Ready", "ContainersReady")]
    address = f"10.244.{number // 250}.{number % 250}"
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _pod_metadata(number, version),
        "spec": {
            "nodeName": f"node-{number}",
            "hostname": f"workers-{number}",
            "containers": [_container("slurmd")],
            "volumes": [
                {"name": "etc-slurm", "projected": {"sources": [{"secret": {"name": "slurm-auth"}}]}},
                {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}},
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "serviceAccountName": "default",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": address,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": "2026-01-31T12:00:00Z",
            "containerStatuses": [_status("slurmd", "registry.example/slurm/slurmd:25.11")],
            "qosClass": "Guaranteed",
        },
    }
    return json.dumps(manifest, separators=(",", ":")).encode()


def node(number: int, version: int) -> bytes:
    """A node of about 3 kB: labels, capacity, conditions and the images it holds."""
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure")
    image = {"names": ["registry.example/slurm/slurmd@sha256:" + "8b" * 32], "sizeBytes": 158_000_000}
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{number}",
            "uid": f"1d9c2d43-7a5b-4f0e-9d0c-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-31T12:00:00Z",
            "labels": {
                "kubernetes.io/hostname": f"node-{number}",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{number % 3}",
                "node.kubernetes.io/instance-type": "c8.large",
            },
            "annotations": {"example.net/topology": f"block{number // 18}", "volumes": "true"},
        },
        "spec": {"podCIDR": f"10.{number // 250}.{number % 250}.0/24", "providerID": f"cloud://{number}"},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "31Gi", "pods": "110"},
            "conditions": [*(_condition(kind, "False") for kind in kinds), _condition("Ready")],
            "addresses": [{"type": "InternalIP", "address": f"10.0.{number // 250}.{number % 250}"}],
            "nodeInfo": {
                "kubeletVersion": "v1.36.3",
                "osImage": "Debian GNU/Linux 13",
                "architecture": "amd64",
            },
            "images": [image] * 8,
        },
    }
    return json.dumps(manifest, separators=(",", ":")).encode()

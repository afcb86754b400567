"""What coil builds is what a real API server gives back: comparing it again finds no difference.

This is what keeps a second pass from writing (invariant I8): the defaults and spellings that coil expects
are those of the server, not of a table that somebody wrote down once.
"""

import json
from collections.abc import Iterator, Sequence

import pytest

from coil.build import controller as controllers
from coil.build import nodeset as nodesets
from coil.build import restapi as restapis
from coil.build.defaults import with_server_defaults
from coil.build.hashes import PodHashes
from coil.build.patch import merge_patch
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject
from lab.apiserver import ApiServer
from tests.support import golden
from tests.support.apiserver import kubectl
from tests.support.built import manifests
from tests.support.resources import controller, nodeset, restapi

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

HASHES = PodHashes(slurm_key="s", jwt_key="j", config="c")
FIELD = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
EVERYTHING: JsonObject = {
    "automountServiceAccountToken": False,
    "terminationGracePeriodSeconds": 0,
    "hostNetwork": True,
    "hostPID": False,
    "shareProcessNamespace": False,
    "serviceAccountName": "somebody",
    "priorityClassName": "",
    "nodeSelector": {"pool": "a", "none": ""},
    "securityContext": {
        "fsGroup": 0,
        "fsGroupChangePolicy": "OnRootMismatch",
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}],
        "supplementalGroups": [1, 2],
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "dnsConfig": {"options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}], "nameservers": []},
    "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}],
    "readinessGates": [{"conditionType": "example.test/ready"}],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            "nodeTaintsPolicy": "Honor",
        }
    ],
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
                    },
                }
            ]
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}, "namespaces": ["a"]}
            ]
        },
    },
    "overhead": {},
    "volumes": [
        {"name": "nothing"},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
        {"name": "host", "hostPath": {"path": "/x"}},
        {
            "name": "map",
            "configMap": {"name": "a", "optional": False, "items": [{"key": "k", "path": "p", "mode": 0}]},
        },
        {"name": "secret", "secret": {"secretName": "a", "defaultMode": 256}},
        {"name": "labels", "downwardAPI": {"items": [FIELD]}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "a", "readOnly": False}},
        {"name": "share", "nfs": {"server": "a", "path": "/", "readOnly": True}},
        {"name": "csi", "csi": {"driver": "a.test", "volumeAttributes": {"k": "v"}}},
        {
            "name": "own",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "",
                        "resources": {"requests": {"storage": "0.5Gi"}},
                    },
                }
            },
        },
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token", "audience": "a"}},
                    {"downwardAPI": {"items": [FIELD]}},
                    {"secret": {"name": "a"}},
                    {"configMap": {"name": "b", "optional": True}},
                ]
            },
        },
    ],
    "initContainers": [
        {
            "name": "first",
            "image": "registry.example/a",
            "restartPolicy": "Always",
            "startupProbe": {"grpc": {"port": 1}},
        }
    ],
    "containers": [
        {
            "name": "second",
            "image": "registry.example/a@sha256:" + 64 * "0",
            "imagePullPolicy": "Never",
            "ports": [{"containerPort": 7}, {"containerPort": 8, "protocol": "UDP", "hostPort": 8}],
        }
    ],
}
CONTAINER: JsonObject = {
    "image": "registry.example:5000/slurm",
    "unknownMember": {"a": 1},
    "command": [],
    "args": ["-v"],
    "workingDir": "",
    "stdin": False,
    "tty": True,
    "env": [
        {"name": "EMPTY", "value": ""},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {
            "name": "MEMORY",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024Ki"}},
        },
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k", "optional": False}}},
    ],
    "envFrom": [{"prefix": "A_", "configMapRef": {"name": "a", "optional": True}}],
    "resources": {
        "limits": {"cpu": "1500m", "memory": "2048Mi", "example.test/dev": 2, "ephemeral-storage": "1e9"},
        "requests": {"cpu": 0.25, "memory": "0.5G"},
    },
    "livenessProbe": {
        "exec": {"command": ["true"]},
        "initialDelaySeconds": 0,
        "terminationGracePeriodSeconds": 5,
    },
    "readinessProbe": {"periodSeconds": 3},
    "lifecycle": {"postStart": {"httpGet": {"port": 80, "httpHeaders": [{"name": "X-A", "value": "b"}]}}},
    "securityContext": {
        "allowPrivilegeEscalation": True,
        "capabilities": {"drop": ["ALL"]},
        "seLinuxOptions": {"level": "s0"},
        "procMount": "Default",
    },
    "volumeMounts": [
        {"name": "memory", "mountPath": "/m", "mountPropagation": "None", "readOnly": False},
        {"name": "map", "mountPath": "/f", "subPathExpr": "$(NODE)"},
    ],
}

SIDECAR = {name: value for name, value in CONTAINER.items() if name != "readinessProbe"}


def _create(server: ApiServer, *wanted: JsonObject) -> list[JsonObject]:
    """The objects as the server stored them; namespaces and service accounts are made where missing."""
    spaces = {manifest["metadata"]["namespace"] for manifest in wanted}
    known = set(kubectl(server, "get", "namespaces", "--output=name").replace("namespace/", "").split())
    # Without the built-in controllers nobody makes the default account, which pods need.
    needed = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces - known
    ]
    needed += [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": space}}
        for name in ("default", "somebody")
        for space in spaces
    ]
    kubectl(server, "apply", "--filename=-", stdin=json.dumps(_list(needed)))
    text = kubectl(
        server,
        *("create", "--output=json", "--validate=ignore", "--filename=-"),
        stdin=json.dumps(_list(wanted)),
    )
    return list(_documents(text))


def _documents(text: str) -> Iterator[JsonObject]:
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        found, end = decoder.raw_decode(text)
        text = text[end:]
        yield found


def _list(items: Sequence[JsonObject]) -> JsonObject:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _in(space: str, manifest: JsonObject | None) -> JsonObject:
    assert manifest
    text = json.dumps(manifest).replace('"namespace": "ns"', f'"namespace": "{space}"')
    return json.loads(text)


@pytest.mark.parametrize("case", golden.cases())
def test_objects_of_the_corpus_are_stored_as_they_were_built(api_server: ApiServer, case: str) -> None:
    built = [
        manifest
        for (kind, name), manifest in manifests(golden.steps(case)[0]).items()
        # There is no such kind on this server; that workload is refused on purpose.
        if kind != "ServiceMonitor" and name != "bare-controller"
    ]
    for live, manifest in zip(_create(api_server, *built), built, strict=True):
        assert merge_patch(live, manifest) == {}, manifest["metadata"]["name"]


def test_a_workload_with_everything_is_stored_as_it_was_built(api_server: ApiServer, namespace: str) -> None:
    cluster = controller(
        slurmctld=CONTAINER,
        logfile=SIDECAR,
        reconfigure=SIDECAR,
        template={"spec": EVERYTHING},
        inplaceReconfigure=True,
    )
    workload = _in(namespace, controllers.stateful_set(cluster, HASHES))
    rest = restapi(slurmrestd=CONTAINER, template={"spec": EVERYTHING})
    deployment = _in(namespace, restapis.deployment(rest, controller()))
    for live, manifest in zip(_create(api_server, workload, deployment), (workload, deployment), strict=True):
        assert merge_patch(live, manifest) == {}


def test_a_pod_with_everything_is_stored_as_it_was_built(api_server: ApiServer, namespace: str) -> None:
    """The pod's spec hash, conditions and so on rest on knowing what was asked for."""
    workers = nodeset(slurmd=CONTAINER, logfile=SIDECAR, template={"spec": EVERYTHING})
    template = nodesets.template(workers, PodInputs(controller=controller()), "hash")
    pod = _in(namespace, nodesets.stamp_ordinal(template, 0))
    (live,) = _create(api_server, pod)
    assert golden.differences(live["spec"], with_server_defaults(pod)["spec"]) == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"type": "NodePort"},
        {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "loadBalancerClass": "test/lb"},
        {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
        {
            "sessionAffinity": "ClientIP",
            "internalTrafficPolicy": "Local",
            "trafficDistribution": "PreferClose",
        },
        {"clusterIP": "None"},
        {"ports": [{"name": "more", "port": 9}, {"name": "udp", "port": 10, "protocol": "UDP"}]},
    ],
    ids=str,
)
def test_services_are_stored_as_they_were_built(
    api_server: ApiServer, namespace: str, spec: dict[str, object]
) -> None:
    service = _in(namespace, controllers.service(controller(service={"spec": spec})))
    (live,) = _create(api_server, service)
    assert merge_patch(live, service) == {}
    plain = _in(namespace, controllers.service(controller()))
    if spec.get("clusterIP") == "None":
        return  # an address cannot be given to a headless Service
    kubectl(
        api_server,
        "patch",
        f"--namespace={namespace}",
        "service",
        live["metadata"]["name"],
        "--type=merge",
        f"--patch={json.dumps(merge_patch(live, plain))}",
    )
    got = kubectl(
        api_server, "get", f"--namespace={namespace}", "service", live["metadata"]["name"], "--output=json"
    )
    assert merge_patch(json.loads(got), plain) == {}

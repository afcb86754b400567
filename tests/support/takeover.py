"""Clusters as the reference leaves them: the objects of golden cases, on an API server.

    leave(server, steps)     # before coil's manager starts; each step is in the namespace of its case
    seen(server, steps)      # everything there, by case

Pods of workloads are made by the API server's own controllers from the reference's templates. There is no
kubelet: pods are said to run by writing their status. All cases are handled at once, since each call of
kubectl takes a while; the server is for them alone.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from coil.api import keys
from coil.slurm.tokens import mint
from coil.support.objects import JsonObject
from lab.apiserver import ApiServer
from tests.support import golden
from tests.support.apiserver import kubectl
from tests.support.manager import eventually

Objects = dict[tuple[str, str], JsonObject]

RESOURCES = "controllers,restapis,nodesets,loginsets,accountings.slinky.slurm.net,tokens.slinky.slurm.net"
EVERYTHING = (
    "statefulsets,deployments,replicasets,controllerrevisions,pods,services,configmaps,secrets,"
    f"persistentvolumeclaims,poddisruptionbudgets,{RESOURCES}"
)
WORKLOADS = ("StatefulSet", "Deployment")
_CHILDREN = ("ConfigMap", "Secret", "Service", "PodDisruptionBudget", "ControllerRevision", *WORKLOADS)
_PER_POD = ("PersistentVolumeClaim", "Pod")
_CHOSEN_BY_THE_SERVER = ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies")
_TOKEN_KEY = b"a-token-key-of-aster"
_NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
_HEALTHY = {"type": "Ready", "status": "True", "lastTransitionTime": _NOW, "reason": "Kubelet"}
_RUNNING = {
    "image": "x",
    "imageID": "x",
    "ready": True,
    "started": True,
    "restartCount": 0,
    "state": {"running": {"startedAt": _NOW}},
}


def leave(server: ApiServer, steps: Sequence[golden.Step]) -> None:
    """Create the inputs and outputs of all steps, and let their pods run."""
    create(server, (_named("Namespace", step.namespace) for step in steps))
    create(server, (_input(step, item) for step in steps for item in _inputs(step)))
    create(server, (_named("Node", name) for name in _added_nodes(steps)))
    uids = {_key(item): item["metadata"]["uid"] for item in listed(server, f"{RESOURCES},secrets")}
    create(server, (item for step in steps for item in _outputs(step, uids)))
    resources = ((step, *found) for step in steps for found in step.custom_resources.items())
    statuses = {(step.namespace, *key): found["status"] for step, key, found in resources}
    tell(server, RESOURCES, lambda item: _resource_status(item, statuses.get(_key(item))))
    tell(server, "nodes", lambda _: {"conditions": [{**_HEALTHY, "lastHeartbeatTime": _NOW}]})
    eventually(lambda: all(map(_made, listed(server, "statefulsets,deployments"))), what="pods of workloads")
    tell(server, "pods", _running)
    active = [pod for pod in listed(server, "pods") if pod["metadata"]["name"].endswith("-controller-0")]
    for pod in active:
        pod["metadata"]["labels"][keys.LABEL_ACTIVE] = "true"
    write(server, "replace", active)


def seen(server: ApiServer, steps: Sequence[golden.Step]) -> dict[str, Objects]:
    """Everything in the namespaces of the steps, by case."""
    case_of = {step.namespace: step.case for step in steps}
    found: dict[str, Objects] = {step.case: {} for step in steps}
    for item in listed(server, EVERYTHING):
        space, kind, name = _key(item)
        if space in case_of and name != "kube-root-ca.crt":
            found[case_of[space]][kind, name] = item
    return found


def listed(server: ApiServer, kinds: str) -> list[JsonObject]:
    """All objects of the kinds."""
    return json.loads(kubectl(server, "get", kinds, "--all-namespaces", "-o", "json"))["items"]


def create(server: ApiServer, items: Iterable[JsonObject]) -> None:
    """Create the objects in their order."""
    write(server, "create", items)


def write(server: ApiServer, verb: str, items: Iterable[JsonObject], *options: str) -> None:
    """Create or replace objects."""
    if found := list(items):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
        kubectl(server, verb, *options, "-f", "-", stdin=text)


def tell(server: ApiServer, kinds: str, status: Callable[[JsonObject], JsonObject | None]) -> None:
    """Write the status of all objects of the kinds; None leaves it."""
    told = [(item, status(item)) for item in listed(server, kinds)]
    changed = [{**item, "status": value} for item, value in told if value is not None]
    write(server, "replace", changed, "--subresource=status")


def _named(kind: str, name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _key(item: JsonObject) -> tuple[str, str, str]:
    return item["metadata"].get("namespace", ""), item["kind"], item["metadata"]["name"]


def _inputs(step: golden.Step) -> list[JsonObject]:
    return [item for (kind, _), item in step.inputs.items() if kind != "Namespace"]


def _input(step: golden.Step, item: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in item["metadata"].items() if name not in ("uid", "namespace")}
    place = {} if item["kind"] == "Node" else {"namespace": step.namespace}
    return {**item, "metadata": metadata | place}


def _nodes(step: golden.Step) -> list[str]:
    """Kubernetes nodes for all worker pods of a step."""
    given = [name for kind, name in step.inputs if kind == "Node"]
    missing = max(len(step.outputs_of("Pod")) - len(given), 0)
    return [*given, *(f"{step.case}-{number}" for number in range(missing))]


def _added_nodes(steps: Iterable[golden.Step]) -> list[str]:
    return [name for step in steps for name in _nodes(step) if ("Node", name) not in step.inputs]


def _outputs(step: golden.Step, uids: dict[tuple[str, str, str], str]) -> Iterator[JsonObject]:
    nodes = _nodes(step)
    for kind in (*_CHILDREN, *_PER_POD):
        for number, item in enumerate(step.outputs_of(kind).values()):
            made = _filled_in(item, number)
            made["metadata"]["namespace"] = step.namespace
            for owner in made["metadata"].get("ownerReferences", ()):
                owner["uid"] = uids[step.namespace, owner["kind"], owner["name"]]
            if kind == "Pod":
                made["spec"]["nodeName"] = _pinned(made) or nodes[number]
            yield made


def _filled_in(item: JsonObject, number: int) -> JsonObject:
    """The object with values where the corpus has placeholders."""
    made = {name: value for name, value in item.items() if name not in ("status", "decodedTokens")}
    if item["kind"] == "Secret":
        made["stringData"] = {name: _secret_text(item, name, text) for name, text in made.pop("data").items()}
    text = json.dumps(made)
    for mark, value in (("random", f"{number:05d}"), ("script", "echo theirs"), ("hash", "a" * 64)):
        text = text.replace(f"<{mark}>", value)
    made = json.loads(text)
    if made["kind"] == "Service":
        made["spec"] = _without_choices(made["spec"])
    return made


def _secret_text(item: JsonObject, name: str, value: str) -> str:
    if value != "<jwt>":
        return value
    told = item["decodedTokens"][name]
    return mint(_TOKEN_KEY, told["claims"]["sun"], told["lifetimeSeconds"], time.time())


def _without_choices(spec: JsonObject) -> JsonObject:
    headless = spec.get("clusterIP") == "None"
    kept = {name: value for name, value in spec.items() if headless or name not in _CHOSEN_BY_THE_SERVER}
    ports = [
        {name: value for name, value in port.items() if value != "<port>"} for port in spec.get("ports", ())
    ]
    return kept | {"ports": ports}


def _pinned(pod: JsonObject) -> str:
    """The node that a pod of a DaemonSet-like NodeSet asks for by name."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fields = [
        field for term in required.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ())
    ]
    return next((field["values"][0] for field in fields if field["key"] == "metadata.name"), "")


def _resource_status(item: JsonObject, status: JsonObject | None) -> JsonObject | None:
    """As the reference wrote it; generations are those of this server."""
    if not status:
        return None
    here = {"observedGeneration": item["metadata"]["generation"], "issuedAt": _NOW}
    return status | {name: value for name, value in here.items() if name in status}


def _made(workload: JsonObject) -> bool:
    """Whether the server's controller made what it makes before the first pod is ready."""
    spec = workload["spec"]
    ordered = spec.get("podManagementPolicy") == "OrderedReady"
    return workload.get("status", {}).get("replicas", 0) >= min(spec["replicas"], 1 if ordered else 9)


def _running(pod: JsonObject) -> JsonObject:
    states = [{**_RUNNING, "name": container["name"]} for container in pod["spec"]["containers"]]
    return {"phase": "Running", "conditions": [_HEALTHY], "containerStatuses": states, "podIP": "192.0.2.9"}

"""Controller and RestApi on a real API server: what is made, what is left alone, what is told."""

import signal
from typing import Any

import pytest

from coil.api import keys
from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.manager import (
    KEYS,
    Manager,
    Namespace,
    config_map,
    controller,
    eventually,
    ours,
    secret,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

RESTAPI = {"slurmrestd": {"image": "registry.example/slurmrestd:1"}}


def restapi(name: str, controller_name: str = "alba", **spec: Any) -> dict[str, Any]:
    return ours("RestApi", name, controllerRef={"name": controller_name}, **{**RESTAPI, **spec})


def nodeset(name: str) -> dict[str, Any]:
    spec = {"controllerRef": {"name": "alba"}, "slurmd": {"image": "registry.example/slurmd:1"}}
    return ours("NodeSet", name, replicas=0, partition={"enabled": True}, **spec)


def config_hash(space: Namespace) -> str:
    found = space.get("statefulset", "alba-controller")
    assert found is not None
    return found["spec"]["template"]["metadata"]["annotations"][keys.ANNOTATION_SLURM_CONFIG_HASH]


def active(space: Namespace, pod: str) -> bool:
    found = space.get("pod", pod)
    return bool(found) and found["metadata"]["labels"].get(keys.LABEL_ACTIVE) == "true"


def test_a_cluster_applied_in_one_go_starts_one_pod_with_its_whole_configuration(
    space: Namespace, manager: Manager
) -> None:
    manager.wait_working()
    space.apply(controller("alba"), restapi("alba"), KEYS, nodeset("cpu"), nodeset("gpu"))
    space.wait_condition("controller", "alba", "Reconciled=True/AllAsWanted")
    space.wait_condition("restapi", "alba", "Reconciled=True/AllAsWanted")
    text = (space.get("configmap", "alba-config") or {})["data"]["slurm.conf"]
    assert "PartitionName=cpu Nodes=cpu" in text
    assert "PartitionName=gpu Nodes=gpu" in text
    eventually(lambda: active(space, "alba-controller-0"), within=5, what="the pod is labelled")
    patched = [line for line in manager.writes() if line.startswith("patch") and "/statefulsets/" in line]
    assert patched == []
    assert {
        note for _, reason, note in space.events("Controller", "alba") if reason == "CreateSucceeded"
    } == {
        f"Created *v1.Service: {space.name}/alba-controller-internal",
        f"Created *v1.Service: {space.name}/alba-controller",
        f"Created *v1.ConfigMap: {space.name}/alba-config",
        f"Created *v1.StatefulSet: {space.name}/alba-controller",
    }


def test_a_replaced_pod_gets_the_label_at_once(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"))
    eventually(lambda: active(space, "alba-controller-0"), what="the pod is labelled")
    space.kubectl("delete", "pod", "alba-controller-0", "--wait")
    eventually(lambda: active(space, "alba-controller-0"), within=3, what="the new pod is labelled")


def test_restarting_the_operator_over_an_unchanged_world_writes_nothing(
    managed_server: ApiServer, space: Namespace
) -> None:
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(
            KEYS,
            controller("alba", extraConf="DebugFlags=Reservation\n", service={"spec": {"type": "NodePort"}}),
            restapi("alba", service={"spec": {"type": "LoadBalancer"}}),
            controller("broken", configFileRefs=[{"name": "absent"}]),
            restapi("orphan", "absent"),
        )
        space.wait_condition("controller", "alba", "Reconciled=True")
        space.wait_condition("controller", "broken", "Reconciled=False")
        space.wait_condition("restapi", "alba", "Reconciled=True")
        space.wait_condition("restapi", "orphan", "Reconciled=False")
        eventually(lambda: active(space, "alba-controller-0"), what="the pod is labelled")
        space.wait_condition("controller", "alba", "SlurmReachable=False", within=45)
        first.end(signal.SIGTERM)
    with Manager(managed_server, namespaces=[space.name]) as second:
        second.wait_working()
        eventually(lambda: passes(second) >= 4, what="every object had a pass")
        assert passes(second, 'result="error"') == 0
        assert second.writes() == []


def passes(manager: Manager, label: str = "") -> float:
    """Passes over Controllers and RestApis so far, of those with the label."""
    total = 0.0
    for line in manager.get(manager.metrics_port, "/metrics").splitlines():
        name, _, value = line.rpartition(" ")
        ours = 'controller="controller-controller"' in name or 'controller="restapi-controller"' in name
        if name.startswith("controller_runtime_reconcile_total") and ours and label in name:
            total += float(value)
    return total


@pytest.mark.usefixtures("manager")
def test_missing_keys_are_told_and_the_cluster_starts_when_they_come(space: Namespace) -> None:
    space.apply(controller("alba"), controller("beta", slurmKeyRef={"name": "others", "key": "slurm.key"}))
    message = space.wait_condition("controller", "alba", "Reconciled=False/SecretMissing")
    assert message == 'StatefulSet: Secret "keys" not found; create it with key "slurm.key"'
    space.apply(secret("keys", slurm_key="x"))
    message = space.wait_condition("controller", "alba", "Reconciled=False/SecretKeyMissing")
    assert message == 'StatefulSet: Secret "keys" has no key "jwt.key"; add it'
    failed = [note for kind, reason, note in space.events("Controller", "alba") if reason == "SyncFailed"]
    assert any(note.startswith('Failed "StatefulSet" step: Secret "keys" not found') for note in failed)
    assert space.get("statefulset", "alba-controller") is None
    assert space.get("service", "alba-controller") is not None
    space.apply(KEYS)
    space.wait_condition("controller", "alba", "Reconciled=True", within=5)
    assert space.get("statefulset", "alba-controller") is not None
    space.wait_condition("controller", "beta", "Reconciled=False/SecretMissing")


def test_losing_a_key_leaves_the_running_slurmctld_alone(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"))
    space.wait_condition("controller", "alba", "Reconciled=True")
    before = space.get("statefulset", "alba-controller")
    space.kubectl("delete", "secret", "keys")
    space.wait_condition("controller", "alba", "Reconciled=False/SecretMissing")
    assert before is not None
    after = space.get("statefulset", "alba-controller")
    assert after is not None
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    space.apply(KEYS)
    space.wait_condition("controller", "alba", "Reconciled=True")


def test_a_rotated_key_rolls_the_pod_once(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"))
    space.wait_condition("controller", "alba", "Reconciled=True")
    space.apply(secret("keys", slurm_key="an auth key", jwt_key="another token key"))

    def generation() -> int:
        return (space.get("statefulset", "alba-controller") or {})["metadata"]["generation"]

    eventually(lambda: generation() == 2, within=5, what="the template has the new hash")


@pytest.mark.usefixtures("manager")
def test_a_missing_file_is_told_and_used_when_it_comes(space: Namespace) -> None:
    space.apply(KEYS, controller("alba", configFileRefs=[{"name": "files"}]), controller("beta"))
    message = space.wait_condition("controller", "alba", "Reconciled=False/ConfigMapMissing")
    assert message.startswith('Config: ConfigMap "files" not found; create it')
    assert space.get("statefulset", "alba-controller") is None
    space.apply(config_map("files", {"gres.conf": "", "cgroup.conf": "CgroupPlugin=disabled\n"}))
    space.wait_condition("controller", "alba", "Reconciled=True", within=5)
    data = (space.get("configmap", "alba-config") or {})["data"]
    assert "cgroup.conf" not in data
    space.wait_condition("controller", "beta", "Reconciled=True")


@pytest.mark.usefixtures("manager")
def test_a_restapi_waits_for_its_controller(space: Namespace) -> None:
    space.apply(KEYS, restapi("api"))
    message = space.wait_condition("restapi", "api", "Reconciled=False/ControllerMissing")
    assert message == 'Deployment: Controller "alba" not found; create it or correct spec.controllerRef.name'
    assert space.get("service", "api-restapi") is not None
    assert space.get("deployment", "api-restapi") is None
    space.apply(controller("alba"))
    space.wait_condition("restapi", "api", "Reconciled=True", within=5)
    assert space.get("deployment", "api-restapi") is not None


@pytest.mark.usefixtures("manager")
def test_what_the_api_server_refuses_is_told_and_harms_nothing_else(space: Namespace) -> None:
    odd = {"image": "registry.example/slurmctld:1", "resources": {"limits": {"memory": "ten"}}}
    space.apply(KEYS, controller("alba", slurmctld=odd), controller("beta"))
    message = space.wait_condition("controller", "alba", "Reconciled=False")
    assert message.startswith("StatefulSet: ")
    assert space.get("service", "alba-controller") is not None
    space.wait_condition("controller", "beta", "Reconciled=True")
    space.apply(controller("alba"))
    space.wait_condition("controller", "alba", "Reconciled=True")


def test_children_are_put_right_and_foreign_labels_kept(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"), restapi("alba"))
    space.wait_condition("restapi", "alba", "Reconciled=True")
    space.kubectl("label", "service", "alba-restapi", "team=hpc", f"{keys.LABEL_NAME}-")
    space.kubectl("scale", "deployment", "alba-restapi", "--replicas=5")
    space.kubectl("delete", "configmap", "alba-config")

    def restored() -> bool:
        service = (space.get("service", "alba-restapi") or {})["metadata"]["labels"]
        deployment = (space.get("deployment", "alba-restapi") or {})["spec"]["replicas"]
        files = space.get("configmap", "alba-config")
        return (
            service.get("team") == "hpc"
            and service.get(keys.LABEL_NAME) == keys.SLURMRESTD
            and deployment == 1
            and files is not None
        )

    eventually(restored, within=10, what="the children are as wanted again")


def test_a_workload_that_lost_our_label_is_found_again(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"))
    space.wait_condition("controller", "alba", "Reconciled=True")
    before = space.get("statefulset", "alba-controller") or {}
    space.kubectl("label", "statefulset", "alba-controller", f"{keys.LABEL_NAME}-")

    def labelled() -> bool:
        after = space.get("statefulset", "alba-controller") or {}
        return keys.LABEL_NAME in after["metadata"]["labels"]

    eventually(labelled, within=5, what="the label is back")
    after = space.get("statefulset", "alba-controller") or {}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


def test_a_killed_operator_continues_where_it_was(managed_server: ApiServer, space: Namespace) -> None:
    names = [f"c{number}" for number in range(12)]
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(KEYS, *(controller(name) for name in names), *(restapi(name, name) for name in names))
        eventually(lambda: len(first.writes()) > 5, what="the work has begun")
        first.end(signal.SIGKILL)
    with Manager(managed_server, namespaces=[space.name]) as second:
        second.wait_working()
        for name in names:
            space.wait_condition("controller", name, "Reconciled=True")
            space.wait_condition("restapi", name, "Reconciled=True")
    assert len(space.objects("statefulsets,deployments")) == 2 * len(names)
    assert len(space.objects("services")) == 3 * len(names)


def test_a_deleted_controller_gets_no_children_back(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"))
    space.wait_condition("controller", "alba", "Reconciled=True")
    space.kubectl("delete", "controller", "alba", "--cascade=foreground")
    eventually(
        lambda: space.objects("statefulsets,services") == [], within=30, what="garbage collection is done"
    )
    assert space.get("configmap", "alba-config") is None
    assert space.get("secret", "keys") is not None


def test_an_older_statefulset_is_replaced_because_its_service_name_is_immutable(
    managed_server: ApiServer, space: Namespace
) -> None:
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(KEYS, controller("alba"))
        space.wait_condition("controller", "alba", "Reconciled=True")
    old = space.get("statefulset", "alba-controller") or {}
    space.kubectl("delete", "statefulset", "alba-controller", "--cascade=orphan")
    metadata = {name: old["metadata"][name] for name in ("name", "labels", "ownerReferences")}
    space.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": metadata,
            "spec": {**old["spec"], "serviceName": "alba-controller"},
        }
    )
    with Manager(managed_server, namespaces=[space.name]):

        def replaced() -> bool:
            now = space.get("statefulset", "alba-controller")
            return now is not None and now["spec"]["serviceName"] == "alba-controller-internal"

        eventually(replaced, what="the StatefulSet is made anew")
    deleted = [note for _, reason, note in space.events("Controller", "alba") if reason == "DeleteSucceeded"]
    assert deleted == [f"Deleted *v1.StatefulSet: {space.name}/alba-controller"]


MONITORS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def test_monitors_come_and_go_and_a_cluster_that_knows_none_is_no_trouble(
    managed_server: ApiServer, space: Namespace, manager: Manager
) -> None:
    wanting = {"enabled": True, "serviceMonitor": {"enabled": True}}
    space.apply(KEYS, controller("alba", metrics=wanting))
    space.wait_condition("controller", "alba", "Reconciled=True")
    assert not [line for line in manager.writes() if "servicemonitors" in line]
    assert not [event for event in space.events("Controller", "alba") if event[0] == "Warning"]
    kubectl(managed_server, "apply", "-f", "-", stdin=MONITORS)
    try:
        kubectl(managed_server, "wait", "--for=condition=Established", "crd", "--all")
        space.apply(controller("alba", metrics=wanting, extraConf="DebugFlags=Agent\n"))
        eventually(lambda: space.get("servicemonitor", "alba-controller"), what="the monitor is made")
        space.apply(controller("alba", metrics={"enabled": False}))
        eventually(lambda: not space.get("servicemonitor", "alba-controller"), what="the monitor is gone")
    finally:
        kubectl(managed_server, "delete", "crd", "servicemonitors.monitoring.coreos.com")

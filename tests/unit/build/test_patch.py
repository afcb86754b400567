"""What is sent so that a live object becomes the wanted one (spec: control-plane 3.6)."""

import base64
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.api import keys
from coil.build import controller as controllers
from coil.build import nodeset as nodesets
from coil.build import restapi as restapis
from coil.build.defaults import with_server_defaults
from coil.build.hashes import PodHashes
from coil.build.patch import difference, merge_patch
from coil.support.objects import JsonObject, ObjectKey
from tests.support.resources import controller, nodeset, restapi

HASHES = PodHashes(slurm_key="s", jwt_key="j", config="c")


def apply(patch: JsonObject, value: Any) -> Any:
    """JSON merge patch, RFC 7386."""
    result = dict(value) if isinstance(value, dict) else {}
    for name, item in patch.items():
        if item is None:
            result.pop(name, None)
        else:
            result[name] = apply(item, result.get(name)) if isinstance(item, dict) else item
    return result


_VALUES = st.recursive(
    st.integers(0, 2) | st.sampled_from(["x", ""]) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)


@given(live=_OBJECTS, wanted=_OBJECTS)
def test_the_difference_leads_from_one_to_the_other(live: JsonObject, wanted: JsonObject) -> None:
    assert not difference(apply(difference(live, wanted), live), wanted)


@given(value=_OBJECTS)
def test_equal_objects_differ_in_nothing(value: JsonObject) -> None:
    assert difference(value, copy.deepcopy(value)) == {}


def test_null_and_absent_mean_the_same() -> None:
    assert difference({"metadata": {"creationTimestamp": None}}, {"metadata": {}}) == {}
    assert difference({"a": 1}, {}) == {"a": None}


def _workload(**spec: Any) -> JsonObject:
    manifest = controllers.stateful_set(controller(**spec), HASHES)
    assert manifest
    return manifest


def _live(manifest: JsonObject) -> JsonObject:
    """The object as the API server gives it back after creation."""
    stored = copy.deepcopy(with_server_defaults(manifest))
    stored["metadata"] |= {"resourceVersion": "7", "generation": 1, "managedFields": []}
    if stored["kind"] == "Service":
        stored["spec"] = {
            "clusterIP": "192.0.2.7",
            "clusterIPs": ["192.0.2.7"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            **stored["spec"],
        }
    return stored


def test_a_changed_image_is_the_only_difference() -> None:
    live = _live(_workload())
    patch = merge_patch(live, _workload(slurmctld={"image": "registry.example/slurmctld:2"}))
    assert patch.pop("metadata")["annotations"].keys() == {keys.ANNOTATION_POD_TEMPLATE}
    assert list(patch) == ["spec"]
    assert list(patch["spec"]) == ["template"]
    assert list(patch["spec"]["template"]["spec"]) == ["containers"]
    merged = apply(patch, live)["spec"]["template"]["spec"]["containers"][0]
    assert merged["image"] == "registry.example/slurmctld:2"


def test_a_member_the_user_took_back_goes_to_its_default() -> None:
    live = _live(
        _workload(template={"spec": {"priorityClassName": "high", "terminationGracePeriodSeconds": 9}})
    )
    patch = merge_patch(live, _workload())["spec"]["template"]["spec"]
    assert patch == {"priorityClassName": None, "terminationGracePeriodSeconds": 30}


def test_scaling_a_workload_directly_is_reverted() -> None:
    live = _live(_workload())
    live["spec"]["replicas"] = 3
    assert merge_patch(live, _workload()) == {"spec": {"replicas": 1}}


@pytest.mark.parametrize("member", ["serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"])
def test_members_that_cannot_change_are_not_sent(member: str) -> None:
    live = _live(_workload())
    live["spec"][member] = "another"
    assert merge_patch(live, _workload()) == {}


def test_defaults_of_newer_servers_are_left_alone() -> None:
    live = _live(_workload())
    live["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = 1
    assert merge_patch(live, _workload()) == {}


def test_labels_and_annotations_of_others_stay() -> None:
    live = _live(_workload())
    live["metadata"]["labels"]["other"] = "x"
    live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "4"
    assert merge_patch(live, _workload()) == {}
    changed = controllers.stateful_set(controller(metadata={"labels": {"team": "a"}}), HASHES)
    assert changed
    assert merge_patch(live, changed)["metadata"]["labels"] == {"team": "a"}


def test_a_wrong_owner_is_replaced() -> None:
    live = _live(_workload())
    live["metadata"]["ownerReferences"][0]["uid"] = "another"
    assert merge_patch(live, _workload())["metadata"] == {
        "ownerReferences": _workload()["metadata"]["ownerReferences"]
    }


def test_shared_objects_gain_owners_and_lose_none() -> None:
    key = ObjectKey("ns", "slurm")
    live = _live(nodesets.worker_service(key, [nodeset("a"), nodeset("gone")]))
    wanted = nodesets.worker_service(key, [nodeset("a"), nodeset("b")])
    owners = merge_patch(live, wanted)["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in owners] == ["a", "gone", "b"]
    assert merge_patch(live, nodesets.worker_service(key, [nodeset("a")])) == {}


def test_drift_of_a_shared_object_is_repaired() -> None:
    """NodeSet Q4."""
    budget = nodesets.worker_budget(ObjectKey("ns", "slurm"), [nodeset()])
    live = _live(budget)
    live["spec"]["maxUnavailable"] = 5
    assert merge_patch(live, budget) == {"spec": {"maxUnavailable": 0}}


def _service(**wanted: Any) -> JsonObject:
    manifest = controllers.service(controller(service=wanted))
    assert manifest
    return manifest


def test_what_the_server_chose_for_a_service_is_kept() -> None:
    wanted = _service(spec={"type": "LoadBalancer", "externalTrafficPolicy": "Local"})
    live = _live(wanted)
    live["spec"]["ports"][0]["nodePort"] = 31234
    live["spec"]["healthCheckNodePort"] = 31235
    live["spec"]["ipFamilies"] = ["IPv6", "IPv4"]
    assert merge_patch(live, wanted) == {}


def test_a_changed_port_keeps_the_cluster_address() -> None:
    live = _live(_service())
    patch = merge_patch(live, _service(port=7000))
    assert list(patch["spec"]) == ["ports"]
    assert apply(patch, live)["spec"]["clusterIP"] == "192.0.2.7"


def test_a_service_that_gets_no_node_ports_any_more_loses_them() -> None:
    live = _live(_service(spec={"type": "NodePort"}))
    live["spec"]["ports"][0]["nodePort"] = 31234
    patch = merge_patch(live, _service())["spec"]
    assert patch["type"] == "ClusterIP"
    assert patch["externalTrafficPolicy"] is None
    assert "nodePort" not in patch["ports"][0]


def test_external_addresses_that_somebody_added_are_removed() -> None:
    """Field case INJ-04, on an object that is there."""
    live = _live(_service())
    live["spec"]["externalIPs"] = ["192.0.2.53"]
    assert merge_patch(live, _service()) == {"spec": {"externalIPs": None}}


def test_config_maps_are_compared_by_content() -> None:
    wanted: JsonObject = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    live = copy.deepcopy(wanted)
    live["data"] = {"a": "1", "b": "3", "c": "4"}
    assert merge_patch(live, wanted) == {"data": {"b": "2", "c": None}}
    assert merge_patch(live | {"immutable": True}, wanted) == {}


def test_secrets_are_compared_by_content_and_lose_foreign_keys() -> None:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    wanted: JsonObject = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "new"}}
    live: JsonObject = {"kind": "Secret", "type": "Opaque", "metadata": {"name": "s"}}
    same = live | {"data": {"a": encoded("new")}}
    other = live | {"data": {"a": encoded("old"), "foreign": encoded("x")}}
    assert merge_patch(same, wanted) == {}
    assert merge_patch(other, wanted) == {"data": {"a": encoded("new"), "foreign": None}}


def test_a_monitor_keeps_members_that_coil_does_not_write() -> None:
    monitor = {"enabled": True, "interval": "30s"}
    wanted = controllers.service_monitor(controller(metrics={"enabled": True, "serviceMonitor": monitor}))
    assert wanted
    live = copy.deepcopy(wanted)
    live["spec"]["jobLabel"] = "x"
    assert merge_patch(live, wanted) == {}
    live["spec"]["endpoints"][0]["interval"] = "5s"
    assert list(merge_patch(live, wanted)["spec"]) == ["endpoints"]


def test_a_restart_that_somebody_asked_for_is_not_taken_back() -> None:
    """`kubectl rollout restart` writes into the template; removing that would restart the pods again."""
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    deployment = restapis.deployment(restapi(), controller())
    live = _live(deployment)
    live["spec"]["template"]["metadata"]["annotations"] |= restarted
    assert merge_patch(live, deployment) == {}
    changed = restapis.deployment(restapi(template={"spec": {"nodeName": "n"}}), controller())
    assert apply(merge_patch(live, changed), live)["spec"]["template"]["metadata"]["annotations"] == {
        **deployment["spec"]["template"]["metadata"]["annotations"],
        **restarted,
    }


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"resources": {"limits": {"memory": "1024Mi"}}}, {"resources": {"limits": {"memory": "1Gi"}}}),
        ({"unknown": 1, "stdin": False, "workingDir": ""}, {}),
        ({"env": []}, {}),
    ],
)
def test_other_spellings_of_the_same_are_no_difference(given: JsonObject, stored: JsonObject) -> None:
    image = {"image": "registry.example/slurmctld:1"}
    live = _live(_workload(slurmctld=image | stored))
    assert "spec" not in merge_patch(live, _workload(slurmctld=image | given))

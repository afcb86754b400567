"""What the API server fills in; most of it is shown by the corpus (tests/golden)."""

from typing import Any

import pytest

from coil.build.defaults import with_server_defaults
from coil.support.objects import JsonObject


def _pod(**spec: Any) -> JsonObject:
    return with_server_defaults({"kind": "Pod", "metadata": {}, "spec": spec})["spec"]


def _template(**spec: Any) -> JsonObject:
    workload = {"selector": {}, "template": {"metadata": {}, "spec": spec}}
    manifest = {"kind": "Deployment", "metadata": {}, "spec": workload}
    return with_server_defaults(manifest)["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("registry.example/a:1", "IfNotPresent"),
        ("registry.example/a", "Always"),
        ("registry.example:5000/a", "Always"),
        ("registry.example/a:latest", "Always"),
        ("registry.example/a@sha256:0", "IfNotPresent"),
        ("registry.example/a:latest@sha256:0", "Always"),
        ("", "IfNotPresent"),
    ],
)
def test_images_are_pulled_by_their_tag(image: str, policy: str) -> None:
    assert _template(containers=[{"image": image}])["containers"][0]["imagePullPolicy"] == policy


def test_handlers_and_references_are_completed() -> None:
    container = _template(
        containers=[
            {
                "name": "a",
                "livenessProbe": {"grpc": {"port": 1}},
                "lifecycle": {"preStop": {"httpGet": {"port": 1}}, "stopSignal": "SIGINT"},
                "env": [{"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
            }
        ]
    )["containers"][0]
    assert container["livenessProbe"]["grpc"] == {"port": 1, "service": ""}
    assert container["lifecycle"]["preStop"]["httpGet"] == {"port": 1, "path": "/", "scheme": "HTTP"}
    reference = {"resource": "limits.cpu", "divisor": "0"}
    assert container["env"][0]["valueFrom"]["resourceFieldRef"] == reference


def test_volumes_are_completed() -> None:
    field = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = _template(
        containers=[],
        volumes=[
            {"name": "nothing"},
            {"name": "host", "hostPath": {"path": "/x"}},
            {"name": "labels", "downwardAPI": {"items": [field]}},
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token"}},
                        {"downwardAPI": {"items": [field]}},
                    ]
                },
            },
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ],
    )["volumes"]
    completed = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels", "apiVersion": "v1"}}
    claim = {"metadata": {}, "spec": {"resources": {}, "volumeMode": "Filesystem"}}
    assert volumes == [
        {"name": "nothing", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/x", "type": ""}},
        {"name": "labels", "downwardAPI": {"items": [completed], "defaultMode": 420}},
        {
            "name": "all",
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                    {"downwardAPI": {"items": [completed]}},
                ],
            },
        },
        {"name": "own", "ephemeral": {"volumeClaimTemplate": claim}},
    ]


def test_a_service_account_has_two_names() -> None:
    spec = _template(containers=[], serviceAccountName="a")
    assert spec["serviceAccount"] == "a"
    assert "serviceAccount" not in _template(containers=[])


def test_pods_get_more_than_templates() -> None:
    spec = {
        "containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}, "ports": [{"containerPort": 7}]}]
    }
    assert _template(**spec, hostNetwork=True)["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    pod = _pod(**spec, hostNetwork=True)
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert pod["containers"][0]["ports"] == [{"containerPort": 7, "hostPort": 7, "protocol": "TCP"}]
    assert pod["enableServiceLinks"] is True


def test_pods_tolerate_a_lost_node_for_a_while_unless_they_say_otherwise() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    keys = [item["key"] for item in _pod(containers=[], tolerations=[own])["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    everything = {"operator": "Exists"}
    assert _pod(containers=[], tolerations=[everything])["tolerations"] == [everything]


def test_the_priority_of_a_named_class_is_not_guessed() -> None:
    assert "priority" not in _pod(containers=[], priorityClassName="high")


def test_other_strategies_have_no_rolling_update() -> None:
    spec = {"selector": {}, "template": {"spec": {}}, "strategy": {"type": "Recreate"}}
    manifest = {"kind": "Deployment", "metadata": {}, "spec": spec}
    assert with_server_defaults(manifest)["spec"]["strategy"] == {"type": "Recreate"}
    workload = {"selector": {}, "template": {"spec": {}}, "updateStrategy": {"type": "OnDelete"}}
    manifest = {"kind": "StatefulSet", "metadata": {}, "spec": workload}
    assert with_server_defaults(manifest)["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_unknown_kinds_are_left_as_they_are() -> None:
    manifest = {"kind": "ServiceMonitor", "spec": {"x": 1}}
    assert with_server_defaults(manifest) is manifest

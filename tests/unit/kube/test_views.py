"""What the views read, what they leave out, and what an absent member means."""

import gc

import msgspec
import pytest

from coil.kube.views import ManifestView, NodeView, PodView, VolumeView

POD = {
    "metadata": {
        "name": "workers-0",
        "namespace": "slurm",
        "generateName": "workers-",
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "deletionTimestamp": "2026-01-31T12:00:09Z",
        "ownerReferences": [
            {"apiVersion": "x/v1", "kind": "NodeSet", "name": "workers", "uid": "u", "controller": True}
        ],
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {
        "nodeName": "n1",
        "hostname": "workers-0",
        "hostNetwork": True,
        "containers": [{"name": "slurmd"}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-workers-0"}},
            {"name": "tmp", "emptyDir": {}},
        ],
    },
    "status": {
        "phase": "Pending",
        "podIP": "10.0.0.1",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-31T12:00:01Z"},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "containers ..."},
        ],
        "initContainerStatuses": [
            {"name": "logs", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
        ],
        "containerStatuses": [
            {
                "name": "slurmd",
                "image": "registry.example/slurmd:none",
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}},
            }
        ],
    },
}


def read(kind: type, document: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(document), type=kind)


@pytest.fixture
def pod() -> PodView:
    return msgspec.convert(POD, PodView)


def test_a_pod_has_what_a_nodeset_needs(pod: PodView) -> None:
    assert pod.metadata.generate_name == "workers-"
    assert pod.metadata.controller is not None
    assert pod.metadata.controller.uid == "u"
    assert (pod.spec.node_name, pod.spec.hostname, pod.spec.host_network) == ("n1", "workers-0", True)
    assert pod.spec.volumes[0].persistent_volume_claim is not None
    assert pod.spec.volumes[1] == VolumeView(name="tmp")
    assert (pod.status.phase, pod.status.pod_ip) == ("Pending", "10.0.0.1")
    assert pod.terminating
    assert not pod.ready


def test_a_bad_image_can_be_told(pod: PodView) -> None:
    [status] = pod.status.container_statuses
    assert status.image == "registry.example/slurmd:none"
    assert status.state.waiting is not None
    assert status.state.waiting.reason == "ImagePullBackOff"
    [init] = pod.status.init_container_statuses
    assert init.state.terminated is not None
    assert init.state.terminated.exit_code == 1


def test_conditions_are_found_by_type(pod: PodView) -> None:
    scheduled = pod.status.condition("PodScheduled")
    assert scheduled is not None
    assert scheduled.last_transition_time == "2026-01-31T12:00:01Z"
    assert pod.status.condition("SlurmNodeStateIdle") is None


def test_a_new_pod_has_nothing_yet() -> None:
    pod = read(PodView, {"metadata": {"name": "a"}})
    assert isinstance(pod, PodView)
    assert (pod.spec.node_name, pod.status.phase, pod.ready, pod.terminating) == ("", "", False, False)


def pinned(*terms: object) -> PodView:
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    }
    return msgspec.convert({"metadata": {}, "spec": {"affinity": affinity}}, PodView)


def test_a_daemon_pod_is_pinned_by_a_field_match() -> None:
    match = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    assert pinned(match).pinned_node == "n7"


@pytest.mark.parametrize(
    "term",
    [
        {"matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7", "n8"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n7"]}]},
        {"matchFields": [{"key": "other", "operator": "In", "values": ["n7"]}]},
        {},
    ],
)
def test_other_affinities_pin_to_no_node(term: object) -> None:
    assert pinned(term).pinned_node == ""


def test_no_affinity_pins_to_no_node() -> None:
    assert msgspec.convert({"metadata": {}, "spec": {"affinity": {}}}, PodView).pinned_node == ""


def test_a_node_has_taints_conditions_and_its_cordon() -> None:
    node = read(
        NodeView,
        {
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        },
    )
    assert isinstance(node, NodeView)
    assert node.spec.unschedulable
    assert node.spec.taints[0].effect == "NoSchedule"
    ready = node.status.condition("Ready")
    assert ready is not None
    assert ready.status == "Unknown"


def test_a_manifest_keeps_its_spec_as_it_is() -> None:
    manifest = read(ManifestView, {"kind": "Service", "metadata": {}, "spec": {"ports": [{"port": 6817}]}})
    assert isinstance(manifest, ManifestView)
    assert manifest.spec == {"ports": [{"port": 6817}]}


def test_views_are_frozen(pod: PodView) -> None:
    with pytest.raises(AttributeError):
        pod.spec.node_name = "other"  # type: ignore[misc]


def test_leaves_are_not_tracked_by_the_collector(pod: PodView) -> None:
    """Five thousand pods have fifty thousand leaves; the collector need not look at them."""
    assert not gc.is_tracked(pod.status.conditions[0])
    assert not gc.is_tracked(pod.spec.volumes[0])

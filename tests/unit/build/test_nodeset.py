"""Worker pods: names, arguments, stamping; whole pods are compared in tests/golden."""

import copy

import pytest

from coil.api import keys
from coil.build import nodeset as build
from coil.build.errors import BuildError
from coil.build.nodeconf import extra_conf_problem, quoted_conf
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject, ObjectKey
from tests.support.resources import controller, nodeset

TOPOLOGY = "'\"$SLINKY_TOPOLOGY\"'"


def _template(**spec: object) -> build.PodTemplate:
    return build.template(nodeset(**spec), PodInputs(controller=controller()), "hash")


@pytest.mark.parametrize(
    ("spec", "argument"),
    [
        ({}, f"'Features=gpu Topology={TOPOLOGY}'"),
        ({"extraConf": "Weight=10 feature=a"}, f"'Features=a,gpu Topology={TOPOLOGY} Weight=10'"),
        ({"extraConf": "Topology=switch-topo:s1"}, "'Features=gpu Topology=switch-topo:s1'"),
        ({"template": {"spec": {"hostname": "foo-"}}}, f"'Features=foo Topology={TOPOLOGY}'"),
        ({"extraConf": "CPUs=4 GPU-x=1"}, f"'Cpus=4 Features=gpu Gpu-X=1 Topology={TOPOLOGY}'"),
        ({"extraConf": "Gres=gpu:1 Gres=nic:2"}, f"'Features=gpu Gres=gpu:1,nic:2 Topology={TOPOLOGY}'"),
        ({"extraConf": "Weight=5  Gres=gpu:1\n"}, f"'Features=gpu Gres=gpu:1 Topology={TOPOLOGY} Weight=5'"),
        ({"extraConf": "Weight=5 spare"}, f"'Features=gpu Topology={TOPOLOGY}'"),
    ],
)
def test_the_conf_argument(spec: dict[str, object], argument: str) -> None:
    """Vectors of the specification and field cases CFG-20 and CFG-22."""
    assert quoted_conf(nodeset(**spec)) == argument


def test_text_that_is_ignored_is_told() -> None:
    """Field case CFG-20: never a crash, never in silence."""
    assert extra_conf_problem(nodeset(extraConf="Weight=5  Gres=gpu:1")) == ""
    assert "spec.extraConf: 'spare' is not of the form Key=Value" in extra_conf_problem(
        nodeset(extraConf="Weight=5 spare")
    )


def test_a_feature_of_the_user_is_added_to_the_nodesets_own() -> None:
    """Field case CFG-22: the node stays in its partition."""
    assert "Features=alpha,fast " in quoted_conf(nodeset("alpha", extraConf="feature=fast"))


def test_names_with_padding_and_prefix() -> None:
    template = _template(ordinalPadding=3, template={"spec": {"hostname": "gpu-"}})
    pod = build.stamp_ordinal(template, 3)
    assert pod["metadata"]["name"] == "gpu-003"
    assert pod["spec"]["hostname"] == "gpu-003"
    assert pod["metadata"]["labels"][keys.LABEL_POD_INDEX] == "003"
    assert build.stamp_ordinal(template, 12345)["metadata"]["name"] == "gpu-12345"


def test_the_slurm_name_differs_from_the_pod_name_with_a_prefix() -> None:
    """Field case REG-10: the label tells the operator which Slurm node a pod is."""
    pod = build.stamp_ordinal(
        build.template(
            nodeset("alpha", template={"spec": {"hostname": "gpu-"}}), PodInputs(controller=controller()), "h"
        ),
        0,
    )
    assert pod["metadata"]["name"] == "alpha-0"
    assert pod["metadata"]["labels"][keys.LABEL_POD_HOSTNAME] == pod["spec"]["hostname"] == "gpu-0"


@pytest.mark.parametrize(
    ("node", "annotations", "hostname"),
    [
        ("node-1.example.com", {}, "node-1"),
        ("ip-192-0-2-10.region-1.compute.internal", {}, "ip-192-0-2-10"),
        ("n" * 63, {}, "n" * 63),
        ("node-1-", {}, "node-1-"),
        ("node-1.example.com", {keys.ANNOTATION_HOSTNAME_OVERRIDE: "x"}, "x"),
        ("n1", {keys.ANNOTATION_HOSTNAME_OVERRIDE: ""}, "n1"),
    ],
)
def test_host_names_of_daemon_pods(node: str, annotations: dict[str, str], hostname: str) -> None:
    assert build.daemon_hostname(node, annotations) == hostname


def test_claims_are_named_after_the_ordinal_or_the_host() -> None:
    claim = {"metadata": {"name": "data", "labels": {"app.kubernetes.io/name": "mine", "a": "b"}}}
    ordinals = _template(volumeClaimTemplates=[claim], ordinalPadding=2)
    pod = build.stamp_ordinal(ordinals, 1)
    assert pod["spec"]["volumes"][0] == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "data-gpu-01"},
    }
    made = build.claims(ordinals, pod)[0]["metadata"]
    assert made["name"] == "data-gpu-01"
    assert made["labels"]["app.kubernetes.io/name"] == "slurmd"
    daemons = _template(volumeClaimTemplates=[claim], scalingMode="DaemonSet")
    pod = build.stamp_node(daemons, "n1.example", "n1")
    assert build.claims(daemons, pod)[0]["metadata"]["name"] == "data-gpu-n1"


def test_a_claim_replaces_a_template_volume_of_its_name() -> None:
    template = _template(
        volumeClaimTemplates=[{"metadata": {"name": "data"}}],
        template={"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}},
    )
    volumes = build.stamp_ordinal(template, 0)["spec"]["volumes"]
    assert [volume["name"] for volume in volumes].count("data") == 1
    assert "persistentVolumeClaim" in volumes[0]


def test_limits_of_the_container_win_over_those_of_the_pod() -> None:
    spec: JsonObject = {
        "slurmd": {"resources": {"limits": {"cpu": "1500m"}}},
        "template": {"spec": {"resources": {"limits": {"cpu": 8, "memory": "1G"}}}},
    }
    env = {item["name"]: item.get("value") for item in _template(**spec).spec["containers"][0]["env"]}
    assert env == {"SLINKY_TOPOLOGY": None, "POD_CPUS": "2", "POD_MEMORY": "953"}


@pytest.mark.parametrize(
    ("limit", "told"), [("16Gi", "16384"), ("16G", "15258"), ("16000Mi", "16000"), ("1.5Gi", "1536")]
)
def test_memory_is_told_in_whole_mebibytes(limit: str, told: str) -> None:
    """Field case CGR-01."""
    made = _template(slurmd={"resources": {"limits": {"memory": limit}}})
    env = {item["name"]: item.get("value") for item in made.spec["containers"][0]["env"]}
    assert env["POD_MEMORY"] == told


def test_requests_alone_tell_no_limit() -> None:
    """Field case CGR-02."""
    made = _template(slurmd={"resources": {"requests": {"cpu": 4, "memory": "4Gi"}}})
    env = {item["name"]: item.get("value") for item in made.spec["containers"][0]["env"]}
    assert (env.get("POD_CPUS", "0"), env.get("POD_MEMORY", "0")) == ("0", "0")


def test_a_pinned_pod_keeps_the_preferences_of_the_user() -> None:
    near = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
    }
    template = _template(template={"spec": {"affinity": {"nodeAffinity": near}}})
    pinned = build.stamp_ordinal(template, 0, node="kn-1")["spec"]["affinity"]["nodeAffinity"]
    required = pinned["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert required == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["kn-1"]}]}]
    assert "preferredDuringSchedulingIgnoredDuringExecution" in pinned


def test_what_kubectl_keeps_does_not_reach_pods() -> None:
    own = {"kubectl.kubernetes.io/last-applied-configuration": "x", keys.ANNOTATION_HELD: "{}"}
    applied = nodeset(metadata={"annotations": own})
    template = build.template(applied, PodInputs(controller=controller()), "h")
    assert own.keys().isdisjoint(template.metadata["annotations"])


def test_workers_of_an_external_controller_ask_it() -> None:
    outside = controller(external=True, externalConfig={"host": "ctl.example", "port": 7017})
    template = build.template(nodeset(), PodInputs(controller=outside), "h")
    assert template.spec["containers"][0]["args"][:3] == ["-Z", "--conf-server", "ctl.example:7017"]


def test_names_too_long_for_a_label_are_told() -> None:
    """Field case REG-17."""
    with pytest.raises(BuildError, match=r"metadata\.name: makes the name n{63}-0, 2 characters longer"):
        build.stamp_ordinal(build.template(nodeset("n" * 63), PodInputs(controller=controller()), "h"), 0)
    with pytest.raises(BuildError, match="hostname-override"):
        build.stamp_node(_template(), "kn-1", "h" * 64)


def test_shared_objects_belong_to_every_nodeset_of_the_cluster_in_order() -> None:
    found = [nodeset("b"), nodeset("a"), nodeset("x", controllerRef={"name": "other"})]
    for make in (build.worker_service, build.worker_budget):
        owners = make(ObjectKey("ns", "slurm"), found)["metadata"]["ownerReferences"]
        assert [owner["name"] for owner in owners] == ["a", "b"]
        assert not [owner for owner in owners if "controller" in owner]


def test_stamping_leaves_the_template_alone() -> None:
    template = _template(volumeClaimTemplates=[{"metadata": {"name": "data"}}])
    before = copy.deepcopy((template.metadata, template.spec, template.labels))
    build.stamp_ordinal(template, 0, node="kn-1")
    build.stamp_node(template, "kn-1", "kn-1")
    assert (template.metadata, template.spec, template.labels) == before


def test_stamped_pods_share_what_does_not_differ() -> None:
    """What makes thousands of pods cheap; `make bench-build` measures it."""
    template = _template()
    first, second = (build.stamp_ordinal(template, ordinal) for ordinal in (0, 1))
    assert first["spec"]["containers"] is second["spec"]["containers"]


def test_the_good_bye_is_no_part_of_the_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another text of it, as in pods that the reference made, must not replace running pods."""
    before = build.revision_hash(nodeset())
    monkeypatch.setattr("coil.build.scripts.GOODBYE", "another text")
    assert "another text" in str(_template().spec)
    assert build.revision_hash(nodeset()) == before

"""What our charts do beyond the reference's: refuse mistakes, keep keys, make narrow roles."""

from typing import Any

import pytest
import yaml

from tests.support.charts import CHARTS, Document, RenderError, by_name, template


def rendered(chart: str, *arguments: str, **options: Any) -> dict[str, Document]:
    return by_name(template(chart, *arguments, **options))


def sets(*expressions: str) -> list[str]:
    return [word for expression in expressions for word in ("--set", expression)]


@pytest.mark.parametrize(
    ("chart", "value", "said"),
    [
        ("slurm", "nodeset.a.replicas=1", "nodeset"),
        ("slurm", "nodesets.gpu.image=x", "/nodesets/gpu"),
        ("slurm", "nodesets.gpu.resources.limits.cpu=1", "/nodesets/gpu"),
        ("slurm", "loginsets.a.sssdConf=x", "/loginsets/a"),
        ("slurm", "nodesets.gpu.scalingMode=daemonset", "/nodesets/gpu/scalingMode"),
        ("slurm", "nodesets.Gpu.replicas=1", "/nodesets': additional"),
        ("slurm", "controller.slurmctld.image.version=1", "/controller/slurmctld/image"),
        ("slurm-operator", "operator.image.name=x", "/operator/image"),
        ("slurm-operator", "replicas=2", "replicas"),
    ],
)
def test_a_mistyped_or_misplaced_value_is_refused_with_its_place(chart: str, value: str, said: str) -> None:
    with pytest.raises(RenderError) as caught:
        template(chart, "--set", value)
    assert said in str(caught.value)


def test_containers_and_pod_specs_are_open() -> None:
    values = sets(
        "nodesets.a.slurmd.lifecycle.preStop.sleep.seconds=1",
        "nodesets.a.podSpec.hostNetwork=true",
        "controller.persistence.volumeMode=Block",
        "x-anchor.anything=1",
        "global.other=1",
    )
    spec = rendered("slurm", *values)["NodeSet/slurm-worker-a"]["spec"]
    assert spec["slurmd"]["lifecycle"] == {"preStop": {"sleep": {"seconds": 1}}}
    assert spec["template"]["spec"]["hostNetwork"] is True


def test_fields_of_nodesets_that_the_reference_cannot_reach() -> None:
    values = sets(
        "nodesets.a.minReadySeconds=5",
        "nodesets.a.revisionHistoryLimit=3",
        "nodesets.a.persistentVolumeClaimRetentionPolicy.whenScaled=Delete",
        "nodesets.a.volumeClaimTemplates[0].metadata.name=data",
    )
    spec = rendered("slurm", *values)["NodeSet/slurm-worker-a"]["spec"]
    assert (spec["minReadySeconds"], spec["revisionHistoryLimit"]) == (5, 3)
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenScaled": "Delete"}
    assert spec["volumeClaimTemplates"] == [{"metadata": {"name": "data"}}]


def test_external_daemons_get_their_usual_port() -> None:
    values = sets("controller.external=true", "accounting.enabled=true", "accounting.external=true")
    objects = rendered("slurm", *values)
    assert objects["Controller/slurm"]["spec"]["externalConfig"]["port"] == 6817
    assert objects["Accounting/slurm"]["spec"]["externalConfig"]["port"] == 6819


@pytest.mark.parametrize(
    ("values", "made"),
    [
        ((), True),
        (("accounting.external=true",), True),
        (("accounting.external=true", "accounting.enabled=true"), False),
        (("controller.external=true",), False),
        (("slurmKey.create=false", "jwtKey.create=false"), False),
    ],
)
def test_keys_are_made_unless_a_part_outside_has_them(values: tuple[str, ...], made: bool) -> None:
    objects = rendered("slurm", *sets(*values))
    assert ("Secret/slurm-auth-slurm" in objects) is made
    assert ("Secret/slurm-auth-jwt" in objects) is made


def test_a_key_is_immutable_long_and_stays() -> None:
    secret = rendered("slurm")["Secret/slurm-auth-slurm"]
    assert secret["immutable"] is True
    assert secret["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert len(secret["data"]["slurm.key"]) == 1368


def test_a_long_cluster_name_is_refused_at_the_first_installation() -> None:
    namespace = "n" * 40
    with pytest.raises(RenderError, match="46 characters, and 40 are allowed; set clusterName"):
        template("slurm", namespace=namespace)
    template("slurm", "--set", "clusterName=short", namespace=namespace)
    template("slurm", "--is-upgrade", namespace=namespace)


def test_null_blocks_are_absent_ones_and_a_missing_image_is_named() -> None:
    with pytest.raises(RenderError, match=r"nodesets\.a\.slurmd\.image\.repository is required"):
        template("slurm", "--set", "nodesets.a.slurmd=null")
    template("slurm", *sets("controller.service=null", "sssd=null", "priorityClass=null", "jwksKeys=null"))
    template(
        "slurm", *sets("restapi.pdb=null", "vendor.google=null", "vendor.nvidia=null", "partitions.x=null")
    )


def test_a_chart_version_is_in_no_pod_template() -> None:
    objects = rendered(
        "slurm", *sets("nodesets.a.replicas=1", "loginsets.b.replicas=1", "accounting.enabled=true")
    )
    for document in objects.values():
        labels = document.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {})
        assert not any("chart" in key or "version" in key for key in labels)


def test_gpus_that_a_vendor_adds_are_mapped_for_dcgm() -> None:
    values = sets(
        "vendor.nvidia.dcgm.enabled=true", "nodesets.u.replicas=1", "nodesets.off.dcgmJobMapping=true"
    )
    target = "vendor.google.a3ultra[0]"
    networks = "{a,b,c,d,e,f,g,h,i}"
    google = sets(f"{target}.targetNodeSet=u", f"{target}.nodePool=p", f"{target}.networks={networks}")
    objects = rendered("slurm", *values, *google)
    for name in ("u", "off"):
        mounts = objects[f"NodeSet/slurm-worker-{name}"]["spec"]["slurmd"]["volumeMounts"]
        assert "dcgm-job-mapping" in [mount["name"] for mount in mounts]


def test_two_spellings_of_gres_are_a_conflict() -> None:
    target = "vendor.google.a3ultra[0]"
    values = sets(
        f"{target}.targetNodeSet=u",
        f"{target}.nodePool=p",
        f"{target}.networks={{a,b,c,d,e,f,g,h,i}}",
        "nodesets.u.extraConfMap.GRES=gpu:2",
    )
    with pytest.raises(RenderError, match=r"nodesets\.u\.extraConfMap\.GRES is gpu:2, but the vendor block"):
        template("slurm", *values)


def test_the_webhook_account_has_the_rights_under_any_name() -> None:
    objects = rendered("slurm-operator", *sets("webhook.serviceAccount.name=hook"))
    binding = objects["ClusterRoleBinding/slurm-operator-webhook"]
    assert f"ClusterRole/{binding['roleRef']['name']}" in objects
    assert binding["subjects"][0]["name"] == "hook"
    assert "ServiceAccount/hook" in objects


def test_namespaced_roles_leave_only_nodes_and_reviews_to_the_cluster() -> None:
    values = ["--set", "operator.namespacedRoles=true", "--set", r"operator.namespaces=a\, b"]
    documents = template("slurm-operator", *values, namespace="slinky")
    objects = by_name(documents)
    resources = [
        name for rule in objects["ClusterRole/slurm-operator"]["rules"] for name in rule["resources"]
    ]
    assert resources == ["nodes", "tokenreviews", "subjectaccessreviews"]
    roles = [
        document["metadata"]["namespace"]
        for document in documents
        if document["kind"] == "Role" and document["metadata"]["name"] == "slurm-operator"
    ]
    assert sorted(roles) == ["a", "b", "slinky"]
    with pytest.raises(RenderError, match=r"operator\.namespacedRoles needs operator\.namespaces"):
        template("slurm-operator", "--set", "operator.namespacedRoles=true")


@pytest.mark.parametrize("scope", [[], sets("operator.namespacedRoles=true", "operator.namespaces=a")])
def test_logs_of_pods_may_be_read_only_where_a_user_says_so(scope: list[str]) -> None:
    assert "pods/log" not in str(template("slurm-operator", *scope))
    assert "pods/log" in str(template("slurm-operator", *scope, *sets("operator.readDaemonLogs=true")))


def test_a_certificate_of_ones_own_renders_the_same_each_time() -> None:
    values = sets("certManager.enabled=false", "certManager.caBundle=Q0E=", "webhook.podsBinding=true")
    objects = rendered("slurm-operator", *values)
    assert not [name for name in objects if name.startswith(("Secret/", "Certificate/"))]
    hooks = objects["ValidatingWebhookConfiguration/slurm-operator-webhook"]["webhooks"]
    assert {hook["clientConfig"]["caBundle"] for hook in hooks} == {"Q0E="}


def test_test_pods_are_no_endpoints_and_ask_what_is_installed() -> None:
    values = sets("operator.healthPort=9081", "webhook.enabled=false", "imagePullSecrets[0].name=pull")
    objects = rendered("slurm-operator", *values)
    pods = {name: document for name, document in objects.items() if name.startswith("Pod/")}
    assert pods.keys() == {"Pod/slurm-operator-test"}
    pod = pods["Pod/slurm-operator-test"]
    selector = objects["Service/slurm-operator"]["spec"]["selector"]
    assert not selector.items() <= pod["metadata"]["labels"].items()
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert "http://slurm-operator:9081/{path}" in pod["spec"]["containers"][0]["args"][0]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]


def test_charts_have_one_version() -> None:
    charts = [yaml.safe_load((folder / "Chart.yaml").read_text()) for folder in CHARTS.iterdir()]
    assert len({chart["version"] for chart in charts}) == 1
    (operator,) = [chart for chart in charts if chart["name"] == "slurm-operator"]
    assert operator["appVersion"] == operator["version"] == operator["dependencies"][0]["version"]

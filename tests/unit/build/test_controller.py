"""What the corpus does not show of a Controller's objects."""

import pytest

from coil.build import controller as build
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes
from coil.build.slurmconf import ConfigInputs
from coil.support.objects import JsonObject
from tests.support.resources import controller

HASHES = PodHashes(slurm_key="s", jwt_key="j", config="c")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _pod(**spec: object) -> JsonObject:
    workload = build.stateful_set(controller(**spec), HASHES)
    assert workload
    return workload["spec"]["template"]


def test_what_kubectl_keeps_on_the_controller_does_not_reach_its_objects() -> None:
    """Q1: with it every `kubectl apply` would make slurmctld anew."""
    applied = controller(metadata={"annotations": {LAST_APPLIED: "{}", "a": "b"}})
    workload = build.stateful_set(applied, HASHES)
    assert workload
    for manifest in (workload, build.config_map(applied, ConfigInputs()), workload["spec"]["template"]):
        assert LAST_APPLIED not in manifest["metadata"]["annotations"]
        assert manifest["metadata"]["annotations"]["a"] == "b"


def test_users_cannot_displace_the_operators_labels() -> None:
    own = {"app.kubernetes.io/name": "mine", "app.kubernetes.io/instance": "other", "team": "x"}
    workload = build.stateful_set(
        controller(metadata={"labels": own}, template={"metadata": {"labels": own}}), HASHES
    )
    assert workload
    assert workload["metadata"]["labels"] == {"team": "x", **build.labels(controller())}


def test_required_rules_of_the_user_do_not_drop_the_operators() -> None:
    """Q3."""
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = _pod(template={"spec": {"affinity": {"podAntiAffinity": {required: [term]}}}})["spec"]
    terms = spec["affinity"]["podAntiAffinity"][required]
    assert terms[0] == term
    assert terms[1]["topologyKey"] == "kubernetes.io/hostname"


def test_a_user_probe_replaces_the_handler() -> None:
    """Field case OVR-01, through the builder."""
    probe = {"exec": {"command": ["scontrol", "ping"]}, "periodSeconds": 30}
    container = _pod(slurmctld={"livenessProbe": probe})["spec"]["containers"][0]
    assert container["livenessProbe"] == {**probe, "failureThreshold": 6}


def test_the_config_hash_is_left_out_when_configuration_is_applied_in_place() -> None:
    assert "slinky.slurm.net/slurm-config-hash" in _pod()["metadata"]["annotations"]
    annotations = _pod(inplaceReconfigure=True)["metadata"]["annotations"]
    assert "slinky.slurm.net/slurm-config-hash" not in annotations


def test_backups_need_a_shared_claim() -> None:
    with pytest.raises(BuildError, match=r"spec\.persistence\.existingClaim: backups need a claim"):
        _pod(ha={"enabled": True})


def test_the_size_of_the_claim_may_be_left_to_the_api_server_to_refuse() -> None:
    workload = build.stateful_set(controller(persistence=None), HASHES)
    assert workload
    assert workload["spec"]["volumeClaimTemplates"][0]["spec"] == {}


def test_a_reference_named_twice_is_projected_twice() -> None:
    refs = [{"name": "b"}, {"name": "a"}]
    volume = _pod(configFileRefs=refs, prologScriptRefs=refs)["spec"]["volumes"][0]
    names = [
        source["configMap"]["name"] for source in volume["projected"]["sources"] if "configMap" in source
    ]
    assert names == ["slurm-config", "a", "a", "b", "b"]


def test_an_external_controller_has_no_workload() -> None:
    outside = controller(external=True, externalConfig={"host": "h", "port": 1})
    assert build.stateful_set(outside, HASHES) is None
    assert build.service(outside) is None
    assert build.internal_service(outside) is None


def test_a_long_name_is_told_before_the_api_server_refuses_it() -> None:
    """Field case REG-17."""
    with pytest.raises(BuildError, match=r"metadata\.name: makes the name"):
        build.internal_service(controller("c" * 50))


def test_the_monitor_needs_metrics() -> None:
    monitor = {"enabled": True}
    assert build.service_monitor(controller(metrics={"serviceMonitor": monitor})) is None
    made = build.service_monitor(controller(metrics={"enabled": True, "serviceMonitor": monitor}))
    assert made
    assert [endpoint["path"] for endpoint in made["spec"]["endpoints"]] == [
        "/metrics/jobs",
        "/metrics/nodes",
        "/metrics/partitions",
        "/metrics/scheduler",
    ]


def test_malformed_members_are_told_with_their_path() -> None:
    with pytest.raises(BuildError, match=r"spec\.slurmctld\.resources\.limits\.memory: '1Gx' is no quantity"):
        _pod(slurmctld={"resources": {"limits": {"memory": "1Gx"}}})

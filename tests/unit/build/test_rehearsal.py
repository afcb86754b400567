"""Claims about the pod in which a configuration is tried: it harms nobody and is the user's slurmctld."""

from typing import Any

import msgspec

from coil.api import keys
from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.build import controller as controllers
from coil.build.rehearsal import candidate, pod

FILES = {"slurm.conf": "SlurmctldHost=alba-controller-0(x)\nMaxJobCount=5\n", "gres.conf": "# none\n"}


def controller(**spec: Any) -> Controller:
    wanted = {
        "metadata": {"name": "alba", "namespace": "ns", "uid": "u", "annotations": {"a": "b"}},
        "spec": {
            "slurmctld": {"image": "registry.example/slurmctld"},
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
            "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            **spec,
        },
    }
    return with_defaults(msgspec.convert(wanted, Controller))


def spec_of(**spec: Any) -> dict[str, Any]:
    return pod(controller(**spec), "g1", FILES)["spec"]


def test_no_service_of_the_cluster_leads_to_it() -> None:
    made = pod(controller(template={"metadata": {"labels": {"team": "x"}}}), "g1", FILES)["metadata"]
    selectors = (controllers.selector(controller()).items(), {"team": "x"}.items())
    assert not any(selector <= made["labels"].items() for selector in selectors)
    assert (made["name"], made["annotations"][keys.ANNOTATION_REHEARSED]) == ("alba-rehearsal-g1", "g1")
    assert made["ownerReferences"][0]["uid"] == "u"


def test_it_has_neither_keys_nor_state_nor_names_nor_rights_of_the_cluster() -> None:
    spec = spec_of(template={"spec": {"hostNetwork": True, "hostPID": True, "dnsPolicy": "ClusterFirst"}})
    assert not {"hostNetwork", "hostPID"} & spec.keys()
    assert (spec["dnsPolicy"], spec["dnsConfig"]) == ("None", {"nameservers": ["127.0.0.1"]})
    assert spec["automountServiceAccountToken"] is False
    sources = {source for volume in spec["volumes"] for source in volume if source != "name"}
    assert sources == {"configMap", "emptyDir"}
    assert all(volume.get("configMap", {"name": "alba-config-candidate"}) for volume in spec["volumes"])
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 401,
        "runAsGroup": 401,
    }
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_it_ends_by_itself_and_is_not_started_again() -> None:
    spec = spec_of()
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"] > 0) == ("Never", True)
    (container,) = spec["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert spec["hostname"] == "alba-controller-0"


def test_it_is_the_users_slurmctld_without_probes_hooks_and_large_requests() -> None:
    mine = {
        "image": "registry.example/mine",
        "args": ["-v"],
        "env": [{"name": "A", "value": "b"}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 1}},
        "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
        "resources": {"requests": {"cpu": "8"}, "limits": {"memory": "9Gi"}},
        "volumeMounts": [{"name": "lua", "mountPath": "/opt/lua"}],
    }
    template = {
        "spec": {
            "volumes": [{"name": "lua", "configMap": {"name": "lua"}}],
            "containers": [{"name": "sidecar", "image": "x"}],
            "initContainers": [
                {"name": "prepare", "image": "x"},
                {"name": "forever", "image": "x", "restartPolicy": "Always"},
            ],
            "nodeSelector": {"disk": "fast"},
            "imagePullSecrets": [{"name": "pull"}],
        }
    }
    spec = spec_of(slurmctld=mine, template=template)
    (container,) = spec["containers"]
    assert container["image"] == "registry.example/mine"
    assert container["env"] == mine["env"]
    assert not {"args", "livenessProbe", "lifecycle", "ports"} & container.keys()
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"memory": "9Gi"},
    }
    assert {"name": "lua", "mountPath": "/opt/lua"} in container["volumeMounts"]
    assert "lua" in [volume["name"] for volume in spec["volumes"]]
    assert [each["name"] for each in spec["initContainers"]] == ["prepare"]
    assert (spec["nodeSelector"], spec["imagePullSecrets"]) == ({"disk": "fast"}, [{"name": "pull"}])


def test_it_prefers_the_machine_of_slurmctld_beside_the_users_own_wishes() -> None:
    mine = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    terms = spec_of(template={"spec": {"affinity": mine}})["affinity"]["podAffinity"]
    (first, second) = terms["preferredDuringSchedulingIgnoredDuringExecution"]
    assert first["weight"] == 1
    labels = second["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert labels == {"statefulset.kubernetes.io/pod-name": "alba-controller-0"}


def test_the_candidate_holds_the_files_or_why_they_were_refused() -> None:
    tried = candidate(controller(), "g1", FILES)
    assert tried["data"].keys() == FILES.keys()
    assert "MaxJobCount=5" in tried["data"]["slurm.conf"]
    refused = candidate(controller(), "g1", FILES, "no such key")
    assert refused["data"] == {}
    assert refused["metadata"]["annotations"] == {
        keys.ANNOTATION_REHEARSED: "g1",
        keys.ANNOTATION_REFUSED: "no such key",
    }


def test_the_word_that_turns_rehearsals_off_reaches_no_child() -> None:
    off = msgspec.structs.replace(
        controller().metadata, annotations={keys.ANNOTATION_REHEARSAL: "off", "a": "b"}
    )
    service = controllers.service(msgspec.structs.replace(controller(), metadata=off))
    assert service is not None
    assert service["metadata"]["annotations"] == {"a": "b"}

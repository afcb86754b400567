"""The objects coil makes are those that the reference made, member by member.

Each known deviation is listed in `DEVIATIONS` with its reason; they are explained in
`docs/compatibility.md`. An entry that no longer applies fails the test as well.
"""

import json
from collections.abc import Iterator

import pytest

from coil.api import keys
from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.build import controller as controllers
from coil.build import nodeset as nodesets
from coil.build import restapi as restapis
from coil.build.defaults import with_server_defaults
from coil.build.errors import BuildError
from coil.build.hashes import map_hash
from coil.build.patch import merge_patch
from coil.build.slurmconf import ConfigInputs
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject
from tests.support import golden

_HASH = ".spec.template.metadata.annotations.slinky.slurm.net/slurm-config-hash"
Q2 = "Q2: an external Accounting's own address is used, not a Service that does not exist"
Q8B = "Q8b: a user's option keeps its letter case, since paths are case-sensitive"
REFUSED = "the API server refused it (no image, no size of the claim): nothing wrong with what was sent"
CONSEQUENCE = "follows from the changed text"

DEVIATIONS = {
    ("accounting-external", "ConfigMap/larch-config.data.slurm.conf"): Q2,
    ("accounting-external", f"StatefulSet/larch-controller{_HASH}"): CONSEQUENCE,
    ("controller-scripts", "ConfigMap/fern-config.data.slurm.conf"): Q8B,
    ("controller-scripts", f"StatefulSet/fern-controller{_HASH}"): CONSEQUENCE,
    ("missing-references", "StatefulSet/bare-controller"): REFUSED,
}
"""(case, object and path) to reason."""

DEVIATED_OBJECTS = {(case, where.partition(".")[0]) for case, where in DEVIATIONS}
PER_POD = ("Pod", "PersistentVolumeClaim", "ControllerRevision")
Objects = dict[tuple[str, str], JsonObject]


def _config_inputs(step: golden.Step, controller: Controller) -> ConfigInputs:
    names = {ref.name for ref in controllers.references(controller)}
    found = {name: step.data("ConfigMap", name) for name in names}
    wanted = controller.spec.accounting_ref
    accounting = [item for item in step.all(Accounting) if wanted and item.metadata.name == wanted.name]
    return ConfigInputs(
        nodesets=step.all(NodeSet),
        accounting=next(iter(accounting), None),
        config_maps={name: data for name, data in found.items() if data is not None},
    )


def _of_controller(step: golden.Step, controller: Controller) -> Iterator[JsonObject | None]:
    config_hash = ""
    try:
        config = controllers.config_map(controller, _config_inputs(step, controller))
        config_hash = map_hash(config["data"])
        yield config
    except BuildError:
        pass
    assert controller.spec.slurm_key_ref
    assert controller.jwt_ref
    hashes = controllers.PodHashes(
        slurm_key=step.secret_hash(controller.spec.slurm_key_ref.name),
        jwt_key=step.secret_hash(controller.jwt_ref.name),
        config=config_hash,
    )
    yield controllers.service(controller)
    yield controllers.internal_service(controller)
    yield controllers.service_monitor(controller)
    yield controllers.stateful_set(controller, hashes)


def _of_restapi(step: golden.Step, restapi: RestApi) -> Iterator[JsonObject]:
    yield restapis.service(restapi)
    for controller in step.all(Controller):
        if controller.metadata.name == restapi.spec.controller_ref.name:
            yield restapis.deployment(restapi, controller)


def _of_nodesets(step: golden.Step) -> Iterator[JsonObject | None]:
    found = step.all(NodeSet)
    for cluster in sorted({nodeset.controller_key for nodeset in found}):
        yield nodesets.worker_service(cluster, found)
        yield nodesets.worker_budget(cluster, found)
    for nodeset in found:
        yield nodesets.ssh_config(nodeset)


def _manifests(step: golden.Step) -> Objects:
    manifests = [
        *(item for found in step.all(Controller) for item in _of_controller(step, found)),
        *(item for found in step.all(RestApi) for item in _of_restapi(step, found)),
        *_of_nodesets(step),
    ]
    return {(item["kind"], item["metadata"]["name"]): item for item in manifests if item}


def _built(step: golden.Step) -> Objects:
    return {key: _as_stored(manifest) for key, manifest in _manifests(step).items()}


def _as_stored(manifest: JsonObject) -> JsonObject:
    """The manifest as the API server would give it back, normalised like the corpus."""
    stored = with_server_defaults(manifest)
    if stored["kind"] == "Service":
        stored = stored | {"spec": _allocated(stored["spec"])}
    metadata = {name: value for name, value in stored["metadata"].items() if name != "namespace"}
    return stored | {"metadata": metadata}


def _allocated(spec: JsonObject) -> JsonObject:
    """What a server with one address family chooses."""
    chosen: JsonObject = {
        "clusterIP": "192.0.2.1",
        "clusterIPs": ["192.0.2.1"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }
    if spec["type"] != "ClusterIP":
        spec = spec | {"ports": [{"nodePort": 30000, **port} for port in spec["ports"]]}
    if spec.get("externalTrafficPolicy") == "Local":
        chosen["healthCheckNodePort"] = 30001
    return {**chosen, **spec}


def _differences(built: Objects, expected: Objects) -> list[str]:
    return [
        f"{kind}/{name}{difference}"
        for kind, name in sorted(expected.keys() | built.keys())
        for difference in golden.differences(expected.get((kind, name)), built.get((kind, name)))
    ]


def _belongs_here(key: tuple[str, str], expected: JsonObject) -> bool:
    owners = {owner["kind"] for owner in expected["metadata"].get("ownerReferences", ())}
    return key[0] not in PER_POD and bool(owners & {"Controller", "RestApi", "NodeSet"})


@pytest.mark.parametrize("step", golden.all_steps(), ids=str)
def test_objects_are_those_of_the_reference(step: golden.Step) -> None:
    expected = {key: value for key, value in step.outputs.items() if _belongs_here(key, value)}
    found = _differences(_built(step), expected)
    known = {where for case, where in DEVIATIONS if case == step.case}
    assert {text.partition(": ")[0] for text in found} == known, found


@pytest.mark.parametrize("step", golden.all_steps(), ids=str)
def test_worker_pods_and_claims_are_those_of_the_reference(step: golden.Step) -> None:
    made_by = {(set_name, digest): found for found, set_name, digest in _revisions(step)}
    built: Objects = {}
    for (_, identity), pod in step.outputs_of("Pod").items():
        labels = pod["metadata"]["labels"]
        nodeset, earlier = made_by[labels[keys.LABEL_INSTANCE], labels[keys.LABEL_REVISION]]
        template = nodesets.template(nodeset, _pod_inputs(earlier, nodeset), labels[keys.LABEL_REVISION])
        stamped = _stamp(template, pod, earlier)
        built["Pod", identity] = stamped
        for claim in nodesets.claims(template, stamped):
            built["PersistentVolumeClaim", claim["metadata"]["name"]] = claim
    stored = {key: _as_stored(_named(manifest)) for key, manifest in built.items()}
    # In later steps claims of deleted pods may still be there.
    expected = {
        key: _untouched(value)
        for key, value in step.outputs_of("Pod", "PersistentVolumeClaim").items()
        if step.number == 1 or key in stored
    }
    assert _differences(stored, expected) == []


@pytest.mark.parametrize("step", golden.all_steps(), ids=str)
def test_revisions_are_those_of_the_reference(step: golden.Step) -> None:
    expected = step.outputs_of("ControllerRevision")
    built: Objects = {}
    for (nodeset, _), _, _ in _revisions(step):
        revision = nodesets.controller_revision(nodeset, number=1)
        built["ControllerRevision", revision["metadata"]["name"]] = _as_stored(revision)
    assert _differences(built, expected) == []


@pytest.mark.parametrize("step", golden.all_steps(), ids=str)
def test_a_second_pass_writes_nothing(step: golden.Step) -> None:
    """Invariant I8, for objects as the reference left them: nothing is written when coil takes over."""
    for key, manifest in _manifests(step).items():
        live = step.outputs.get(key)
        if live is None or (step.case, f"{key[0]}/{key[1]}") in DEVIATED_OBJECTS:
            continue
        live = json.loads(json.dumps(live).replace("<uid>", golden.UID))
        assert merge_patch(live, manifest) == {}, key


def _revisions(step: golden.Step) -> Iterator[tuple[tuple[NodeSet, golden.Step], str, str]]:
    """The templates that NodeSets of the case had so far, each from the first step that had it."""
    seen: set[tuple[str, str]] = set()
    for earlier in golden.steps(step.case)[: step.number]:
        for nodeset in earlier.all(NodeSet):
            identity = nodeset.metadata.name, nodesets.revision_hash(nodeset)
            if identity not in seen:
                seen.add(identity)
                yield (nodeset, earlier), *identity


def _pod_inputs(step: golden.Step, nodeset: NodeSet) -> PodInputs:
    controller = next(c for c in step.all(Controller) if c.metadata.key == nodeset.controller_key)
    ref = nodeset.spec.ssh.sssd_conf_ref
    sssd = (step.data("Secret", ref.name) or {}).get(ref.key)
    return PodInputs(controller=controller, sssd_conf=sssd.encode() if sssd else None)


def _stamp(template: nodesets.PodTemplate, expected: JsonObject, step: golden.Step) -> JsonObject:
    """The pod for the same ordinal or Kubernetes node as the reference's."""
    near = expected["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = near.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fields = [term["matchFields"] for term in required.get("nodeSelectorTerms", ()) if "matchFields" in term]
    node = fields[0][0]["values"][0] if fields else None
    if not template.nodeset.daemon:
        ordinal = int(expected["metadata"]["labels"][keys.LABEL_POD_INDEX])
        return nodesets.stamp_ordinal(template, ordinal, node=node)
    assert node is not None
    annotations = step.inputs["Node", node]["metadata"].get("annotations", {})
    return nodesets.stamp_node(template, node, nodesets.daemon_hostname(node, annotations))


def _named(manifest: JsonObject) -> JsonObject:
    """A daemon pod as the API server and the next pass of the operator name it."""
    metadata = manifest["metadata"]
    if "name" in metadata:
        return manifest
    name = f"{metadata['generateName']}abcde"
    labels = metadata["labels"] | {keys.LABEL_POD_NAME: name}
    return manifest | {"metadata": metadata | {"name": name, "labels": labels}}


def _untouched(expected: JsonObject) -> JsonObject:
    """What the reference made, without what others and later passes wrote to it."""
    metadata = expected["metadata"]
    if expected["kind"] == "PersistentVolumeClaim":
        metadata = {name: value for name, value in metadata.items() if name != "ownerReferences"}
        return expected | {"metadata": metadata}
    annotations = {k: v for k, v in metadata["annotations"].items() if k != keys.ANNOTATION_TOPOLOGY}
    spec = {name: value for name, value in expected["spec"].items() if name != "nodeName"}
    rest = {name: value for name, value in expected.items() if name != "status"}
    return rest | {"metadata": metadata | {"annotations": annotations}, "spec": spec}

"""The objects coil makes are those that the reference made, member by member.

Each known deviation is listed in `DEVIATIONS` with its reason; they are explained in
`docs/compatibility.md`. An entry that no longer applies fails the test as well.
"""

import base64
import json
from collections.abc import Iterator

import pytest

from coil.api import keys
from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.build import nodeset as nodesets
from coil.build.defaults import with_server_defaults
from coil.build.patch import merge_patch
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject
from tests.support import golden
from tests.support.built import Objects, manifests, value_of

_DBD_HASH = ".spec.template.metadata.annotations.slinky.slurm.net/slurmdbd-conf-hash"
_HASH = ".spec.template.metadata.annotations.slinky.slurm.net/slurm-config-hash"
Q2 = "Q2: an external Accounting's own address is used, not a Service that does not exist"
Q8B = "Q8b: a user's option keeps its letter case, since paths are case-sensitive"
Q9 = "Q9: the password is written so that Slurm reads all of it"
NO_VALUE = "slurmdbd does not start with a parameter that has no value"
Q10 = "Q10: each slurmctld is scraped once, through the internal Service"
REFUSED = "the API server refused it (no image, no size of the claim): nothing wrong with what was sent"
EARLY = "clients reach slurmctld and slurmdbd when they answer, not a probe period later"
UNLABELLED = "I5: a single slurmctld that comes back while the operator is away is reached without its label"
LIVE = "a last comment names the files from other ConfigMaps: slurmctld tells by it which ones it has"
MARK = "what pods are made from is remembered on the workload"
CONSEQUENCE = "follows from the changed text"
GOODBYE = "I3: a stopping worker leaves the reason of a node that somebody else drained"

WORKLOADS = ("StatefulSet", "Deployment")

DEVIATIONS = {
    ("accounting-external", "ConfigMap/larch-config.data.slurm.conf"): Q2,
    ("accounting-external", f"StatefulSet/larch-controller{_HASH}"): CONSEQUENCE,
    ("accounting-minimal", "Secret/juniper-accounting.data.slurmdbd.conf"): NO_VALUE,
    ("accounting-minimal", f"StatefulSet/juniper-accounting{_DBD_HASH}"): CONSEQUENCE,
    ("accounting-options", "Secret/books-accounting.data.slurmdbd.conf"): Q9,
    ("accounting-options", f"StatefulSet/books-accounting{_DBD_HASH}"): CONSEQUENCE,
    ("controller-inplace", "ConfigMap/elm-config.data.slurm.conf"): LIVE,
    ("controller-metrics", "ServiceMonitor/gorse-controller.spec.endpoints[0].relabelings"): Q10,
    ("controller-metrics", "ServiceMonitor/gorse-controller.spec.endpoints[1].relabelings"): Q10,
    ("controller-scripts", "ConfigMap/fern-config.data.slurm.conf"): Q8B,
    ("controller-scripts", f"StatefulSet/fern-controller{_HASH}"): CONSEQUENCE,
    ("missing-references", "StatefulSet/bare-controller"): REFUSED,
}
"""(case, object and path) to reason."""
DEVIATIONS.update(
    {
        (step.case, f"{kind}/{name}.spec.publishNotReadyAddresses"): EARLY
        for step in golden.all_steps()
        for kind, name in step.outputs
        if kind == "Service"
        and any(
            mark in str(step.outputs[kind, name])
            for mark in ("controller.slinky.slurm.net/active", "slurmdbd")
        )
    }
)
DEVIATIONS.update(
    {
        (step.case, f"Service/{name}.spec.selector.{keys.LABEL_ACTIVE}"): UNLABELLED
        for step in golden.all_steps()
        for (kind, name), service in step.outputs.items()
        if kind == "Service"
        and step.case != "controller-ha"
        and keys.LABEL_ACTIVE in service["spec"].get("selector", {})
    }
)
DEVIATIONS.update(
    {
        (step.case, f"Pod/{identity}.spec.containers[{place}].lifecycle.preStop.exec.command[2]"): GOODBYE
        for step in golden.all_steps()
        for (_, identity), pod in step.outputs_of("Pod").items()
        for place, container in enumerate(pod["spec"]["containers"])
        if "scontrol update" in str(container.get("lifecycle"))
    }
)


def _mark_of(workload: JsonObject) -> str:
    annotations = ".metadata.annotations"
    return (
        f"{annotations}.{keys.ANNOTATION_POD_TEMPLATE}"
        if "annotations" in workload["metadata"]
        else annotations
    )


DEVIATIONS.update(
    {
        (step.case, f"{kind}/{name}{_mark_of(step.outputs[kind, name])}"): MARK
        for step in golden.all_steps()
        for kind, name in step.outputs_of(*WORKLOADS)
    }
)

CHANGED_LINES = {
    "ConfigMap/larch-config.data.slurm.conf": (
        ["AccountingStorageHost=dbd-accounting", "AccountingStoragePort=6819"],
        ["AccountingStorageHost=dbd.larch.test", "AccountingStoragePort=6919"],
    ),
    "ConfigMap/elm-config.data.slurm.conf": ([], ["# Files beside this one: 8e52e7ba9b2adc05"]),
    "ConfigMap/fern-config.data.slurm.conf": (
        ["AuthAltParameters=jwks=/etc/slurm/jwks.json,jwt_key=/etc/slurm/jwt.key,userclaimfield=sub"],
        [
            "AuthAltParameters=jwks=/etc/slurm/jwks.json,jwt_key=/etc/slurm/jwt.key,userclaimfield=Sub",
            "# Files beside this one: f4e62276be3ea3ee",
        ],
    ),
    "Secret/juniper-accounting.data.slurmdbd.conf": (["StorageUser="], []),
    "Secret/books-accounting.data.slurmdbd.conf": (
        ["StoragePass=p#ss word=1"],
        ['StoragePass="p\\#ss word=1"'],
    ),
}
"""Where a text deviates: the lines of the reference and those of coil."""

DEVIATED_OBJECTS = {
    (case, where.partition(".")[0]) for (case, where), why in DEVIATIONS.items() if why != MARK
}
TEXTS = ("labels", "annotations")
PER_POD = ("Pod", "PersistentVolumeClaim", "ControllerRevision")


def _built(step: golden.Step) -> Objects:
    """The objects after this step; labels and annotations of earlier steps stay for ever."""
    built: Objects = {}
    for earlier in golden.steps(step.case)[: step.number]:
        for key, manifest in manifests(earlier).items():
            stored = _as_stored(manifest)
            kept = built.get(key, {}).get("metadata", {})
            texts = {name: {**kept.get(name, {}), **stored["metadata"].get(name, {})} for name in TEXTS}
            metadata = stored["metadata"] | {name: value for name, value in texts.items() if value}
            built[key] = stored | {"metadata": metadata}
    return built


def _as_stored(manifest: JsonObject) -> JsonObject:
    """The manifest as the API server would give it back, normalised like the corpus."""
    stored = with_server_defaults(manifest)
    if stored["kind"] == "Service":
        stored = stored | {"spec": _allocated(stored["spec"])}
    if stored["kind"] == "Secret":
        text = {name: base64.b64decode(value).decode() for name, value in stored["data"].items()}
        stored = stored | {"data": text}
    metadata = {name: value for name, value in stored["metadata"].items() if name != "namespace"}
    return stored | {"metadata": metadata}


def _readable(expected: JsonObject) -> JsonObject:
    return {name: value for name, value in expected.items() if name != "decodedTokens"}


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


@pytest.mark.parametrize("step", golden.all_steps(), ids=str)
def test_objects_are_those_of_the_reference(step: golden.Step) -> None:
    expected = {key: _readable(value) for key, value in step.outputs.items() if key[0] not in PER_POD}
    found = _differences(_built(step), expected)
    known = {where for case, where in DEVIATIONS if case == step.case and not where.startswith(PER_POD)}
    assert {text.partition(": ")[0] for text in found} == known, found


def test_texts_deviate_in_the_listed_lines_only() -> None:
    found: dict[str, tuple[list[str], list[str]]] = {}
    for step in golden.all_steps():
        for (kind, name), manifest in _built(step).items():
            for file, text in manifest.get("data", {}).items():
                theirs = step.outputs.get((kind, name), {}).get("data", {}).get(file, text).splitlines()
                ours = text.splitlines()
                changed = (
                    [line for line in theirs if line not in ours],
                    [line for line in ours if line not in theirs],
                )
                if any(changed) and "<" not in theirs[0]:
                    found[f"{kind}/{name}.data.{file}"] = changed
    assert found == CHANGED_LINES


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
    found = _differences(stored, expected)
    built_pods = tuple(f"Pod/{identity}." for kind, identity in stored if kind == "Pod")
    known = {where for case, where in DEVIATIONS if case == step.case and where.startswith(built_pods)}
    assert {text.partition(": ")[0] for text in found} == known, found


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
    """Invariant I8, for objects as the reference left them: coil writes its mark to workloads, once."""
    for key, manifest in manifests(step).items():
        live = step.outputs.get(key)
        if live is None or (step.case, f"{key[0]}/{key[1]}") in DEVIATED_OBJECTS:
            continue
        patch = merge_patch(_live(live), manifest)
        if key[0] in WORKLOADS:
            assert patch.pop("metadata")["annotations"].keys() == {keys.ANNOTATION_POD_TEMPLATE}
        assert patch == {}, key


@pytest.mark.parametrize("step", golden.all_steps(), ids=str)
def test_no_pod_template_of_the_reference_is_changed(step: golden.Step) -> None:
    """Not where coil would build another one either."""
    for key, manifest in manifests(step).items():
        if key[0] in WORKLOADS and key in step.outputs:
            live = _live(step.outputs[key])
            assert "template" not in merge_patch(live, manifest).get("spec", {}), key


def _live(expected: JsonObject) -> JsonObject:
    """The object as it was on the API server."""
    live = json.loads(json.dumps(expected).replace("<uid>", golden.UID).replace('"<hash>"', '"any"'))
    if live["kind"] == "Secret":
        live["data"] = {name: _encoded(value) for name, value in live["data"].items()}
    return live


def _encoded(text: str) -> str:
    return base64.b64encode((text if "\n" in text else "any").encode()).decode()


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
    return PodInputs(controller=controller, sssd_conf=value_of(step, nodeset.spec.ssh.sssd_conf_ref))


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

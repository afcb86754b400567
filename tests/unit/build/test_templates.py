"""Which pod template a workload has, and what makes its pods anew (docs/adr/0071)."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.accounting import AccountingSpec
from coil.api.controller import Controller, ControllerSpec
from coil.api.loginset import LoginSet, LoginSetSpec
from coil.api.restapi import RestApiSpec
from coil.build import accounting as accountings
from coil.build import controller as controllers
from coil.build import loginset as loginsets
from coil.build import restapi as restapis
from coil.build.defaults import with_server_defaults
from coil.build.patch import difference, merge_patch
from coil.support.objects import JsonObject
from tests.support.resources import accounting, controller, restapi

IMAGE = "registry.example/slurmctld:1"
NEWER = {"slurmctld": {"image": "registry.example/slurmctld:2"}}
CHART = ("helm.sh/chart", "app.kubernetes.io/version")


def workload(hashes: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    """A StatefulSet as built."""
    made = controllers.PodHashes(**{"slurm_key": "s", "jwt_key": "j", "config": "c", **(hashes or {})})
    manifest = controllers.stateful_set(controller(**spec), made)
    assert manifest
    return manifest


def live(manifest: JsonObject) -> JsonObject:
    """As the API server gives it back."""
    return copy.deepcopy(with_server_defaults(manifest))


def foreign(manifest: JsonObject) -> JsonObject:
    """As another operator would have made it: other script, hash and label, and no mark."""
    made = live(manifest)
    del made["metadata"]["annotations"][keys.ANNOTATION_POD_TEMPLATE]
    return otherwise(made)


def otherwise(made: JsonObject) -> JsonObject:
    """As another version of a program would have built it."""
    template = made["spec"]["template"]
    template["spec"]["initContainers"][-1]["command"] = ["another script"]
    template["metadata"]["annotations"][keys.ANNOTATION_SLURM_KEY_HASH] = "another hash"
    template["metadata"]["labels"]["app.kubernetes.io/version"] = "25.11"
    return made


def patched(before: JsonObject, patch: JsonObject) -> JsonObject:
    """The object after a JSON merge patch."""
    after = dict(before)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = patched(after.get(name) or {}, value) if isinstance(value, dict) else value
    return after


def of_this_build(manifest: JsonObject) -> JsonObject:
    return with_server_defaults(manifest)["spec"]["template"]


def test_a_foreign_workload_is_marked_and_keeps_its_template() -> None:
    before = foreign(workload())
    patch = merge_patch(before, workload())
    assert patch["metadata"]["annotations"].keys() == {keys.ANNOTATION_POD_TEMPLATE}
    assert "spec" not in patch
    after = patched(before, patch)
    assert merge_patch(after, workload()) == {}


def test_what_a_user_changes_after_that_makes_the_pods_anew() -> None:
    before = foreign(workload())
    taken_over = patched(before, merge_patch(before, workload()))
    after = patched(taken_over, merge_patch(taken_over, workload(**NEWER)))
    assert not difference(after["spec"]["template"], of_this_build(workload(**NEWER)))
    assert merge_patch(after, workload(**NEWER)) == {}


@pytest.mark.parametrize(
    "changed",
    [
        NEWER,
        {"slurmctld": {"image": IMAGE, "resources": {"limits": {"memory": "1Gi"}}}},
        {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}},
        {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
    ],
)
def test_a_change_made_while_no_operator_ran_is_not_lost(changed: JsonObject) -> None:
    spec = {"slurmctld": {"image": IMAGE}, **changed}
    manifest = controllers.stateful_set(controller(**spec), controllers.PodHashes())
    assert manifest
    assert "template" in merge_patch(foreign(workload()), manifest)["spec"]


def test_another_version_of_the_program_makes_no_pod_anew() -> None:
    """Its workloads have the mark; what they would be built as now is something else."""
    before = live(workload())
    mark = before["metadata"]["annotations"][keys.ANNOTATION_POD_TEMPLATE]
    older = otherwise(copy.deepcopy(before))
    asked = mark.partition(".")[0]
    left = merge_patch(foreign(workload()), workload())["metadata"]["annotations"]
    older["metadata"]["annotations"] |= left
    assert left[keys.ANNOTATION_POD_TEMPLATE].partition(".")[0] == asked
    assert merge_patch(older, workload()) == {}
    assert "template" in merge_patch(older, workload(**NEWER))["spec"]


@pytest.mark.parametrize("make", [workload, lambda: foreign(workload())], ids=["ours", "taken over"])
def test_somebody_elses_change_of_a_template_is_repaired(make: Callable[[], JsonObject]) -> None:
    made = live(make())
    before = patched(made, merge_patch(made, workload()))
    before["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/evil:1"
    after = patched(before, merge_patch(before, workload()))
    assert not difference(after["spec"]["template"], of_this_build(workload()))
    assert merge_patch(after, workload()) == {}


def test_pods_are_made_anew_by_this_build_on_request() -> None:
    """`kubectl annotate --overwrite` with any other value."""
    before = foreign(workload())
    before["metadata"]["annotations"][keys.ANNOTATION_POD_TEMPLATE] = "renew"
    assert "template" in merge_patch(before, workload())["spec"]


@pytest.mark.parametrize("member", ["labels", "annotations"])
@pytest.mark.parametrize("name", [*CHART, "meta.helm.sh/release-name", "argocd.argoproj.io/tracking-id"])
def test_the_books_of_installing_tools_make_no_pod_anew(member: str, name: str) -> None:
    before = live(workload(metadata={member: {name: "1"}}))
    patch = merge_patch(before, workload(metadata={member: {name: "2"}}))
    assert patch == {"metadata": {member: {name: "2"}}}


@pytest.mark.parametrize("name", [keys.ANNOTATION_REHEARSAL, keys.ANNOTATION_HELD])
def test_what_is_said_to_the_operator_and_by_it_makes_no_pod_anew(name: str) -> None:
    before = foreign(workload())
    taken_over = patched(before, merge_patch(before, workload()))
    told = workload(metadata={"annotations": {name: "x"}})
    assert "spec" not in merge_patch(taken_over, told)


@pytest.mark.parametrize("name", CHART)
def test_chart_versions_in_the_metadata_of_the_template_make_no_pod_anew(name: str) -> None:
    """Charts of the reference write them there."""
    before = live(workload(template={"metadata": {"labels": {name: "1"}}}))
    for changed in ({"template": {"metadata": {"labels": {name: "2"}}}}, {}):
        assert "spec" not in merge_patch(before, workload(**changed))


def test_other_labels_do() -> None:
    patch = merge_patch(live(workload()), workload(metadata={"labels": {"team": "a"}}))
    assert patch["spec"]["template"]["metadata"]["labels"] == {"team": "a"}


@pytest.mark.parametrize("name", ["slurm_key", "jwt_key", "config"])
def test_what_files_and_keys_hold_counts(name: str) -> None:
    before = foreign(workload())
    taken_over = patched(before, merge_patch(before, workload()))
    assert "template" in merge_patch(taken_over, workload({name: "another"}))["spec"]


def test_a_restart_by_a_person_is_no_drift() -> None:
    before = foreign(workload())
    taken_over = patched(before, merge_patch(before, workload()))
    taken_over["spec"]["template"]["metadata"]["annotations"][keys.RESTARTED_AT] = "2026-01-01T00:00:00Z"
    assert merge_patch(taken_over, workload()) == {}


def _login(cluster: Controller | None = None, **spec: Any) -> JsonObject:
    given = {"controllerRef": {"name": "slurm"}, "sssdConfRef": {"name": "ids", "key": "sssd.conf"}}
    made = {"metadata": {"name": "gate", "namespace": "ns", "uid": "u"}, "spec": given | spec}
    inputs = loginsets.PodInputs(controller=cluster or controller())
    return loginsets.deployment(msgspec.convert(made, LoginSet), inputs)


def _dbd(**spec: Any) -> JsonObject:
    return accountings.stateful_set(accounting(**spec), accountings.PodHashes()) or {}


KINDS: dict[str, tuple[type[msgspec.Struct], frozenset[str], Callable[..., JsonObject]]] = {
    "Controller": (ControllerSpec, controllers.NOT_IN_PODS, workload),
    "Accounting": (AccountingSpec, accountings.NOT_IN_PODS, _dbd),
    "RestApi": (
        RestApiSpec,
        restapis.NOT_IN_PODS,
        lambda **spec: restapis.deployment(restapi(**spec), controller()),
    ),
    "LoginSet": (LoginSetSpec, loginsets.NOT_IN_PODS, _login),
}
APART: dict[str, Any] = {
    "accountingRef": {"name": "other"},
    "externalConfig": {"host": "other", "port": 1},
    "extraConf": "A=b",
    "extraSshdConfig": "A b",
    "metrics": {"enabled": True},
    "replicas": 7,
    "rootSshAuthorizedKeys": "ssh-ed25519 AAAA",
    "service": {"port": 7000, "spec": {"type": "NodePort"}},
    "storageConfig": {"host": "other", "passwordKeyRef": {"name": "p", "key": "k"}},
    "strategy": {"type": "Recreate"},
}
"""Another value for each member that is said to be in no pod."""


@pytest.mark.parametrize("kind", KINDS)
def test_members_apart_are_in_no_pod_template_but_for_hashes_of_files(kind: str) -> None:
    """And they are members: a name that is none would exempt nothing."""
    spec, apart, build = KINDS[kind]
    known = {field.encode_name for field in msgspec.structs.fields(spec)}
    assert apart <= known
    for member in apart:
        changed = difference(
            build()["spec"]["template"], build(**{member: APART[member]})["spec"]["template"]
        )
        assert not changed or set(changed) == {"metadata"}, (kind, member, changed)
        annotations = changed.get("metadata", {}).get("annotations", {})
        assert all(name.endswith("-hash") for name in annotations)


def _asked(workload: JsonObject) -> str:
    return workload["metadata"]["annotations"][keys.ANNOTATION_POD_TEMPLATE].partition(".")[0]


@pytest.mark.parametrize(
    "build", [lambda c: restapis.deployment(restapi(), c), _login], ids=["rest", "login"]
)
def test_what_pods_take_from_the_controller_counts(build: Callable[[Controller], JsonObject]) -> None:
    keyed = controller(slurmKeyRef={"name": "another", "key": "slurm.key"})
    assert _asked(build(controller())) != _asked(build(keyed))
    changed = controller(extraConf="A=b", slurmctld={"image": "registry.example/other:1"})
    assert _asked(build(controller())) == _asked(build(changed))

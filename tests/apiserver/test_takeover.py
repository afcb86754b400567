"""coil takes over clusters as the reference leaves them (docs: migrating).

Every case of the golden corpus, all at once: the reference's objects are there and its pods run. Nothing of
them may be made anew, until a user changes the resource that they belong to.
"""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from coil.api import keys
from coil.kinds.patience import PATIENCE_S
from coil.support.objects import JsonObject
from lab.apiserver import ApiServer
from tests.support import golden
from tests.support.apiserver import kubectl
from tests.support.manager import Manager, eventually, new_managed_server
from tests.support.takeover import RESOURCES, WORKLOADS, Objects, leave, listed, seen, write

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(280)]

DAEMONS = {
    "Controller": "slurmctld",
    "Accounting": "slurmdbd",
    "RestApi": "slurmrestd",
    "LoginSet": "login",
    "NodeSet": "slurmd",
}
SHORT_LIVED = ("Secret", "dash-jwt-dash")
"""Its token is renewed within the test."""
REWRITTEN = {
    ("accounting-options", "books-accounting"): "Q9: the password is written so that Slurm reads it",
    ("accounting-minimal", "juniper-accounting"): "a line without a value is left out: slurmdbd refuses it",
}
"""Secrets whose content the reference got wrong."""
UNBUILDABLE = "missing-references"
"""Keys and files are missing, so that coil builds nothing that it could compare with."""
TRIED_AGAIN = (SHORT_LIVED[1], "tokens/dash", "namespaces/basil/")
"""What a start writes all the same: that token, and in the case above what the API server refuses."""
NEW_IMAGE = "registry.test/new:1"


class TakenOver(NamedTuple):
    """A case as the reference left it, taken over, and after a user's change."""

    before: Objects
    after: Objects
    changed: Objects


class Story(NamedTuple):
    """What happened to all cases."""

    cases: dict[str, TakenOver]
    second_start: list[str]


@pytest.fixture(scope="module")
def story() -> Story:
    """Left by the reference, taken over, coil started once more, and again while images are changed."""
    steps = [golden.steps(case)[0] for case in golden.cases()]
    with new_managed_server() as server:
        return tell(server, steps)


def tell(server: ApiServer, steps: Sequence[golden.Step]) -> Story:
    """On a server of its own, whose nodes are those of the cases."""
    leave(server, steps)
    before = seen(server, steps)
    # Without a kubelet no rehearsal of a changed slurm.conf ends.
    kubectl(server, "annotate", "controllers", "--all", "-A", f"{keys.ANNOTATION_REHEARSAL}=off")
    run(server, steps)
    after = seen(server, steps)
    written = run(server, steps)
    with Manager(server, namespaces=[step.namespace for step in steps]) as manager:
        manager.wait_working()
        change_images(server, steps)
        wait_quiet(manager)
        changed = seen(server, steps)
    return Story({case: TakenOver(before[case], after[case], changed[case]) for case in before}, written)


def run(server: ApiServer, steps: Sequence[golden.Step]) -> list[str]:
    """Start coil, stop it when it is steady, and give what it wrote."""
    with Manager(server, namespaces=[step.namespace for step in steps]) as manager:
        manager.wait_working()
        wait_quiet(manager)
        return manager.writes()


def wait_quiet(manager: Manager, quiet: float = PATIENCE_S + 3) -> None:
    """Wait until it has written nothing for `quiet` seconds: longer than it waits for Slurm."""
    count, since = -1, time.monotonic()

    def still() -> bool:
        nonlocal count, since
        now = len(manager.writes())
        if now != count:
            count, since = now, time.monotonic()
        return time.monotonic() - since > quiet

    eventually(still, within=90, what="coil is steady")


def change_images(server: ApiServer, steps: Sequence[golden.Step]) -> None:
    """What a user does."""
    spaces = {step.namespace for step in steps}
    found = [item for item in listed(server, RESOURCES) if item["metadata"]["namespace"] in spaces]
    changed = [item for item in found if item["kind"] in DAEMONS]
    for item in changed:
        daemon = DAEMONS[item["kind"]]
        item["spec"][daemon] = {**item["spec"].get(daemon, {}), "image": NEW_IMAGE}
        item["metadata"].pop("resourceVersion")
    write(server, "replace", changed)


def uids(objects: Objects) -> dict[tuple[str, str], str]:
    """By kind and name."""
    return {key: item["metadata"]["uid"] for key, item in objects.items()}


def workloads(objects: Objects) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    """StatefulSets and Deployments."""
    return ((key, item) for key, item in objects.items() if key[0] in WORKLOADS)


@pytest.mark.parametrize("case", golden.cases())
def test_every_object_is_still_the_same_one(story: Story, case: str) -> None:
    found = story.cases[case]
    old, new = (
        {key: item["metadata"]["uid"] for key, item in side.items()} for side in (found.before, found.after)
    )
    assert old == new
    assert not [key for key, item in found.after.items() if item["metadata"].get("deletionTimestamp")]


@pytest.mark.parametrize("case", golden.cases())
def test_no_workload_is_rolled(story: Story, case: str) -> None:
    """Its spec is untouched, so that its controller has nothing to do; coil has noted what it found."""
    found = story.cases[case]
    for key, after in workloads(found.after):
        before = found.before[key]
        assert after["spec"] == before["spec"], key
        assert after["status"].get("updateRevision") == before["status"].get("updateRevision")
        if case != UNBUILDABLE:
            assert keys.ANNOTATION_POD_TEMPLATE in after["metadata"]["annotations"]


@pytest.mark.parametrize("case", golden.cases())
def test_pods_stay_as_they_are_and_count_as_up_to_date(story: Story, case: str) -> None:
    found = story.cases[case]
    for key, after in found.after.items():
        if key[0] == "Pod":
            assert after["spec"] == found.before[key]["spec"]
            revision = after["metadata"]["labels"].get(keys.LABEL_REVISION)
            assert revision == found.before[key]["metadata"]["labels"].get(keys.LABEL_REVISION)
    for (kind, name), nodeset in found.after.items():
        if kind == "NodeSet":
            status, before = nodeset["status"], found.before[kind, name]["status"]
            assert status["nodeSetHash"] == before["nodeSetHash"]
            assert status.get("updatedReplicas") == before.get("updatedReplicas") == status.get("replicas")


@pytest.mark.parametrize("case", golden.cases())
def test_keys_and_other_secrets_are_untouched(story: Story, case: str) -> None:
    found = story.cases[case]
    for key, before in found.before.items():
        if key[0] == "Secret" and key != SHORT_LIVED and (case, key[1]) not in REWRITTEN:
            assert found.after[key]["data"] == before["data"], key


def test_another_start_writes_nothing(story: Story) -> None:
    """Invariant I8, over all cases."""
    assert [line for line in story.second_start if not any(mark in line for mark in TRIED_AGAIN)] == []


@pytest.mark.parametrize("case", golden.cases())
def test_what_a_user_changes_is_rolled(story: Story, case: str) -> None:
    found = story.cases[case]
    for key, workload in workloads(found.changed) if case != UNBUILDABLE else ():
        images = [item["image"] for item in workload["spec"]["template"]["spec"]["containers"]]
        assert NEW_IMAGE in images, key
    for (kind, name), nodeset in found.changed.items():
        if kind == "NodeSet":
            assert nodeset["status"]["nodeSetHash"] != found.before[kind, name]["status"]["nodeSetHash"]
            pods = [pod["metadata"]["labels"] for key, pod in found.changed.items() if key[0] == "Pod"]
            hashes = [labels.get(keys.LABEL_REVISION) for labels in pods]
            # A pod that is lost meanwhile, since nobody keeps its node alive, is replaced at once.
            assert nodeset["status"].get("updatedReplicas", 0) == hashes.count(
                nodeset["status"]["nodeSetHash"]
            )

"""Claims about answering a review: what is read, what is not asked again, what is malformed."""

import asyncio
from typing import Any

import pytest

from coil.admission import lookups
from coil.admission.facts import Wanted
from coil.admission.review import Answer, Request
from coil.admission.validation import CHECKS
from coil.kube.errors import Forbidden, NotFound, Timeout
from coil.kube.views import ConfigMapView, ManifestView
from coil.support.objects import ObjectMeta


class Objects:
    """What the client finds; errors are raised."""

    def __init__(self, **found: Any) -> None:
        self.found = found
        self.asked: list[str] = []

    async def get(self, resource: Any, name: str, namespace: str | None = None) -> Any:
        self.asked.append(f"{resource.plural}/{namespace}/{name}")
        await asyncio.sleep(0)
        answer = self.found.get(name, NotFound(404, "NotFound", f"{resource.plural} {name!r} not found"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def config_map(**data: str) -> ConfigMapView:
    return ConfigMapView(metadata=ObjectMeta(name="x"), data=data, binary_data={"blob": b"\0"})


def nodeset(**spec: Any) -> dict[str, Any]:
    given = {"controllerRef": {"name": "alba"}, "slurmd": {"image": "i"}, "logfile": {"image": "i"}}
    return {"metadata": {"name": "gpu"}, "spec": {**given, **spec}}


def answer(kind: str, new: Any, old: Any = None, client: Any = None, operation: str = "") -> Answer:
    operation = operation or ("UPDATE" if old is not None else "CREATE")
    request = Request(uid="u", operation=operation, namespace="ns", object=new, old_object=old)
    return asyncio.run(CHECKS[kind].answer(request, client or Objects()))


def test_an_error_refuses_and_several_are_one_text() -> None:
    found = answer("nodeset", nodeset(controllerRef={"name": ""}, extraConf="a"))
    assert (found.code, found.allowed) == (403, False)
    assert found.message.startswith("[spec.controllerRef.name: must be set, spec.extraConf: 'a' is not")
    assert found.message.endswith("]")
    assert answer("nodeset", nodeset(controllerRef={"name": ""})).message == (
        "spec.controllerRef.name: must be set"
    )


def test_what_is_said_twice_is_told_once() -> None:
    refs = [{"name": "missing"}] * 2
    spec = {"configFileRefs": refs, "persistence": {"enabled": False}}
    found = answer("controller", {"metadata": {"name": "a"}, "spec": spec})
    assert found.message.count("configFileRefs[0]") == 1


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"replicas": "many"}, "spec.replicas: Expected `int`, got `str`"),
        ({"slurmd": {"resources": {"limits": {"cpu": "4 cores"}}}}, "spec.slurmd.resources.limits.cpu: "),
        ({"slurmd": {"args": "-v"}}, "spec.slurmd.args: is '-v', must be a list"),
        ({"template": {"spec": {"hostname": 5}}}, "spec.template.spec.hostname: is 5, must be text"),
        (
            {"volumeClaimTemplates": [{"spec": []}]},
            "volumeClaimTemplates[0].spec: is [], must",
        ),
        ({"updateStrategy": {"scheduledUpdate": {"duration": "soon"}}}, "'soon' is no duration"),
    ],
)
def test_an_object_that_cannot_be_read_is_a_bad_request(spec: dict[str, Any], complaint: str) -> None:
    found = answer("nodeset", nodeset(**spec))
    assert found.code == 400
    assert complaint in found.message


def test_a_bad_object_can_be_mended() -> None:
    found = answer("nodeset", nodeset(), nodeset(replicas="many"))
    assert found.allowed
    assert found.warnings[0].startswith("the stored object cannot be read (spec.replicas: ")


def test_a_change_that_leaves_the_spec_alone_passes_whatever_it_says() -> None:
    old = nodeset(controllerRef={"name": ""}, replicas="many")
    new = {**old, "metadata": {"name": "gpu", "labels": {"a": "b"}}}
    assert answer("nodeset", new, old) == Answer()


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_other_operations_are_allowed(operation: str) -> None:
    assert answer("nodeset", nodeset(controllerRef={"name": ""}), operation=operation) == Answer()


def test_the_namespace_of_the_request_counts_when_the_object_has_none() -> None:
    client = Objects()
    spec = {"configFileRefs": [{"name": "files"}]}
    answer("controller", {"metadata": {"generateName": "a-"}, "spec": spec}, client=client)
    assert client.asked == ["configmaps/ns/files"]


def test_everything_is_read_once_and_at_once() -> None:
    client = Objects(files=config_map(a="1"), denied=Forbidden(403, "Forbidden", "no"), late=Timeout())
    wanted = Wanted(config_maps=frozenset({"files", "denied", "late", "missing"}), claim="state")
    found = asyncio.run(lookups.fetch(client, "ns", wanted))  # pyright: ignore[reportArgumentType]
    assert found.config_maps == {"files": {"a": "1", "blob": ""}}
    assert sorted(found.unreadable) == ["denied", "late", "missing"]
    assert found.unreadable["denied"] == "no"
    assert (found.claim_modes, found.claim_error) == (None, "")
    assert len(client.asked) == 5


@pytest.mark.parametrize(
    ("claim", "modes", "error"),
    [
        (
            ManifestView(metadata=ObjectMeta(), spec={"accessModes": ["ReadWriteMany"]}),
            ("ReadWriteMany",),
            "",
        ),
        (ManifestView(metadata=ObjectMeta()), (), ""),
        (Forbidden(403, "Forbidden", "no"), None, "no"),
    ],
)
def test_what_a_claim_says(claim: Any, modes: tuple[str, ...] | None, error: str) -> None:
    client: Any = Objects(state=claim)
    found = asyncio.run(lookups.fetch(client, "ns", Wanted(claim="state")))
    assert (found.claim_modes, found.claim_error) == (modes, error)


@pytest.mark.parametrize("name", ["../secrets/keys", "a/b", "", "A", "a\n", "x" * 254, "?x"])
def test_only_names_become_part_of_a_path(name: str) -> None:
    """A reference must not make the webhook read something else with its rights."""
    client: Any = Objects()
    found = asyncio.run(lookups.fetch(client, "ns", Wanted(config_maps=frozenset({name}), claim=name)))
    assert client.asked == []
    assert found.unreadable == {name: "that is no name of a ConfigMap"}
    assert found.claim_error == ("that is no name of a claim" if name else "")

"""The client's verbs and errors against a real kube-apiserver."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from coil.kube import errors
from coil.kube.client import Client, PatchKind, Propagation
from coil.kube.config import load
from coil.kube.core import CONFIG_MAP_MANIFESTS, CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, SECRETS, SERVICES
from coil.kube.resource import Resource
from coil.kube.views import MetadataView
from coil.kube.wire import Added, Deleted, decode_line
from lab.apiserver import ApiServer

pytestmark = [pytest.mark.asyncio, pytest.mark.apiserver]


@pytest_asyncio.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load(str(api_server.kubeconfig))) as opened:
        yield opened


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.example/c:1"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


async def test_an_object_lives_through_every_verb(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
    assert (await client.get(CONFIG_MAPS, "a", namespace)) == made
    patched = await client.patch(CONFIG_MAPS, "a", {"data": {"y": "2"}}, namespace)
    assert patched.data == {"x": "1", "y": "2"}
    body = config_map("a", z="3")
    body["metadata"]["resourceVersion"] = patched.metadata.resource_version
    replaced = await client.replace(CONFIG_MAPS, "a", body, namespace)
    assert replaced.data == {"z": "3"}
    await client.delete(CONFIG_MAPS, "a", namespace, uid=made.metadata.uid)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def test_generated_names_come_back(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, {"metadata": {"generateName": "worker-"}}, namespace)
    assert made.metadata.name.startswith("worker-")
    assert made.metadata.name != "worker-"


async def test_a_name_taken_and_a_version_passed_are_told_apart(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, config_map("a"), namespace)
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
    old = made.metadata.resource_version
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, "a", {"data": {"x": "2"}}, namespace, resource_version=old)


async def test_a_deletion_meant_for_another_object_is_refused(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, resource_version="1")
    await client.delete(
        CONFIG_MAPS, "a", namespace, uid=made.metadata.uid, propagation=Propagation.BACKGROUND
    )


async def test_a_refused_object_names_its_bad_field(client: Client, namespace: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await client.create(PODS, pod("a", restartPolicy="Sometimes"), namespace)
    assert [cause["field"] for cause in caught.value.details["causes"]] == ["spec.restartPolicy"]
    with pytest.raises(errors.Invalid):
        await client.create(CONFIG_MAPS, config_map("Not A Name"), namespace)


async def test_a_kind_nobody_serves_is_not_found(client: Client) -> None:
    unknown = Resource(group="none.example", plural="nones", kind="None", view=MetadataView)
    with pytest.raises(errors.NotFound):
        await client.list_page(unknown)


async def test_a_user_without_rights_is_forbidden(
    api_server: ApiServer,
    namespace: str,
) -> None:
    nobody = {"Impersonate-User": "nobody"}
    async with Client(load(str(api_server.kubeconfig))) as other:
        session = other._transport._session
        assert session is not None
        session.headers.update(nobody)
        with pytest.raises(errors.Forbidden, match="nobody"):
            await other.get(CONFIG_MAPS, "a", namespace)


async def test_lists_come_in_pages(client: Client, namespace: str) -> None:
    for number in range(5):
        await client.create(CONFIG_MAPS, config_map(f"m{number}"), namespace)
    names, token, pages = [], None, 0
    while token is None or token:
        page = await client.list_page(CONFIG_MAPS, namespace, limit=2, continue_token=token)
        names += [item.metadata.name for item in page.items]
        token, pages = page.continue_token, pages + 1
    assert names == [f"m{number}" for number in range(5)]
    assert pages == 3


async def test_selectors_select(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        body = config_map(name)
        body["metadata"]["labels"] = {"name": name}
        await client.create(CONFIG_MAPS, body, namespace)
    by_label = await client.list_page(CONFIG_MAPS, namespace, label_selector="name in (a)")
    by_field = await client.list_page(CONFIG_MAPS, namespace, field_selector="metadata.name=b")
    assert [item.metadata.name for item in by_label.items] == ["a"]
    assert [item.metadata.name for item in by_field.items] == ["b"]


async def test_a_watch_tells_what_happens_until_its_time_is_over(client: Client, namespace: str) -> None:
    start = (await client.list_page(CONFIG_MAPS, namespace)).version
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    await client.delete(CONFIG_MAPS, "a", namespace)
    lines = client.watch(CONFIG_MAPS, namespace, resource_version=start, timeout_seconds=1)
    async with asyncio.timeout(10):
        kinds = [type(decode_line(CONFIG_MAPS, line)) async for line in lines]
    assert kinds == [Added, Deleted]


async def test_views_read_what_the_server_writes(client: Client, namespace: str) -> None:
    secret = {"metadata": {"name": "key"}, "data": {"slurm.key": base64.b64encode(b"\0\1").decode()}}
    assert (await client.create(SECRETS, secret, namespace)).data == {"slurm.key": b"\0\1"}
    spec = {"ports": [{"port": 6817}], "selector": {"a": "b"}}
    await client.create(SERVICES, {"metadata": {"name": "s"}, "spec": spec}, namespace)
    [service] = (await client.list_page(SERVICES, namespace)).items
    assert (service.kind, service.api_version, service.spec["type"]) == ("Service", "v1", "ClusterIP")
    await client.create(CONFIG_MAPS, config_map("m", a="b"), namespace)
    manifest = await client.get(CONFIG_MAP_MANIFESTS, "m", namespace)
    assert (manifest.kind, manifest.data) == ("ConfigMap", {"a": "b"})


async def test_a_pinned_pod_and_its_claims_are_read(client: Client, namespace: str) -> None:
    match = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [match]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]
    made = await client.create(PODS, pod("a", affinity=affinity, volumes=volumes), namespace)
    assert made.pinned_node == "n1"
    claims = [
        volume.persistent_volume_claim for volume in made.spec.volumes if volume.persistent_volume_claim
    ]
    assert [claim.claim_name for claim in claims] == ["data-0"]
    assert (made.status.phase, made.terminating, made.ready) == ("Pending", False, False)


async def test_conditions_are_merged_by_type_with_a_strategic_patch(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("a"), namespace)
    for kind in ("SlurmNodeStateIdle", "Ready"):
        status = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        patched = await client.patch(
            PODS, "a", status, namespace, kind=PatchKind.STRATEGIC, subresource="status"
        )
    assert {one.type for one in patched.status.conditions} >= {"SlurmNodeStateIdle", "Ready"}
    assert patched.ready


async def test_server_side_apply(client: Client, namespace: str) -> None:
    body = config_map("a", x="1")
    for _ in range(2):
        made = await client.patch(
            CONFIG_MAPS, "a", body, namespace, kind=PatchKind.APPLY, field_manager="coil", force=True
        )
    assert made.data == {"x": "1"}


async def test_cluster_scoped_objects(client: Client) -> None:
    body = {
        "metadata": {"name": "runtime-n1", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
    }
    made = await client.create(NODES, body)
    assert (made.spec.unschedulable, made.metadata.namespace) == (True, "")
    assert "k" in {taint.key for taint in made.spec.taints}
    await client.delete(NODES, "runtime-n1")


async def test_hundreds_of_requests_at_once_are_taken(client: Client, namespace: str) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(300):
            group.create_task(client.create(CONFIG_MAPS, config_map(f"m{number}"), namespace))
    page = await client.list_page(CONFIG_MAPS, namespace, limit=0)
    assert len(page.items) == 300


async def test_other_groups_have_other_paths(client: Client, namespace: str) -> None:
    assert (await client.list_page(DEPLOYMENTS, namespace)).items == []

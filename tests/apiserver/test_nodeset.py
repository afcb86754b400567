"""NodeSets between a real API server and a real slurmctld. The tests play scheduler, kubelet and slurmd."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from coil.api import keys
from tests.support.apiserver import kubectl, writes
from tests.support.manager import KEYS, controller
from tests.support.nodeset_stage import Stage, kubernetes_node, nodeset, settle, shown_states

pytestmark = [pytest.mark.apiserver, pytest.mark.slurm, pytest.mark.asyncio, pytest.mark.timeout(150)]


async def test_workers_are_made_registered_and_shown(stage: Stage) -> None:
    await settle(stage, 3)
    pods = await stage.pods()
    assert all("Idle" in shown_states(pod) for pod in pods.values())
    assert all(any(c["type"] == "Ready" for c in pod["status"]["conditions"]) for pod in pods.values())
    line = await stage.call(stage.cluster.node_line, "gpu-2")
    assert f'"podName":"gpu-2","node":"{stage.space.name}-2","nodeSetName":"gpu"' in line
    companions = await stage.call(stage.space.objects, "services,poddisruptionbudgets,controllerrevisions")
    assert {item["kind"] for item in companions} == {"Service", "PodDisruptionBudget", "ControllerRevision"}
    conditions = {c["type"]: c["status"] for c in (await stage.status())["conditions"]}
    assert conditions == {"Reconciled": "True", "SlurmReachable": "True"}
    notes = {note for _, _, note in await stage.call(stage.space.events, "NodeSet", "gpu")}
    assert {"Creating 3 Pod(s) to stabilize at 3 replicas", "Created pod: gpu-0"} <= notes


async def test_an_unchanged_world_is_not_written_to(stage: Stage) -> None:
    await settle(stage, 2)
    await asyncio.sleep(1.5)  # writes of the pass that counted the workers
    before = len(writes(stage.server))
    await stage.call(stage.space.kubectl, "label", "nodeset", "gpu", "look=again")
    await asyncio.sleep(3)  # a few polls, and a pass for the label
    told = [line for line in writes(stage.server)[before:] if f"/{stage.space.name}/" in line]
    assert len(told) == 1, told


async def test_scale_in_drains_before_it_deletes_and_spares_busy_workers(stage: Stage) -> None:
    await settle(stage, 3)
    await stage.scontrol("update", "nodename=gpu-1", "state=drain", "reason=bad fan")
    await stage.scale(1)

    async def going() -> bool:
        pods = await stage.pods()
        return sum("deletionTimestamp" in pod["metadata"] for pod in pods.values()) == 2

    await stage.eventually(going, what="two pods end")
    lines = {name: await stage.call(stage.cluster.node_line, name) for name in ("gpu-1", "gpu-2")}
    assert "Reason=bad fan" in lines["gpu-1"] or "DRAIN" not in lines["gpu-1"]
    assert "pending termination for scale-in" in lines["gpu-2"]
    assert "DRAIN" in lines["gpu-2"]
    for name in ("gpu-1", "gpu-2"):
        await stage.end(name)

    async def alone() -> bool:
        return set(await stage.pods()) == {"gpu-0"} and (await stage.status()).get("replicas") == 1

    await stage.eventually(alone, what="one worker is left")


async def test_scale_in_of_a_worker_that_somebody_took_down_keeps_the_reason(stage: Stage) -> None:
    await settle(stage, 2)
    await stage.scontrol("update", "nodename=gpu-1", "state=down", "reason=bad fan")
    await stage.scale(1)

    async def going() -> bool:
        return "deletionTimestamp" in (await stage.pods())["gpu-1"]["metadata"]

    await stage.eventually(going, what="the worker that is down goes")
    assert "Reason=bad fan" in await stage.call(stage.cluster.node_line, "gpu-1")


async def test_a_drain_by_hand_stays(stage: Stage) -> None:
    await settle(stage, 2)
    await stage.scontrol("update", "nodename=gpu-0", "state=drain", "reason=bad fan")

    async def shown() -> bool:
        return "Drain" in shown_states((await stage.pods())["gpu-0"])

    await stage.eventually(shown, what="the pod shows the drain")
    await stage.call(stage.space.kubectl, "annotate", "nodeset", "gpu", "look=again")
    await asyncio.sleep(2)
    assert "Reason=bad fan" in await stage.call(stage.cluster.node_line, "gpu-0")
    assert (await stage.status())["slurmDrain"] == 1


async def test_a_cordoned_pod_is_drained_until_the_user_uncordons_it(stage: Stage) -> None:
    await settle(stage, 1)
    await stage.call(stage.space.kubectl, "annotate", "pod", "gpu-0", f"{keys.ANNOTATION_POD_CORDON}=true")

    async def drained() -> bool:
        return "was cordoned" in await stage.call(stage.cluster.node_line, "gpu-0")

    await stage.eventually(drained, what="the node is drained")
    await stage.call(stage.space.kubectl, "annotate", "pod", "gpu-0", f"{keys.ANNOTATION_POD_CORDON}-")

    async def back() -> bool:
        return "DRAIN" not in await stage.call(stage.cluster.node_line, "gpu-0")

    await stage.eventually(back, what="the node takes work again")

    async def shown() -> bool:
        pod = (await stage.pods())["gpu-0"]
        return shown_states(pod) == {"Idle"} and not any(
            c.get("message")
            for c in pod["status"]["conditions"]
            if c["type"].startswith(keys.CONDITION_PREFIX)
        )

    await stage.eventually(shown, what="the pod shows neither the drain nor its reason")


async def test_a_refused_pod_is_told_and_recovers(stage: Stage) -> None:
    await stage.apply(KEYS, controller("alba"), nodeset(1, image=""))
    message = await stage.call(stage.space.wait_condition, "nodeset", "gpu", "Reconciled=False/Invalid")
    assert "image" in message
    events = await stage.call(stage.space.events, "NodeSet", "gpu")
    assert any(reason == "FailedCreate" and "image" in note for _, reason, note in events)
    await stage.apply(nodeset(1))

    async def made() -> bool:
        return set(await stage.pods()) == {"gpu-0"}

    await stage.eventually(made, what="the pod is made")


async def test_a_missing_controller_is_told_and_recovers(stage: Stage) -> None:
    await stage.apply(KEYS, nodeset(1))
    await stage.call(stage.space.wait_condition, "nodeset", "gpu", "Reconciled=False/ControllerMissing")
    reasons = {reason for _, reason, _ in await stage.call(stage.space.events, "NodeSet", "gpu")}
    assert {"ControllerRefFailed", "SyncFailed"} <= reasons
    await stage.apply(controller("alba"))

    async def made() -> bool:
        return set(await stage.pods()) == {"gpu-0"}

    await stage.eventually(made, what="the pod is made")


async def test_a_new_template_replaces_idle_workers_one_at_a_time(stage: Stage) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    await settle(stage, 2, updateStrategy=rolling)
    await stage.apply(nodeset(2, image="registry.example/slurmd:2", updateStrategy=rolling))

    async def going() -> list[str]:
        pods = await stage.pods()
        return [name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]]

    (first,) = await stage.eventually(going, what="one worker goes")
    await asyncio.sleep(2)
    assert await going() == [first]
    await stage.end(first)

    async def replaced() -> bool:
        pod = (await stage.pods()).get(first)
        return pod is not None and pod["spec"]["containers"][0]["image"].endswith(":2")

    await stage.eventually(replaced, what="its successor is made")
    await asyncio.sleep(1)
    assert await going() == []


async def test_one_worker_for_each_matching_node(stage: Stage) -> None:
    pool = stage.space.name
    one, two = f"{pool}-one", f"{pool}-two"
    for name in (one, two):
        await stage.call(kubernetes_node, stage.server, f"{name}.rack.test", pool)
    template = {"spec": {"nodeSelector": {"pool": pool}}}
    await stage.apply(KEYS, controller("alba"), nodeset(7, scalingMode="DaemonSet", template=template))

    async def hosts() -> set[str]:
        pods = await stage.pods()
        named = all(pod["metadata"]["labels"][keys.LABEL_POD_NAME] == name for name, pod in pods.items())
        live = (pod for pod in pods.values() if "deletionTimestamp" not in pod["metadata"])
        return {pod["spec"]["hostname"] for pod in live} if named else set()

    async def on_both() -> bool:
        return await hosts() == {one, two} and (await stage.status()).get("desired") == 2

    async def on_one() -> bool:
        return await hosts() == {one} and (await stage.status()).get("desired") == 1

    await stage.eventually(on_both, what="a worker for each node")
    await stage.call(kubectl, stage.server, "label", "node", f"{two}.rack.test", "pool=other", "--overwrite")
    await stage.eventually(on_one, what="the worker of the node that left goes")


async def test_a_scheduled_update_has_its_reservation_and_leaves_none_behind(stage: Stage) -> None:
    start = datetime.now(UTC) + timedelta(hours=1)
    update = {"startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "duration": "30m", "flags": []}
    await settle(stage, 2, updateStrategy={"type": "ScheduledUpdate", "scheduledUpdate": update})

    async def reserved() -> bool:
        told = await stage.call(stage.space.condition, "nodeset", "gpu", "ReservationCreated")
        return told is not None and told[0] == "True"

    await stage.eventually(reserved, what="the reservation is made")
    shown = await stage.scontrol("-o", "show", "reservation")
    assert "ReservationName=SlurmOperatorMaint-gpu" in shown
    assert "Nodes=gpu-[0-1]" in shown
    before = len(writes(stage.server))
    await asyncio.sleep(3)
    told = [line for line in writes(stage.server)[before:] if f"/{stage.space.name}/nodesets" in line]
    assert told == []
    await stage.call(stage.space.kubectl, "delete", "nodeset", "gpu", "--wait=false")

    async def gone() -> bool:
        return await stage.call(stage.space.get, "nodeset", "gpu") is None

    await stage.eventually(gone, what="the NodeSet is gone")
    assert "SlurmOperatorMaint" not in await stage.scontrol("-o", "show", "reservation")

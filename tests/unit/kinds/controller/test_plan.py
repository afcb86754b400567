"""Claims about the steps of a pass over a Controller (spec: control-plane 5, 22)."""

import json
import random
from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.api.nodeset import NodeSet
from coil.kinds.controller.monitors import Monitor
from coil.kinds.controller.plan import (
    advice,
    config_step,
    goes_with,
    held,
    rollout,
    steps,
    target,
    with_unbrought,
)
from coil.kinds.controller.rekeying import Has, JwtKey
from coil.kinds.controller.report import Slurm
from coil.kinds.controller.snapshot import NO_RESTAPI, Children, Snapshot
from coil.kinds.steps import Apply, Failed, Remove, Step
from coil.kube.views import ManifestView

KEYS = {"keys": {"slurm.key": b"abc", "jwt.key": b"def"}}


def controller(**spec: Any) -> Controller:
    wanted = {
        "metadata": {"name": "alba", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {
            "slurmctld": {"image": "registry.example/slurmctld"},
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
            "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            "persistence": {"enabled": False},
            **spec,
        },
    }
    return with_defaults(msgspec.convert(wanted, Controller))


def snapshot(*, secrets: Any = KEYS, **members: Any) -> Snapshot:
    given: dict[str, Any] = {"controller": controller(), "secrets": secrets, **members}
    return Snapshot(**given)


def planned(given: Snapshot, hold: float = 0.0) -> dict[str, Step]:
    return {step.name: step for step in steps(given, config_step(given), hold=bool(hold))}


def test_another_slurm_key_under_workers_changes_nothing() -> None:
    """Until they are gone; then everything is made for it."""
    secrets = {"keys": {"slurm.key": b"abc"}, "jwt": {"jwt.key": b"def"}}
    made = snapshot(controller=controller(jwtKeyRef={"name": "jwt", "key": "jwt.key"}), secrets=secrets)
    children = Children(stateful_set=live(planned(made)["StatefulSet"]))
    workers = msgspec.convert({"metadata": {"name": "cpu"}, "status": {"replicas": 1}}, NodeSet)
    other = {**secrets, "keys": {"slurm.key": b"xyz"}}
    given = {"live": children, "secrets": other, "nodesets": (workers,)}
    found = planned(msgspec.structs.replace(made, **given))
    assert isinstance(found["Config"], Failed)
    assert found["Config"].reason == "SlurmKeyChanged"
    assert isinstance(found["StatefulSet"], Failed)
    found = planned(msgspec.structs.replace(made, **{**given, "nodesets": ()}))
    template = live(found["StatefulSet"]).spec["template"]
    assert template != children.stateful_set.spec["template"] if children.stateful_set else False
    found = planned(msgspec.structs.replace(made, **{**given, "secrets": secrets}))
    assert isinstance(found["StatefulSet"], Apply)


def live(step: Step) -> ManifestView:
    assert isinstance(step, Apply)
    return msgspec.convert({**step.wanted, "status": {}}, ManifestView)


def test_the_steps_come_in_the_order_of_the_specification() -> None:
    given = snapshot(monitor=Monitor(relevant=True))
    assert list(planned(given)) == ["Internal Service", "Service", "Config", "StatefulSet", "ServiceMonitor"]


def test_an_external_controller_has_only_its_configuration() -> None:
    external = controller(external=True, externalConfig={"host": "ctl.example.test", "port": 6817})
    assert list(planned(snapshot(controller=external, secrets={}))) == ["Config"]


@pytest.mark.parametrize(
    ("secrets", "reason", "message"),
    [
        ({}, "SecretMissing", 'Secret "keys" not found; create it with key "slurm.key"'),
        ({"keys": {"jwt.key": b"x"}}, "SecretKeyMissing", 'Secret "keys" has no key "slurm.key"; add it'),
        ({"keys": {"slurm.key": b"x"}}, "SecretKeyMissing", 'Secret "keys" has no key "jwt.key"; add it'),
    ],
)
def test_without_its_keys_no_pod_is_started_or_replaced(secrets: Any, reason: str, message: str) -> None:
    found = planned(snapshot(secrets=secrets))
    assert found["StatefulSet"] == Failed(name="StatefulSet", reason=reason, message=message)
    assert isinstance(found["Service"], Apply)
    assert isinstance(found["Config"], Apply)


def test_a_missing_file_stops_configuration_and_pods_but_no_service() -> None:
    given = snapshot(controller=controller(configFileRefs=[{"name": "b"}, {"name": "a"}, {"name": "a"}]))
    found = planned(given)
    message = 'ConfigMap "a", "b" not found; create them'
    assert found["Config"] == Failed(name="Config", reason="ConfigMapMissing", message=message)
    assert found["StatefulSet"] == Failed(
        name="StatefulSet", reason="Waiting", message="waits for step Config"
    )
    assert isinstance(found["Service"], Apply)


def test_an_unreadable_nodeset_freezes_the_configuration_of_a_running_cluster() -> None:
    """Invariants I2 and I7: without it slurm.conf would lose a partition, and running jobs their nodes."""
    assert isinstance(planned(snapshot(unreadable=("gpu",)))["Config"], Apply)
    running = Children(config=live(planned(snapshot())["Config"]))
    config = planned(snapshot(unreadable=("gpu",), live=running))["Config"]
    assert isinstance(config, Failed)
    assert (config.reason, config.retry) == ("NodeSetUnreadable", False)
    assert "NodeSet gpu cannot be read" in config.message


def test_a_missing_jwks_file_stops_the_pods() -> None:
    given = snapshot(controller=controller(jwksKeyRef={"name": "jwks", "key": "jwks.json"}))
    step = planned(given)["StatefulSet"]
    assert isinstance(step, Failed)
    assert step.reason == "ConfigMapMissing"
    present = snapshot(controller=given.controller, config_maps={"jwks": {"jwks.json": "{}"}})
    assert isinstance(planned(present)["StatefulSet"], Apply)


def test_the_pod_carries_the_hashes_of_the_keys_and_of_the_configuration_of_this_pass() -> None:
    found = planned(snapshot())
    step, config = found["StatefulSet"], config_step(snapshot())
    assert isinstance(step, Apply)
    annotations = step.wanted["spec"]["template"]["metadata"]["annotations"]
    assert annotations[keys.ANNOTATION_SLURM_CONFIG_HASH] == rollout(snapshot(), config)
    # slurm.key and jwt.key are hashed with the whole Secret: jwt.key sorts first.
    assert annotations[keys.ANNOTATION_SLURM_KEY_HASH] == annotations[keys.ANNOTATION_JWT_KEY_HASH]


def test_the_statefulset_waits_for_the_configuration_to_be_written() -> None:
    step = planned(snapshot())["StatefulSet"]
    assert isinstance(step, Apply)
    assert step.needs == "Config"


def test_while_a_configuration_settles_the_statefulset_waits() -> None:
    assert "StatefulSet" not in planned(snapshot(), hold=0.3)
    assert "StatefulSet" in planned(snapshot(secrets={}), hold=0.3)


def _nodeset(name: str) -> NodeSet:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"controllerRef": {"name": "alba"}, "partition": {"enabled": True}},
        },
        NodeSet,
    )


def _running(given: Snapshot) -> Children:
    found = planned(given)
    return Children(stateful_set=live(found["StatefulSet"]), config=live(found["Config"]))


def test_without_a_way_to_slurm_a_changed_configuration_replaces_the_pods() -> None:
    fresh = snapshot()
    assert rollout(fresh, config_step(fresh))
    same = snapshot(live=_running(fresh))
    assert not rollout(same, config_step(same))
    grown = snapshot(live=same.live, nodesets=(_nodeset("cpu"),))
    assert rollout(grown, config_step(grown))


def _written(given: Snapshot, **members: Any) -> Snapshot:
    """The same after the ConfigMap, and nothing else, has been written."""
    config = live(config_step(given))
    children = msgspec.structs.replace(given.live, config=config)
    return msgspec.structs.replace(given, live=children, **members)


ANSWERS = Slurm("True", "Answers", "")


def test_what_slurmctld_takes_over_while_it_runs_replaces_no_pod() -> None:
    running = _running(snapshot())
    grown = snapshot(live=running, nodesets=(_nodeset("cpu"),), slurm=ANSWERS)
    for given in (grown, _written(grown), _written(grown, slurm=NO_RESTAPI)):
        assert not rollout(given, config_step(given))
        assert planned(given)["StatefulSet"] == planned(snapshot(live=running))["StatefulSet"]


def test_a_statefulset_taken_over_keeps_the_hash_of_its_former_operator() -> None:
    running = _running(snapshot(slurm=ANSWERS))
    assert running.stateful_set is not None
    spec = json.loads(json.dumps(running.stateful_set.spec))
    annotations = spec["template"]["metadata"]["annotations"]
    annotations[keys.ANNOTATION_SLURM_CONFIG_HASH] = "theirs"
    foreign = msgspec.structs.replace(running.stateful_set, spec=spec)
    given = snapshot(live=Children(stateful_set=foreign, config=running.config), slurm=ANSWERS)
    assert not rollout(given, config_step(given))
    step = planned(given)["StatefulSet"]
    assert isinstance(step, Apply)
    assert (
        step.wanted["spec"]["template"]["metadata"]["annotations"]
        == spec["template"]["metadata"]["annotations"]
    )


def test_a_restart_only_parameter_replaces_the_pods_even_if_the_operator_dies_in_between() -> None:
    running = _running(snapshot())
    wanting = controller(extraConf="AuthAltTypes=auth/jwt,auth/slurm")
    given = snapshot(controller=wanting, live=running, slurm=ANSWERS)
    wanted = rollout(given, config_step(given))
    assert wanted
    later = _written(given)
    assert rollout(later, config_step(later)) == wanted
    # Once the pods are made for it, further changes are live again.
    rolled = msgspec.structs.replace(
        later,
        live=Children(stateful_set=live(planned(later)["StatefulSet"]), config=later.live.config),
        nodesets=(_nodeset("cpu"),),
    )
    assert not rollout(rolled, config_step(rolled))


def test_the_generation_changes_with_every_file_and_the_hash_covers_included_ones() -> None:
    wanting = controller(configFileRefs=[{"name": "files"}], extraConf="Include more.conf")
    targets = [
        target(given, config_step(given))
        for text in ("MaxJobCount=5", "MaxJobCount=6")
        for other in ("", "# x")
        for given in [
            snapshot(
                controller=wanting,
                config_maps={"files": {"more.conf": text, "gres.conf": other}},
            )
        ]
    ]
    assert len({found.generation for found in targets if found}) == len(targets)
    assert len({found.hash for found in targets if found and found.hash}) == len(targets)


def test_files_of_others_change_the_text_but_not_the_hash_of_the_pods() -> None:
    wanting = controller(configFileRefs=[{"name": "files"}])
    first, other = (
        snapshot(controller=wanting, config_maps={"files": {"gres.conf": text}}) for text in ("", "# x")
    )
    assert config_step(first) != config_step(other)
    assert planned(first)["StatefulSet"] == planned(other)["StatefulSet"]


def test_with_inplace_reconfigure_a_running_pod_is_not_replaced() -> None:
    fresh = snapshot(controller=controller(inplaceReconfigure=True))
    running = Children(stateful_set=live(planned(fresh)["StatefulSet"]))
    grown = snapshot(controller=fresh.controller, live=running, nodesets=(_nodeset("cpu"),))
    assert not rollout(grown, config_step(grown))


def test_nodesets_give_the_same_text_in_whatever_order_they_are_listed() -> None:
    one, other = _nodeset("alpha"), _nodeset("beta")
    first, second = (config_step(snapshot(nodesets=pair)) for pair in ((one, other), (other, one)))
    assert isinstance(first, Apply)
    assert first == second
    assert "NodeSet=alpha Feature=alpha\nPartitionName=alpha" in first.wanted["data"]["slurm.conf"]


def test_a_statefulset_with_another_service_name_has_to_go_first() -> None:
    running = live(planned(snapshot())["StatefulSet"])
    old = msgspec.structs.replace(running, spec={**running.spec, "serviceName": "alba-controller"})
    assert planned(snapshot(live=Children(stateful_set=old)))["StatefulSet"] == Remove(
        name="StatefulSet", live=old
    )


def test_backups_need_a_claim_that_all_can_write() -> None:
    with_backups = controller(
        ha={"enabled": True, "backups": 1}, persistence={"enabled": True, "existingClaim": "state"}
    )

    def claim(mode: str) -> ManifestView:
        return msgspec.convert({"metadata": {"name": "state"}, "spec": {"accessModes": [mode]}}, ManifestView)

    refused = planned(snapshot(controller=with_backups, claim=claim("ReadWriteOnce")))["StatefulSet"]
    assert isinstance(refused, Failed)
    assert refused.reason == "ClaimNotShared"
    for accepted in (claim("ReadWriteMany"), None):
        assert isinstance(planned(snapshot(controller=with_backups, claim=accepted))["StatefulSet"], Apply)


def test_a_malformed_quantity_in_the_template_is_told_and_touches_nothing_else() -> None:
    odd = {"resources": {"limits": {"memory": "10 bananas"}}, "image": "registry.example/slurmctld"}
    found = planned(snapshot(controller=controller(slurmctld=odd)))
    assert isinstance(found["Service"], Apply)
    # Whether the builder or the API server refuses it, the other steps do not notice.
    assert isinstance(found["Config"], Apply)


def test_a_service_that_cannot_be_built_stops_no_other_step() -> None:
    clash = {"spec": {"ports": [{"name": "slurmctld", "port": 1}]}}
    found = planned(snapshot(controller=controller(service=clash)))
    assert isinstance(found["Service"], Failed)
    assert isinstance(found["Internal Service"], Apply)
    assert isinstance(found["StatefulSet"], Apply)


def test_monitors() -> None:
    wanting = controller(metrics={"enabled": True, "serviceMonitor": {"enabled": True}})
    there = ManifestView(metadata=with_defaults(controller()).metadata, kind="ServiceMonitor")
    cases = [
        (controller(), Monitor(), None),
        (controller(), Monitor(relevant=True, live=there), Remove),
        (wanting, Monitor(relevant=True), Apply),
        (wanting, Monitor(), None),
        (wanting, Monitor(relevant=True, error="no answer"), Failed),
    ]
    for given, monitor, kind in cases:
        step = planned(snapshot(controller=given, monitor=monitor)).get("ServiceMonitor")
        assert (type(step) if step else None) == kind


def test_a_topology_file_without_its_plugin_is_worth_advice() -> None:
    wanting = controller(configFileRefs=[{"name": "files"}])
    files = {"files": {"topology.conf": "SwitchName=s1 Nodes=alpha-[0-3]\n"}}
    (text,) = advice(snapshot(controller=wanting, config_maps=files))
    assert "TopologyPlugin" in text
    assert advice(snapshot()) == []


def _slurmdbd(status: str, **spec: Any) -> Accounting:
    told = [{"type": "Available", "status": status, "reason": "X", "message": ""}] if status else []
    wanted = {"metadata": {"name": "acct", "namespace": "ns"}, "spec": spec, "status": {"conditions": told}}
    return msgspec.convert(wanted, Accounting)


@pytest.mark.parametrize(
    ("accounting", "waits"),
    [
        (_slurmdbd(""), True),
        (_slurmdbd("False"), True),
        (_slurmdbd("True"), False),
        (_slurmdbd("Unknown", external=True, externalConfig={"host": "h", "port": 1}), False),
        (None, False),
    ],
)
def test_a_running_cluster_begins_to_keep_accounts_when_slurmdbd_is_there(
    accounting: Accounting | None, *, waits: bool
) -> None:
    """Otherwise its slurmctld would never register, and its jobs would be lost to accounting."""
    wanted = controller(accountingRef={"name": "acct"})
    before = planned(snapshot(controller=wanted))
    running = Children(config=live(before["Config"]), stateful_set=live(before["StatefulSet"]))
    given = snapshot(controller=wanted, accounting=accounting, live=running)
    after = planned(given)
    assert ("Accounting" in after) is waits
    unchanged = live(after["Config"]).data == live(before["Config"]).data
    assert unchanged is (waits or accounting is None)
    assert isinstance(after["StatefulSet"], Apply)


def test_what_begins_with_slurmdbd_or_has_it_already_does_not_wait() -> None:
    wanted, lost = controller(accountingRef={"name": "acct"}), _slurmdbd("False")
    first = planned(snapshot(controller=wanted, accounting=lost))
    assert "Accounting" not in first
    assert "accounting_storage/slurmdbd" in live(first["Config"]).data["slurm.conf"]
    running = Children(config=live(first["Config"]), stateful_set=live(first["StatefulSet"]))
    again = planned(snapshot(controller=wanted, accounting=lost, live=running))
    assert live(again["Config"]).data == live(first["Config"]).data


def test_ten_passes_over_shuffled_inputs_build_one_template() -> None:
    """Field cases CTL-08 and CFG-01: the order in which an API lists things changes nothing."""
    refs = [{"name": name} for name in ("c", "a", "b")]
    wanting = controller(configFileRefs=refs, prologScriptRefs=[{"name": "p2"}, {"name": "p1"}])
    files = {name: {f"{name}.conf": ""} for name in ("a", "b", "c", "p1", "p2")}
    nodesets = [_nodeset(name) for name in ("x", "y", "z")]
    chance = random.Random(1)  # noqa: S311 - shuffles, hides nothing
    seen: list[Step] = []
    for _ in range(10):
        names = chance.sample(sorted(files), len(files))
        listed = tuple(chance.sample(nodesets, len(nodesets)))
        found = planned(
            snapshot(controller=wanting, config_maps={name: files[name] for name in names}, nodesets=listed)
        )
        if found["StatefulSet"] not in seen:
            seen.append(found["StatefulSet"])
    assert len(seen) == 1
    assert isinstance(seen[0], Apply)


def test_a_key_that_does_not_reach_the_running_pods_comes_with_new_ones() -> None:
    before = planned(snapshot())["StatefulSet"]
    given = snapshot(
        secrets={"keys": {"slurm.key": b"abc", "jwt.key": b"new"}},
        live=Children(stateful_set=live(before)),
        jwt_key=JwtKey(has=Has.WAITED, known=(b"def", b"new")),
        slurm=None,
    )
    assert target(given, config_step(given)) != target(snapshot(), config_step(snapshot()))
    kept, other, new = (planned(with_unbrought(given, key))["StatefulSet"] for key in (b"", b"def", b"new"))
    assert live(kept).spec == live(other).spec == live(before).spec
    assert live(kept).metadata.annotations[keys.ANNOTATION_LIVE_KEY]
    assert live(new).spec != live(before).spec


def test_a_configuration_that_is_kept_changes_no_file_and_replaces_no_pod() -> None:
    running = _running(snapshot())
    given = snapshot(controller=controller(extraConf="SlurmctldPort=7000"), live=running)
    wanted = config_step(given)
    assert isinstance(wanted, Apply)
    assert running.config is not None
    kept = held(wanted, running.config)
    assert kept.wanted["data"] == running.config.data
    assert keys.ANNOTATION_RESTART_FOR not in kept.wanted["metadata"].get("annotations", {})
    assert not rollout(given, kept)
    assert "StatefulSet" not in {step.name for step in steps(given, kept, hold=True)}


def test_a_kept_configuration_goes_with_the_files_it_was_accepted_with() -> None:
    wanting = controller(configFileRefs=[{"name": "files"}])
    before = snapshot(controller=wanting, config_maps={"files": {"gres.conf": ""}})
    running = _running(before)
    assert running.config is not None
    for text, same in (("", True), ("# x", False)):
        given = snapshot(controller=wanting, live=running, config_maps={"files": {"gres.conf": text}})
        wanted = config_step(given)
        assert isinstance(wanted, Apply)
        assert goes_with(given, held(wanted, running.config)) is same

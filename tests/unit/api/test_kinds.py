"""Reading objects: as lenient as the API server, and clear about what is wrong."""

import msgspec
import pytest

from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.api.kinds import KINDS, Kind
from coil.api.nodeset import NodeSet, NodeSetStatus
from coil.api.restapi import RestApi
from coil.api.token import Token

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def controller(text: str) -> Controller:
    head = '{"metadata":{"name":"c","namespace":"ns"},"spec":'
    return msgspec.json.decode(head + text + "}", type=Controller)


def nodeset(text: str) -> NodeSet:
    head = '{"metadata":{"name":"gpu","namespace":"ns"},"spec":'
    return msgspec.json.decode(head + text + "}", type=NodeSet)


@kinds
def test_an_object_without_spec_and_status_loads(kind: Kind) -> None:
    obj = msgspec.json.decode(b'{"metadata":{"name":"a","namespace":"n"},"new":1}', type=kind.view)
    assert obj.metadata.key == ("n", "a")
    assert obj.kind == kind.kind
    assert obj.api_version == "slinky.slurm.net/v1beta1"


@kinds
def test_what_is_written_reads_back(kind: Kind) -> None:
    obj = kind.view()
    assert msgspec.json.decode(msgspec.json.encode(obj), type=kind.view) == obj


def test_null_lists_and_maps_are_absent_ones() -> None:
    read = nodeset(
        '{"volumeClaimTemplates":null,"template":{"metadata":{"labels":null,"annotations":null}},'
        '"updateStrategy":{"scheduledUpdate":{"flags":null}}}'
    )
    assert read.spec.volume_claim_templates == []
    assert read.spec.template.metadata.labels == {}
    assert read.spec.update_strategy.scheduled_update is not None
    assert read.spec.update_strategy.scheduled_update.flags == []
    assert controller('{"configFileRefs":null,"metrics":{"serviceMonitor":null}}').spec.config_file_refs == []


def test_a_null_does_not_share_its_replacement() -> None:
    first, second = (nodeset('{"volumeClaimTemplates":null}') for _ in range(2))
    assert first.spec.volume_claim_templates is not second.spec.volume_claim_templates


def test_free_form_members_keep_what_coil_does_not_know() -> None:
    read = nodeset('{"slurmd":{"image":"i","future":{"a":[1,null]}},"template":{"spec":{"x":false}}}')
    assert read.spec.slurmd == {"image": "i", "future": {"a": [1, None]}}
    assert read.spec.template.spec == {"x": False}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"scalingMode":"Daemonset"}', "$.spec.scalingMode"),
        ('{"replicas":"2"}', "$.spec.replicas"),
        ('{"template":{"metadata":{"labels":{"a":1}}}}', "$.spec.template.metadata.labels"),
        ('{"slurmd":"image"}', "$.spec.slurmd"),
    ],
)
def test_an_unreadable_object_names_the_place(text: str, path: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        nodeset(text)
    assert path in str(caught.value)


def test_cluster_name_is_given_or_namespace_and_name() -> None:
    assert controller("{}").cluster_name == "ns_c"
    assert controller('{"clusterName":"x"}').cluster_name == "x"


def test_jwt_key_ref_wins_over_its_old_name() -> None:
    old = '"jwtHs256KeyRef":{"name":"old","key":"k"}'
    new = '"jwtKeyRef":{"name":"new","key":"k"}'
    assert controller("{}").jwt_ref is None
    chosen = [controller("{" + text + "}").jwt_ref for text in (old, f"{old},{new}")]
    assert [ref.name for ref in chosen if ref] == ["old", "new"]


@pytest.mark.parametrize(
    ("spec", "enabled", "replicas"),
    [
        ("{}", True, 1),
        ('{"persistence":{"enabled":false}}', False, 1),
        ('{"persistence":{}}', True, 1),
        ('{"ha":{"enabled":true}}', True, 2),
        ('{"ha":{"enabled":true,"backups":2}}', True, 3),
        ('{"ha":{"enabled":false,"backups":2}}', True, 1),
    ],
)
def test_controller_defaults(spec: str, enabled: bool, replicas: int) -> None:
    assert controller(spec).persistence_enabled is enabled
    assert controller(spec).replicas == replicas


@pytest.mark.parametrize(
    ("hostname", "name"),
    [(None, "gpu"), ("foo-", "foo"), ("--a-b-- c", "a-b"), ("", "gpu"), (" ", "gpu")],
)
def test_slurm_name_of_a_nodeset(hostname: str | None, name: str) -> None:
    spec = msgspec.json.encode({"template": {"spec": {} if hostname is None else {"hostname": hostname}}})
    assert nodeset(spec.decode()).slurm_name == name


def test_nodeset_runtime_defaults() -> None:
    spec = nodeset("{}").spec
    assert (spec.replicas, spec.scaling_mode, spec.update_strategy.type) == (
        1,
        "StatefulSet",
        "RollingUpdate",
    )
    assert spec.update_strategy.rolling_update.max_unavailable == "25%"
    assert spec.workload_disruption_protection
    assert nodeset('{"controllerRef":{"name":"c"}}').controller_key == ("ns", "c")


def test_operator_side_defaults_are_not_written_into_the_object() -> None:
    read = controller("{}")
    filled = with_defaults(read)
    assert read.spec.persistence is None
    assert filled.spec.persistence is not None
    assert filled.spec.persistence.enabled
    assert filled.spec.service.port == 6817
    assert with_defaults(RestApi()).spec.service.port == 6820
    assert with_defaults(with_defaults(read)) == filled
    assert with_defaults(NodeSet()) == NodeSet()


@pytest.mark.parametrize(
    ("lifetime", "seconds"),
    [("", 900), ("15m", 900), ("1h30m", 5400), ("1.5s", 1.5), ("-1h", 0), ("0", 0), ("1000000h", 2147483646)],
)
def test_token_lifetime(lifetime: str, seconds: float) -> None:
    token = msgspec.convert({"spec": {"lifetime": lifetime}}, Token)
    assert token.lifetime_s == pytest.approx(seconds)


@pytest.mark.parametrize("lifetime", ["1", "h", "1d", "1 h", "-", "1h30", "٣h"])
def test_token_lifetime_that_is_none(lifetime: str) -> None:
    with pytest.raises(ValueError, match="is no duration; write for example"):
        _ = msgspec.convert({"spec": {"lifetime": lifetime}}, Token).lifetime_s


def test_status_writes_a_collision_count_of_zero() -> None:
    assert msgspec.to_builtins(NodeSetStatus(collision_count=0)) == {"collisionCount": 0}

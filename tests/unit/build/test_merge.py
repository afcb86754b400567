"""How a user's containers and pod specs are merged over the built ones (spec: control-plane 3.3, 3.4)."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coil.build.merge import merge, merge_container, merge_lists, merge_pod_spec, prune


def _named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def test_items_of_the_user_come_first_where_the_orders_leave_a_choice() -> None:
    override = [{"name": "D"}, {"name": "B", "value": "new"}, {"name": "E"}]
    merged = merge_lists(_named("A", "B", "C"), override, "name")
    assert [item["name"] for item in merged] == ["D", "A", "B", "E", "C"]
    assert merged[2] == {"name": "B", "value": "new"}


_LISTS = st.lists(st.sampled_from("ABCDEFGH"), unique=True, max_size=8)


@given(base=_LISTS, override=_LISTS)
def test_merged_lists_hold_every_item_once(base: list[str], override: list[str]) -> None:
    merged = [item["name"] for item in merge_lists(_named(*base), _named(*override), "name")]
    assert sorted(merged) == sorted(set(base) | set(override))


@given(base=_LISTS, override=_LISTS)
def test_what_only_the_base_names_keeps_its_order(base: list[str], override: list[str]) -> None:
    merged = [item["name"] for item in merge_lists(_named(*base), _named(*override), "name")]
    kept = [name for name in base if name not in override]
    assert [name for name in merged if name in kept] == kept


@given(base=_LISTS, override=_LISTS)
def test_the_user_order_is_kept(base: list[str], override: list[str]) -> None:
    merged = [item["name"] for item in merge_lists(_named(*base), _named(*override), "name")]
    assert [name for name in merged if name in override] == override


@given(base=_LISTS)
def test_naming_the_items_of_the_base_in_their_order_changes_nothing(base: list[str]) -> None:
    assert merge_lists(_named(*base), _named(*base), "name") == _named(*base)


def test_additional_items_only_come_first() -> None:
    merged = merge_container({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "X", "value": "2"}]})
    assert [item["name"] for item in merged["env"]] == ["X", "A"]


def test_items_repeated_by_the_user_become_one() -> None:
    """Field case OVR-09: the API server refuses two mounts at one path."""
    mounts = [
        {"name": "mine", "mountPath": "/etc/slurm"},
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    base = {"volumeMounts": [{"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}]}
    assert merge_container(base, {"volumeMounts": mounts})["volumeMounts"] == [
        {"name": "mine", "mountPath": "/etc/slurm", "readOnly": True},
        {"name": "scratch", "mountPath": "/scratch"},
    ]


def test_a_variable_set_by_the_user_is_there_once() -> None:
    """Field case OVR-03."""
    base = {"env": [{"name": "SACKD_OPTIONS", "value": "--conf-server c:6817"}]}
    merged = merge_container(base, {"env": [{"name": "SACKD_OPTIONS", "value": "-v"}]})
    assert merged["env"] == [{"name": "SACKD_OPTIONS", "value": "-v"}]


def test_zero_values_do_not_override() -> None:
    base = {"securityContext": {"runAsUser": 401, "runAsNonRoot": True}}
    override = {"securityContext": {"runAsUser": 0, "runAsNonRoot": False, "readOnlyRootFilesystem": True}}
    assert merge_container(base, override)["securityContext"] == {
        "runAsUser": 401,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
    }


def test_prune_does_not_enter_lists_and_keeps_empty_ones() -> None:
    value = {"a": [{"b": 0}], "c": [], "d": {"e": {"f": ""}}, "g": None, "h": False, "i": "x"}
    assert prune(value) == {"a": [{"b": 0}], "c": [], "i": "x"}


def test_arguments_are_added_to_the_built_ones() -> None:
    merged = merge_container({"args": ["-s", "openapi/slurmctld"]}, {"args": ["-vv"]})
    assert merged["args"] == ["-s", "openapi/slurmctld", "-vv"]


def test_the_command_is_replaced() -> None:
    assert merge_container({"command": ["sh", "-c", "x"]}, {"command": ["true"]})["command"] == ["true"]


def test_a_probe_has_the_handler_of_the_user_and_the_numbers_of_both() -> None:
    """Field case OVR-01: two handlers in one probe are refused by the API server."""
    base = {"livenessProbe": {"httpGet": {"path": "/livez", "port": "x"}, "failureThreshold": 6}}
    override = {"livenessProbe": {"exec": {"command": ["scontrol", "ping"]}, "periodSeconds": 30}}
    assert merge_container(base, override)["livenessProbe"] == {
        "exec": {"command": ["scontrol", "ping"]},
        "failureThreshold": 6,
        "periodSeconds": 30,
    }


def test_a_probe_without_a_handler_keeps_the_built_one() -> None:
    """Q5 of the control plane, Q3 of NodeSets."""
    base = {"readinessProbe": {"tcpSocket": {"port": 6820}}}
    merged = merge_container(base, {"readinessProbe": {"periodSeconds": 2}})
    assert merged["readinessProbe"] == {"tcpSocket": {"port": 6820}, "periodSeconds": 2}


def test_the_same_handler_is_replaced_as_a_whole() -> None:
    base = {"readinessProbe": {"httpGet": {"path": "/readyz", "port": "slurmd", "scheme": "HTTPS"}}}
    merged = merge_container(base, {"readinessProbe": {"httpGet": {"path": "/x", "port": 1}}})
    assert merged["readinessProbe"] == {"httpGet": {"path": "/x", "port": 1}}


def test_lifecycle_handlers_and_sources_of_variables_exclude_one_another_too() -> None:
    """The class of OVR-01: a union type is not mixed from two of its cases."""
    base = {
        "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
        "env": [{"name": "T", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    override = {
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "env": [{"name": "T", "value": "v"}],
    }
    merged = merge_container(base, override)
    assert merged["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert merged["env"] == [{"name": "T", "value": "v"}]


def test_lists_without_a_key_are_replaced() -> None:
    base = {"securityContext": {"capabilities": {"add": ["A", "B"], "drop": ["C"]}}}
    override = {"securityContext": {"capabilities": {"add": ["X"]}}}
    assert merge_container(base, override)["securityContext"]["capabilities"] == {"add": ["X"], "drop": ["C"]}


def test_containers_are_added_and_never_merged_by_name() -> None:
    base = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}
    override = {"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "j"}]}
    merged = merge_pod_spec(base, override)
    assert merged["containers"] == [{"name": "a"}, {"name": "a", "image": "x"}]
    assert merged["initContainers"] == [{"name": "i"}, {"name": "j"}]


def test_empty_lists_of_the_user_take_nothing_away() -> None:
    """Field case OVR-10: charts write empty lists for what the user did not set."""
    base = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}], "volumes": [{"name": "v"}]}
    override: dict[str, Any] = {"initContainers": [], "volumes": [], "containers": None}
    assert merge_pod_spec(base, override) == base


def test_one_volume_with_two_sources_keeps_both_so_that_the_api_server_refuses_it() -> None:
    base = {"containers": [], "volumes": [{"name": "run", "emptyDir": {"medium": "Memory"}}]}
    override = {"volumes": [{"name": "run", "emptyDir": {"sizeLimit": "16Mi"}}]}
    assert merge_pod_spec(base, override)["volumes"] == [
        {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "y"]),
    lambda inner: (
        st.lists(st.fixed_dictionaries({"name": st.sampled_from("AB")}), max_size=2)
        | st.dictionaries(st.sampled_from(["env", "volumes", "exec", "preStop", "k"]), inner, max_size=3)
    ),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.sampled_from(["env", "livenessProbe", "args2", "k"]), _JSON, max_size=4)


@given(base=_OBJECTS, override=_OBJECTS)
def test_merging_changes_neither_side(base: dict[str, Any], override: dict[str, Any]) -> None:
    before = copy.deepcopy((base, override))
    _merge_if_alike(base, override)
    assert (base, override) == before


@given(override=_OBJECTS)
def test_merging_the_same_twice_is_merging_it_once(override: dict[str, Any]) -> None:
    once = _merge_if_alike({}, override)
    assert _merge_if_alike(once, override) == once


def _merge_if_alike(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    return merge(base, prune(override))

"""What the corpus does not show of a LoginSet's and a Token's objects."""

import msgspec
import pytest

from coil.api.loginset import LoginSet
from coil.api.token import Token
from coil.build import loginset as build
from coil.build import token as tokens
from coil.build.errors import BuildError
from coil.build.patch import merge_patch
from coil.support.objects import JsonObject, ObjectMeta
from tests.support.resources import controller


def _loginset(**spec: object) -> LoginSet:
    given = {
        "controllerRef": {"name": "slurm"},
        "sssdConfRef": {"name": "ids", "key": "custom.conf"},
        "login": {"image": "registry.example/login:1"},
    }
    meta = {"name": "gate", "namespace": "ns", "uid": "u"}
    return msgspec.convert({"metadata": meta, "spec": given | spec}, LoginSet)


def _pod(loginset: LoginSet, **inputs: bytes) -> JsonObject:
    made = build.deployment(loginset, build.PodInputs(controller=controller(), **inputs))
    return made["spec"]["template"]


def test_a_variable_of_the_user_replaces_the_operators() -> None:
    """Field case OVR-03, through the builder."""
    login = {"env": [{"name": "SACKD_OPTIONS", "value": "-v"}]}
    assert _pod(_loginset(login=login))["spec"]["containers"][0]["env"] == login["env"]


def test_empty_lists_from_a_chart_take_nothing_away() -> None:
    """Field case OVR-10, through the builder."""
    empty = {"spec": {"initContainers": [], "volumes": [], "containers": []}}
    assert _pod(_loginset(template=empty)) == _pod(_loginset())


def test_only_the_named_key_of_the_sssd_secret_counts() -> None:
    """Field case LGN-04."""
    hashes = [_pod(_loginset(), sssd_conf=text)["metadata"]["annotations"] for text in (b"a", b"a", b"b")]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    "strategy",
    [{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, {"type": "Recreate"}],
)
def test_the_strategy_is_passed_on(strategy: dict[str, object]) -> None:
    """Field case LGN-11: a roll need not cut all sessions."""
    made = build.deployment(_loginset(strategy=strategy), build.PodInputs(controller=controller()))
    assert made["spec"]["strategy"] == strategy


def test_a_port_named_login_moves_the_built_port() -> None:
    login = {"ports": [{"name": "login", "containerPort": 2222}]}
    ports = _pod(_loginset(login=login))["spec"]["containers"][0]["ports"]
    assert ports == [{"name": "login", "containerPort": 2222, "protocol": "TCP"}]


def test_host_keys_are_never_replaced() -> None:
    """Invariant I10: clients remember them."""
    live = build.host_keys(_loginset(), dict.fromkeys(build.HOST_KEYS, "old"))
    assert merge_patch(live, build.host_keys(_loginset(), dict.fromkeys(build.HOST_KEYS, "new"))) == {}


@pytest.mark.parametrize(
    ("key", "path", "copied"),
    [
        ("slurm.key", "slurm.key", "'*.key'"),
        ("other", "slurm.key", "'*.key'"),
        ("a.jwks", "slurm.jwks", "'*slurm.jwks'"),
    ],
)
def test_a_key_that_ends_in_jwks_becomes_the_file_with_several_keys(key: str, path: str, copied: str) -> None:
    given = build.PodInputs(controller=controller(slurmKeyRef={"name": "keys", "key": key}))
    spec = build.deployment(_loginset(), given)["spec"]["template"]["spec"]
    sources = [
        source for volume in spec["volumes"] for source in volume.get("projected", {}).get("sources", ())
    ]
    items = [
        source["secret"]["items"] for source in sources if source.get("secret", {}).get("name") == "keys"
    ]
    assert items == [[{"key": key, "path": path}]]
    script = next(each for each in spec["initContainers"] if each["name"] == "initconf")["command"][-1]
    assert script.count(copied) == 2


def test_a_controller_without_a_key_is_told() -> None:
    outside = controller(slurmKeyRef=None, external=True, externalConfig={"host": "h", "port": 1})
    with pytest.raises(BuildError, match="Controller slurm has no slurmKeyRef"):
        build.deployment(_loginset(), build.PodInputs(controller=outside))


def test_a_token_that_is_not_refreshed_cannot_change() -> None:
    spec = {"username": "u", "jwtKeyRef": {"name": "keys", "key": "k"}, "refresh": False}
    token = msgspec.convert({"metadata": {"name": "t", "namespace": "ns"}, "spec": spec}, Token)
    made = tokens.secret(token, "text", ObjectMeta(name="keys", uid="u"))
    assert made["immutable"] is True
    assert made["metadata"]["name"] == "t-jwt-u"
    assert made["metadata"]["ownerReferences"][0]["kind"] == "Secret"

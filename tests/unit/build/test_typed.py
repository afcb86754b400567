"""What Kubernetes leaves of a container or pod spec that it has read and written again."""

import pytest

from coil.build import typed
from coil.build.errors import BuildError


def test_unknown_members_vanish_and_required_ones_are_there() -> None:
    assert typed.container({"imagee": "x", "env": [{"value": "v"}]}, "spec.slurmd") == {
        "name": "",
        "resources": {},
        "env": [{"name": "", "value": "v"}],
    }


def test_zero_values_stay_only_where_they_mean_something() -> None:
    value = {
        "stdin": False,
        "args": [],
        "workingDir": "",
        "securityContext": {"privileged": False, "runAsUser": 0},
        "livenessProbe": {"initialDelaySeconds": 0, "terminationGracePeriodSeconds": 0},
    }
    assert typed.container(value, "c") == {
        "name": "",
        "resources": {},
        "securityContext": {"privileged": False, "runAsUser": 0},
        "livenessProbe": {"terminationGracePeriodSeconds": 0},
    }


def test_an_empty_object_stays_but_an_empty_map_does_not() -> None:
    value = {"nodeSelector": {}, "volumes": [{"name": "v", "emptyDir": {}}], "affinity": {}}
    assert typed.pod_spec(value, "p") == {
        "containers": None,
        "affinity": {},
        "volumes": [{"name": "v", "emptyDir": {}}],
    }


def test_quantities_get_their_canonical_spelling() -> None:
    value = {"resources": {"limits": {"memory": "1024Mi", "cpu": 2, "nvidia.com/gpu": "4"}}}
    assert typed.container(value, "c")["resources"]["limits"] == {
        "memory": "1Gi",
        "cpu": "2",
        "nvidia.com/gpu": "4",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"resources": {"limits": {"memory": "12Gx"}}},
            r"c\.resources\.limits\.memory: '12Gx' is no quantity",
        ),
        ({"env": {"A": "b"}}, r"c\.env: is \{'A': 'b'\}, must be a list"),
        ({"env": [{"name": 3}]}, r"c\.env\[0\]\.name: is 3, must be text"),
        ({"ports": [{"containerPort": "http"}]}, r"containerPort: is 'http', must be a whole number"),
        ({"stdin": "yes"}, r"c\.stdin: is 'yes', must be true or false"),
        ({"securityContext": []}, r"c\.securityContext: is \[\], must be an object"),
        ({"livenessProbe": {"httpGet": {"port": True}}}, r"port: is True, must be a number or a name"),
    ],
)
def test_a_wrong_type_is_told_with_its_path(value: dict[str, object], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        typed.container(value, "c")


def test_what_was_written_once_is_written_the_same_again() -> None:
    value = {
        "name": "a",
        "resources": {"limits": {"cpu": "0.5"}},
        "env": [{"name": "N", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
    }
    once = typed.container(value, "c")
    assert typed.container(once, "c") == once

"""NetworkPolicies of the charts: what they say, and the evaluator with which tests read them.

That they fit the pods which the operator really makes is tested in tests/apiserver/test_security.py.
"""

from typing import Any

import pytest

from tests.support.charts import RenderError, template
from tests.support.networkpolicy import Network, Pod

ON = ("--set", "networkPolicy.enabled=true")


def policy(spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "a"}, "spec": spec}


def pod(app: str, namespace: str = "a") -> Pod:
    return Pod({"app": app}, namespace, ports={"web": 80})


WEB = {"podSelector": {"matchLabels": {"app": "web"}}}
OUTSIDE = Pod(address="192.0.2.7")


@pytest.mark.parametrize(
    ("spec", "allowed", "refused"),
    [
        ({"podSelector": {}}, [], [(pod("x"), 80), (OUTSIDE, 80)]),
        ({"podSelector": {}, "policyTypes": ["Egress"]}, [(OUTSIDE, 80)], [(pod("x"), 80)]),
        ({**WEB, "ingress": [{}]}, [(OUTSIDE, 1)], []),
        (
            {**WEB, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "x"}}}]}]},
            [(pod("x"), 1)],
            [(pod("y"), 1), (pod("x", "b"), 1), (OUTSIDE, 1)],
        ),
        (
            {**WEB, "ingress": [{"from": [{"namespaceSelector": {}}]}]},
            [(pod("x"), 1), (pod("x", "b"), 1)],
            [(OUTSIDE, 1)],
        ),
        (
            {
                **WEB,
                "ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.8/32"]}}]}],
            },
            [(OUTSIDE, 1)],
            [(Pod(address="192.0.2.8"), 1), (Pod(address="198.51.100.1"), 1)],
        ),
        ({**WEB, "ingress": [{"ports": [{"port": "web"}]}]}, [(OUTSIDE, 80)], [(OUTSIDE, 81)]),
        (
            {**WEB, "ingress": [{"ports": [{"port": 10, "endPort": 12}]}]},
            [(OUTSIDE, 10), (OUTSIDE, 12)],
            [(OUTSIDE, 9), (OUTSIDE, 13)],
        ),
        ({**WEB, "ingress": [{"ports": [{"port": 80, "protocol": "UDP"}]}]}, [], [(OUTSIDE, 80)]),
    ],
)
def test_the_evaluator_reads_ingress_as_the_api_defines_it(
    spec: dict[str, Any], allowed: list[tuple[Pod, int]], refused: list[tuple[Pod, int]]
) -> None:
    network = Network([policy(spec)])
    assert [each for each in allowed if not network.allows(each[0], pod("web"), each[1])] == []
    assert [each for each in refused if network.allows(each[0], pod("web"), each[1])] == []


def test_the_evaluator_asks_both_ends_and_adds_policies_up() -> None:
    closed = policy({**WEB, "policyTypes": ["Egress"]})
    opened = policy({**WEB, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 5}]}]})
    assert not Network([closed]).allows(pod("web"), pod("x"), 5)
    assert Network([closed]).allows(pod("x"), pod("web"), 5)
    assert Network([closed, opened]).allows(pod("web"), pod("x"), 5)
    assert not Network([closed, opened]).allows(pod("web"), pod("x"), 6)
    other = {**closed, "metadata": {"name": "p", "namespace": "b"}}
    assert Network([other]).allows(pod("web"), pod("x"), 5)


@pytest.mark.parametrize("chart", ["slurm", "slurm-operator"])
def test_there_are_none_unless_wanted(chart: str) -> None:
    for arguments in ((), ("--set", "networkPolicy=null")):
        assert "NetworkPolicy" not in {each["kind"] for each in template(chart, *arguments)}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("controller.external=true", "controller.external"),
        ("accounting.enabled=true,accounting.external=true", "accounting.external"),
        ("nodesets.gpu.podSpec.hostNetwork=true", "nodesets.gpu.podSpec.hostNetwork"),
        ("loginsets.a.podSpec.hostNetwork=true", "loginsets.a.podSpec.hostNetwork"),
        ("controller.podSpec.hostNetwork=true", "controller.podSpec.hostNetwork"),
    ],
)
def test_ends_that_no_selector_reaches_have_to_be_named(value: str, where: str) -> None:
    with pytest.raises(RenderError, match=f"networkPolicy.outside is required with {where}"):
        template("slurm", *ON, "--set", value)
    named = "networkPolicy.outside[0].ipBlock.cidr=192.0.2.0/24"
    assert template("slurm", *ON, "--set", f"{value},{named}")


def rules(*values: str) -> dict[str, dict[str, Any]]:
    made = template("slurm", *ON, *(word for value in values for word in ("--set", value)))
    return {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "NetworkPolicy"}


def test_a_rule_without_peers_would_let_everybody_in_and_is_left_out() -> None:
    made = rules("controller.external=true", "networkPolicy.outside[0].ipBlock.cidr=192.0.2.0/24")
    assert set(made) == {"slurm-slurmrestd", "slurm-slurmd"}
    ssh = [rule for spec in rules("loginsets.a.replicas=1").values() for rule in spec["ingress"]]
    assert [rule for rule in ssh if not rule.get("from")] == [{"ports": [{"protocol": "TCP", "port": 22}]}]
    limited = rules("loginsets.a.replicas=1", "networkPolicy.loginFrom[0].ipBlock.cidr=192.0.2.0/24")
    assert all(rule["from"] for spec in limited.values() for rule in spec["ingress"])


def test_further_rules_are_added() -> None:
    made = rules(
        "networkPolicy.extra.slurmctld.egress[0].ports[0].port=443",
        "networkPolicy.extra.slurmd.ingress[0].ports[0].port=8888",
    )
    assert {"ports": [{"port": 443}]} in made["slurm-slurmctld"]["egress"]
    assert {"ports": [{"port": 8888}]} in made["slurm-slurmd"]["ingress"]

"""The text after `--conf`, with the pod's limits and topology (spec: images 3.2, 4, 7.4)."""

from __future__ import annotations

import pytest

from images.init.coil_init.node import (
    Hardware,
    limit_keys,
    merge_conf,
    parse_hardware,
    whole_number,
    with_conf,
)
from images.init.coil_init.words import split

PLAIN = """NodeName=w-0 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=24105
UpTime=0-00:20:22
"""
THREADS = (
    "NodeName=w-0 CPUs=32 Boards=1 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=64000\n"
)

TOPOLOGY = "'\"$SLINKY_TOPOLOGY\"'"


def test_hardware_of_the_machine_is_read() -> None:
    assert parse_hardware(PLAIN) == Hardware(cores=8, threads_per_core=1, memory_mib=24105)
    assert parse_hardware(THREADS) == Hardware(cores=16, threads_per_core=2, memory_mib=64000)


def test_a_report_without_numbers_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="SocketsPerBoard"):
        parse_hardware("slurmd: error\n")


@pytest.mark.parametrize(
    ("report", "cpus", "memory", "expected"),
    [
        (PLAIN, 0, 0, {}),
        (PLAIN, 2, 0, {"CoreSpecCount": "6"}),
        (PLAIN, 8, 24105, {}),
        (PLAIN, 9, 30000, {}),
        (PLAIN, 0, 4105, {"MemSpecLimit": "20000"}),
        (PLAIN, -1, -1, {}),
        (THREADS, 8, 0, {"CoreSpecCount": "12"}),
        (THREADS, 7, 0, {"CoreSpecCount": "13"}),
        (THREADS, 1, 0, {"CoreSpecCount": "15"}),
        (THREADS, 32, 1000, {"MemSpecLimit": "63000"}),
    ],
)
def test_limits(report: str, cpus: int, memory: int, expected: dict[str, str]) -> None:
    assert limit_keys(parse_hardware(report), cpus, memory) == expected


LIMITS = {"CoreSpecCount": "2", "MemSpecLimit": "100"}


@pytest.mark.parametrize(
    ("arguments", "topology", "extra", "expected"),
    [
        # The operator's form, without and with limits.
        (f"--conf 'Features=gpu Topology={TOPOLOGY}'", "t:s1", {}, ["--conf", "Features=gpu Topology=t:s1"]),
        (
            f"--conf 'Features=gpu Topology={TOPOLOGY}'",
            "t:s1",
            LIMITS,
            ["--conf", "Features=gpu Topology=t:s1 CoreSpecCount=2 MemSpecLimit=100"],
        ),
        # Keys sorted after Topology: the reference loses them when there are limits.
        (
            f"--conf 'Features=a,gpu Topology={TOPOLOGY} Weight=10'",
            "t:s1",
            LIMITS,
            ["--conf", "Features=a,gpu Topology=t:s1 Weight=10 CoreSpecCount=2 MemSpecLimit=100"],
        ),
        # An empty topology: no key, or Slurm would read `Topology= Weight=10` as Topology "Weight=10".
        (f"--conf 'Features=gpu Topology={TOPOLOGY}'", "", {}, ["--conf", "Features=gpu"]),
        (
            f"--conf 'Features=gpu Topology={TOPOLOGY} Weight=10'",
            "",
            LIMITS,
            ["--conf", "Features=gpu Weight=10 CoreSpecCount=2 MemSpecLimit=100"],
        ),
        # A topology in several parts stays one value.
        (
            f"--conf 'Features=gpu Topology={TOPOLOGY}'",
            "a:b,c:d:e",
            {},
            ["--conf", "Features=gpu Topology=a:b,c:d:e"],
        ),
        ("--conf='Features=gpu'", "", LIMITS, ["--conf=Features=gpu CoreSpecCount=2 MemSpecLimit=100"]),
        ("-Z", "", LIMITS, ["-Z", "--conf", "CoreSpecCount=2 MemSpecLimit=100"]),
        ("-Z -v", "", {}, ["-Z", "-v"]),
        (
            "--conf-server h:6817",
            "",
            LIMITS,
            ["--conf-server", "h:6817", "--conf", "CoreSpecCount=2 MemSpecLimit=100"],
        ),
        # slurmd uses the last one.
        ("--conf A=1 --conf B=2", "", {"C": "3"}, ["--conf", "A=1", "--conf", "B=2 C=3"]),
        # What the user says wins, in any case of letters.
        (
            "--conf 'Corespeccount=1 Gres=gpu:2'",
            "",
            LIMITS,
            ["--conf", "Corespeccount=1 Gres=gpu:2 MemSpecLimit=100"],
        ),
    ],
)
def test_arguments(arguments: str, topology: str, extra: dict[str, str], expected: list[str]) -> None:
    words = split(arguments, {"SLINKY_TOPOLOGY": topology})
    assert [word.text for word in with_conf(words, extra)] == expected


def test_a_pod_topology_does_not_replace_the_operators() -> None:
    assert merge_conf("Topology=a:b", {"Topology": "c:d"}) == "Topology=a:b"
    assert merge_conf("Topology= Weight=1", {"Topology": "c:d"}) == "Weight=1 Topology=c:d"


def test_shown_text_keeps_variables_unexpanded() -> None:
    words = split(f"--conf 'Topology={TOPOLOGY}'", {"SLINKY_TOPOLOGY": "a:b"})
    assert [word.shown for word in with_conf(words, {"X": "1"})] == [
        "--conf",
        "Topology=$SLINKY_TOPOLOGY X=1",
    ]


def test_numbers_of_variables() -> None:
    assert [whole_number(text, "N") for text in (None, "", "0", "12", "-3")] == [0, 0, 0, 12, -3]
    with pytest.raises(ValueError, match=r"POD_CPUS must be a whole number, not '1\.5'"):
        whole_number("1.5", "POD_CPUS")

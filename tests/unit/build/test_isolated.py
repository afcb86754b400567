"""Claims about a configuration as it is tried: nothing leads outside, and every line keeps its number."""

import pytest

from coil.build.isolated import host_name, isolated, offending_line

CONF = """\
ClusterName=ns_alba
SlurmctldHost=alba-controller-0(alba-controller-0.alba-controller-internal.ns)
SlurmctldHost=alba-controller-1(alba-controller-1.alba-controller-internal.ns)
SlurmctldAddr=alba-controller.ns
StateSaveLocation=/var/spool/slurmctld/ns_alba
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=alba-accounting
# SlurmctldHost=a-comment
NodeSet=cpu Feature=cpu
PartitionName=cpu Nodes=cpu QOS=high MaxTime=7 AllowQos=a,b
NodeName=old[1-4] NodeAddr=10.0.0.[1-4] CPUs=2
AccountingStorageTRES=gres/gpu
SlurmctldPrimaryOnProg="/bin/page me" SuspendProgram=/bin/off
MaxJobCount=5
"""


def tried(text: str) -> list[str]:
    return isolated({"slurm.conf": text})["slurm.conf"].splitlines()


def test_lines_keep_their_numbers_and_most_of_them_their_text() -> None:
    before, after = CONF.splitlines(), tried(CONF)
    same = {number for number, line in enumerate(before) if after[number] == line}
    assert same == {0, 7, 8, 13}


def test_nothing_that_leads_outside_is_left() -> None:
    after = tried(CONF)
    assert after[1:3] == ["SlurmctldHost=alba-controller-0(127.0.0.1)", "#"]
    assert not {line for number in (3, 4, 5, 6, 11, 12) if (line := after[number].strip())}
    assert after[10].split() == ["NodeName=old[1-4]", "NodeAddr=127.0.0.1", "CPUs=2"]
    tail = after[len(CONF.splitlines()) :]
    assert "AccountingStorageType=accounting_storage/none" in tail
    assert "StateSaveLocation=/tmp/rehearsal/state" in tail


def test_what_only_slurmdbd_knows_is_not_tried_without_it() -> None:
    assert tried(CONF)[9].split() == ["PartitionName=cpu", "Nodes=cpu", "MaxTime=7"]
    without = CONF.replace("accounting_storage/slurmdbd", "accounting_storage/none")
    assert tried(without)[9] == CONF.splitlines()[9]


def test_a_default_for_nodes_stays() -> None:
    assert tried("NodeName=DEFAULT CPUs=2")[0] == "NodeName=DEFAULT CPUs=2"


def test_included_files_are_treated_alike_and_others_are_not_touched() -> None:
    files = {
        "slurm.conf": "Include /etc/slurm/more.conf\n",
        "more.conf": "include deeper.conf\nSlurmctldHost=a(1.2.3.4)\nInclude more.conf\n",
        "deeper.conf": "SlurmctldHost=b(1.2.3.5)\nNodeName=n1\n",
        "topology.conf": "SwitchName=s1 Nodes=n1 QOS=x\n",
    }
    after = isolated(files)
    assert after["more.conf"].splitlines()[1] == "SlurmctldHost=a(127.0.0.1)"
    assert after["deeper.conf"].splitlines() == ["#", "NodeName=n1 NodeAddr=127.0.0.1"]
    assert after["topology.conf"] == files["topology.conf"]


@pytest.mark.parametrize(
    ("text", "name"),
    [(CONF, "alba-controller-0"), ("SlurmctldHost=own\n", "own"), ("", "default")],
)
def test_the_machine_is_named_as_the_first_slurmctld(text: str, name: str) -> None:
    assert host_name(text, "default") == name


FILES = {
    "slurm.conf": "ClusterName=x\nMaxJobCoont=5\nMaxJobCount=foo\nPartitionName=q Nodes=a MaxTime=soon\n"
    "# SwichName=no\n",
    "topology.conf": "SwichName=s1\n",
}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "_parse_next_key: Parsing error at unrecognized key: MaxJobCoont",
            "slurm.conf line 2: MaxJobCoont=5",
        ),
        ("MaxJobCount value (foo) is not a valid number", "slurm.conf line 3: MaxJobCount=foo"),
        (
            "_parse_next_key: Parsing error at unrecognized key: SwichName",
            "topology.conf line 1: SwichName=s1",
        ),
        ('Parse error in file /etc/slurm/slurm.conf line 1: " x"', "slurm.conf line 1: ClusterName=x"),
        ("Parse error in file /etc/slurm/slurm.conf line 99: x", ""),
        ("Invalid node names in partition q", f"slurm.conf line 4: {FILES['slurm.conf'].splitlines()[3]}"),
        ("Unable to process configuration file", ""),
    ],
)
def test_the_line_that_slurmctld_speaks_of_is_found(said: str, line: str) -> None:
    assert offending_line(said, FILES) == line

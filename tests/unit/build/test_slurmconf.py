"""The text of slurm.conf (spec: control-plane 5.2); whole files are compared in tests/golden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.api.nodeset import NodeSet
from coil.build.errors import BuildError
from coil.build.slurmconf import ConfigInputs, config_files, nodeset_problem, partition_problem
from tests.support.resources import accounting, controller, nodeset

HA = {"ha": {"enabled": True, "backups": 1}, "persistence": {"enabled": True, "existingClaim": "state"}}
EXAMPLE = """\
#
### GENERAL ###
ClusterName=ns_slurm
SlurmUser=slurm
SlurmctldHost=slurm-controller-0(slurm-controller-0.slurm-controller-internal.ns)
SlurmctldHost=slurm-controller-1(slurm-controller-1.slurm-controller-internal.ns)
SlurmctldPort=6817
SlurmctldAddr=slurm-controller.ns
StateSaveLocation=/var/spool/slurmctld/ns_slurm
SlurmdUser=root
SlurmdPort=6818
SlurmdSpoolDir=/var/spool/slurmd
MaxNodeCount=1024
#
### LOGGING ###
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmSchedLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
#
### PLUGINS & PARAMETERS ###
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless,reconfig_on_restart
#
### ACCOUNTING ###
AccountingStorageType=accounting_storage/none
"""


def _conf(inputs: ConfigInputs | None = None, **spec: object) -> str:
    return config_files(controller(**spec), inputs or ConfigInputs())["slurm.conf"]


def _lines(inputs: ConfigInputs | None = None, **spec: object) -> list[str]:
    return _conf(inputs, **spec).splitlines()


def _effective(key: str, text: str) -> str:
    """The value Slurm uses: that of the last line with the key, whatever its case."""
    found = [
        line.partition("=")[2] for line in text.splitlines() if line.lower().startswith(f"{key.lower()}=")
    ]
    return found[-1]


def test_example_of_the_specification() -> None:
    """With the one line that coil adds where there are backups (docs: compatibility)."""
    added = EXAMPLE.replace("MaxNodeCount=1024\n", "MaxNodeCount=1024\nSlurmctldTimeout=15\n")
    assert _conf(**HA) == added


@pytest.mark.parametrize("extra", ["SlurmctldTimeout=60", "DebugFlags=x\nslurmctldtimeout = 60"])
def test_backups_take_over_soon_unless_the_user_says_when(extra: str) -> None:
    assert _effective("SlurmctldTimeout", _conf(**HA)) == "15"
    assert "SlurmctldTimeout=15" not in _conf(**HA, extraConf=extra)
    assert "SlurmctldTimeout" not in _conf()


def test_mandatory_options_survive_the_user_list() -> None:
    """Field case CFG-06 and a conformance check of the specification."""
    text = _conf(extraConf="SlurmctldParameters=Enable_Stepmgr,enable_configless")
    assert text.splitlines()[-1] == "SlurmctldParameters=enable_configless,enable_stepmgr,reconfig_on_restart"
    assert _effective("SlurmctldParameters", _conf(extraConf="SlurmctldParameters=idle_on_node_suspend")) == (
        "enable_configless,idle_on_node_suspend,reconfig_on_restart"
    )


def test_comments_repetitions_and_continued_lines_are_read_as_slurm_does() -> None:
    """Field case CFG-07."""
    text = _conf(
        extraConf="#SlurmctldParameters=reboot_from_controller\n"
        "SlurmctldParameters=idle_on_node_suspend\nSlurmctldParameters=\\\npower_save_interval=30\n"
    )
    assert _effective("SlurmctldParameters", text) == (
        "enable_configless,power_save_interval=30,reconfig_on_restart"
    )


@pytest.mark.parametrize("given", ["max_token_lifespan=300,", "jwt_key=/mine,max_token_lifespan=300"])
def test_options_with_a_value_and_trailing_commas(given: str) -> None:
    """Field case CFG-08."""
    assert _effective("AuthAltParameters", _conf(extraConf=f"AuthAltParameters={given}")) == (
        "jwt_key=/etc/slurm/jwt.key,max_token_lifespan=300"
    )


def test_the_order_of_nodesets_in_the_cache_does_not_matter() -> None:
    """Field case CFG-01."""
    alpha, beta = nodeset("alpha", partition={"enabled": True}), nodeset("beta")
    first = _conf(ConfigInputs(nodesets=[beta, alpha]))
    assert first == _conf(ConfigInputs(nodesets=[alpha, beta]))
    assert "NodeSet=alpha Feature=alpha\nPartitionName=alpha Nodes=alpha \nNodeSet=beta" in first


def test_nodesets_of_other_clusters_are_left_out() -> None:
    other = nodeset("gpu", controllerRef={"name": "other"})
    elsewhere = nodeset("cpu", metadata={"namespace": "elsewhere"})
    assert "NODESET" not in _conf(ConfigInputs(nodesets=[other, elsewhere]))


@pytest.mark.parametrize(
    "config",
    [
        "State=UP\nPrologSlurmctld=/tmp/own.sh",
        "State=UP\rProlog=x",
        "State=UP\\",
        "State=UP\u2028X=1",
        "a\0b",
    ],
)
def test_a_partition_cannot_add_a_line(config: str) -> None:
    """Field case INJ-01: the schema refuses it, and a renderer that gets it anyway harms nobody else."""
    bad = nodeset("bad", partition={"enabled": True, "config": config})
    good = nodeset("good", partition={"enabled": True, "config": "State=UP"})
    lines = _lines(ConfigInputs(nodesets=[bad, good]))
    assert [line for line in lines if "good" in line] == [
        "NodeSet=good Feature=good",
        "PartitionName=good Nodes=good State=UP",
    ]
    assert not [line for line in lines if "bad" in line or "Prolog" in line]
    assert "spec.partition.config" in nodeset_problem(bad)


@pytest.mark.parametrize("hostname", ["a#b", "a=b", "x,y", "a;b", 'a"b', "é"])
def test_a_host_name_that_slurm_would_misread_takes_only_its_own_lines_away(hostname: str) -> None:
    bad = nodeset("bad", template={"spec": {"hostname": hostname}})
    assert "spec.template.spec.hostname" in nodeset_problem(bad)
    assert "NODESET" not in _conf(ConfigInputs(nodesets=[bad]))


@pytest.mark.parametrize("extra", ["PartitionName=gpu Nodes=ALL", "Foo=1\n partitionname = gpu\n"])
def test_a_partition_of_the_user_is_not_defined_again(extra: str) -> None:
    """Slurmctld ends on a second line for a partition (measured with Slurm 26.05)."""
    text = _conf(ConfigInputs(nodesets=[nodeset("gpu", partition={"enabled": True})]), extraConf=extra)
    assert "NodeSet=gpu" in text
    assert text.lower().replace(" ", "").count("partitionname=gpu") == 1


def test_two_nodesets_with_one_name_make_one_partition() -> None:
    def with_prefix(name: str) -> NodeSet:
        return nodeset(
            name,
            template={"spec": {"hostname": "gpu-"}},
            partition={"enabled": True, "config": f"MaxTime={len(name)}"},
        )

    found = [with_prefix("bb"), with_prefix("a")]
    lines = _lines(ConfigInputs(nodesets=found))
    assert [line for line in lines if line.startswith("Part")] == ["PartitionName=gpu Nodes=gpu MaxTime=1"]
    assert "is that of NodeSet a" in partition_problem(controller(), found[0], found)
    assert partition_problem(controller(), found[1], found) == ""


def test_no_partition_is_called_default() -> None:
    """Slurm takes such a line as defaults for all partitions after it."""
    lines = _lines(ConfigInputs(nodesets=[nodeset("default", partition={"enabled": True})]))
    assert not [line for line in lines if "PartitionName" in line]


def test_the_host_name_prefix_names_the_nodes() -> None:
    """Field case REG-10, for the configuration."""
    lines = _lines(ConfigInputs(nodesets=[nodeset("worker-gpu", template={"spec": {"hostname": "-gpu- x"}})]))
    assert lines[-1] == "NodeSet=gpu Feature=gpu"


@pytest.mark.parametrize("name", ["a b", "a\nSlurmUser=root", "a SlurmUser=root", "a#", "a\\", "a,b", "x=y"])
def test_a_cluster_name_is_one_word(name: str) -> None:
    """Invariant I9: Slurm reads several parameters from one line."""
    with pytest.raises(BuildError, match="ClusterName"):
        _conf(clusterName=name)


@given(st.text(min_size=1, max_size=40))
def test_no_text_in_a_cluster_name_makes_another_parameter(name: str) -> None:
    try:
        lines = _lines(clusterName=name)
    except BuildError:
        return
    expected = EXAMPLE.replace("ns_slurm", name).splitlines()
    assert lines == [line for line in expected if "slurm-controller-1" not in line]


@pytest.mark.parametrize("spelling", ["CgroupPlugin=disabled", "cgroupplugin = DISABLED  # off"])
def test_without_cgroups_no_plugin_needs_them(spelling: str) -> None:
    """Field cases CFG-03 and CFG-04: the default process tracking ends slurmd at start then."""
    files = {"site": {"cgroup.conf": f"# CgroupPlugin=cgroup/v2\n{spelling}\n"}}
    generated = config_files(controller(configFileRefs=[{"name": "site"}]), ConfigInputs(config_maps=files))
    text = generated["slurm.conf"]
    assert "cgroup.conf" not in generated
    assert _effective("ProctrackType", text) == "proctrack/linuxproc"
    for needs_cgroups in ("PrologFlags", "enable_stepmgr", "task/cgroup", "cgroup/v2"):
        assert needs_cgroups not in text


def test_the_choice_of_the_user_for_process_tracking_is_left_alone() -> None:
    files = {"site": {"cgroup.conf": "CgroupPlugin=disabled"}}
    text = _conf(
        ConfigInputs(config_maps=files),
        configFileRefs=[{"name": "site"}],
        extraConf="proctracktype=proctrack/pgid",
    )
    assert text.lower().count("proctracktype") == 1


@pytest.mark.parametrize("text", ["CgroupPlugin=autodetect", "#CgroupPlugin=disabled", ""])
def test_with_cgroups_process_tracking_is_left_to_slurm(text: str) -> None:
    inputs = ConfigInputs(config_maps={"site": {"cgroup.conf": text}})
    assert "ProctrackType" not in _conf(inputs, configFileRefs=[{"name": "site"}])


def test_scripts_are_pooled_and_sorted_whatever_the_order_of_references() -> None:
    inputs = ConfigInputs(config_maps={"b": {"20.sh": "", "05.sh": ""}, "a": {"10.sh": "", "20.sh": ""}})
    refs = [{"name": "b"}, {"name": "a"}]
    lines = _lines(inputs, prologScriptRefs=refs, epilogSlurmctldScriptRefs=refs)
    assert [line for line in lines if line.startswith("Prolog=")] == [
        "Prolog=05.sh",
        "Prolog=10.sh",
        "Prolog=20.sh",
        "Prolog=20.sh",
    ]
    assert "EpilogSlurmctld=/etc/slurm/05.sh" in lines


def test_a_missing_config_map_is_told() -> None:
    with pytest.raises(BuildError, match=r"spec\.epilogScriptRefs: there is no ConfigMap 'absent'"):
        _conf(epilogScriptRefs=[{"name": "absent"}])


def test_accounting_inside_and_outside_the_cluster() -> None:
    assert _lines(ConfigInputs(accounting=accounting()))[-3:] == [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=acct-accounting",
        "AccountingStoragePort=6819",
    ]
    outside = accounting(external=True, externalConfig={"host": "dbd.example", "port": 6919})
    assert _lines(ConfigInputs(accounting=outside))[-2:] == [
        "AccountingStorageHost=dbd.example",
        "AccountingStoragePort=6919",
    ]


def test_an_external_host_is_one_word() -> None:
    outside = accounting(external=True, externalConfig={"host": "a\nProlog=x", "port": 1})
    with pytest.raises(BuildError, match="AccountingStorageHost"):
        _conf(ConfigInputs(accounting=outside))


def test_an_external_controller_has_only_what_slurmrestd_needs() -> None:
    files = config_files(
        controller(external=True, externalConfig={"host": "ctl.example", "port": 7017}, extraConf="A=b"),
        ConfigInputs(nodesets=[nodeset()]),
    )
    assert set(files) == {"slurm.conf"}
    assert "SlurmctldHost=ctl.example\nSlurmctldPort=7017\n" in files["slurm.conf"]
    assert "NODESET" not in files["slurm.conf"]
    assert "EXTRA" not in files["slurm.conf"]


@given(st.text(max_size=60))
def test_extra_text_stays_in_its_section(text: str) -> None:
    """Invariant I9: what comes before the user's section does not depend on its text."""
    whole = _conf(extraConf=text)
    section = "#\n### EXTRA CONFIG ###\n" if text else ""
    assert whole.startswith(_conf() + section)

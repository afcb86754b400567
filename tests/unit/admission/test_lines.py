"""Claim: whatever text admission lets pass, it stays on its own line of a generated file (I9, quirk Q9)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coil.admission import accounting, controller, nodeset
from coil.admission.facts import NOTHING
from coil.build import accounting as build_accounting
from coil.build.errors import BuildError
from coil.build.slurmconf import ConfigInputs, config_files
from tests.support import resources

HOSTILE = st.text(
    alphabet=st.one_of(st.sampled_from("\n\r\v\f\x85\u2028\\#=,;'\" \t\0ab-"), st.characters()), max_size=12
)


def slurm_conf(made: object, *nodesets: object) -> str:
    inputs = ConfigInputs(nodesets=list(nodesets))  # pyright: ignore[reportArgumentType]
    return config_files(made, inputs)["slurm.conf"]  # pyright: ignore[reportArgumentType]


@given(HOSTILE)
@example("a\nPrologSlurmctld=/tmp/x")
@example("a PrologSlurmctld=/tmp/x")
def test_cluster_names(text: str) -> None:
    made = resources.controller(clusterName=text or "a")
    if controller.validate(None, made, NOTHING).errors:
        return
    lines = slurm_conf(made).splitlines()
    assert len(lines) == len(slurm_conf(resources.controller(clusterName="a")).splitlines())
    assert lines.count(f"ClusterName={text or 'a'}") == 1


@given(HOSTILE)
@example("ctld\nPluginDir=/tmp")
def test_hosts_outside(text: str) -> None:
    made = resources.controller(external=True, externalConfig={"host": text, "port": 6817})
    if not controller.validate(None, made, NOTHING).errors:
        assert f"\nSlurmctldHost={text}\n" in slurm_conf(made)
        assert len(text.split()) == 1


@given(config=HOSTILE, hostname=HOSTILE)
@example(config="State=UP\\", hostname="gpu-")
@example(config="State=UP", hostname="gpu\nPluginDir=/tmp")
def test_nodesets(config: str, hostname: str) -> None:
    partition = {"enabled": True, "config": config}
    made = resources.nodeset(partition=partition, template={"spec": {"hostname": hostname}})
    if nodeset.validate(None, made, NOTHING).errors:
        return
    plain = resources.nodeset(partition={"enabled": True, "config": "State=UP"})
    wanted = len(slurm_conf(resources.controller(), plain).splitlines())
    assert len(slurm_conf(resources.controller(), made).splitlines()) <= wanted


@pytest.mark.parametrize("member", ["host", "database", "username"])
@given(text=HOSTILE)
@example(text="db\nStoragePass=x")
def test_databases(member: str, text: str) -> None:
    plain = {"host": "db", "database": "d", "username": "u", "passwordKeyRef": {"name": "db", "key": "pw"}}
    made = resources.accounting(storageConfig={**plain, member: text})
    if accounting.validate(None, made, NOTHING).errors:
        return
    try:
        lines = build_accounting.slurmdbd_conf(made, b"pw").splitlines()
    except BuildError:  # told as a warning; nothing is written
        assert any("no pod can be made" in text for text in accounting.validate(None, made, NOTHING).warnings)
        return
    wanted = build_accounting.slurmdbd_conf(resources.accounting(storageConfig=plain), b"pw").splitlines()
    assert len(lines) <= len(wanted)  # an empty member has no line

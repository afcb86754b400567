"""Random valid custom resources: what is rendered of them is always read by Slurm's own programs.

`COIL_EXAMPLES` gives the number, 200 being the long form. slurm.conf is read by scontrol, which ends with an
error where it does not know a parameter; slurmdbd.conf by slurmdbd, up to its first word about the database.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from coil.admission import accounting as accounting_rules
from coil.admission import controller as controller_rules
from coil.admission import nodeset as nodeset_rules
from coil.admission.facts import NOTHING
from coil.build.accounting import slurmdbd_conf
from coil.build.errors import BuildError
from coil.build.slurmconf import ConfigInputs, config_files
from tests.support import resources, slurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]

EXAMPLES = int(os.environ.get("COIL_EXAMPLES", "40"))

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
EXTRA = st.lists(
    st.sampled_from(
        [
            *(
                "MinJobAge=60",
                "SlurmctldParameters=idle_on_node_suspend",
                "# a comment",
                "",
                "MailDomain=x.y",
            ),
            *("PropagateResourceLimits=NONE", "SlurmctldParameters=\\\npower_save_interval=30,"),
            *("AuthAltParameters=max_token_lifespan=300", "PriorityType=priority/multifactor"),
            *("GresTypes=gpu", "ReturnToService=2"),
        ]
    ),
    max_size=4,
).map("\n".join)
PARTITION = st.lists(
    st.sampled_from(["State=UP", "MaxTime=60", "Default=YES", "OverSubscribe=FORCE:2", "PriorityTier=3"]),
    unique=True,
).map(" ".join)


def given_members(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of these members."""
    return st.fixed_dictionaries({}, optional=members)


REFS = st.lists(NAMES.map(lambda name: {"name": name}), max_size=2)
CONTROLLERS = given_members(
    clusterName=st.from_regex(r"[a-z0-9_]{1,40}", fullmatch=True),
    extraConf=EXTRA,
    inplaceReconfigure=st.booleans(),
    metrics=st.fixed_dictionaries({"enabled": st.booleans()}),
    jwksKeyRef=st.just({"name": "jwks", "key": "jwks.json"}),
    prologScriptRefs=REFS,
    epilogScriptRefs=REFS,
    prologSlurmctldScriptRefs=REFS,
    epilogSlurmctldScriptRefs=REFS,
    configFileRefs=REFS,
    ha=st.fixed_dictionaries({"enabled": st.booleans(), "backups": st.integers(1, 3)}),
    persistence=st.just({"enabled": True, "existingClaim": "state"}),
)
NODESETS = given_members(
    partition=st.fixed_dictionaries({"enabled": st.booleans(), "config": PARTITION}),
    template=st.fixed_dictionaries({"spec": given_members(hostname=NAMES.map(lambda name: f"{name}-"))}),
    extraConf=st.sampled_from(["", "Weight=5", "Weight=5 Gres=gpu:1"]),
)
OUTSIDE = st.fixed_dictionaries({"host": st.just("dbd.example.test"), "port": st.integers(1, 65535)})
STORAGE = st.fixed_dictionaries(
    {"host": NAMES, "port": st.integers(1, 65535), "passwordKeyRef": st.just({"name": "db", "key": "pw"})},
    optional={"database": TEXT, "username": TEXT | st.just("")},
)


class AnyFiles(dict[str, dict[str, str]]):
    """Every ConfigMap exists and has a file of its own name."""

    def get(self, key: str, default: Any = None) -> Any:
        del default
        return {f"{key}.sh": ""}


@st.composite
def slurm_confs(draw: st.DrawFn) -> str:
    """slurm.conf of a cluster that admission accepts."""
    made = resources.controller(draw(NAMES), **draw(CONTROLLERS))
    assume(not controller_rules.validate(None, made, NOTHING).errors)
    nodesets = [
        resources.nodeset(name, **{**draw(NODESETS), "controllerRef": {"name": made.metadata.name}})
        for name in draw(st.lists(NAMES, unique=True, max_size=4))
    ]
    assume(not any(nodeset_rules.validate(None, nodeset, NOTHING).errors for nodeset in nodesets))
    dbd = draw(st.none() | OUTSIDE)
    keeps = resources.accounting(external=True, externalConfig=dbd) if dbd else None
    inputs = ConfigInputs(nodesets=nodesets, accounting=keeps, config_maps=AnyFiles())
    return config_files(made, inputs)["slurm.conf"]


@st.composite
def slurmdbd_confs(draw: st.DrawFn) -> str:
    """slurmdbd.conf of an Accounting that admission accepts, with any password that can be written."""
    options = st.sampled_from(["", "CommitDelay=1", "PurgeJobAfter=12months\n# x"])
    made = resources.accounting(draw(NAMES), storageConfig=draw(STORAGE), extraConf=draw(options))
    assume(not accounting_rules.validate(None, made, NOTHING).errors)
    try:
        return slurmdbd_conf(made, draw(TEXT | st.just("")).encode())
    except BuildError:
        assume(False)  # noqa: FBT003 -- told to the user; there is no file to read
        raise


def examples(strategy: st.SearchStrategy[str]) -> Sequence[str]:
    """Always the same texts."""
    found: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(strategy)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[slurm.SlurmCluster]:
    """Folders of a cluster; no daemon runs."""
    made = slurm.SlurmCluster(tmp_path / "state")
    yield made
    made.stop()


def run(cluster: slurm.SlurmCluster, script: str) -> list[str]:
    """Run a shell over Slurm's tree, once for all files: a start costs more than a file."""
    scratch = cluster.state / "scratch"
    scratch.mkdir()
    process = cluster.enter("ctl", scratch, "sh", "-c", script, output=subprocess.PIPE)
    text, _ = process.communicate(timeout=500)
    return text.decode(errors="replace").splitlines()


def put(cluster: slurm.SlurmCluster, texts: Sequence[str]) -> None:
    for number, text in enumerate(texts):
        path = cluster.state / "etc" / f"case-{number:04}"
        path.write_text(text)
        path.chmod(0o600)
        os.chown(path, slurm.SLURM, slurm.SLURM)


SCONTROL = """
for file in /etc/slurm/case-*; do
  echo "== $file"
  SLURM_CONF=$file timeout 20 scontrol show hostnames 'a[1-2]' 2>&1 || echo "ended with $?"
done
"""


def test_slurm_conf_is_always_read(idle: slurm.SlurmCluster) -> None:
    texts = examples(slurm_confs())
    put(idle, [*texts, "ClusterName=x\nSlurmctldHost=x\nNoSuchParameter=1\n"])
    said = "\n".join(run(idle, SCONTROL)).split("== /etc/slurm/case-")[1:]
    assert "NoSuchParameter" in said.pop(), "scontrol does not tell what it cannot read"
    assert len(said) == len(texts) >= EXAMPLES // 2
    for text, answer in zip(texts, said, strict=True):
        assert answer.splitlines()[1:] == ["a1", "a2"], f"{answer}\n{text}"


SLURMDBD = """
mkdir -p /run/slurmdbd && chown slurm /run/slurmdbd
for file in /etc/slurm/case-*; do
  echo "== $file"
  cp -p $file /etc/slurm/slurmdbd.conf
  sed -i 's/^DbdHost=.*/DbdHost=localhost/; s/^StorageHost=.*/StorageHost=127.0.0.1/' /etc/slurm/slurmdbd.conf
  : >/tmp/said
  slurmdbd -D -vvvvv >/tmp/said 2>&1 &
  for try in $(seq 1000); do
    grep -m 1 -E 'called for db|fatal|error: .*(pars|Pars)' /tmp/said && break
    sleep 0.02
  done
  kill -9 $!
  wait $! 2>/dev/null
done
"""


def test_slurmdbd_conf_is_always_read(idle: slurm.SlurmCluster) -> None:
    texts = examples(slurmdbd_confs())
    put(idle, [*texts, "DbdHost=x\nNoSuchParameter=1\n"])
    said = "\n".join(run(idle, SLURMDBD)).split("== /etc/slurm/case-")[1:]
    assert "called for db" not in said.pop(), "slurmdbd takes what it cannot read"
    assert len(said) == len(texts) >= EXAMPLES // 2
    for text, answer in zip(texts, said, strict=True):
        assert "called for db" in answer, f"{answer}\n{text}"

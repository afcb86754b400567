"""What a stopping worker says to Slurm: run for real, with a `scontrol` that only plays a record.

The records are as Slurm 26.05 prints them; tests/slurm asks a real slurmctld.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from coil.build import scripts

SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
OURS = "slurm-operator: Pod is terminating"
RECORD = """\
NodeName=gpu-0 Arch=x86_64 CoresPerSocket=1\x20
   CPUAlloc=0 CPUEfctv=1 CPUTot=1 CPULoad=0.00
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   CurrentWatts=0 AveWatts=0
{reason}   Comment={{"namespace":"ns","podName":"gpu-0"}}
   Extra=Reason=none [root@2026-11-30T18:32:38]

"""
SCONTROL = """\
#!/bin/sh
if [ "$1" = show ]; then
    [ "$*" = "show node gpu-0" ] || exit 9
    [ -e record ] || { echo "Unable to contact slurm controller" >&2; exit 1; }
    cat record
else
    printf '%s\\0' "$@" >said
fi
"""


def printed(reason: str, given: str = " [root@2026-11-30T18:32:38]") -> str:
    """The lines of a record that tell a reason; more lines of it are indented below the first."""
    first, *more = reason.splitlines()
    return "".join([f"   Reason={first}{given}\n", *(f"          {line}\n" for line in more)])


def recorded(reason: str, state: str) -> str:
    """A whole record."""
    return RECORD.format(reason=reason, state=state)


def goodbye(shell: str, folder: Path, record: str | None) -> tuple[int, list[str]]:
    """Run the script in a worker called gpu-0; its exit status, and with what Slurm was updated."""
    for name, text in (("scontrol", SCONTROL), ("hostname", "#!/bin/sh\necho gpu-0\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    if record is not None:
        (folder / "record").write_text(record)
    command = [shell, *(["sh"] if shell == "busybox" else []), "-c", scripts.GOODBYE]
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    ended = subprocess.run(command, cwd=folder, env=environment, check=False, timeout=10, capture_output=True)
    said = folder / "said"
    return ended.returncode, said.read_text().split("\0")[:-1] if said.exists() else []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "reason",
    [
        "bad fan",
        "Not responding",
        "Not responding to IPMI, RMA 12 [rack 4]",
        "see mail of ops@example.com [urgent]",
        'it\'s "quoted", $(touch pwned) `touch pwned` \\1 & | ; * ~',
        "  blanks  inside and around  ",
        "umlauts: äöü",
        "first line\nsecond line",
        "mentions slurm-operator: Pod is terminating",
        "slurm-operator without the colon",
        "slurm-operator: cordoned : reboot requested",
        "-n",
        '"all of it quoted"',
    ],
)
@pytest.mark.parametrize("given", [" [root@2026-11-30T18:32:38]", " [401@Unknown]", ""])
def test_a_foreign_reason_is_given_again_as_it_was(
    shell: str, reason: str, given: str, tmp_path: Path
) -> None:
    """Invariant I3."""
    if given or not reason.endswith("]"):
        record = recorded(printed(reason, given), "MIXED+DRAIN+DYNAMIC_NORM")
        status, said = goodbye(shell, tmp_path, record)
        assert (status, said) == (0, ["update", "nodename=gpu-0", "state=down", f'reason="{reason}"'])
        assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("reason", ["", printed(OURS), printed("slurm-operator: NodeSet gpu scales in")])
def test_an_empty_reason_or_one_of_ours_becomes_the_good_bye(shell: str, reason: str, tmp_path: Path) -> None:
    status, said = goodbye(shell, tmp_path, recorded(reason, "IDLE+DRAIN+DYNAMIC_NORM"))
    assert (status, said) == (0, ["update", "nodename=gpu-0", "state=down", f'reason="{OURS}"'])


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("state", "left"),
    [
        ("IDLE+DRAIN+DYNAMIC_NORM", True),
        ("IDLE+MAINTENANCE+DRAIN+DYNAMIC_NORM", True),
        ("IDLE+DYNAMIC_NORM", False),
        ("IDLE+COMPLETING+DRAIN+DYNAMIC_NORM", False),
        ("ALLOCATED+DRAIN+DYNAMIC_NORM", False),
        ("DOWN+DRAIN+DYNAMIC_NORM", False),
    ],
)
def test_a_drained_node_of_somebody_else_without_jobs_is_left_as_it_is(
    shell: str, state: str, left: bool, tmp_path: Path
) -> None:
    status, said = goodbye(shell, tmp_path, recorded(printed("bad fan /IDLE+DRAIN"), state))
    assert (status, not said) == (0, left)


@pytest.mark.parametrize("shell", SHELLS)
def test_while_the_reason_is_unknown_nothing_is_said(shell: str, tmp_path: Path) -> None:
    """Invariant I2; the kubelet records that the hook failed."""
    status, said = goodbye(shell, tmp_path, None)
    assert (status != 0, said) == (True, [])

"""The inline scripts, run for real with the shells they are written for."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from coil.build import scripts

SHELLS = [shell for shell in ("sh", "bash", "busybox") if shutil.which(shell)]
Script = subprocess.Popen[str]


def _command(shell: str, text: str) -> list[str]:
    return [shell, *(["sh"] if shell == "busybox" else []), "-c", text]


@pytest.fixture
def started() -> Iterator[list[Script]]:
    """Scripts to end after the test, whatever came of it; each is a process group of its own."""
    running: list[Script] = []
    yield running
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _start(started: list[Script], command: list[str], **environment: str) -> Script:
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    started.append(process)
    return process


def _line(process: Script) -> str:
    assert process.stdout
    return process.stdout.readline().rstrip("\n")


def _open_fifo(path: Path, process: Script) -> IO[str]:
    """Open the FIFO for writing once the script has made it; opening waits for a reader."""
    while not path.is_fifo():
        assert process.poll() is None
        os.sched_yield()
    return path.open("w")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_log_is_printed_again_and_again(shell: str, tmp_path: Path, started: list[Script]) -> None:
    log = tmp_path / "deep" / "slurmctld.log"
    process = _start(started, _command(shell, scripts.LOGFILE), SOCKET=str(log))
    for round_number in range(2):
        with _open_fifo(log, process) as fifo:
            fifo.write(f"line {round_number}\n")
        assert _line(process) == f"line {round_number}"
    assert stat.S_IMODE(log.stat().st_mode) == 0o777


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_in_the_way_is_replaced(shell: str, tmp_path: Path, started: list[Script]) -> None:
    log = tmp_path / "slurmd.log"
    log.write_text("old log\n")
    process = _start(started, _command(shell, scripts.LOGFILE), SOCKET=str(log))
    with _open_fifo(log, process) as fifo:
        fifo.write("new\n")
    assert _line(process) == "new"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_fifo_that_is_there_is_kept(shell: str, tmp_path: Path, started: list[Script]) -> None:
    """A restarted sidecar must not orphan the daemon, which has the FIFO open."""
    log = tmp_path / "slurmd.log"
    os.mkfifo(log)
    inode = log.stat().st_ino
    process = _start(started, _command(shell, scripts.LOGFILE), SOCKET=str(log))
    with _open_fifo(log, process) as fifo:
        fifo.write("still here\n")
    assert _line(process) == "still here"
    assert log.stat().st_ino == inode


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 1), (signal.SIGHUP, 1)], ids=str
)
def test_signals_end_it_at_once(
    shell: str, number: signal.Signals, status: int, tmp_path: Path, started: list[Script]
) -> None:
    log = tmp_path / "slurmd.log"
    process = _start(started, _command(shell, scripts.LOGFILE), SOCKET=str(log))
    with _open_fifo(log, process):
        process.send_signal(number)
        assert process.wait(timeout=5) == status


def test_the_log_sidecar_needs_a_socket() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SOCKET"}
    ended = subprocess.run(
        _command("sh", scripts.LOGFILE), env=environment, capture_output=True, check=False, timeout=5
    )
    assert ended.returncode != 0
    assert b"SOCKET" in ended.stderr


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """A folder for PATH with a `scontrol` that fails once and then succeeds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    scontrol = folder / "scontrol"
    scontrol.write_text(
        '#!/bin/sh\n[ "$1" != show ] || { cat "$0.hash" 2>/dev/null; exit; }\n'
        'echo "scontrol $*"\n[ -e "$0.asked" ] || { touch "$0.asked"; exit 1; }\n'
    )
    scontrol.chmod(0o755)
    return folder


def _publish(config: Path, version: str, text: str) -> None:
    """Write files as the kubelet does: a new folder, then a link that is changed in one step."""
    (config / f"..{version}").mkdir()
    (config / f"..{version}" / "slurm.conf").write_text(text)
    link = config / "..new"
    link.symlink_to(f"..{version}")
    link.rename(config / "..data")


def _sidecar(started: list[Script], config: Path, slurm: Path) -> Script:
    process = _start(
        started,
        ["bash", "-c", scripts.RECONFIGURE],
        CONFIG_DIR=str(config),
        CHECK_PERIOD="0.1",
        RETRY_PERIOD="0.1",
        YIELD_PERIOD="0.1",
        PATH=f"{slurm}:{os.environ['PATH']}",
    )
    assert _line(process).endswith(f"watching {config}")
    return process


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration folder as the kubelet projects it."""
    folder = tmp_path / "etc"
    folder.mkdir()
    _publish(folder, "1", "ClusterName=a\n")
    (folder / "slurm.conf").symlink_to("..data/slurm.conf")
    return folder


def test_a_change_reaches_slurmctld_once(config: Path, slurm: Path, started: list[Script]) -> None:
    process = _sidecar(started, config, slurm)
    _publish(config, "2", "ClusterName=a\n")
    _publish(config, "3", "ClusterName=a\nMaxJobCount=7\n")
    lines = [_line(process) for _ in range(5)]
    assert [line.partition("Z ")[2] or line for line in lines] == [
        "configuration changed",
        "scontrol reconfigure",
        "slurmctld did not take it, trying again",
        "scontrol reconfigure",
        "slurmctld runs with the new configuration",
    ]
    _publish(config, "4", "ClusterName=a\nMaxJobCount=8\n")
    assert _line(process).endswith("configuration changed")


def test_what_slurmctld_has_from_the_operator_is_not_told_again(
    config: Path, slurm: Path, started: list[Script]
) -> None:
    process = _sidecar(started, config, slurm)
    (slurm / "scontrol.hash").write_text("HASH_VAL                = Match\n")
    _publish(config, "2", "ClusterName=a\nMaxJobCount=7\n")
    assert _line(process).endswith("configuration changed")
    assert _line(process).endswith("slurmctld runs with the new configuration")


def test_files_that_are_not_accepted_yet_are_no_change(
    config: Path, slurm: Path, started: list[Script]
) -> None:
    """The kubelet brings files of other ConfigMaps by itself; slurm.conf speaks of them once they are."""
    process = _sidecar(started, config, slurm)
    (config / "gres.conf").write_text("Nmae=gpu\n")
    _publish(config, "2", "ClusterName=a\n# Files beside this one: 1\n")
    assert _line(process).endswith("configuration changed")
    assert not [line for line in (_line(process),) if "changed" in line]


def test_the_reconfigure_sidecar_ends_on_term(config: Path, slurm: Path, started: list[Script]) -> None:
    process = _sidecar(started, config, slurm)
    process.terminate()
    assert process.wait(timeout=5) == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_configuration_is_copied_with_the_modes_slurm_wants(shell: str, tmp_path: Path) -> None:
    """Field case OVR-06: numeric ids and plain sh only, so any image does."""
    source, target = tmp_path / "mnt", tmp_path / "etc" / "slurm"
    source.mkdir()
    _publish(source, "1", "ClusterName=a\n")
    for name in ("slurmdbd.conf", "slurm.key", "notes.txt"):
        (source / "..1" / name).write_text(name)
        (source / name).symlink_to(f"..data/{name}")
    ended = subprocess.run(
        _command(shell, scripts.INITCONF),
        env={
            **os.environ,
            "SOURCE_DIR": str(source),
            "TARGET_DIR": str(target),
            "CONFIG_OWNER": f"{os.getuid()}:{os.getgid()}",
        },
        capture_output=True,
        check=False,
        text=True,
        timeout=10,
    )
    assert ended.returncode == 0, ended.stderr
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in target.iterdir()}
    assert modes == {"slurm.conf": 0o644, "slurmdbd.conf": 0o600, "slurm.key": 0o600}
    assert "slurm.key" in ended.stdout


def test_scripts_are_safe_to_put_into_a_pod() -> None:
    """`$(NAME)` in a command is expanded by the kubelet when NAME is a variable of the container."""
    for text in (scripts.LOGFILE, scripts.RECONFIGURE, scripts.INITCONF, scripts.GOODBYE, scripts.REHEARSE):
        assert "$(SOCKET)" not in text
        assert "$$" not in text
        assert "\t" not in text


def _rehearse(shell: str, folder: Path, daemon: str, limit_s: int) -> tuple[int, str]:
    """Exit code and termination message of a rehearsal with this text as slurmctld."""
    for name in ("bin", "candidate", "etc"):
        (folder / name).mkdir()
    (folder / "candidate" / "slurm.conf").write_text("ClusterName=a\n")
    if daemon:
        (folder / "bin" / "slurmctld").write_text(f"#!/bin/sh\n{daemon}\n")
        (folder / "bin" / "slurmctld").chmod(0o755)
    ended = subprocess.run(
        _command(shell, scripts.REHEARSE),
        env={
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "CANDIDATE_DIR": str(folder / "candidate"),
            "CONFIG_DIR": str(folder / "etc"),
            "WORK_DIR": str(folder / "work"),
            "MESSAGE_FILE": str(folder / "said"),
            "LIMIT_S": str(limit_s),
        },
        capture_output=True,
        check=False,
        timeout=40,
    )
    return ended.returncode, (folder / "said").read_text()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("daemon", "code", "said"),
    [
        ("echo 'Running as primary controller'; exec sleep 5 2>/dev/null >/dev/null", 0, ""),
        ("echo 'x error: no'; echo talk; echo 'y fatal: end' >&2; exit 1", 1, "x error: no\ny fatal: end\n"),
        ("kill -SEGV $$", 1, ""),
        ("echo 'x error: waiting'; exec sleep 5 >/dev/null", 4, "x error: waiting\n"),
        ("exit 127", 3, ""),
        (
            "test -s $CONFIG_DIR/slurm.conf && test -s $CONFIG_DIR/slurm.key || exit 9; echo 'fatal: ok'",
            1,
            "fatal: ok\n",
        ),
    ],
)
def test_a_rehearsal_tells_how_it_ended(
    shell: str, tmp_path: Path, daemon: str, code: int, said: str
) -> None:
    limit_s = 1 if code == 4 else 20
    assert _rehearse(shell, tmp_path, daemon, limit_s) == (code, said)

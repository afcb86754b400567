"""Processes are ended by identity, and waiting says why it failed."""

import os
import subprocess
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.processes import ProcessId, run, tail, wait_for


def test_a_process_that_ignores_termination_is_killed() -> None:
    with subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do read -r line; done"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        identity = ProcessId.of(child.pid)
        assert identity is not None
        assert identity.alive

        identity.end(grace_seconds=0.05)

        assert child.wait() == -9


def test_a_later_process_of_the_same_number_is_spared() -> None:
    other = ProcessId(os.getpid(), started="0")

    assert not other.alive
    other.end(grace_seconds=0.1)


def test_a_failed_command_names_itself_and_its_output() -> None:
    with pytest.raises(LabError, match=r"`sh -c echo broken >&2; exit 3` failed with exit code 3: broken"):
        run("sh", "-c", "echo broken >&2; exit 3")


def test_waiting_ends_early_with_the_reason_of_a_process_that_died() -> None:
    with pytest.raises(LabError, match="etcd: it ended"):
        wait_for("etcd", lambda: False, seconds=60, alive=lambda: "it ended")


def test_the_end_of_a_log_is_what_an_error_shows(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("\n".join(str(number) for number in range(100)))

    assert tail(log).splitlines()[-1] == "99"
    assert len(tail(log).splitlines()) == 15
    assert "does not exist" in tail(tmp_path / "b.log")

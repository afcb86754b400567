"""The init's main loop with small stand-in daemons: following, stopping, restarting, exit codes.

Each case runs as process 1 of a PID namespace (as in a container) and below another process 1 (as in a
pod with a shared process namespace).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Protocol

import pytest

ROOT = Path(__file__).resolve().parents[2]

DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from images.init.coil_init.programs import Program
from images.init.coil_init.supervisor import Supervisor
from images.init.coil_init.words import Word
programs = [
    Program(**{**p, "words": tuple(Word(w, w) for w in p["words"])}) for p in json.loads(sys.argv[2])
]
sys.exit(Supervisor(programs, float(sys.argv[3])).run())
"""

NOTIFY = """
import os, socket
def notify(text, *fds):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(os.environ["NOTIFY_SOCKET"])
        socket.send_fds(s, [text.encode()], list(fds)) if fds else s.send(text.encode())
"""

# As slurmctld does on reconfigure: a child takes over, waits for the barrier, the parent ends.
REPLACING = (
    NOTIFY
    + """
import signal, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.close(reading)
    notify(f"READY=1\\nMAINPID={os.getpid()}")
    notify("BARRIER=1", writing)
    def stop(*_):
        time.sleep(0.4)
        print("state saved", flush=True)
        os._exit(5)
    signal.signal(signal.SIGTERM, stop)
    print("replaced", flush=True)
    while True: time.sleep(1)
os.close(writing)
os.read(reading, 1)
print("barrier passed", flush=True)
sys.exit(0)
"""
)


class Init:
    """A running supervisor."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, *, own_namespace: bool) -> None:
        self.process, self._log, self.own = process, log, own_namespace

    def signal(self, number: signal.Signals) -> None:
        pid = self.process.pid
        if self.own:
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        os.kill(pid, number)

    def output(self) -> str:
        return self._log.read_text()

    def until(self, text: str, times: int = 1) -> None:
        deadline = time.monotonic() + 30
        while self.output().count(text) < times:
            assert time.monotonic() < deadline, f"not seen: {text!r}\n{self.output()}"
            time.sleep(0.02)

    def ends(self) -> int:
        return self.process.wait(30)


class Launch(Protocol):
    """Starts the init with programs."""

    def __call__(self, *programs: dict[str, object], stop_timeout: float = 5) -> Init: ...


def program(name: str, script: str, **more: object) -> dict[str, object]:
    return {"name": name, "words": [sys.executable, "-c", script], **more}


@pytest.fixture(params=["process 1", "shared process namespace"])
def launch(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Launch]:
    """Return a function that starts the init with programs."""
    own = request.param == "process 1"
    if own and os.geteuid() != 0:
        pytest.skip("a PID namespace needs root")
    running: list[subprocess.Popen[bytes]] = []

    def start(*programs: dict[str, object], stop_timeout: float = 5) -> Init:
        command = [sys.executable, "-c", DRIVER, str(ROOT), json.dumps(programs), str(stop_timeout)]
        if own:
            command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command]
        log = tmp_path / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        running.append(process)
        return Init(process, log, own_namespace=own)

    yield start
    for process in running:
        process.kill()
        process.wait()


def sleeper(on_term: str, number: int = signal.SIGTERM) -> str:
    """Return a program that says it is up and runs `on_term` when the signal comes."""
    return f"""
import signal, sys, time
def react(*_):
    {on_term}
signal.signal({int(number)}, react)
print("up\\n", end="", flush=True)  # in one piece: two programs write to one file
time.sleep(60)
"""


SLEEP = sleeper("sys.exit(0)")
DEAF = sleeper("pass; time.sleep(60)")


@pytest.mark.parametrize("code", [0, 3, 77])
def test_the_container_ends_with_the_daemons_code(launch: Launch, code: int) -> None:
    init = launch(program("daemon", f"import sys; sys.exit({code})", essential=True))
    assert init.ends() == code


def test_a_killed_daemon_gives_128_and_the_signal(launch: Launch) -> None:
    init = launch(program("daemon", "import os; os.kill(os.getpid(), 9)", essential=True))
    assert init.ends() == 137


def test_a_missing_program_ends_the_container(launch: Launch) -> None:
    init = launch({"name": "daemon", "words": ["/nonexistent"], "essential": True})
    assert init.ends() == 127
    assert "cannot start /nonexistent" in init.output()


def test_stop_waits_for_the_daemon_then_stops_helpers(launch: Launch) -> None:
    slow = sleeper("time.sleep(0.3); print('daemon done', flush=True); sys.exit(0)")
    helper = sleeper("print('helper done', flush=True); sys.exit(0)")
    init = launch(program("daemon", slow, essential=True), program("helper", helper))
    init.until("up\n", 2)
    init.signal(signal.SIGTERM)
    assert init.ends() == 0
    assert init.output().index("daemon done") < init.output().index("helper done")


def test_a_daemon_that_does_not_end_is_killed_after_the_stop_timeout(launch: Launch) -> None:
    init = launch(program("daemon", DEAF, essential=True), stop_timeout=0.3)
    init.until("up\n")
    init.signal(signal.SIGTERM)
    assert init.ends() == 137
    assert "does not end: killing it" in init.output()


def test_a_second_term_kills_at_once(launch: Launch) -> None:
    init = launch(program("daemon", DEAF, essential=True), stop_timeout=60)
    init.until("up\n")
    init.signal(signal.SIGTERM)
    init.until("SIGTERM: stopping")
    init.signal(signal.SIGTERM)
    assert init.ends() == 137


def test_a_replaced_daemon_is_followed_and_waited_for(launch: Launch) -> None:
    init = launch(program("daemon", REPLACING, essential=True, notify=True))
    init.until("barrier passed")
    init.until("main process is now")
    init.signal(signal.SIGTERM)
    code = init.ends()
    assert "state saved" in init.output()
    # Below another process 1 the code of a process that is not our child cannot be known.
    assert code == (5 if init.own else 0)


NONSENSE = ("", "X", "MAINPID=", "MAINPID=1", "MAINPID=99999", "MAINPID=-5", "READY=1")


def test_nonsense_on_the_notify_socket_is_ignored(launch: Launch) -> None:
    script = (
        NOTIFY
        + f"""
import sys, time
for text in {NONSENSE}: notify(text or " ")
time.sleep(0.2)
sys.exit(9)
"""
    )
    assert launch(program("daemon", script, essential=True, notify=True)).ends() == 9


def test_a_helper_is_started_again_and_the_daemon_stays(launch: Launch) -> None:
    init = launch(program("daemon", SLEEP, essential=True), program("helper", "pass"))
    init.until("starting helper", 2)
    assert "helper starts again in 2 s" not in init.output().split("starting helper")[1]
    init.signal(signal.SIGTERM)
    assert init.ends() == 0


def test_hup_reaches_the_daemon_only(launch: Launch) -> None:
    script = sleeper("sys.exit(21)", signal.SIGHUP)
    init = launch(program("daemon", script, essential=True), program("helper", SLEEP))
    init.until("up\n", 2)
    init.signal(signal.SIGHUP)
    assert init.ends() == 21


def test_orphans_are_reaped(launch: Launch) -> None:
    script = """
import os, pathlib, sys, time
if os.fork() == 0:
    if os.fork() == 0: time.sleep(0.1)
    os._exit(0)
os.wait()
time.sleep(0.4)
stats = [path.read_text() for path in pathlib.Path("/proc").glob("[0-9]*/stat")]
zombies = [stat for stat in stats if stat.rpartition(")")[2].split()[0] == "Z"]
sys.exit(len(zombies) if os.getppid() == 1 else 0)
"""
    assert launch(program("daemon", script, essential=True)).ends() == 0

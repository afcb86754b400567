"""Before the preferred slurmctld starts: the backup that is active writes its state and ends.

Left to itself the preferred one starts and asks the backup to let go. In Slurm 26.05 the backup answers
that request only after 29 s, because it waits for all requests to end and this is one of them, and it
writes its state after that. So the preferred one's init asks the backup's init, by a note in the state
folder that they share, and that one stops its slurmctld as if its pod were deleted: the state is written
within a second. The container starts again as a standby.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from .peers import Heartbeat, Peers, leave_note, read_heartbeat, read_note, read_peers
from .processes import log

NOTE = "coil-handover"
_OBEYED_S = 10.0
"""How long the init of an active backup may take; an older image has none that knows the note."""
_LOOK_S = 0.1
_CONNECT_S = 2.0


@dataclass(frozen=True)
class Request:
    """To the slurmctld `name`, which was active at `time` by its own heartbeat."""

    name: str
    time: int

    def __str__(self) -> str:
        return f"{self.name} {self.time}"

    @classmethod
    def parse(cls, line: str) -> Request | None:
        """Return the request in a note; None when there is none."""
        name, _, time_ = line.partition(" ")
        return cls(name, int(time_)) if name and time_.isdigit() else None


@dataclass(frozen=True)
class Handover:
    """Makes way for the slurmctld of this host, where `conf` has several."""

    conf: str

    def __call__(self) -> None:
        """Return when this slurmctld may start."""
        peers = read_peers(self.conf, socket.gethostname())
        if peers is None or peers.own != 0:
            return
        try:
            _ask(peers)
        except OSError as error:
            log(f"cannot ask for a handover: {error}")


def _ask(peers: Peers) -> None:
    pulse, asked = Pulse(peers.timeout_s), 0.0
    while (beat := read_heartbeat(peers.state)) is not None and 0 < beat.index < len(peers.hosts):
        name, address = peers.hosts[beat.index]
        now = time.monotonic()
        if not pulse.beats(beat, time.time(), now) or (asked and not read_note(peers.state, NOTE)):
            return
        if not asked and _answers(address, peers.port) is not None:
            log(f"{name} is active: asking it to write its state and end")
            leave_note(peers.state, NOTE, str(Request(name, beat.time)))
            asked = now
        # Out of reach of the other one this host is likely to be out of reach of clients as well: it waits,
        # however long, since the other one is active as long as its heartbeat goes on.
        if asked and now > asked + _OBEYED_S and _answers(address, peers.port):  # slurmctld asks, if slowly
            log(f"{name} does not end")
            return
        time.sleep(_LOOK_S)


class Pulse:
    """Tells a heartbeat that goes on from one that has stopped."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._last: Heartbeat | None = None
        self._changed = 0.0

    def beats(self, beat: Heartbeat, now: float, monotonic: float) -> bool:
        """Whether the writer of a heartbeat may be alive.

        The clock of another machine is trusted at the first look only; after that what counts is that
        the heartbeat changes.
        """
        if self._last is None:
            self._changed = monotonic - max(0.0, now - beat.time)
        elif beat != self._last:
            self._changed = monotonic
        self._last = beat
        return monotonic - self._changed <= self._timeout_s


def _answers(address: str, port: int) -> bool | None:
    """Whether something accepts connections at an address; None when its host does not answer at all."""
    try:
        # bytes, because text would need the IDNA codec, which a minimal Python lacks.
        found = socket.getaddrinfo(address.encode(), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, target = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(_CONNECT_S)
            probe.connect(target)
    except ConnectionRefusedError:
        return False
    except OSError:
        return None
    return True

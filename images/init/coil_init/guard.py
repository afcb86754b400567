"""While slurmctld runs: it makes way when the preferred one asks, and ends when another became active.

A slurmctld that hung, or whose node was stopped, and goes on does not look who is active: it writes its
old state over the new one, and its heartbeat over that of the other. So the init of a host whose slurmctld
becomes active leaves a mark beside the heartbeat, once, and an init that finds the mark of another in the
place of its own ends its slurmctld. Nothing less does: a heartbeat that is merely old proves nothing, the
storage may be slow for everyone, and the only slurmctld must not be lost to that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from . import handover
from .handover import Request
from .peers import Heartbeat, Peers, leave_note, read_heartbeat, read_note, read_peers
from .processes import kill, log

MARK = "coil-active"
_LOOK_S = 0.5
_APART_S = 3.0
"""Until the container ends and a standby starts in it. Clients that are refused ask again each second; one
that meets a standby waits for half of SlurmctldTimeout, and the Service follows within two seconds only."""


class Todo(Enum):
    """What follows from a look at the state folder."""

    NOTHING = "nothing"
    MARK = "leave a mark"
    MAKE_WAY = "stop as when the pod is deleted"
    END = "end slurmctld before it writes anything"


@dataclass
class Claim:
    """Since when this host's slurmctld is active, from one look to the next; `own` is its place."""

    own: int
    name: str
    since: int | None = None
    last: Heartbeat | None = None
    marked: bool = False
    """Our mark has been there: a mark that could not be left must not end the only slurmctld."""

    def look(self, beat: Heartbeat | None, mark: str, request: Request | None) -> Todo:
        """Tell what follows.

        Args:
            beat: The heartbeat; None when it cannot be read. The first one may be left from an earlier
                slurmctld of this host: only a later one counts.
            mark: Name of the host whose init left its mark last; empty when none did.
            request: To make way; one for an earlier time in which this host was active is void.
        """
        if self.marked and mark not in ("", self.name):
            return Todo.END
        if beat is not None:
            if self.since is None and self.last not in (None, beat) and beat.index == self.own:
                self.since = beat.time
            self.last = beat
        if self.since is None:
            return Todo.NOTHING
        self.marked = self.marked or mark == self.name
        if request is not None and request.name == self.name and request.time >= self.since:
            return Todo.MAKE_WAY
        # An empty mark in the place of ours is another's that is being written.
        return Todo.NOTHING if self.marked else Todo.MARK


class Guard:
    """Looks twice a second, in a thread of its own: storage that hangs must not hold up the init."""

    def __init__(self, conf: str, daemon: Callable[[], int]) -> None:
        """`daemon` gives the process id of slurmctld, 0 while it does not run."""
        self._peers, self._daemon = read_peers(conf, socket.gethostname()), daemon
        self._makes_way = False

    def start(self) -> None:
        """Begin, where there are several slurmctld hosts."""
        if self._peers is not None:
            threading.Thread(target=self._run, args=(self._peers,), daemon=True).start()

    def ended(self) -> None:
        """Tell the one that asked that slurmctld has ended, and leave it the clients that come here."""
        if self._peers is not None and self._makes_way:
            with contextlib.suppress(OSError):
                leave_note(self._peers.state, handover.NOTE, "")
            time.sleep(_APART_S)

    def _run(self, peers: Peers) -> None:
        claim, pause = Claim(peers.own, peers.hosts[peers.own][0]), threading.Event()
        while not pause.wait(_LOOK_S):
            mark = read_note(peers.state, MARK)
            request = Request.parse(read_note(peers.state, handover.NOTE))
            match claim.look(read_heartbeat(peers.state), mark, request):
                case Todo.MARK:
                    with contextlib.suppress(OSError):
                        leave_note(peers.state, MARK, claim.name)
                case Todo.MAKE_WAY:
                    log(f"{peers.hosts[0][0]} takes over")
                    self._makes_way = True
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                case Todo.END:
                    log(f"{mark} has become active: ending slurmctld before it writes its state")
                    kill(self._daemon(), signal.SIGKILL)
                    return
                case Todo.NOTHING:
                    pass

"""The socket on which a daemon started with ``--systemd`` reports its main process.

slurmctld, slurmd and sackd replace themselves on reconfigure: a new process announces itself with
``MAINPID=`` and waits until a descriptor that it sends with ``BARRIER=1`` is closed here.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")
_MAX_DESCRIPTORS = 8


def parse_mainpid(message: bytes) -> int | None:
    """Return the process id a notification names, or None when it names none or nonsense."""
    for line in message.split(b"\n"):
        name, _, value = line.partition(b"=")
        if name == b"MAINPID" and value.isdigit():
            return int(value)
    return None


class NotifySocket:
    """A datagram socket in a folder of its own that only `uid` (and root) can send to."""

    def __init__(self, uid: int, gid: int) -> None:
        self._folder = tempfile.mkdtemp(prefix="coil-init-", dir=_writable_folder())
        self.path = f"{self._folder}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(self.path)
        if os.geteuid() == 0:
            os.chown(self.path, uid, gid)
            os.chown(self._folder, uid, gid)

    def messages(self) -> Iterator[tuple[int, int | None]]:
        """Yield (sender's process id, announced main pid or None) of all waiting notifications.

        Descriptors that come with a notification are closed, which lets the sender's barrier pass.
        """
        while True:
            space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4 * _MAX_DESCRIPTORS)
            try:
                message, ancillary, _, _ = self.socket.recvmsg(4096, space)
            except BlockingIOError:
                return
            sender = 0
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                    sender = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
                elif level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    _close_all(data)
            yield sender, parse_mainpid(message)

    def close(self) -> None:
        """Remove the socket and its folder."""
        self.socket.close()
        with contextlib.suppress(OSError):
            Path(self.path).unlink()
            Path(self._folder).rmdir()


def _close_all(data: bytes) -> None:
    descriptors = array.array("i")
    descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    for descriptor in descriptors:
        os.close(descriptor)


def _writable_folder() -> str | None:
    """/run where it is writable: a read-only root file system leaves only mounted folders."""
    return "/run" if os.access("/run", os.W_OK) else None

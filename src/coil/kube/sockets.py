"""The sockets under a session: probed while they live, gone when the session is."""

import asyncio
import contextlib
import socket
import weakref
from typing import Any

KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A server that vanished without a farewell is noticed within 30 s: on a watch we never send anything,
so without probes only its silence would tell."""

ROUNDS = 10
"""Rounds of the loop that an ended socket may take to be closed."""


class Sockets:
    """Makes sockets for aiohttp and remembers them."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for an address as `getaddrinfo` gives it."""
        made = socket.socket(address[0], address[1], address[2])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # not on every system that people run the command line on
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._made.add(made)
        return made

    @property
    def open(self) -> list[socket.socket]:
        """Those that are not closed yet."""
        return [made for made in self._made if made.fileno() >= 0]

    async def end(self) -> None:
        """End what the closed session has left open.

        A TLS handshake whose connection attempt was cancelled goes on and belongs to nobody. Its
        transport closes the socket when it reads the end of the stream.
        """
        for left in self.open:
            with contextlib.suppress(OSError):
                left.shutdown(socket.SHUT_RDWR)
        for _ in range(ROUNDS):
            if not self.open:
                return
            await asyncio.sleep(0)

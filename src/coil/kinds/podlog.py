"""What a daemon that does not get ready says about it, from its log.

A daemon that waits for another, or refuses its configuration, tells why in its log and nowhere else. A
condition that repeats it saves a person the search.
"""

import re

from coil.kube.client import Client
from coil.kube.errors import ApiError
from coil.kube.views import ContainerStatusView, PodView
from coil.support.log import get_logger

LINES = 40
BYTES = 16_384

_STAMP = re.compile(r"\[[\d:.T-]+\] ")
_COMPLAINT = re.compile(r"(?:\[[\d:.T-]+\] |\w+: )?(?P<how>error|fatal): (?P<what>.+)")
_RETRY = re.compile("Trying again|Retrying")
"""Such a line only follows the one with the cause."""

log = get_logger("podlog")


async def complaint(client: Client, pod: PodView, container: str, *, fatal: bool = False) -> str:
    """The last error that a container of a pod has logged; empty when there is none or it cannot be read.

    With `fatal` only those count that end a daemon.
    """
    return last_complaint(await tail(client, pod, container), fatal=fatal)


async def tail(client: Client, pod: PodView, container: str, lines: int = LINES) -> str:
    """The end of a container's log; empty when it cannot be read."""
    meta = pod.metadata
    if not has_run(pod, container):
        return ""
    try:
        return await client.pod_log(meta.name, meta.namespace, container=container, lines=lines, limit=BYTES)
    except ApiError as error:
        log.debug("log cannot be read", pod=str(meta.key), container=container, error=str(error))
        return ""


def last_complaint(text: str, *, fatal: bool = False) -> str:
    """The last error in Slurm's own notation, without its time; lines that only announce a retry are none.

    A fatal error comes with the lines that follow it: Slurm breaks long explanations.
    """
    found, more = "", False
    for line in map(str.rstrip, text.splitlines()):
        match = _COMPLAINT.match(line)
        if match and not _RETRY.search(line) and (match["how"] == "fatal" or not fatal):
            found, more = match["what"], match["how"] == "fatal"
        elif _STAMP.match(line):
            more = False
        elif more and line:
            found = f"{found} {line}"
    return found


def has_run(pod: PodView, container: str) -> bool:
    """Whether there can be a log: asking for that of a container that never began is an error."""
    return any(status.restart_count > 0 or status.state.waiting is None for status in _of(pod, container))


def restarts(pod: PodView, container: str) -> int:
    """How often the container has begun anew."""
    return sum(status.restart_count for status in _of(pod, container))


def _of(pod: PodView, container: str) -> list[ContainerStatusView]:
    found = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return [status for status in found if status.name == container]

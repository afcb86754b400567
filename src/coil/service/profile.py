"""Profiles of the running process over HTTP, for `--profile` (spec: control-plane 15.1).

The paths resemble those of the reference; the content is Python's own: text, no pprof files.
"""

import asyncio
import cProfile
import io
import pstats
import threading
from collections.abc import Mapping

from aiohttp import web

from coil.service.http import Handler

MAX_SECONDS = 60
_busy = threading.Lock()  # the interpreter allows one profiler at a time

INDEX = """/debug/pprof/tasks               the stack of every task
/debug/pprof/profile?seconds=5   where the event loop's thread spends its time, 1 to 60 seconds
"""


async def index(_request: web.Request) -> web.Response:
    """What there is to ask for."""
    return web.Response(text=INDEX)


async def tasks(_request: web.Request) -> web.Response:
    """Where each task of the event loop waits."""
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        task.print_stack(file=text)
    return web.Response(text=text.getvalue())


async def profile(request: web.Request) -> web.Response:
    """Profile for `seconds` and list the 60 most expensive functions."""
    seconds = request.query.get("seconds", "5")
    if not (seconds.isascii() and seconds.isdigit() and 1 <= int(seconds) <= MAX_SECONDS):
        raise web.HTTPBadRequest(text=f"seconds must be 1 to {MAX_SECONDS}, not {seconds!r}\n")
    if not _busy.acquire(blocking=False):
        raise web.HTTPConflict(text="a profile is being taken; ask again later\n")
    profiler = cProfile.Profile()
    try:
        with profiler:
            await asyncio.sleep(int(seconds))
    finally:
        _busy.release()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(60)
    return web.Response(text=text.getvalue())


PROFILES: Mapping[str, Handler] = {
    "/debug/pprof/": index,
    "/debug/pprof/tasks": tasks,
    "/debug/pprof/profile": profile,
}

"""The webhooks over HTTP: paths, limits, answers that always come in time."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from coil.admission import binding, metrics, review
from coil.admission.review import Answer, Request
from coil.admission.validation import CHECKS
from coil.kube.client import Client
from coil.support.log import get_logger

BODY_LIMIT = 7 * 1024 * 1024
"""Bytes of a review: two objects of etcd's limit, with room to spare (spec: control-plane 13)."""
ANSWER_S = 8.0
"""Most seconds for an answer; less than the API server waits (10), so that it hears why."""
BINDING_PATH = "/mutate--v1-binding"

Answering = Callable[[Request, Client], Awaitable[Answer]]

log = get_logger("webhook")


def application(client: Client) -> web.Application:
    """Every webhook, at the paths of the reference."""
    app = web.Application(client_max_size=BODY_LIMIT)
    answers: dict[str, Answering] = {BINDING_PATH: binding.answer}
    for kind, check in CHECKS.items():
        answers[f"/validate-slinky-slurm-net-v1beta1-{kind}"] = check.answer
    app.add_routes(
        [web.post(path, partial(_counted, path, answer, client)) for path, answer in answers.items()]
    )
    return app


async def _counted(path: str, answer: Answering, client: Client, request: web.Request) -> web.Response:
    with metrics.in_flight.labels(path).track_inprogress(), metrics.latency.labels(path).time():
        response = await _respond(path, answer, client, request)
    metrics.requests.labels(path, response.status).inc()
    return response


async def _respond(path: str, answer: Answering, client: Client, request: web.Request) -> web.Response:
    if request.content_type != "application/json":
        return web.Response(status=415, text=f"content type {request.content_type}, must be application/json")
    try:
        asked = review.read(await request.read())
    except web.HTTPRequestEntityTooLarge:
        return web.Response(status=413, text=f"the body is larger than {BODY_LIMIT} bytes")
    except review.ReviewError as error:
        return web.Response(status=400, text=str(error))
    try:
        async with asyncio.timeout(ANSWER_S):
            found = await answer(asked.request, client)
    except TimeoutError:
        return web.Response(status=504, text=f"no answer within {ANSWER_S:g} s")
    except Exception:
        log.exception("review failed", path=path, name=asked.request.name, namespace=asked.request.namespace)
        return web.Response(status=500, text="the webhook failed; its log says how")
    _tell(path, asked.request, found)
    return web.Response(body=review.write(asked, found), content_type="application/json")


def _tell(path: str, request: Request, found: Answer) -> None:
    where = {"path": path, "namespace": request.namespace, "name": request.name}
    if found.allowed:
        log.debug("allowed", **where, warnings=len(found.warnings))
    else:
        log.info("refused", **where, code=found.code, message=found.message)

"""A review of one of our kinds in, the answer out.

answer = await CHECKS["nodeset"].answer(request, client)
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from coil.admission import accounting, controller, loginset, lookups, nodeset, overrides, restapi, token
from coil.admission.facts import NOTHING, Lookups, Wanted
from coil.admission.review import BAD_REQUEST, CREATE, FORBIDDEN, UPDATE, Answer, Request
from coil.admission.verdict import MalformedError, Verdict, distinct, one_text
from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.api.token import Token
from coil.kube.client import Client
from coil.support.objects import JsonObject

T = TypeVar("T", Accounting, Controller, LoginSet, NodeSet, RestApi, Token)

UNREADABLE_BEFORE = "the stored object cannot be read ({}); what cannot be changed was not compared"


class Check(msgspec.Struct, Generic[T], frozen=True):
    """How one kind is checked: its view, its rules, and what these need to know of other objects."""

    view: type[T]
    validate: Callable[[T | None, T, Lookups], Verdict]
    wanted: Callable[[T], Wanted] | None = None

    async def answer(self, request: Request, client: Client) -> Answer:
        """Check the object of a request; anything but creation and change is allowed.

        A change that leaves the spec as it is passes whatever the spec says: labels, owners and finalizers
        of an object must not depend on rules that came after it.
        """
        if request.object is None or request.operation not in (CREATE, UPDATE):
            return Answer()
        if request.operation == UPDATE and _same_spec(request.old_object, request.object):
            return Answer()
        try:
            new = read(self.view, request.object, request.namespace)
            overrides.check(new.spec)
            return await self._judge(request, new, client)
        except MalformedError as error:
            return Answer(code=BAD_REQUEST, message=str(error))

    async def _judge(self, request: Request, new: T, client: Client) -> Answer:
        old, warnings = self._old(request)
        facts = NOTHING
        if self.wanted is not None:
            facts = await lookups.fetch(client, request.namespace, self.wanted(new))
        found = self.validate(old, new, facts)
        warnings = distinct([*warnings, *found.warnings])
        if found.errors:
            return Answer(code=FORBIDDEN, message=one_text(found.errors), warnings=warnings)
        return Answer(warnings=warnings)

    def _old(self, request: Request) -> tuple[T | None, list[str]]:
        """The object before the change. One that cannot be read must not keep its user from mending it."""
        if request.operation == CREATE or request.old_object is None:
            return None, []
        try:
            return read(self.view, request.old_object, request.namespace), []
        except MalformedError as error:
            return None, [UNREADABLE_BEFORE.format(error)]


def read(view: type[T], document: JsonObject, namespace: str) -> T:
    """The object as its kind.

    Raises:
        MalformedError: a member has the wrong type.
    """
    metadata = {"namespace": namespace, **(document.get("metadata") or {})}
    try:
        return msgspec.convert({**document, "metadata": metadata}, view)
    except msgspec.ValidationError as error:
        what, _, where = str(error).rpartition(" - at `$.")
        raise MalformedError(f"{where.rstrip('`')}: {what}" if what else str(error)) from None


def _same_spec(old: JsonObject | None, new: JsonObject) -> bool:
    return old is not None and old.get("spec") == new.get("spec")


CHECKS: dict[str, Check[Any]] = {
    "accounting": Check(Accounting, accounting.validate),
    "controller": Check(Controller, controller.validate, controller.wanted),
    "loginset": Check(LoginSet, loginset.validate),
    "nodeset": Check(NodeSet, nodeset.validate),
    "restapi": Check(RestApi, restapi.validate),
    "token": Check(Token, token.validate),
}
"""The kinds by the last word of their path."""

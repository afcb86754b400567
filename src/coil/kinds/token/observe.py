"""Read the caches into one Snapshot of a Token."""

from collections.abc import Iterable
from typing import Any

from coil.api import names
from coil.api.defaults import with_defaults
from coil.api.token import Token
from coil.kinds.resources import TOKENS
from coil.kinds.runtime import Runtime
from coil.kinds.token.plan import Snapshot
from coil.kube import core
from coil.kube.store import Store
from coil.support.objects import ObjectKey

WRITES = "token/writes"
"""Index of Tokens by where they put the token: `<namespace>/<secret>/<key>`."""


def writes(token: Token) -> str:
    """Where a Token puts the token."""
    return "/".join((token.metadata.namespace, *names.token_secret(token)))


class Observer:
    """The caches that a Token is judged by."""

    def __init__(self, runtime: Runtime) -> None:
        self.tokens = runtime.store(TOKENS)
        self.secrets = runtime.store(core.SECRETS)
        self.stores: tuple[Store[Any], ...] = (self.tokens, self.secrets)
        self.tokens.add_index(WRITES, lambda token: [writes(token)])

    def sharing(self, token: Token) -> Iterable[Token]:
        """The Tokens that write where this one does."""
        return self.tokens.by_index(WRITES, writes(token))

    def snapshot(self, key: ObjectKey) -> Snapshot | None:
        """What is known now; None when there is no such Token."""
        found = self.tokens.get(*key)
        if found is None:
            return None
        first = min(self.sharing(found), key=_age, default=found).metadata.name
        ref = found.jwt_ref
        return Snapshot(
            token=with_defaults(found),
            key_secret=self.secrets.get(key.namespace, ref.name) if ref is not None else None,
            secret=self.secrets.get(key.namespace, names.token_secret(found)[0]),
            rival="" if first == key.name else first,
        )


def _age(token: Token) -> tuple[str, str]:
    return token.metadata.creation_timestamp, token.metadata.name

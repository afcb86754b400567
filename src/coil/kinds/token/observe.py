"""Read the caches into one Snapshot of a Token."""

from collections.abc import Iterable
from typing import Any

from coil.api import names
from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.api.token import Token
from coil.kinds.resources import CONTROLLERS, TOKENS
from coil.kinds.runtime import Runtime
from coil.kinds.token.plan import Snapshot
from coil.kube import core
from coil.kube.store import Store
from coil.kube.views import SecretView
from coil.support.objects import ObjectKey

WRITES = "token/writes"
"""Index of Tokens by where they put the token: `<namespace>/<secret>/<key>`."""


SIGNED_WITH = "token/key"
"""Index of Tokens and Controllers by their JWT key: `<namespace>/<secret>/<key>`."""


def signed_with(holder: Token | Controller) -> Iterable[str]:
    """The JWT key of a Token or a Controller."""
    if (ref := holder.jwt_ref) is not None:
        yield f"{holder.metadata.namespace}/{ref.name}/{ref.key}"


def writes(token: Token) -> str:
    """Where a Token puts the token."""
    return "/".join((token.metadata.namespace, *names.token_secret(token)))


class Observer:
    """The caches that a Token is judged by."""

    def __init__(self, runtime: Runtime) -> None:
        self.clusters = runtime.clusters
        self.tokens = runtime.store(TOKENS)
        self.controllers = runtime.store(CONTROLLERS)
        self.secrets = runtime.store(core.SECRETS)
        self.stores: tuple[Store[Any], ...] = (self.tokens, self.controllers, self.secrets)
        self.tokens.add_index(WRITES, lambda token: [writes(token)])
        self.tokens.add_index(SIGNED_WITH, signed_with)
        self.controllers.add_index(SIGNED_WITH, signed_with)

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
        key_secret = self.secrets.get(key.namespace, ref.name) if ref is not None else None
        return Snapshot(
            token=with_defaults(found),
            key_secret=key_secret,
            secret=self.secrets.get(key.namespace, names.token_secret(found)[0]),
            rival="" if first == key.name else first,
            key_in_use=self._key_in_use(found, key_secret),
        )

    def _key_in_use(self, token: Token, secret: SecretView | None) -> bytes:
        """The key of a slurmctld that answers and has not taken over the Secret's; empty when there is none.

        While none answers nobody's token is of use; the Secret's key is what a new one will have.
        """
        wanted = secret.data.get(token.jwt_ref.key, b"") if secret and token.jwt_ref else b""
        holders = (
            holder for name in signed_with(token) for holder in self.controllers.by_index(SIGNED_WITH, name)
        )
        clusters = (self.clusters.get(holder.metadata.key) for holder in holders)
        answering = [cluster.tokens.key for cluster in clusters if cluster and cluster.poller.health.ok]
        return next((key for key in answering if wanted and key != wanted), b"")


def _age(token: Token) -> tuple[str, str]:
    return token.metadata.creation_timestamp, token.metadata.name

"""Which Tokens a change concerns.

Beyond the reference, which watches nothing but Tokens: the Secret with the signing key, and the slurmctld
that takes it over, so that a rotated key makes new tokens at once; and the Secret with the token, so that a
deleted one comes back.
"""

from collections.abc import Iterable

from coil.api import names
from coil.api.token import Token
from coil.kinds.secrets import data_changed
from coil.kinds.token.observe import SIGNED_WITH, Observer, signed_with
from coil.kube.queue import Queue
from coil.kube.store import Change
from coil.kube.views import SecretView
from coil.support.objects import ObjectKey

USES = "token/uses"
"""Index of Tokens by the Secrets they read or write: `<namespace>/<name>`."""


def uses(token: Token) -> Iterable[str]:
    """Both Secrets of a Token."""
    namespace, ref = token.metadata.namespace, token.jwt_ref
    yield f"{namespace}/{names.token_secret(token)[0]}"
    if ref is not None:
        yield f"{namespace}/{ref.name}"


def watch(observer: Observer, queue: Queue) -> None:
    """Add the keys of the Tokens that a change concerns to the queue."""
    observer.tokens.add_index(USES, uses)

    def token_changed(change: Change[Token]) -> None:
        queue.add(change.key)
        if change.new is None and change.old is not None:
            for heir in observer.sharing(change.old):
                queue.add(heir.metadata.key)

    def secret_changed(change: Change[SecretView]) -> None:
        if data_changed(change):
            queue.add_all(token.metadata.key for token in observer.tokens.by_index(USES, str(change.key)))

    def key_taken(cluster: ObjectKey) -> None:
        controller = observer.controllers.get(*cluster)
        for key in signed_with(controller) if controller is not None else ():
            queue.add_all(token.metadata.key for token in observer.tokens.by_index(SIGNED_WITH, key))

    observer.clusters.on_key(key_taken)
    observer.clusters.on_health(lambda cluster, _health: key_taken(cluster))
    observer.tokens.on_event(token_changed)
    observer.secrets.on_event(secret_changed)

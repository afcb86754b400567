"""The Secret of a Token (spec: control-plane 9)."""

from coil.api import names
from coil.api.token import Token
from coil.build import metadata
from coil.support.objects import JsonObject, ObjectMeta


def secret(token: Token, text: str, key_secret: ObjectMeta) -> JsonObject:
    """The Secret that holds the minted token `text`.

    It belongs to the Secret with the signing key, not to the Token (Q15): without that key no token is
    of any use.
    """
    name, key = names.token_secret(token)
    meta: JsonObject = {
        "name": name,
        "namespace": token.metadata.namespace,
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "name": key_secret.name,
                "uid": key_secret.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    for member in ("labels", "annotations"):
        if texts := metadata.overlay(getattr(token.metadata, member)):
            meta[member] = texts
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "Opaque",
        "stringData": {key: text},
        "immutable": not token.spec.refresh,
    }

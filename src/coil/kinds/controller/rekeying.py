"""How a changed JWT key comes to slurmctld: while it runs, or with new pods. Pure (docs: keys).

slurmctld reads the key at a reconfigure, and tells by refusing or taking a token which one it has. New pods
are made when nobody can tell it to reconfigure, or when it refuses every key that we know: the operator was
started after the change and has not the old one; or when the key does not reach the running pods.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from coil.api import keys
from coil.api.controller import Controller
from coil.build.hashes import map_hash
from coil.kube.views import ManifestView


class Has(Enum):
    """What slurmctld has."""

    UNTOLD = "nobody can tell it to read another key"
    WAITED = "not known, or a former key that we have too"
    WANTED = "the wanted key"
    REFUSED = "none of the keys that we have, or the wanted one does not reach it"


class JwtKey(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the key of a running slurmctld; `known` are the keys that we can sign with."""

    has: Has = Has.UNTOLD
    known: tuple[bytes, ...] = ()


class Hashes(msgspec.Struct, frozen=True, kw_only=True):
    """The hashes of the key Secrets for the pod template, and the note for the StatefulSet."""

    slurm_key: str
    jwt_key: str
    note: str = ""


def hashes(
    controller: Controller,
    secrets: Mapping[str, Mapping[str, bytes]],
    live: ManifestView | None,
    jwt: JwtKey,
) -> Hashes:
    """The hashes whose change makes new pods: those of the live template while only the JWT key changed.

    They cover whole Secrets (spec: control-plane 2.2), and both keys may lie in one.
    """
    slurm_ref, jwt_ref = controller.spec.slurm_key_ref, controller.jwt_ref
    slurm_secret = secrets.get(slurm_ref.name) if slurm_ref else None
    jwt_secret = (secrets.get(jwt_ref.name) if jwt_ref else None) or {}
    wanted = Hashes(slurm_key=map_hash(slurm_secret), jwt_key=map_hash(jwt_secret))
    if live is None or jwt_ref is None:
        return wanted
    had, noted = _had(live), live.metadata.annotations.get(keys.ANNOTATION_LIVE_KEY, "")
    before = noted or had.jwt_key
    shared = slurm_ref is not None and slurm_ref.name == jwt_ref.name
    former = {map_hash({**jwt_secret, jwt_ref.key: key}) for key in jwt.known}
    told = jwt.has is not Has.UNTOLD and (not shared or before in former)
    if jwt.has is Has.REFUSED or (before != wanted.jwt_key and not told):
        return msgspec.structs.replace(wanted, note=wanted.jwt_key if noted else "")
    return Hashes(
        slurm_key=had.slurm_key if shared else wanted.slurm_key,
        jwt_key=had.jwt_key,
        note=wanted.jwt_key if noted or had.jwt_key != wanted.jwt_key else "",
    )


def _had(live: ManifestView) -> Hashes:
    template = live.spec.get("template", {}).get("metadata") or {}
    annotations = template.get("annotations") or {}
    return Hashes(
        slurm_key=annotations.get(keys.ANNOTATION_SLURM_KEY_HASH, ""),
        jwt_key=annotations.get(keys.ANNOTATION_JWT_KEY_HASH, ""),
    )

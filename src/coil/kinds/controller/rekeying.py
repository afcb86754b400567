"""How changed keys come to slurmctld: while it runs, with new pods, or not at all. Pure (docs: keys).

slurmctld reads the key at a reconfigure, and tells by refusing or taking a token which one it has. New pods
are made when nobody can tell it to reconfigure, or when it refuses every key that we know: the operator was
started after the change and has not the old one; or when the key does not reach the running pods.

All daemons prove with the slurm key who they are. A slurm.jwks holds several; slurmctld reads it at a
reconfigure, like every slurmd: no new pods. A slurm.key must not change under workers: a slurmctld with the
new one and slurmds with the former do not hear one another, and Slurm gives up their jobs.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from coil.api import keys
from coil.api.controller import Controller
from coil.api.meta import SecretKeySelector
from coil.build.core import slurm_key_path
from coil.build.hashes import map_hash
from coil.kube.views import ManifestView

SLURM_KEY_CHANGED = (
    "the Secret of slurmKeyRef was changed while workers run with its former key; nothing is applied, so "
    "jobs go on. Put the former content back, or scale all NodeSets to 0; see slurm.jwks (docs: keys)"
)


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
    if _several(controller, live):
        wanted = msgspec.structs.replace(wanted, slurm_key=_had(live).slurm_key)
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


def slurm_key_changed(
    controller: Controller,
    secrets: Mapping[str, Mapping[str, bytes]],
    live: ManifestView | None,
    jwt: JwtKey,
) -> bool:
    """Whether the single slurm key is no longer that with which slurmctld was started.

    In a Secret that holds the JWT key too that is known while slurmctld takes that one.
    """
    slurm_ref, jwt_ref = controller.spec.slurm_key_ref, controller.jwt_ref
    if live is None or slurm_ref is None or jwt_ref is None or slurm_ref.name not in secrets:
        return False
    if not _mounts(live, slurm_ref) or slurm_key_path(slurm_ref) == keys.FILE_SLURM_JWKS:
        return False
    if slurm_ref.name == jwt_ref.name and jwt.has is not Has.WANTED:
        return False
    had = _had(live).slurm_key
    return had != "" and hashes(controller, secrets, live, jwt).slurm_key != had


def _several(controller: Controller, live: ManifestView) -> bool:
    """Whether the slurm key is a slurm.jwks, for the running slurmctld as well."""
    ref = controller.spec.slurm_key_ref
    return ref is not None and slurm_key_path(ref) == keys.FILE_SLURM_JWKS and _mounts(live, ref)


def _mounts(live: ManifestView, ref: SecretKeySelector) -> bool:
    """Whether the pods have the slurm key from that place."""
    volumes = live.spec.get("template", {}).get("spec", {}).get("volumes") or ()
    sources = (
        source for volume in volumes for source in (volume.get("projected") or {}).get("sources") or ()
    )
    secret = {"key": ref.key, "path": slurm_key_path(ref)}
    return any(
        found.get("name") == ref.name and secret.items() <= item.items()
        for found in (source.get("secret") or {} for source in sources)
        for item in found.get("items") or ()
    )


def _had(live: ManifestView) -> Hashes:
    template = live.spec.get("template", {}).get("metadata") or {}
    annotations = template.get("annotations") or {}
    return Hashes(
        slurm_key=annotations.get(keys.ANNOTATION_SLURM_KEY_HASH, ""),
        jwt_key=annotations.get(keys.ANNOTATION_JWT_KEY_HASH, ""),
    )

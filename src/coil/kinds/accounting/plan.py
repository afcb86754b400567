"""What a pass over an Accounting does, and why (spec: control-plane 6). Pure.

While a key, the password or a file is missing nothing is made that could not run, and what runs stays. The
missing object is watched, so the pass comes back when it appears.
"""

from collections.abc import Iterator

from coil.api.accounting import Accounting
from coil.api.meta import SecretKeySelector
from coil.build import accounting as build
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes, map_hash
from coil.kinds.accounting.snapshot import Snapshot
from coil.kinds.references import missing_key
from coil.kinds.steps import WAITING, Apply, Failed, Step

SERVICE = "Service"
CONFIG = "Config"
STATEFUL_SET = "StatefulSet"


def steps(snapshot: Snapshot) -> tuple[Step, ...]:
    """All steps in order; none for a slurmdbd that runs elsewhere."""
    return () if snapshot.accounting.spec.external else tuple(_steps(snapshot))


def password_ref(accounting: Accounting) -> SecretKeySelector | None:
    """Where the database password is, if the Accounting names a database."""
    storage = accounting.spec.storage_config
    return None if storage is None or accounting.spec.external else storage.password_key_ref


def key_refs(accounting: Accounting) -> list[SecretKeySelector]:
    """Where the keys of auth/slurm and auth/jwt are."""
    return [ref for ref in (accounting.spec.slurm_key_ref, accounting.jwt_ref) if ref is not None]


def _steps(snapshot: Snapshot) -> Iterator[Step]:
    yield _service(snapshot)
    config = _config(snapshot)
    yield config
    yield _stateful_set(snapshot, config)


def _service(snapshot: Snapshot) -> Step:
    try:
        wanted = build.service(snapshot.accounting) or {}
    except BuildError as error:
        return Failed(name=SERVICE, reason="Invalid", message=str(error))
    return Apply(name=SERVICE, wanted=wanted, live=snapshot.service)


def _config(snapshot: Snapshot) -> Apply | Failed:
    accounting, password = snapshot.accounting, None
    if accounting.spec.storage_config is None:
        message = "spec.storageConfig is not given; name the database, or set spec.external"
        return Failed(name=CONFIG, reason="StorageMissing", message=message)
    ref = password_ref(accounting)
    if ref is not None:
        if (missing := _missing(snapshot, ref, CONFIG)) is not None:
            return missing
        password = snapshot.secrets[ref.name][ref.key]
    try:
        wanted = build.config_secret(accounting, password) or {}
    except BuildError as error:
        return Failed(name=CONFIG, reason="Invalid", message=str(error))
    return Apply(name=CONFIG, wanted=wanted, live=snapshot.config)


def _stateful_set(snapshot: Snapshot, config: Apply | Failed) -> Step:
    for ref in key_refs(snapshot.accounting):
        if (missing := _missing(snapshot, ref, STATEFUL_SET)) is not None:
            return missing
    jwks = snapshot.accounting.spec.jwks_key_ref
    if jwks is not None and jwks.key not in snapshot.config_maps.get(jwks.name, {}):
        message = f'ConfigMap "{jwks.name}" with key "{jwks.key}" not found; create it'
        return Failed(name=STATEFUL_SET, reason="ConfigMapMissing", message=message)
    if isinstance(config, Failed):
        return Failed(name=STATEFUL_SET, reason=WAITING, message=f"waits for step {CONFIG}")
    try:
        wanted = build.stateful_set(snapshot.accounting, _hashes(snapshot, config)) or {}
    except BuildError as error:
        return Failed(name=STATEFUL_SET, reason="Invalid", message=str(error))
    return Apply(name=STATEFUL_SET, wanted=wanted, live=snapshot.stateful_set, needs=CONFIG)


def _hashes(snapshot: Snapshot, config: Apply) -> PodHashes:
    """From the configuration wanted in this pass, which is written before the StatefulSet is."""
    slurm_key, jwt_key = snapshot.accounting.spec.slurm_key_ref, snapshot.accounting.jwt_ref
    return PodHashes(
        slurm_key=map_hash(snapshot.secrets.get(slurm_key.name) if slurm_key else None),
        jwt_key=map_hash(snapshot.secrets.get(jwt_key.name) if jwt_key else None),
        config=map_hash(config.wanted["stringData"]),
    )


def _missing(snapshot: Snapshot, ref: SecretKeySelector, step: str) -> Failed | None:
    """Why a step cannot use the Secret's key; None when it can."""
    missing = missing_key(ref, snapshot.secrets.get(ref.name))
    return None if missing is None else Failed(name=step, reason=missing.reason, message=missing.message)

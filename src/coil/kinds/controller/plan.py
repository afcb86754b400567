"""What a pass over a Controller does, and why (spec: control-plane 5). Pure.

    config = config_step(snapshot)
    hold = whether the rollout of that configuration still has to wait
    steps(snapshot, config, hold=hold)

Nothing is made that could not run: while a key or a file is missing there is no new StatefulSet, and a
running one stays as it is. The missing object is watched, so the pass comes back when it appears.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from coil.api import keys
from coil.api.conditions import find
from coil.api.controller import Controller
from coil.build import controller as build
from coil.build.advice import controller_advice
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes, byte_hash, map_hash
from coil.build.restartonly import needs_restart
from coil.build.slurmconf import ConfigInputs
from coil.kinds.controller.live import Target
from coil.kinds.controller.rekeying import SLURM_KEY_CHANGED, Has, Hashes, hashes, slurm_key_changed
from coil.kinds.controller.snapshot import NO_RESTAPI, Snapshot
from coil.kinds.references import missing_key
from coil.kinds.status import AVAILABLE
from coil.kinds.steps import Apply, Failed, Remove, Step
from coil.kube.views import ManifestView
from coil.support.confhash import conf_hash
from coil.support.objects import JsonObject

INTERNAL_SERVICE = "Internal Service"
SERVICE = "Service"
CONFIG = "Config"
STATEFUL_SET = "StatefulSet"
REHEARSAL = "Rehearsal"
SERVICE_MONITOR = "ServiceMonitor"

ACCOUNTING = "Accounting"

SHARED = "ReadWriteMany"
NO_ACCOUNTS = "AccountingStorageType=accounting_storage/none"
_GENERATION_LENGTH = 12


def config_step(snapshot: Snapshot) -> Apply | Failed:
    """Make the ConfigMap with slurm.conf, unless a file it shall list is missing.

    A NodeSet that cannot be read may belong here: without it a running cluster would lose its partition. And
    nothing is reconfigured or made anew while that would part slurmctld from the slurmds.
    """
    if snapshot.unreadable and snapshot.live.config is not None:
        unread = ", ".join(snapshot.unreadable)
        message = f"NodeSet {unread} cannot be read; slurm.conf stays as it is until that is mended"
        return Failed(name=CONFIG, reason="NodeSetUnreadable", message=message)
    if _slurm_key_changed(snapshot):
        return Failed(name=CONFIG, reason="SlurmKeyChanged", message=SLURM_KEY_CHANGED)
    missing = [
        ref.name for ref in build.references(snapshot.controller) if ref.name not in snapshot.config_maps
    ]
    if missing and not snapshot.controller.spec.external:
        return Failed(name=CONFIG, reason="ConfigMapMissing", message=_not_found("ConfigMap", missing))
    try:
        wanted = build.config_map(snapshot.controller, _inputs(snapshot))
    except BuildError as error:
        return Failed(name=CONFIG, reason="Invalid", message=str(error))
    if snapshot.live.config is not None and not snapshot.controller.spec.external:
        wanted = _noting_restart(wanted, snapshot.live.config, live=snapshot.slurm is not NO_RESTAPI)
    return Apply(name=CONFIG, wanted=wanted, live=snapshot.live.config)


def _slurm_key_changed(snapshot: Snapshot) -> bool:
    """Whether the slurm key was replaced while there are workers."""
    if not any(nodeset.status.replicas for nodeset in snapshot.nodesets):
        return False
    live = snapshot.live.stateful_set
    return slurm_key_changed(snapshot.controller, snapshot.secrets, live, snapshot.jwt_key)


def _noting_restart(wanted: JsonObject, before: ManifestView, *, live: bool) -> JsonObject:
    """With the note, written in one request with the change, that pods have to be made for it.

    That is so when slurmctld cannot take the change over, or nobody can tell it to (`live` is false).
    """
    old, new = before.data.get(keys.FILE_SLURM_CONF, ""), wanted["data"][keys.FILE_SLURM_CONF]
    changed = build.config_hash(before.data) != build.config_hash(wanted["data"])
    if not old or not changed or (live and not needs_restart(old, new)):
        return wanted
    annotations = {**wanted["metadata"].get("annotations", {})}
    annotations[keys.ANNOTATION_RESTART_FOR] = build.config_hash(wanted["data"])
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}}


def pod_config_hash(snapshot: Snapshot, config: Apply) -> str:
    """The hash in the pod template: that of the last configuration which running pods could not take over.

    A StatefulSet that is there, of whichever operator, keeps its hash otherwise: everything else reaches
    slurmctld while it runs.
    """
    before = snapshot.live.config
    noted = _annotation(config.wanted["metadata"]) or (_annotation_of(before) if before else "")
    return noted or _live_config_hash(snapshot.live.stateful_set) or build.config_hash(config.wanted["data"])


def _annotation(metadata: JsonObject) -> str:
    return metadata.get("annotations", {}).get(keys.ANNOTATION_RESTART_FOR, "")


def _annotation_of(config: ManifestView) -> str:
    return config.metadata.annotations.get(keys.ANNOTATION_RESTART_FOR, "")


def _live_config_hash(live: ManifestView | None) -> str:
    template: JsonObject = live.spec.get("template", {}) if live is not None else {}
    annotations = template.get("metadata", {}).get("annotations") or {}
    return annotations.get(keys.ANNOTATION_SLURM_CONFIG_HASH, "")


def target(snapshot: Snapshot, config: Apply | Failed) -> Target | None:
    """The configuration that a running slurmctld shall have; None when there is none to bring to it."""
    if isinstance(config, Failed) or snapshot.controller.spec.external:
        return None
    data: dict[str, str] = config.wanted["data"]
    key = b"" if snapshot.jwt_key.has is Has.UNTOLD else _jwt_key(snapshot)
    files = all_files(snapshot, data)
    return Target(generation(data, key), conf_hash(data[keys.FILE_SLURM_CONF], files), key)


def generation(data: Mapping[str, str], key: bytes = b"") -> str:
    """Names a configuration by its generated files, of which one names the content of all others.

    With the JWT key, where that is known, it is what `ConfigurationLive` speaks of.
    """
    named = {name: f"{name}\0{text}\0" for name, text in data.items()}
    if key:
        named[keys.FILE_JWT_KEY] = byte_hash(key)
    return map_hash(named)[:_GENERATION_LENGTH]


def with_unbrought(snapshot: Snapshot, key: bytes) -> Snapshot:
    """With the knowledge that the wanted key does not reach the running pods: new ones have to bring it."""
    if not key or key != _jwt_key(snapshot) or snapshot.jwt_key.has is not Has.WAITED:
        return snapshot
    refused = msgspec.structs.replace(snapshot.jwt_key, has=Has.REFUSED)
    return msgspec.structs.replace(snapshot, jwt_key=refused)


def _jwt_key(snapshot: Snapshot) -> bytes:
    ref = snapshot.controller.jwt_ref
    return snapshot.secrets.get(ref.name, {}).get(ref.key, b"") if ref is not None else b""


def trial(snapshot: Snapshot, data: Mapping[str, str]) -> str:
    """Names a configuration together with what it is tried with: another image may take it."""
    spec = snapshot.controller.spec
    given = msgspec.json.encode([spec.slurmctld, spec.template.spec], order="deterministic")
    return map_hash({"files": generation(data).encode(), "pod": given})[:_GENERATION_LENGTH]


def all_files(snapshot: Snapshot, data: Mapping[str, str]) -> dict[str, str]:
    """The generated files and those of the user's ConfigMaps, as they lie together in /etc/slurm."""
    return {**data, **build.beside_files(snapshot.controller, _inputs(snapshot))}


def held(config: Apply, live: ManifestView) -> Apply:
    """Leave the files of the live ConfigMap as they are, and its note for which pods are made."""
    meta: JsonObject = dict(config.wanted["metadata"])
    others = meta.pop("annotations", {})
    kept = {key: value for key, value in others.items() if key != keys.ANNOTATION_RESTART_FOR}
    meta |= {"annotations": kept} if kept else {}
    return msgspec.structs.replace(
        config, wanted={**config.wanted, "metadata": meta, "data": dict(live.data)}
    )


def advice(snapshot: Snapshot) -> list[str]:
    """What can be built, but hardly does what was meant (field cases CFG-13 and CFG-18)."""
    return controller_advice(snapshot.controller, _inputs(snapshot))


def _inputs(snapshot: Snapshot) -> ConfigInputs:
    accounting = None if accounting_waits(snapshot) else snapshot.accounting
    return ConfigInputs(nodesets=snapshot.nodesets, accounting=accounting, config_maps=snapshot.config_maps)


def accounting_waits(snapshot: Snapshot) -> bool:
    """Whether a cluster that keeps no accounts goes on without until slurmdbd is available.

    A slurmctld that has its state starts without slurmdbd. It then never registers a cluster that slurmdbd
    does not know, and all its jobs are lost to accounting (measured with Slurm 26.05; docs: accounting). A
    slurmctld without state waits for slurmdbd by itself.
    """
    accounting, config = snapshot.accounting, snapshot.live.config
    if accounting is None or accounting.spec.external or config is None or snapshot.live.stateful_set is None:
        return False
    if NO_ACCOUNTS not in config.data.get("slurm.conf", "").splitlines():
        return False
    available = find(accounting.status.conditions, AVAILABLE)
    return available is None or available.status != "True"


def rollout(snapshot: Snapshot, config: Apply | Failed) -> str:
    """Hash of a configuration that a slurmctld pod is to be started or replaced for; empty when none is."""
    if isinstance(config, Failed) or snapshot.controller.spec.external:
        return ""
    if snapshot.live.stateful_set is None:
        return build.config_hash(config.wanted["data"])
    if snapshot.controller.spec.inplace_reconfigure:
        return ""
    wanted = pod_config_hash(snapshot, config)
    return "" if _live_config_hash(snapshot.live.stateful_set) == wanted else wanted


def goes_with(snapshot: Snapshot, config: Apply | Failed) -> bool:
    """Whether the present files of the user's ConfigMaps are those that a configuration names."""
    wanted = config_step(snapshot)
    if isinstance(config, Failed) or isinstance(wanted, Failed):
        return False
    named = (step.wanted["data"].get(keys.FILE_SLURM_CONF, "") for step in (config, wanted))
    return len({build.files_mark(text) for text in named}) == 1


def steps(snapshot: Snapshot, config: Apply | Failed, *, hold: bool) -> tuple[Step, ...]:
    """All steps in order; with `hold` the StatefulSet waits for a later pass."""
    return tuple(_steps(snapshot, config, hold=hold))


def _steps(snapshot: Snapshot, config: Apply | Failed, *, hold: bool) -> Iterator[Step]:
    controller = snapshot.controller
    if not controller.spec.external:
        yield _service(INTERNAL_SERVICE, controller, snapshot)
        yield _service(SERVICE, controller, snapshot)
    yield config
    if accounting_waits(snapshot) and snapshot.accounting is not None:
        name = snapshot.accounting.metadata.name
        message = f'begins when Accounting "{name}" is available; see its conditions'
        yield Failed(name=ACCOUNTING, reason="AccountingUnavailable", message=message)
    if not controller.spec.external:
        step = _stateful_set(snapshot, config)
        if not hold or isinstance(step, Failed):
            yield step
    if snapshot.monitor.relevant:
        yield _service_monitor(snapshot)


def _service(name: str, controller: Controller, snapshot: Snapshot) -> Step:
    internal = name == INTERNAL_SERVICE
    try:
        wanted = (build.internal_service if internal else build.service)(controller)
    except BuildError as error:
        return Failed(name=name, reason="Invalid", message=str(error))
    live = snapshot.live.internal_service if internal else snapshot.live.service
    return Apply(name=name, wanted=wanted or {}, live=live)


def _stateful_set(snapshot: Snapshot, config: Apply | Failed) -> Step:
    controller, live = snapshot.controller, snapshot.live.stateful_set
    problem = _missing(snapshot) or _unshared_claim(snapshot)
    if problem is not None:
        return problem
    if isinstance(config, Failed):
        return Failed(name=STATEFUL_SET, reason="Waiting", message=f"waits for step {CONFIG}")
    try:
        wanted = build.stateful_set(controller, _hashes(snapshot, config)) or {}
        _note_key(wanted, snapshot)
    except BuildError as error:
        return Failed(name=STATEFUL_SET, reason="Invalid", message=str(error))
    if live is not None and live.spec.get("serviceName") != wanted["spec"]["serviceName"]:
        # An immutable member: the StatefulSet of an older release has to go first. Its claims stay.
        return Remove(name=STATEFUL_SET, live=live)
    return Apply(name=STATEFUL_SET, wanted=wanted, live=live, needs=CONFIG)


def _service_monitor(snapshot: Snapshot) -> Step:
    if snapshot.monitor.error:
        return Failed(name=SERVICE_MONITOR, reason="ReadFailed", message=snapshot.monitor.error, retry=True)
    wanted, live = build.service_monitor(snapshot.controller), snapshot.monitor.live
    if wanted is None:
        return Remove(name=SERVICE_MONITOR, live=live)
    return Apply(name=SERVICE_MONITOR, wanted=wanted, live=live)


def _hashes(snapshot: Snapshot, config: Apply) -> PodHashes:
    """From the configuration wanted in this pass, which is written before the StatefulSet is."""
    found = _key_hashes(snapshot)
    return PodHashes(
        slurm_key=found.slurm_key, jwt_key=found.jwt_key, config=pod_config_hash(snapshot, config)
    )


def _key_hashes(snapshot: Snapshot) -> Hashes:
    return hashes(snapshot.controller, snapshot.secrets, snapshot.live.stateful_set, snapshot.jwt_key)


def _note_key(wanted: JsonObject, snapshot: Snapshot) -> None:
    if note := _key_hashes(snapshot).note:
        wanted["metadata"].setdefault("annotations", {})[keys.ANNOTATION_LIVE_KEY] = note


def _missing(snapshot: Snapshot) -> Failed | None:
    """A key or file without which the pod could not start."""
    for ref in (snapshot.controller.spec.slurm_key_ref, snapshot.controller.jwt_ref):
        if ref is None:
            continue
        if (missing := missing_key(ref, snapshot.secrets.get(ref.name))) is not None:
            return Failed(name=STATEFUL_SET, reason=missing.reason, message=missing.message)
    jwks = snapshot.controller.spec.jwks_key_ref
    if jwks is not None and jwks.key not in snapshot.config_maps.get(jwks.name, {}):
        message = f'{_not_found("ConfigMap", [jwks.name])} with key "{jwks.key}"'
        return Failed(name=STATEFUL_SET, reason="ConfigMapMissing", message=message)
    return None


def _unshared_claim(snapshot: Snapshot) -> Failed | None:
    """Backups write the same state: the claim must allow that. One that is not there yet passes."""
    claim = snapshot.claim
    if not snapshot.controller.spec.ha.enabled or claim is None:
        return None
    if SHARED in (claim.spec.get("accessModes") or ()):
        return None
    message = f'PersistentVolumeClaim "{claim.metadata.name}" must have access mode {SHARED} for backups'
    return Failed(name=STATEFUL_SET, reason="ClaimNotShared", message=message)


def _not_found(kind: str, missing: Sequence[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in sorted(set(missing)))
    return f"{kind} {quoted} not found; create {'it' if len(set(missing)) == 1 else 'them'}"

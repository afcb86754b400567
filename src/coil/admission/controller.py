"""Rules for Controllers (spec: control-plane 13.1)."""

from collections.abc import Iterator

from coil.admission import overrides, rules
from coil.admission.facts import Lookups, Wanted
from coil.admission.verdict import Verdict, verdict
from coil.api import keys, names
from coil.api.controller import Controller
from coil.build import controller as build
from coil.build.advice import controller_advice, external_addresses
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes
from coil.build.slurmconf import ConfigInputs

CLUSTER_NAME_LENGTH = 40
RESERVED = frozenset({keys.FILE_SLURM_CONF, keys.FILE_SLURMDBD_CONF})
"""Files that the operator writes."""
KNOWN_FILES = frozenset(
    {
        *("acct_gather.conf", "burst_buffer.conf", "cgroup.conf", "cli_filter.lua", "gres.conf"),
        *("helpers.conf", "job_container.conf", "job_submit.lua", "mpi.conf", "namespace.yaml"),
        *("oci.conf", "plugstack.conf", "topology.conf", "topology.yaml"),
    }
)
"""Files that Slurm looks for by itself."""
_SHARED = "ReadWriteMany"


def wanted(controller: Controller) -> Wanted:
    """What has to be read to check the Controller."""
    spec = controller.spec
    claim = spec.persistence.existing_claim if spec.ha.enabled and spec.persistence else ""
    return Wanted(config_maps=frozenset(ref.name for ref in spec.config_file_refs), claim=claim)


def validate(old: Controller | None, new: Controller, lookups: Lookups) -> Verdict:
    """Findings about a new Controller, or about a change of `old`."""
    errors = [*_files(new, lookups), *_claim(new, lookups)]
    added = list(_lines(new))
    if old is None:
        errors += [*_cluster_name(new), *_name(new)]
        before: Iterator[str] = iter(())
    else:
        errors += _immutable(old, new)
        before = _lines(old)
    warnings = [*_advice(new), *_unknown_files(new, lookups)]
    if not errors and not added:
        warnings += _build_advice(new, lookups)
    return verdict([*errors, *added], warnings, before)


def _cluster_name(controller: Controller) -> Iterator[str]:
    name = controller.spec.cluster_name or (
        f"{controller.metadata.namespace}_{rules.full_name(controller.metadata)}"
    )
    if len(name) > CLUSTER_NAME_LENGTH:
        yield (
            f"spec.clusterName: {name[:80]!r} has {len(name)} characters, "
            f"at most {CLUSTER_NAME_LENGTH} are allowed; give a shorter one"
        )


def _name(controller: Controller) -> Iterator[str]:
    if not controller.spec.external:
        name = rules.full_name(controller.metadata)
        yield from rules.short("metadata.name", names.controller(name), rules.WORKLOAD_LENGTH, "StatefulSet")
        yield from rules.no_dots("metadata.name", name, "Service")


def _lines(controller: Controller) -> Iterator[str]:
    spec = controller.spec
    yield from rules.one_word("spec.clusterName", spec.cluster_name)
    if spec.external_config is not None:
        yield from rules.one_word("spec.externalConfig.host", spec.external_config.host)
        if spec.external:
            yield from rules.needed("spec.externalConfig.host", spec.external_config.host)


def _files(controller: Controller, lookups: Lookups) -> Iterator[str]:
    for index, ref in enumerate(controller.spec.config_file_refs):
        where = f"spec.configFileRefs[{index}]"
        if ref.name in lookups.unreadable:
            yield f"{where}: ConfigMap {ref.name[:80]!r} cannot be read: {lookups.unreadable[ref.name]}"
        for file in sorted(RESERVED.intersection(lookups.config_maps.get(ref.name, ()))):
            yield f"{where}: ConfigMap {ref.name} has the key {file}, a file that the operator writes"


def _unknown_files(controller: Controller, lookups: Lookups) -> Iterator[str]:
    for index, ref in enumerate(controller.spec.config_file_refs):
        for file in sorted(set(lookups.config_maps.get(ref.name, ())) - RESERVED - KNOWN_FILES):
            yield (
                f"spec.configFileRefs[{index}]: ConfigMap {ref.name} has the key {file}, "
                "which Slurm ignores unless another file includes it"
            )


def _claim(controller: Controller, lookups: Lookups) -> Iterator[str]:
    where, name = "spec.persistence.existingClaim", wanted(controller).claim
    if lookups.claim_error:
        yield f"{where}: PersistentVolumeClaim {name[:80]!r} cannot be read: {lookups.claim_error}"
    elif lookups.claim_modes is not None and _SHARED not in lookups.claim_modes:
        yield f"{where}: PersistentVolumeClaim {name} needs access mode {_SHARED} for ha.enabled"


def _immutable(old: Controller, new: Controller) -> Iterator[str]:
    yield from rules.unchanged("spec.clusterName", old.cluster_name, new.cluster_name)
    yield from rules.unchanged("spec.slurmKeyRef.name", *(_slurm_key(item) for item in (old, new)))
    yield from rules.same_key(old.jwt_ref, new.jwt_ref)
    before, after = old.spec.persistence, new.spec.persistence
    enabled = [None if item is None else item.enabled for item in (before, after)]
    yield from rules.unchanged("spec.persistence.enabled", *enabled)
    if new.persistence_enabled:
        claims = ["" if item is None else item.existing_claim for item in (before, after)]
        yield from rules.unchanged("spec.persistence.existingClaim", *claims)


def _slurm_key(controller: Controller) -> str | None:
    ref = controller.spec.slurm_key_ref
    return None if ref is None else ref.name


def _advice(controller: Controller) -> Iterator[str]:
    yield from external_addresses(controller.spec.service.spec)
    yield from overrides.advice(controller.spec)


def _build_advice(controller: Controller, lookups: Lookups) -> Iterator[str]:
    """What the operator will say of an object that keeps the rules."""
    spec = controller.spec
    inputs = ConfigInputs(config_maps={**_not_read(controller), **lookups.config_maps})
    yield from controller_advice(controller, inputs)
    if spec.external:
        return
    yield from overrides.no_image(spec, "slurmctld", "logfile", *["reconfigure"] * spec.inplace_reconfigure)
    yield from _incomplete_claim(controller)
    try:
        build.service(controller)
        build.config_map(controller, inputs)
        build.stateful_set(controller, PodHashes())
    except BuildError as error:
        yield f"{error}; no pod can be made"


def _not_read(controller: Controller) -> dict[str, dict[str, str]]:
    """Scripts are not looked at: their ConfigMaps may come later."""
    spec = controller.spec
    scripts = (
        *(*spec.prolog_script_refs, *spec.epilog_script_refs),
        *(*spec.prolog_slurmctld_script_refs, *spec.epilog_slurmctld_script_refs),
    )
    return {ref.name: {} for ref in scripts}


def _incomplete_claim(controller: Controller) -> Iterator[str]:
    persistence = controller.spec.persistence
    if not controller.persistence_enabled or (persistence and persistence.existing_claim):
        return
    if persistence is None or not persistence.access_modes or not persistence.resources.requests:
        yield (
            "spec.persistence: needs accessModes and resources.requests.storage, or existingClaim; "
            "without them Kubernetes refuses the pods (enabled: false does without a claim)"
        )

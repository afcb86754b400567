"""The objects of an Accounting (spec: control-plane 6).

    secret = config_secret(accounting, password)      # the value named by storageConfig.passwordKeyRef
    hashes = PodHashes(slurm_key=..., jwt_key=..., config=map_hash(secret["stringData"]))
    for manifest in (service(a), secret, stateful_set(a, hashes)):
        ...

Pure; each returns a manifest, or None for an external slurmdbd. BuildError says which member makes an
object impossible.
"""

from coil.api import keys, names
from coil.api.accounting import Accounting, StorageConfig
from coil.build import core, metadata, pods, templates
from coil.build import service as services
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes
from coil.build.slurmconf import AUTH_INFO, auth_alt_parameters
from coil.support.conftext import ConfTextError, Section, merged_section, property_line, render
from coil.support.objects import JsonObject

NOT_IN_PODS = frozenset({"externalConfig", "extraConf", "service", "storageConfig"})
"""Members of `spec` that the pod template does not depend on, or by a hash of the file only."""

_FILE_MODE = 0o600


def labels(accounting: Accounting) -> dict[str, str]:
    """The operator's labels of everything that belongs to the Accounting."""
    return names.operator_labels(keys.SLURMDBD, accounting.metadata.name, keys.COMPONENT_ACCOUNTING)


def selector(accounting: Accounting) -> dict[str, str]:
    """The labels that select the slurmdbd pod."""
    return names.selector_labels(keys.SLURMDBD, accounting.metadata.name)


def service(accounting: Accounting) -> JsonObject | None:
    """The Service of slurmdbd.

    It leads to the pod before the kubelet has seen it ready: a new slurmctld waits for slurmdbd, which opens
    its port as soon as it has its database, and the next probe may be 10 s away.
    """
    if accounting.spec.external:
        return None
    wanted = accounting.spec.service
    meta = _metadata(accounting, wanted.metadata.labels, wanted.metadata.annotations)
    manifest = services.service(meta, wanted, keys.SLURMDBD, keys.PORT_SLURMDBD, selector(accounting))
    return services.early(manifest)


def config_secret(accounting: Accounting, password: bytes | None) -> JsonObject | None:
    """The Secret with slurmdbd.conf.

    Raises:
        BuildError: there is no storageConfig or no password, or a value cannot be written into the file.
    """
    if accounting.spec.external:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(accounting),
        "type": "Opaque",
        "stringData": {keys.FILE_SLURMDBD_CONF: slurmdbd_conf(accounting, password)},
        "immutable": False,
    }


def slurmdbd_conf(accounting: Accounting, password: bytes | None) -> str:
    """The text of slurmdbd.conf; raises as `config_secret`."""
    spec, name = accounting.spec, names.accounting(accounting.metadata.name)
    if spec.storage_config is None:
        raise BuildError("spec.storageConfig", "is needed unless spec.external is true")
    auth = auth_alt_parameters(jwks=spec.jwks_key_ref is not None)
    general = [("DbdHost", f"{name}-0"), ("DbdPort", keys.PORT_SLURMDBD), ("SlurmUser", keys.SLURM_USER)]
    plugins = [
        ("AuthType", "auth/slurm"),
        ("AuthAltTypes", "auth/jwt"),
        ("AuthAltParameters", ",".join(auth)),
        ("AuthInfo", AUTH_INFO),
    ]
    try:
        sections = [
            Section("GENERAL", [property_line(*item) for item in general]),
            Section("PLUGINS & PARAMETERS", [property_line(*item) for item in plugins]),
            Section("STORAGE", _storage(spec.storage_config, password)),
            Section("LOGGING", [property_line("LogFile", "/dev/null")]),
            Section("EXTRA CONFIG", [spec.extra_conf] if spec.extra_conf else []),
            merged_section(spec.extra_conf, {"AuthAltParameters": auth, "AuthInfo": (AUTH_INFO,)}),
        ]
    except ConfTextError as error:
        raise BuildError("spec", str(error)) from None
    return render(sections)


def _storage(config: StorageConfig, password: bytes | None) -> list[str]:
    ref = config.password_key_ref
    if password is None:
        raise BuildError(
            "spec.storageConfig.passwordKeyRef", f"there is no Secret {ref.name} with key {ref.key}"
        )
    try:
        text = password.decode()
    except UnicodeDecodeError:
        raise BuildError("spec.storageConfig.passwordKeyRef", "the password is not UTF-8 text") from None
    bare = text.rstrip("\n")
    return [
        property_line("StorageType", "accounting_storage/mysql"),
        *_given("StorageHost", config.host),
        property_line("StoragePort", config.port),
        *_given("StorageUser", config.username),
        *_given("StorageLoc", config.database),
        *_password_line(bare),
        # A line break at the end of the Secret's value is no part of the password.
        *[""] * (len(text) - len(bare)),
    ]


def _given(key: str, text: str) -> list[str]:
    """The line of a member that says something: slurmdbd ends at a parameter without a value."""
    return [property_line(key, _value(text, key))] if text else []


def _password_line(password: str) -> list[str]:
    try:
        return _given("StoragePass", password)
    except ConfTextError:
        # Its text would show the password.
        what = (
            "Slurm cannot read a password with a line break, or with double quotes and blanks or backslashes"
        )
        raise BuildError("spec.storageConfig.passwordKeyRef", what) from None


def _value(text: str, key: str) -> str:
    """`text` so that Slurm reads exactly it: the value of one parameter, no comment, no second one.

    Slurm takes a backslash as an escape and needs quotes around blanks; a quote cannot be escaped
    (measured with Slurm 26.05, tests/slurm).
    """
    escaped = text.replace("\\", "\\\\").replace("#", "\\#")
    # A backslash at the end of a line would join the next one.
    needs_quotes = any(character.isspace() for character in text) or text.endswith("\\")
    looks_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    if ('"' in text and needs_quotes) or looks_quoted:
        raise ConfTextError(f"{key}: Slurm cannot read a value with double quotes and blanks or backslashes")
    return f'"{escaped}"' if needs_quotes else escaped


def stateful_set(accounting: Accounting, hashes: PodHashes) -> JsonObject | None:
    """The StatefulSet of slurmdbd.

    Raises:
        BuildError: a key reference is missing, or an override has the wrong type.
    """
    if accounting.spec.external:
        return None
    name = names.accounting(accounting.metadata.name)
    template = accounting.spec.template.metadata
    operator = {
        keys.ANNOTATION_SLURM_KEY_HASH: hashes.slurm_key,
        keys.ANNOTATION_JWT_KEY_HASH: hashes.jwt_key,
        keys.ANNOTATION_SLURMDBD_CONF_HASH: hashes.config,
        keys.ANNOTATION_DEFAULT_CONTAINER: keys.SLURMDBD,
    }
    own = accounting.metadata
    # The template's metadata reaches the StatefulSet only (Q11).
    pod_metadata = metadata.template_metadata(
        name, accounting, [own.labels, labels(accounting)], [own.annotations, operator]
    )
    manifest: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(accounting, template.labels, template.annotations),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selector(accounting)},
            "serviceName": name,
            "template": {"metadata": pod_metadata, "spec": _pod_spec(accounting)},
        },
    }
    return templates.marked(manifest, accounting, apart=NOT_IN_PODS)


def _metadata(accounting: Accounting, *added: dict[str, str]) -> JsonObject:
    more_labels, more_annotations = added or ({}, {})
    own = accounting.metadata
    return metadata.object_metadata(
        names.accounting(own.name),
        accounting,
        [own.labels, more_labels, labels(accounting)],
        [own.annotations, more_annotations],
    )


def _pod_spec(accounting: Accounting) -> JsonObject:
    base = core.PodSpec(
        containers=[],
        automountServiceAccountToken=False,
        securityContext=core.PodSecurityContext(
            runAsNonRoot=True, runAsUser=keys.SLURM_UID, runAsGroup=keys.SLURM_GID, fsGroup=keys.SLURM_GID
        ),
        volumes=[
            core.projected(keys.VOLUME_ETC, _FILE_MODE, _config_sources(accounting)),
            core.memory_dir(keys.VOLUME_RUN),
        ],
    )
    container = core.Container(
        name=keys.SLURMDBD,
        ports=[core.ContainerPort(name=keys.SLURMDBD, containerPort=keys.PORT_SLURMDBD, protocol="TCP")],
        readinessProbe=core.tcp_probe(keys.PORT_SLURMDBD),
        securityContext=core.run_as(keys.SLURM_UID, keys.SLURM_GID),
        volumeMounts=[
            core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG, read_only=True),
            core.mount(keys.VOLUME_RUN, keys.DIR_RUN),
        ],
    )
    slurmdbd = pods.container(container, accounting.spec.slurmdbd, "spec.slurmdbd")
    return pods.pod_spec(base, [slurmdbd], [], accounting.spec.template.spec)


def _config_sources(accounting: Accounting) -> list[core.VolumeProjection]:
    slurm_key, jwt_key, jwks = accounting.spec.slurm_key_ref, accounting.jwt_ref, accounting.spec.jwks_key_ref
    if slurm_key is None or jwt_key is None:
        raise BuildError("spec", "slurmKeyRef and jwtKeyRef are needed unless spec.external is true")
    conf = keys.FILE_SLURMDBD_CONF
    sources = [
        core.secret_file(names.accounting(accounting.metadata.name), conf, conf),
        core.slurm_key_file(slurm_key),
        core.secret_file(jwt_key.name, jwt_key.key, keys.FILE_JWT_KEY),
    ]
    if jwks is not None:
        item = core.KeyToPath(key=jwks.key, path=keys.FILE_JWKS)
        sources.append(core.config_map_files(jwks.name, item))
    return sources

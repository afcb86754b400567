"""What coil's builders make of a step of the golden corpus."""

from collections.abc import Iterator

from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.api.meta import SecretKeySelector
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.api.token import Token
from coil.build import accounting as accountings
from coil.build import controller as controllers
from coil.build import loginset as loginsets
from coil.build import nodeset as nodesets
from coil.build import restapi as restapis
from coil.build import token as tokens
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes, map_hash
from coil.build.slurmconf import ConfigInputs
from coil.support.objects import JsonObject, ObjectMeta
from tests.support import golden

Objects = dict[tuple[str, str], JsonObject]


def _config_inputs(step: golden.Step, controller: Controller) -> ConfigInputs:
    names = {ref.name for ref in controllers.references(controller)}
    if controller.spec.jwks_key_ref is not None:
        names.add(controller.spec.jwks_key_ref.name)
    found = {name: step.data("ConfigMap", name) for name in names}
    wanted = controller.spec.accounting_ref
    accounting = [item for item in step.all(Accounting) if wanted and item.metadata.name == wanted.name]
    return ConfigInputs(
        nodesets=step.all(NodeSet),
        accounting=next(iter(accounting), None),
        config_maps={name: data for name, data in found.items() if data is not None},
    )


def _of_controller(step: golden.Step, controller: Controller) -> Iterator[JsonObject | None]:
    config_hash = ""
    try:
        config = controllers.config_map(controller, _config_inputs(step, controller))
        config_hash = controllers.config_hash(config["data"])
        yield config
    except BuildError:
        pass
    assert controller.spec.slurm_key_ref
    assert controller.jwt_ref
    hashes = PodHashes(
        slurm_key=step.secret_hash(controller.spec.slurm_key_ref.name),
        jwt_key=step.secret_hash(controller.jwt_ref.name),
        config=config_hash,
    )
    yield controllers.service(controller)
    yield controllers.internal_service(controller)
    yield controllers.service_monitor(controller)
    yield controllers.stateful_set(controller, hashes)


def _of_restapi(step: golden.Step, restapi: RestApi) -> Iterator[JsonObject]:
    yield restapis.service(restapi)
    for controller in step.all(Controller):
        if controller.metadata.name == restapi.spec.controller_ref.name:
            yield restapis.deployment(restapi, controller)


def _of_accounting(step: golden.Step, accounting: Accounting) -> Iterator[JsonObject | None]:
    spec, config_hash = accounting.spec, ""
    try:
        password = value_of(step, spec.storage_config.password_key_ref) if spec.storage_config else None
        secret = accountings.config_secret(accounting, password)
        config_hash = map_hash(secret["stringData"]) if secret else ""
        yield secret
    except BuildError:
        pass
    hashes = PodHashes(
        slurm_key=step.secret_hash(spec.slurm_key_ref.name) if spec.slurm_key_ref else "",
        jwt_key=step.secret_hash(accounting.jwt_ref.name) if accounting.jwt_ref else "",
        config=config_hash,
    )
    yield accountings.service(accounting)
    yield accountings.stateful_set(accounting, hashes)


def _of_loginset(step: golden.Step, loginset: LoginSet) -> Iterator[JsonObject]:
    for controller in step.all(Controller):
        if controller.metadata.name == loginset.spec.controller_ref.name:
            sssd = value_of(step, loginset.spec.sssd_conf_ref)
            inputs = loginsets.PodInputs(controller=controller, host_keys_hash="any", sssd_conf=sssd)
            yield loginsets.ssh_config(loginset)
            yield loginsets.host_keys(loginset, dict.fromkeys(loginsets.HOST_KEYS, "any"))
            yield loginsets.service(loginset)
            yield loginsets.deployment(loginset, inputs)


def _of_token(step: golden.Step, token: Token) -> Iterator[JsonObject]:
    assert token.jwt_ref
    if ("Secret", token.jwt_ref.name) in step.inputs:
        yield tokens.secret(token, "any", ObjectMeta(name=token.jwt_ref.name, uid=golden.UID))


def value_of(step: golden.Step, ref: SecretKeySelector) -> bytes | None:
    text = (step.data("Secret", ref.name) or {}).get(ref.key)
    return None if text is None else text.encode()


def _of_nodesets(step: golden.Step) -> Iterator[JsonObject | None]:
    found = step.all(NodeSet)
    for cluster in sorted({nodeset.controller_key for nodeset in found}):
        yield nodesets.worker_service(cluster, found)
        yield nodesets.worker_budget(cluster, found)
    for nodeset in found:
        yield nodesets.ssh_config(nodeset)


def manifests(step: golden.Step) -> Objects:
    made = [
        *(item for found in step.all(Controller) for item in _of_controller(step, found)),
        *(item for found in step.all(RestApi) for item in _of_restapi(step, found)),
        *_of_nodesets(step),
        *(item for found in step.all(Accounting) for item in _of_accounting(step, found)),
        *(item for found in step.all(LoginSet) for item in _of_loginset(step, found)),
        *(item for found in step.all(Token) for item in _of_token(step, found)),
    ]
    return {(item["kind"], item["metadata"]["name"]): item for item in made if item}

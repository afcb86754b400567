"""Claims about what each kind's rules refuse, warn of and let pass (spec: control-plane 13, nodeset 2.4)."""

from typing import Any

import msgspec
import pytest

from coil.admission import accounting, controller, loginset, nodeset, restapi, token
from coil.admission.facts import NOTHING, Lookups
from coil.admission.verdict import MalformedError, Verdict
from coil.api.loginset import LoginSet
from coil.api.token import Token
from tests.support import resources
from tests.support.resources import NAMESPACE

LONG = "x" * 70
HOSTILE = ["a\nb", "a\rb", "a\\", "a\u2028b", "a\x00b"]


def _read(view: type[Any], name: str, spec: dict[str, Any]) -> Any:
    return msgspec.convert({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}, view)


def login(name: str = "login", **spec: Any) -> LoginSet:
    given = {
        "controllerRef": {"name": "slurm"},
        "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
        "login": {"image": "registry.example/login:1"},
        "initconf": {"image": "registry.example/tools:1"},
    }
    return _read(LoginSet, name, given | spec)


def jwt(name: str = "jwt", **spec: Any) -> Token:
    return _read(Token, name, {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}, "username": "ann"} | spec)


def control(old: Any = None, facts: Lookups = NOTHING, **spec: Any) -> Verdict:
    return controller.validate(old, resources.controller(**spec), facts)


def workers(old: Any = None, name: str = "gpu", **spec: Any) -> Verdict:
    return nodeset.validate(old, resources.nodeset(name, **spec), NOTHING)


def database(old: Any = None, **spec: Any) -> Verdict:
    return accounting.validate(old, resources.accounting(**spec), NOTHING)


def only(found: Verdict) -> str:
    (text,) = found.errors
    return text


@pytest.mark.parametrize(
    "found",
    [
        control(),
        workers(),
        database(),
        restapi.validate(None, resources.restapi(), NOTHING),
        loginset.validate(None, login(), NOTHING),
        token.validate(None, jwt(), NOTHING),
    ],
)
def test_an_ordinary_object_passes_in_silence(found: Verdict) -> None:
    assert found == Verdict(errors=[], warnings=[])


class TestNodeSet:
    """Field cases WHK-10 and CFG-20."""

    @pytest.mark.parametrize(
        ("spec", "path"),
        [
            ({"controllerRef": {"name": ""}}, "spec.controllerRef.name"),
            (
                {"ssh": {"enabled": True, "sssdConfRef": {"name": ""}}},
                "spec.ssh.sssdConfRef.name",
            ),
            ({"template": {"spec": {"hostname": "gpu\nx"}}}, "spec.template.spec.hostname"),
            ({"template": {"spec": {"hostname": "gpu--x."}}}, "spec.template.spec.hostname"),
            ({"template": {"spec": {"hostname": "GPU"}}}, "spec.template.spec.hostname"),
            ({"template": {"spec": {"hostname": "gpu--"}}}, "spec.template.spec.hostname"),
            ({"extraConf": "Weight=5 spare"}, "spec.extraConf"),
        ],
    )
    def test_is_refused_with_the_member_named(self, spec: dict[str, Any], path: str) -> None:
        assert only(workers(**spec)).startswith(f"{path}: ")
        assert workers(resources.nodeset(), **spec).errors[-1].startswith(f"{path}: ")

    @pytest.mark.parametrize("text", ["Weight=5  Gres=gpu:1", "Weight=5\nGres=gpu:1\n", ""])
    def test_blanks_and_line_breaks_between_parameters_are_tolerated(self, text: str) -> None:
        assert workers(extraConf=text).errors == []

    @pytest.mark.parametrize("prefix", ["gpu-", "gpu", "a.b"])
    def test_a_prefix_of_host_names_may_end_in_a_dash(self, prefix: str) -> None:
        assert workers(template={"spec": {"hostname": prefix}}).errors == []

    @pytest.mark.parametrize(("limit", "refused"), [(0, True), (-1, True), ("0%", True), (1, False)])
    @pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
    def test_max_unavailable_must_let_a_roll_go_on(
        self, limit: int | str, refused: bool, strategy: str
    ) -> None:
        wanted = {"type": strategy, "rollingUpdate": {"maxUnavailable": limit}}
        assert bool(workers(updateStrategy=wanted).errors) == refused

    @pytest.mark.parametrize("limit", ["0", "00%", "50%", "x"])
    def test_other_texts_for_max_unavailable_pass(self, limit: str) -> None:
        assert workers(updateStrategy={"rollingUpdate": {"maxUnavailable": limit}}).errors == []

    @pytest.mark.parametrize(
        ("duration", "refused"), [("59s", True), ("-5m", True), ("0s", False), ("1m", False), ("", False)]
    )
    def test_a_reservation_lasts_at_least_a_minute(self, duration: str, refused: bool) -> None:
        found = workers(updateStrategy={"scheduledUpdate": {"duration": duration}})
        assert bool(found.errors) == refused

    def test_no_duration_at_all_is_malformed(self) -> None:
        with pytest.raises(MalformedError, match=r"scheduledUpdate.duration: 'soon' is no duration"):
            workers(updateStrategy={"scheduledUpdate": {"duration": "soon"}})

    def test_the_controller_is_immutable(self) -> None:
        old = resources.nodeset()
        assert only(workers(old, controllerRef={"name": "other"})).startswith(
            "spec.controllerRef.name: cannot"
        )

    def test_claim_templates_are_immutable_but_may_be_spelled_otherwise(self) -> None:
        def claims(size: str, **more: Any) -> dict[str, Any]:
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
            return {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}

        old = resources.nodeset(**claims("1Gi"))
        assert workers(old, **claims("1024Mi", volumeName="")).errors == []
        assert only(workers(old, **claims("2Gi"))).startswith("spec.volumeClaimTemplates: cannot be changed")
        assert only(workers(old)).startswith("spec.volumeClaimTemplates: cannot be changed")

    @pytest.mark.parametrize("tail", ["\rPrologSlurmctld=/tmp/own.sh", "\\"])
    def test_a_partition_adds_no_line(self, tail: str) -> None:
        """Field case INJ-01: the schema refuses the line feed, the rest is refused here."""
        found = workers(partition={"enabled": True, "config": f"State=UP{tail}"})
        assert only(found).startswith("spec.partition.config: ")

    def test_names_must_fit(self) -> None:
        """Field case REG-17."""
        assert only(workers(name="x" * 62)).startswith("metadata.name: makes the pod")
        assert workers(name="x" * 61).errors == []
        assert only(workers(name="x" * 61, replicas=11)).startswith("metadata.name: makes the pod")
        assert workers(name="x" * 62, scalingMode="DaemonSet").errors == []
        assert only(workers(controllerRef={"name": "c" * 50})).startswith("spec.controllerRef.name: makes")
        found = workers(template={"spec": {"hostname": "h" * 63}})
        assert only(found).startswith("spec.template.spec.hostname: makes the host name")

    def test_a_rule_that_came_later_only_warns_about_what_was_there(self) -> None:
        """Scaling an object that is too old for a rule must go on working."""
        spec = {"partition": {"enabled": True, "config": "State=UP\\"}}
        found = workers(resources.nodeset(**spec), replicas=3, **spec)
        assert found.errors == []
        assert found.warnings[0].startswith("spec.partition.config: ")

    def test_overrides_without_effect_are_told(self) -> None:
        slurmd = {
            "image": "registry.example/slurmd:1",
            "securityContext": {"privileged": False, "runAsUser": 0},
            "imagePullPolcy": "Always",
        }
        assert workers(slurmd=slurmd, logfile={}).warnings == [
            "spec.slurmd.securityContext.privileged: false has no effect, a zero value overrides nothing",
            "spec.slurmd.securityContext.runAsUser: 0 has no effect, a zero value overrides nothing",
            "spec.slurmd.imagePullPolcy: has no effect, a Container has no such member",
            "spec.logfile.image: is not set; without it Kubernetes refuses the pods",
        ]

    def test_a_claim_template_without_a_name_is_told(self) -> None:
        found = workers(volumeClaimTemplates=[{"spec": {}}])
        assert found.warnings == [
            "spec.volumeClaimTemplates: a claim template has no metadata.name; no pod can be made"
        ]


class TestController:
    def test_a_cluster_name_has_at_most_40_characters_when_it_is_new(self) -> None:
        assert control(clusterName="c" * 40).errors == []
        assert only(control(clusterName="c" * 41)).startswith("spec.clusterName: ")
        old = resources.controller(clusterName="c" * 41)
        assert control(old, clusterName="c" * 41, extraConf="a=b").errors == []

    def test_the_cluster_name_in_effect_counts(self) -> None:
        """Field case NSP-09: without one it is made of namespace and name."""
        made = resources.controller("n" * 38)
        assert "'ns_" in only(controller.validate(None, made, NOTHING))
        old, new = resources.controller(), resources.controller(clusterName="ns_slurm")
        assert controller.validate(old, new, NOTHING).errors == []

    @pytest.mark.parametrize("text", [*HOSTILE, "a b", "a#b", "a=b", "a,b", '"a"'])
    def test_a_cluster_name_adds_no_line_and_no_parameter(self, text: str) -> None:
        """Invariant I9, quirk Q9."""
        assert only(control(clusterName=text)).startswith("spec.clusterName: ")
        external = {"external": True, "externalConfig": {"host": text, "port": 6817}}
        assert only(control(**external)).startswith("spec.externalConfig.host: ")

    @pytest.mark.parametrize("host", ["ctld.example", "192.0.2.1", "[2001:db8::1]"])
    def test_ordinary_hosts_pass(self, host: str) -> None:
        found = control(external=True, externalConfig={"host": host, "port": 6817})
        assert found == Verdict(errors=[], warnings=[])

    def test_files_are_looked_at(self) -> None:
        refs = [{"name": "a"}, {"name": "b"}, {"name": "b"}]
        files = {"slurm.conf": "", "slurmdbd.conf": "", "gres.conf": "", "mine.conf": ""}
        facts = Lookups(config_maps={"a": files}, unreadable={"b": "not found"})
        found = control(None, facts, configFileRefs=refs)
        assert found.errors == [
            "spec.configFileRefs[0]: ConfigMap a has the key slurm.conf, a file that the operator writes",
            "spec.configFileRefs[0]: ConfigMap a has the key slurmdbd.conf, a file that the operator writes",
            "spec.configFileRefs[1]: ConfigMap 'b' cannot be read: not found",
            "spec.configFileRefs[2]: ConfigMap 'b' cannot be read: not found",
        ]
        (warning,) = found.warnings
        assert "has the key mine.conf" in warning

    @pytest.mark.parametrize("file", sorted(controller.KNOWN_FILES))
    def test_files_that_slurm_looks_for_are_no_surprise(self, file: str) -> None:
        facts = Lookups(config_maps={"a": {file: ""}})
        found = control(None, facts, configFileRefs=[{"name": "a"}], extraConf="TopologyPlugin=topology/tree")
        assert found == Verdict(errors=[], warnings=[])

    def test_scripts_may_come_later(self) -> None:
        assert control(prologScriptRefs=[{"name": "later"}]) == Verdict(errors=[], warnings=[])

    @pytest.mark.parametrize(
        ("facts", "refused"),
        [
            (Lookups(claim_modes=("ReadWriteOnce",)), True),
            (Lookups(claim_modes=("ReadWriteOnce", "ReadWriteMany")), False),
            (Lookups(claim_error="timeout"), True),
            (NOTHING, False),
        ],
    )
    def test_backups_need_a_shared_claim(self, facts: Lookups, refused: bool) -> None:
        ha = {"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "state"}}
        assert bool(control(None, facts, **ha).errors) == refused

    def test_what_is_read_is_what_the_rules_need(self) -> None:
        spec = {"configFileRefs": [{"name": "a"}, {"name": "a"}], "prologScriptRefs": [{"name": "p"}]}
        claim = {"persistence": {"enabled": True, "existingClaim": "state"}}
        wanted = controller.wanted(resources.controller(**spec, **claim))
        assert (wanted.config_maps, wanted.claim) == ({"a"}, "")
        wanted = controller.wanted(resources.controller(ha={"enabled": True}, **claim))
        assert (wanted.config_maps, wanted.claim) == (frozenset(), "state")

    @pytest.mark.parametrize(
        ("before", "after", "path"),
        [
            ({}, {"clusterName": "x"}, "spec.clusterName"),
            ({}, {"slurmKeyRef": {"name": "other", "key": "slurm.key"}}, "spec.slurmKeyRef.name"),
            ({}, {"slurmKeyRef": None}, "spec.slurmKeyRef.name"),
            ({}, {"jwtKeyRef": {"name": "keys", "key": "other"}}, "spec.jwtKeyRef"),
            ({}, {"jwtKeyRef": {"name": "keys", "key": "jwt.key", "optional": True}}, "spec.jwtKeyRef"),
            ({"persistence": None}, {"persistence": {"enabled": True}}, "spec.persistence.enabled"),
            ({}, {"persistence": {"enabled": True}}, "spec.persistence.enabled"),
            (
                {"persistence": {"enabled": True, "existingClaim": "a"}},
                {"persistence": {"enabled": True, "existingClaim": "b"}},
                "spec.persistence.existingClaim",
            ),
        ],
    )
    def test_what_cannot_be_changed(self, before: dict[str, Any], after: dict[str, Any], path: str) -> None:
        found = control(resources.controller(**before), **{**before, **after})
        assert only(found).startswith(f"{path}: cannot be changed")

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({}, {"slurmKeyRef": {"name": "keys", "key": "other"}}),
            ({}, {"jwtKeyRef": None, "jwtHs256KeyRef": {"name": "keys", "key": "jwt.key"}}),
            (
                {"persistence": {"enabled": False, "existingClaim": "a"}},
                {"persistence": {"enabled": False, "existingClaim": "b"}},
            ),
            ({}, {"extraConf": "a=b"}),
        ],
    )
    def test_what_may_be_changed(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        assert control(resources.controller(**before), **{**before, **after}).errors == []

    def test_names_must_fit(self) -> None:
        """Field case REG-17: pods of a StatefulSet carry its name and a hash in one label."""
        made = resources.controller("c" * 42, clusterName="x")
        assert only(controller.validate(None, made, NOTHING)).startswith(
            "metadata.name: makes the StatefulSet"
        )
        assert controller.validate(made, made, NOTHING).errors == []
        dotted = resources.controller("a.b", clusterName="x")
        assert "has a dot" in only(controller.validate(None, dotted, NOTHING))

    def test_what_hardly_does_what_was_meant_is_told(self) -> None:
        found = control(
            slurmctld={"securityContext": {"runAsUser": 0}},
            service={"spec": {"externalIPs": ["192.0.2.1"]}},
            persistence=None,
        )
        assert found.errors == []
        assert [text.partition(": ")[0] for text in found.warnings] == [
            "spec.service.spec.externalIPs",
            "spec.slurmctld.securityContext.runAsUser",
            "spec.slurmctld.image",
            "spec.persistence",
        ]


class TestAccounting:
    def test_the_key_of_tokens_is_immutable(self) -> None:
        found = database(resources.accounting(), jwtKeyRef={"name": "b", "key": "jwt.key"})
        assert only(found).startswith(
            "spec.jwtKeyRef: cannot be changed; it is key 'jwt.key' of Secret 'keys'"
        )

    @pytest.mark.parametrize("member", ["host", "database", "username"])
    @pytest.mark.parametrize("text", HOSTILE)
    def test_its_settings_add_no_line(self, member: str, text: str) -> None:
        storage = {"host": "db", "passwordKeyRef": {"name": "db", "key": "pw"}, member: text}
        errors = database(storageConfig=storage).errors
        # A backslash at the end is quoted when the file is written.
        assert bool(errors) == (not text.endswith("\\"))
        assert all(error.startswith(f"spec.storageConfig.{member}: ") for error in errors)

    def test_special_characters_in_them_are_fine(self) -> None:
        storage = {"host": "db", "passwordKeyRef": {"name": "db", "key": "pw"}, "database": "acct #1"}
        assert database(storageConfig=storage) == Verdict(errors=[], warnings=[])

    def test_a_host_outside_is_one_word(self) -> None:
        found = database(external=True, externalConfig={"host": "db\nx", "port": 1})
        assert only(found).startswith("spec.externalConfig.host: ")

    def test_a_missing_database_and_foreign_addresses_are_told(self) -> None:
        found = database(storageConfig=None, service={"spec": {"externalIPs": ["192.0.2.1"]}})
        assert found.errors == []
        assert [text.partition(": ")[0] for text in found.warnings] == [
            "spec.service.spec.externalIPs",
            "spec.storageConfig",
        ]


class TestOthers:
    def test_a_loginset_needs_its_references(self) -> None:
        """Field case WHK-10."""
        empty = login(controllerRef={"name": ""}, sssdConfRef={"name": "", "key": "k"})
        assert loginset.validate(None, empty, NOTHING).errors == [
            "spec.controllerRef.name: must be set",
            "spec.sssdConfRef.name: must be set",
        ]
        moved = login(controllerRef={"name": "other"})
        assert "cannot be changed" in only(loginset.validate(login(), moved, NOTHING))
        assert loginset.validate(login(), login(replicas=3), NOTHING).errors == []
        assert "label" not in only(loginset.validate(None, login(LONG), NOTHING))

    def test_foreign_addresses_are_told(self) -> None:
        """Field case INJ-04."""
        service = {"spec": {"externalIPs": ["192.0.2.53"]}}
        for old in (None, login()):
            (text,) = loginset.validate(old, login(service=service), NOTHING).warnings
            assert text.startswith("spec.service.spec.externalIPs: ")
        (text,) = restapi.validate(None, resources.restapi(service=service), NOTHING).warnings
        assert text.startswith("spec.service.spec.externalIPs: ")

    def test_a_restapi_name_must_fit(self) -> None:
        assert restapi.validate(None, resources.restapi("r" * 55), NOTHING).errors == []
        assert "makes the Service" in only(restapi.validate(None, resources.restapi("r" * 56), NOTHING))

    def test_a_token_keeps_its_key(self) -> None:
        """Field case NSP-02: there is no namespace in a reference; the schema drops it."""
        other = jwt(jwtKeyRef={"name": "keys", "key": "other"})
        assert only(token.validate(jwt(), other, NOTHING)).startswith("spec.jwtKeyRef: cannot be changed")
        moved = jwt(jwtKeyRef=None, jwtHs256KeyRef={"name": "keys", "key": "jwt.key"})
        assert token.validate(jwt(), moved, NOTHING).errors == []

    @pytest.mark.parametrize("user", ["", "Ann", "a b", "a\nb"])
    def test_a_user_that_no_secret_can_be_named_after_is_told(self, user: str) -> None:
        found = token.validate(None, jwt(username=user), NOTHING)
        assert found.errors == []
        assert found.warnings[0].startswith("spec.username: makes the name")
        named = jwt(username=user, secretRef={"name": "mine", "key": "k"})
        assert token.validate(None, named, NOTHING) == Verdict(errors=[], warnings=[])

    def test_a_lifetime_is_a_duration(self) -> None:
        with pytest.raises(MalformedError, match=r"spec.lifetime: '1 day' is no duration"):
            token.validate(None, jwt(lifetime="1 day"), NOTHING)
        (text,) = token.validate(None, jwt(lifetime="-1h"), NOTHING).warnings
        assert text.startswith("spec.lifetime: -1h makes tokens that are expired")


def test_warnings_come_with_either_verdict() -> None:
    """Field case INJ-04: refused or not, the user hears what has no effect."""
    service = {"spec": {"externalIPs": ["192.0.2.53"]}}
    found = control(clusterName="a b", service=service)
    assert (len(found.errors), len(found.warnings)) == (1, 1)
    container = {"image": "i", "securityContext": {"privileged": False}}
    found = workers(extraConf="spare", slurmd=container)
    assert (len(found.errors), len(found.warnings)) == (1, 1)

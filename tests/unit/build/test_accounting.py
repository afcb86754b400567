"""What the corpus does not show of an Accounting's objects."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.build import accounting as build
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes
from tests.support.resources import accounting


def _conf(password: bytes | None = b"pw", **spec: object) -> str:
    return build.slurmdbd_conf(accounting(**spec), password)


def slurm_reads(line: str) -> str:
    """The value of a `Key=Value` line as Slurm's parser takes it: comment, quotes, then escapes."""
    end = re.search(r"(?<!\\)(?:\\\\)*#", line)
    line = line if end is None else line[: end.end() - 1]
    match = re.fullmatch(r'\s*[\w.]+\s*=\s*(?:"([^"]*)"|(\S+))\s*', line)
    assert match, line
    return re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2])


def test_what_is_empty_is_left_to_slurmdbd() -> None:
    """A user, database or password without a value ends slurmdbd at its start (measured, tests/slurm)."""
    storage = {"host": "db", "username": "", "database": "", "passwordKeyRef": {"name": "db", "key": "pw"}}
    lines = [line for line in _conf(b"", storageConfig=storage).splitlines() if line.startswith("Storage")]
    assert lines == ["StorageType=accounting_storage/mysql", "StorageHost=db", "StoragePort=3306"]


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30))
def test_every_printable_password_is_read_as_it_is(password: str) -> None:
    """Q9 and its class: `#`, backslashes and blanks mean nothing to the database."""
    try:
        text = _conf(password.encode())
    except BuildError:
        assert password[0] == password[-1] == '"' or ('"' in password and password[-1] == "\\")
        return
    line = next(line for line in text.splitlines() if line.startswith("StoragePass="))
    assert slurm_reads(line) == password


@pytest.mark.parametrize("password", ["two words", " a b ", "a # b", "a\\ b#"])
def test_passwords_with_blanks(password: str) -> None:
    text = _conf(password.encode())
    line = next(line for line in text.splitlines() if line.startswith("StoragePass="))
    assert slurm_reads(line) == password


def test_a_line_break_at_the_end_is_no_part_of_the_password() -> None:
    assert "StoragePass=pw\n\n#\n" in _conf(b"pw\n")


@pytest.mark.parametrize("password", [b"a\nSlurmUser=root", b"a\rb", b'a "b', b"\xff", b"a\x00b"])
def test_a_password_that_would_break_the_file_is_told_without_showing_it(password: bytes) -> None:
    with pytest.raises(BuildError) as told:
        _conf(password)
    assert "SlurmUser" not in str(told.value)


@pytest.mark.parametrize("member", ["host", "username", "database"])
def test_no_member_of_the_storage_adds_a_parameter(member: str) -> None:
    """Invariant I9."""
    config = {"host": "db", "passwordKeyRef": {"name": "db", "key": "pw"}, member: "a SlurmUser=root # x"}
    lines = [line for line in _conf(storageConfig=config).splitlines() if "SlurmUser=root" in line]
    assert [slurm_reads(line) for line in lines] == ["a SlurmUser=root # x"]


def test_what_is_missing_is_told() -> None:
    with pytest.raises(BuildError, match=r"passwordKeyRef: there is no Secret db with key pw"):
        _conf(None)
    with pytest.raises(BuildError, match=r"spec\.storageConfig: is needed"):
        _conf(storageConfig=None)


def test_an_external_accounting_has_no_objects() -> None:
    outside = accounting(external=True, externalConfig={"host": "dbd.example", "port": 7031})
    assert build.service(outside) is None
    assert build.config_secret(outside, None) is None
    assert build.stateful_set(outside, PodHashes()) is None


def test_extra_lines_are_kept_and_a_volume_can_be_added() -> None:
    """Field case DBD-04: what a managed database with TLS needs."""
    line = "StorageParameters=SSL_CA=/etc/db-ca/ca.pem"
    wanted = accounting(
        extraConf=line,
        slurmdbd={"volumeMounts": [{"name": "ca", "mountPath": "/etc/db-ca"}]},
        template={"spec": {"volumes": [{"name": "ca", "secret": {"secretName": "db-ca"}}]}},
    )
    assert line in build.slurmdbd_conf(wanted, b"pw").splitlines()
    workload = build.stateful_set(wanted, PodHashes())
    assert workload
    spec = workload["spec"]["template"]["spec"]
    assert {"name": "ca", "mountPath": "/etc/db-ca"} in spec["containers"][0]["volumeMounts"]
    assert "ca" in [volume["name"] for volume in spec["volumes"]]

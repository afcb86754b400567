"""Which programs an image runs, and what is prepared for them (spec: images 3, 7.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from images.init.coil_init.notify import parse_mainpid
from images.init.coil_init.prepare import PAM_DEFAULTS, is_mounted, with_pam_adopt
from images.init.coil_init.processes import exit_code
from images.init.coil_init.programs import Program, Situation, conf_server, programs
from images.init.coil_init.supervisor import restart_delay

SSSD = ("/etc/sssd/sssd.conf", "/usr/sbin/sssd")


def chosen(
    image: str,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    files: Collection[str] = (),
    root: bool = True,
) -> dict[str, Program]:
    situation = Situation(
        environ=environ or {},
        arguments=list(arguments),
        root=root,
        configured=lambda path: path in files,
        exists=lambda path: path in files,
    )
    return {program.name: program for program in programs(image, situation)}


def argv(program: Program) -> list[str]:
    return [word.text for word in program.words]


def test_slurmctld_gets_options_then_arguments() -> None:
    found = chosen("slurmctld", "-v", environ={"SLURMCTLD_OPTIONS": "-c 'a b'"}, root=False)
    assert list(found) == ["slurmctld"]
    assert argv(found["slurmctld"]) == ["slurmctld", "--systemd", "-c", "a b", "-v"]
    assert found["slurmctld"].essential
    assert found["slurmctld"].owner is None


def test_a_worker_runs_helpers_only_when_they_are_configured() -> None:
    assert list(chosen("slurmd")) == ["slurmd"]
    assert list(chosen("slurmd", files=("/etc/ssh/sshd_config",))) == ["slurmd", "sshd"]
    assert list(chosen("slurmd", environ={"ENABLE_SSHD": "1"}, files=SSSD)) == ["slurmd", "sshd", "sssd"]
    # A configuration for a program that the image lacks starts nothing.
    assert list(chosen("slurmd", files=SSSD[:1])) == ["slurmd"]


def test_helpers_get_their_options() -> None:
    found = chosen("login", environ={"SSHD_OPTIONS": "-p 2222", "SSSD_OPTIONS": "-d 3"}, files=SSSD)
    assert argv(found["sshd"]) == ["/usr/sbin/sshd", "-D", "-e", "-p", "2222"]
    assert argv(found["sssd"])[-2:] == ["-d", "3"]


def test_login_always_runs_sshd_and_outlives_sackd() -> None:
    found = chosen("login")
    assert list(found) == ["sackd", "sshd"]
    assert [found["sackd"].essential, found["sshd"].essential] == [False, True]
    assert found["sackd"].owner == 401


def test_sackd_runs_as_slurm_whoever_starts_it() -> None:
    assert chosen("sackd", root=True)["sackd"].owner == 401
    assert chosen("sackd", root=False)["sackd"].owner is None


def test_an_unknown_image_is_refused() -> None:
    with pytest.raises(ValueError, match="no such image: 'x'"):
        chosen("x")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--conf-server", "c.ns:6817"], ("c.ns", 6817)),
        (["--conf-server=c.ns:7000,d"], ("c.ns", 7000)),
        (["--conf-server", "c"], ("c", 6817)),
        (["--conf-server", "[fd00::1]:6817"], ("fd00::1", 6817)),
        (["--conf-server"], None),
        (["--conf", "a=b"], None),
        (["--conf-server", "c:x"], None),
    ],
)
def test_configuration_server(arguments: list[str], expected: tuple[str, int] | None) -> None:
    assert conf_server(arguments) == expected


PAM = """@include common-auth
account    required     pam_nologin.so
# access limits
@include common-account
@include common-session
"""


def test_the_adopt_line_comes_before_the_account_stack() -> None:
    lines = with_pam_adopt(PAM, PAM_DEFAULTS).splitlines()
    at = lines.index("@include common-account")
    assert lines[at - 1] == f"account    required     pam_slurm_adopt.so {PAM_DEFAULTS}"
    assert len(lines) == 6


def test_the_adopt_line_is_inserted_once() -> None:
    once = with_pam_adopt(PAM, "action=x")
    assert with_pam_adopt(once, PAM_DEFAULTS) == once
    assert with_pam_adopt("", "").splitlines() == ["account    required     pam_slurm_adopt.so"]


def test_a_mounted_file_is_told_from_a_packaged_one() -> None:
    info = "36 25 8:1 / / rw - ext4 /dev/sda rw\n40 36 8:1 /x /etc/ssh/sshd_config ro - ext4 /dev/sda rw\n\n"
    assert is_mounted("/etc/ssh/sshd_config", info)
    assert not is_mounted("/etc/ssh", info)


@pytest.mark.parametrize(
    ("message", "pid"),
    [
        (b"READY=1\nMAINPID=42", 42),
        (b"READY=1", None),
        (b"BARRIER=1", None),
        (b"MAINPID=-1", None),
        (b"MAINPID=", None),
        (b"XMAINPID=3\n", None),
        (b"", None),
        (b"\xff\xfe", None),
    ],
)
def test_main_process_of_a_notification(message: bytes, pid: int | None) -> None:
    assert parse_mainpid(message) == pid


def test_restarts_of_a_helper_slow_down() -> None:
    assert [restart_delay(failures) for failures in (1, 2, 3, 6, 7, 9999)] == [1, 2, 4, 32, 60, 60]


def test_exit_codes_are_those_of_a_shell() -> None:
    assert [exit_code(status) for status in (0, 3 << 8, 9, 15)] == [0, 3, 137, 143]

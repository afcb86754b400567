"""Claims about reading the command line (spec: control-plane 15)."""

import pytest

from coil.service.flags import HelpRequested, UsageError, parse, usage
from coil.service.settings import Settings


@pytest.mark.parametrize(
    "argv",
    [
        ["--controller-workers", "4", "--leader-elect"],
        ["-controller-workers", "4", "-leader-elect"],
        ["--controller-workers=4", "--leader-elect=true"],
        ["-controller-workers=4", "-leader-elect=1"],
        ["--controller-workers=2", "--leader-elect=false", "--leader-elect", "--controller-workers=4"],
    ],
)
def test_every_spelling_of_a_flag_means_the_same(argv: list[str]) -> None:
    assert parse(Settings, argv) == Settings(controller_workers=4, leader_elect=True)


def test_defaults_are_those_of_the_specification() -> None:
    settings = parse(Settings, [])
    assert (settings.health_addr, settings.metrics_addr) == (":8081", ":8080")
    assert not settings.leader_elect
    assert not settings.metrics_secure
    assert settings.namespaces == ()
    assert settings.profile_addr == "localhost:6060"
    workers = [name for name in Settings.__struct_fields__ if name.endswith("_workers")]
    assert len(workers) == 7
    assert all(getattr(settings, name) == 1 for name in workers)


def test_lists_are_trimmed_and_lose_empty_items() -> None:
    assert parse(Settings, ["--namespaces= a, ,b,,"]).namespaces == ("a", "b")


def test_the_value_of_a_flag_may_hold_an_equals_sign_or_start_with_a_dash() -> None:
    assert parse(Settings, ["--kubeconfig=/a=b"]).kubeconfig == "/a=b"
    assert parse(Settings, ["--kubeconfig", "-"]).kubeconfig == "-"


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--no-such"], "unknown flag --no-such"),
        (["--no-such=1"], "unknown flag --no-such"),
        (["--metrics-addr"], "--metrics-addr needs a value"),
        (["--controller-workers=x"], "invalid value 'x' for flag --controller-workers"),
        (["--controller-workers=0"], "invalid value '0' for flag --controller-workers"),
        (["--leader-elect=maybe"], "invalid value 'maybe' for flag --leader-elect"),
        (["--zap-encoder=xml"], "invalid value 'xml' for flag --zap-encoder"),
        (["--health-addr=foo"], "^--health-addr: 'foo' is not an address"),
        (["--profile-addr", "foo"], "^--profile-addr: 'foo' is not an address"),
        (["--leader-elect", "false"], "'false' is not a flag"),
        (["---leader-elect"], "is not a flag"),
        (["--"], "is not a flag"),
        (["--=x"], "is not a flag"),
    ],
)
def test_a_bad_command_line_is_refused_with_the_flag_named(argv: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse(Settings, argv)


def test_help_lists_every_flag_with_its_default() -> None:
    with pytest.raises(HelpRequested, match="--leader-elect"):
        parse(Settings, ["-h"])
    lines = usage(Settings).splitlines()
    assert len(lines) == 1 + len(Settings.__struct_fields__)
    assert any("--health-addr" in line and "(default :8081)" in line for line in lines)

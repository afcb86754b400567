"""Which cgroup hierarchies a machine has."""

from pathlib import Path

from lab.cgroups import parse_hierarchies


def test_version_1_hierarchies_are_known_by_their_controller() -> None:
    mounts = """\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""

    found = parse_hierarchies(mounts)

    assert found["pids"] == Path("/sys/fs/cgroup/pids")
    assert found["systemd"] == Path("/sys/fs/cgroup/systemd")
    assert found["unified"] == Path("/sys/fs/cgroup/unified")
    assert Path("/sys/fs/cgroup/cpu,cpuacct") in found.values()


def test_version_2_alone_is_one_hierarchy() -> None:
    found = parse_hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n")

    assert found == {"unified": Path("/sys/fs/cgroup")}

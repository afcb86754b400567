"""The job mapping scripts, run for real."""

import platform
import subprocess
from pathlib import Path

import pytest

from tests.support.charts import CHARTS

FILES = CHARTS / "slurm" / "files"


def script(when: str, folder: Path) -> str:
    return (FILES / f"{when}-dcgm.sh").read_text().replace("@DIRECTORY@", str(folder))


def start(when: str, folder: Path, job: str, gpus: str | None) -> subprocess.Popen[str]:
    environment = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": job, "SLURMD_NODENAME": platform.node()}
    if gpus is not None:
        environment["SLURM_JOB_GPUS"] = gpus
    command = ["sh" if when == "start" else "bash", "-c", script(when, folder)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def run(when: str, folder: Path, job: str, gpus: str | None) -> str:
    process = start(when, folder, job, gpus)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    return said


def mapping(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.name.isdecimal()}


def test_a_job_is_noted_for_each_gpu_and_taken_back(tmp_path: Path) -> None:
    run("prolog", tmp_path, "17", "0,3")
    assert mapping(tmp_path) == {"0": "17", "3": "17"}
    run("epilog", tmp_path, "17", "0,3")
    assert mapping(tmp_path) == {}


def test_jobs_that_share_a_gpu_keep_their_lines(tmp_path: Path) -> None:
    for job in ("17", "18", "18", "170"):
        run("prolog", tmp_path, job, "0")
    assert mapping(tmp_path) == {"0": "17\n18\n170"}
    run("epilog", tmp_path, "17", "0")
    assert mapping(tmp_path) == {"0": "18\n170"}


def test_jobs_that_start_at_once_lose_no_line(tmp_path: Path) -> None:
    jobs = [str(number) for number in range(12)]
    processes = [start("prolog", tmp_path, job, "0,1") for job in jobs]
    for process in processes:
        process.communicate(timeout=20)
    assert sorted(mapping(tmp_path)["0"].splitlines()) == sorted(jobs)
    assert sorted(mapping(tmp_path)["1"].splitlines()) == sorted(jobs)


def test_when_slurmd_starts_only_what_its_lost_jobs_wrote_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("5")
    for job, gpus in (("17", "0,1"), ("18", "2"), ("19", "3")):
        run("prolog", tmp_path, job, gpus)
    run("epilog", tmp_path, "18", "2")
    assert mapping(tmp_path) == {"0": "5\n17", "1": "17", "3": "19"}
    run("start", tmp_path, "", None)
    assert mapping(tmp_path) == {"0": "5"}
    run("start", tmp_path, "", None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "0"]


def test_nothing_is_left_of_jobs_that_ended(tmp_path: Path) -> None:
    for when in ("prolog", "epilog"):
        for job in ("17", "18"):
            run(when, tmp_path, job, "0,1")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_slurmd_starts_whatever_the_folder_is(tmp_path: Path) -> None:
    run("start", tmp_path / "absent", "", None)
    (tmp_path / f".jobs-{platform.node()}").write_text("0 17\nnonsense\n")
    (tmp_path / ".lock").mkdir()
    run("start", tmp_path, "", None)


@pytest.mark.parametrize("when", ["prolog", "epilog"])
@pytest.mark.parametrize("gpus", [None, ""])
def test_a_job_without_gpus_changes_nothing(when: str, gpus: str | None, tmp_path: Path) -> None:
    run(when, tmp_path, "17", gpus)
    assert list(tmp_path.iterdir()) == []


def test_a_node_without_the_folder_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    assert "no " in run("prolog", folder, "17", "0")
    run("epilog", folder, "17", "0")
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_does_not_drain_the_node(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.mkdir()
    (folder / ".lock").mkdir()
    assert "cannot note job 17 for GPU 0" in run("prolog", folder, "17", "0")

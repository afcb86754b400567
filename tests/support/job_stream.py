"""A stream of short jobs from a pod of the cluster, and what became of each."""

import collections
import itertools
import secrets
import time
from dataclasses import dataclass, field

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

_FOLDERS = "/tmp/streams"  # noqa: S108 - inside a pod of the test
_LIMIT_S = 90
"""Longest that one sbatch may take."""

# Submissions have numbers of their own: a slurmctld that lost its last seconds gives job numbers twice.
# A job tells when it begins and when it has done its work; nothing else counts as having run.
_JOB = (
    "mkdir -p FOLDER; echo NUMBER begins >> FOLDER/ran; "
    "sleep $((2 + NUMBER % 4)); echo NUMBER ends >> FOLDER/ran"
)
# One sbatch each 0.5 s, whatever becomes of those before; a line for each: number, start, end, code, answer.
_STREAM = f"""
cd FOLDER
number=0
while [ ! -e stop ]; do
  number=$((number + 1))
  (
    job='{_JOB}'
    began=$(date +%s.%N)
    answer=$(timeout {_LIMIT_S} sbatch --parsable --mem=1 --output=/dev/null --chdir=/tmp \\
      --wrap "${{job//NUMBER/$number}}" 2>&1)
    code=$?
    echo "$number $began $(date +%s.%N) $code $(echo "$answer" | tr '\\n' ' ')" >> submitted
  ) &
  sleep 0.5
done
wait
touch done
"""


@dataclass(frozen=True)
class Submission:
    """One sbatch: its number, when it was called and answered (Unix seconds), and with what."""

    number: int
    began: float
    ended: float
    accepted: bool
    answer: str

    @classmethod
    def parse(cls, line: str) -> "Submission":
        """Read a line of the stream's record."""
        number, began, ended, code, answer = line.split(" ", 4)
        return cls(int(number), float(began), float(ended), code == "0", answer.strip())


@dataclass(frozen=True)
class Fates:
    """What became of the submissions, by their numbers."""

    submissions: tuple[Submission, ...]
    begun: "collections.Counter[int]"
    ended: "collections.Counter[int]"

    @property
    def accepted(self) -> set[int]:
        """Those that sbatch gave a job number for."""
        return {each.number for each in self.submissions if each.accepted}

    @property
    def lost(self) -> list[int]:
        """Accepted ones whose work was never done."""
        return sorted(number for number in self.accepted if not self.ended[number])

    @property
    def lost_answers(self) -> list[str]:
        """What sbatch said of those; the job number comes last."""
        return [each.answer for each in self.submissions if each.accepted and not self.ended[each.number]]

    @property
    def repeated(self) -> list[int]:
        """Those whose work was done more than once."""
        return sorted(number for number, times in self.ended.items() if times > 1)

    @property
    def refused(self) -> list[str]:
        """Answers of the submissions that failed."""
        return [each.answer for each in self.submissions if not each.accepted]

    def back_after(self, moment: float, *, until: float = float("inf")) -> float:
        """Seconds from `moment` to the end of the longest gap that ended between it and `until`."""
        gaps = [gap for gap in self._gaps() if moment < gap[1] <= until]
        return max(gaps)[1] - moment if gaps else float("inf")

    def longest_gap(self, after: float) -> float:
        """Length in seconds of the longest gap that ended after a moment."""
        return max((length for length, end in self._gaps() if end > after), default=float("inf"))

    def _gaps(self) -> list[tuple[float, float]]:
        """Lengths and ends of the times without an acceptance."""
        times = sorted(each.ended for each in self.submissions if each.accepted)
        return [(late - early, late) for early, late in itertools.pairwise(times)]


@dataclass(frozen=True)
class JobStream:
    """The stream; `pod` is a worker that stays, all workers run the jobs.

    Its records are in a folder of its own: a job of an earlier stream may run late, or once more.
    """

    cluster: SlurmCluster
    pod: str = "cpu-0"
    folder: str = field(default_factory=lambda: f"{_FOLDERS}/{secrets.token_hex(4)}")

    def start(self) -> None:
        """Begin."""
        for worker in self.cluster.workers():
            self._run(worker, f"mkdir -p {self.folder}")
        script = _STREAM.replace("FOLDER", self.folder)
        self._run(self.pod, f"cat > {self.folder}/stream.sh", stdin=script)
        self._run(self.pod, f"setsid bash {self.folder}/stream.sh > {self.folder}/log 2>&1 < /dev/null &")

    def submissions(self) -> tuple[Submission, ...]:
        """Those that were answered so far."""
        text = self._run(self.pod, f"cat {self.folder}/submitted 2>/dev/null || true")
        return tuple(Submission.parse(line) for line in text.splitlines())

    def wait_accepted(self, after: float, *, count: int = 3, within: float = 120) -> None:
        """Wait until so many jobs were accepted that were submitted after a moment (Unix seconds)."""

        def enough() -> bool:
            accepted = [each for each in self.submissions() if each.accepted and each.began > after]
            return len(accepted) >= count

        wait_until(enough, within=within, what=f"{count} jobs accepted", every=1)

    def stop(self, *, within: float = 240) -> Fates:
        """End it, wait until the work of all its jobs is done or time is up, and tell their fates.

        The queue does not tell: a job whose work is done may stay in it for minutes, if its node told of that
        while slurmctld was away, and one that a killed slurmctld forgot may be held in it for good.
        """
        self._run(self.pod, f"touch {self.folder}/stop")
        done = f"test -e {self.folder}/done && echo done || true"
        wait_until(lambda: self._run(self.pod, done), within=_LIMIT_S + 10, what="the last sbatch ends")
        deadline = time.monotonic() + within
        fates = self.fates()
        while fates.lost and time.monotonic() < deadline:
            time.sleep(1)
            fates = self.fates()
        return fates

    def fates(self) -> Fates:
        """What is known now."""
        begun, ended = collections.Counter[int](), collections.Counter[int]()
        for worker in self.cluster.workers():
            for line in self._run(worker, f"cat {self.folder}/ran 2>/dev/null || true").splitlines():
                number, what = line.split()
                (begun if what == "begins" else ended)[int(number)] += 1
        return Fates(self.submissions(), begun, ended)

    def _run(self, pod: str, script: str, *, stdin: str = "") -> str:
        options = ["--namespace", self.cluster.name, pod, "--container", "slurmd"]
        return self.cluster.kubectl.run("exec", "-i", *options, "--", "bash", "-c", script, stdin=stdin)

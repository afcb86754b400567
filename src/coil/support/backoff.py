"""Growing delays between tries, with jitter so that many clients do not come back at once."""

import random
from collections.abc import Callable

import msgspec

Random = Callable[[], float]
"""Gives a number in [0, 1)."""


class Backoff(msgspec.Struct, frozen=True, gc=False):
    """A schedule of delays: `base`, doubled at each failure, never above `cap` (seconds).

    Jitter only shortens: a delay lies between `1 - jitter` and 1 times its nominal length, so
    `cap` is a bound one can promise (I6: the next pass comes within 60 s).
    """

    base: float
    cap: float
    jitter: float = 0.5
    factor: float = 2.0

    def nominal(self, failures: int) -> float:
        """The delay after so many failures in a row, without jitter; 0 after none."""
        if failures <= 0:
            return 0.0
        # 2.0 ** 1024 overflows; every sane schedule has met its cap long before 64 doublings.
        return min(self.cap, self.base * self.factor ** min(failures - 1, 64))

    # Jitter needs no secret randomness.
    def delay(self, failures: int, rand: Random = random.random) -> float:
        """The delay in seconds before the next try after so many failures in a row."""
        return self.nominal(failures) * (1.0 - self.jitter * rand())

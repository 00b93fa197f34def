"""One clock for all processes of a run. It may run faster than the one on the wall.

The service's own constants (a timeout of 2 s, a lease of 30 s) stay as they are: at speed 10
the lease of 30 s is over after 3 s of the wall's clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

__all__ = ["Clock"]


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds of the service, since the run began.

    Attributes:
        origin: when the run began, as `time.time()` gives it.
        speed: seconds of the service that pass in one second of the wall's clock.
    """

    origin: float
    speed: float = 1.0

    @classmethod
    def start(cls, speed: float = 1.0) -> Clock:
        """A clock that begins now."""
        return cls(time.time(), speed)

    def now(self) -> float:
        """Seconds of the service since the run began."""
        return (time.time() - self.origin) * self.speed

    def real(self, seconds: float) -> float:
        """How long `seconds` of the service last on the wall's clock."""
        return seconds / self.speed

    def sleep(self, seconds: float) -> None:
        """Blocks this thread for `seconds` of the service."""
        time.sleep(self.real(seconds))

    def moment(self, seconds_from_now: float = 0.0) -> datetime:
        """The time as a database stores it."""
        begin = datetime.fromtimestamp(self.origin, UTC)
        return begin + timedelta(seconds=self.now() + seconds_from_now)

"""What becomes of work whose worker fell silent, and of outcomes that nobody knows.

`takes_over`: a claim whose lease has ended may be claimed anew. `marks_unknown`: it is an
unknown outcome then. `asks_first`: the provider is asked before anything is sent again.
`asks_from`: the same from so many silent tries on. `resends`: an unknown outcome may be sent
again at all. `horizon`: seconds after which nothing is sent any more. `every`: seconds to the
next try once the retry policy has given up.
`waits_for_settlement`: "accepted" is not yet "paid".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simulator.service.checks import fits_its_types, needs, needs_seconds

__all__ = ["AskOnly", "AskThenSend", "Blind", "NoRecovery", "SameKey"]


@dataclass(frozen=True, slots=True)
class NoRecovery:
    """Nobody looks at it again."""

    takes_over: ClassVar[bool] = False
    resends: ClassVar[bool] = False
    marks_unknown: ClassVar[bool] = False
    asks_first: ClassVar[bool] = False
    waits_for_settlement: ClassVar[bool] = False
    asks_from: ClassVar[int | None] = None
    horizon: ClassVar[float | None] = None
    every: ClassVar[float | None] = None


class _Repeats:
    """What those share that look again: their times are checked."""

    __slots__ = ()

    def __post_init__(self) -> None:
        fits_its_types(self)
        for name in ("every", "horizon"):
            needs_seconds(self, name)


@dataclass(frozen=True, slots=True)
class Blind(_Repeats):
    """A claim whose lease has ended is free: the work starts anew, for ever.

    Attributes:
        every: seconds to the next try once the retry policy has given up.
    """

    every: float = 300.0
    takes_over: ClassVar[bool] = True
    resends: ClassVar[bool] = True
    marks_unknown: ClassVar[bool] = False
    asks_first: ClassVar[bool] = False
    waits_for_settlement: ClassVar[bool] = False
    asks_from: ClassVar[int | None] = None
    horizon: ClassVar[float | None] = None


@dataclass(frozen=True, slots=True)
class AskThenSend(_Repeats):
    """Asks the provider what became of an unknown outcome; at "not found" it sends anew.

    "Not found" is no proof: the first request may still be travelling, or the look-up may lag.
    Sent anew under a new key, it pays again when the first arrives (the probe race).

    Attributes:
        every: as in `SameKey`.
    """

    every: float = 300.0
    takes_over: ClassVar[bool] = True
    resends: ClassVar[bool] = True
    marks_unknown: ClassVar[bool] = True
    asks_first: ClassVar[bool] = True
    waits_for_settlement: ClassVar[bool] = True
    asks_from: ClassVar[int | None] = None
    horizon: ClassVar[float | None] = None


@dataclass(frozen=True, slots=True)
class AskOnly(_Repeats):
    """Never sends twice: after silence the provider is asked, and in the end a human.

    For a provider to whom keys mean nothing. At most once: what was lost on the way there is
    left to a human, and so is everything where the provider cannot be asked.

    Attributes:
        every: seconds between two questions once the retry policy has given up.
        horizon: seconds after which a human is asked instead.
    """

    every: float = 300.0
    horizon: float = 3600.0
    takes_over: ClassVar[bool] = True
    marks_unknown: ClassVar[bool] = True
    asks_first: ClassVar[bool] = True
    waits_for_settlement: ClassVar[bool] = True
    asks_from: ClassVar[int | None] = None
    resends: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class SameKey(_Repeats):
    """A claim whose lease has ended is an unknown outcome, and is sent again with the same key.

    Attributes:
        every: seconds to the next try once the retry policy has given up.
        horizon: seconds after which nothing is sent any more: the provider is asked, and if it
            knows of no payment, a human. It must be shorter than the time for which the
            provider remembers a key (24 h at Stripe), by more than the longest time that one
            request can take, or a process can be paused.
        waits_for_settlement: whether "accepted" is not yet "paid" (case B34). Money that a
            bank is to move takes days, and may come back.
        asks_from: tries without a result after which the provider is also asked, before every
            second time that it is sent the same again; None: never. An error that it stored under
            the key it repeats as long as it knows the key, and a look-up tells at once what the
            error hides.
    """

    every: float = 1800.0
    horizon: float = 20 * 3600.0
    waits_for_settlement: bool = True
    asks_from: int | None = 4
    takes_over: ClassVar[bool] = True
    resends: ClassVar[bool] = True
    marks_unknown: ClassVar[bool] = True
    asks_first: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _Repeats.__post_init__(self)
        enough = self.asks_from is None or self.asks_from >= 1
        needs(self, "asks_from", enough, "a whole number, 1 or more, or None")

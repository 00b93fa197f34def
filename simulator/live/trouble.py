"""What goes wrong between us and the provider, at random rates or at a given request.

The network's faults are made by the proxy, the provider's own by its server.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b

__all__ = ["AT_THE_DOOR", "AT_WORK", "DEFINITE", "NETWORK", "Dice", "Trouble"]

NETWORK = ("lose_request", "reset_before", "slow", "lose_response", "reset_after")
AT_THE_DOOR = ("too_many", "withhold")
AT_WORK = ("error_before", "error_after")
KINDS = NETWORK + AT_THE_DOOR + AT_WORK
DEFINITE = ("too_many",)
"""Faults that the caller hears of, and that leave it no doubt."""


@dataclass(frozen=True)
class Trouble:
    """Probabilities per request, each from 0 to 1; of several kinds the first that strikes counts.

    Attributes:
        lose_request: it never arrives.
        reset_before, reset_after: the connection breaks before it arrives; after it was
            carried out.
        slow: it arrives `slow_seconds` late, when the caller has given up.
        lose_response: carried out; the answer never arrives.
        too_many: the provider answers 429, and does nothing.
        error_before, error_after: the provider answers 500, before or after the effect, and
            stores that answer under the key. A stored answer is replayed without a new draw.
        withhold: the provider pays and never answers.
        slow_seconds: of the service's clock.
        script: faults of certain requests, by kind: {"reset_after": (1, 3)} strikes the first
            and the third request that gets to where this fault is made.
        declines: intents that the provider refuses, definitely.
        seed: of the dice.
    """

    lose_request: float = 0.0
    reset_before: float = 0.0
    slow: float = 0.0
    lose_response: float = 0.0
    reset_after: float = 0.0
    too_many: float = 0.0
    error_before: float = 0.0
    error_after: float = 0.0
    withhold: float = 0.0
    slow_seconds: float = 3.0
    script: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    declines: frozenset[str] = frozenset()
    seed: int = 1

    def __post_init__(self) -> None:
        for kind in KINDS:
            p = getattr(self, kind)
            if not 0 <= p <= 1:
                raise ValueError(f"Trouble({kind}={p!r}): a probability is between 0 and 1.")
        for kind in self.script:
            if kind not in KINDS:
                raise ValueError(
                    f"Trouble(script={{{kind!r}: …}}): the faults are {', '.join(KINDS)}."
                )

    def __str__(self) -> str:
        given = [
            f"{entry.name} {getattr(self, entry.name):g}"
            for entry in fields(self)
            if entry.name in KINDS and getattr(self, entry.name)
        ]
        return ", ".join(given) or "no faults"


class Dice:
    """Draws the faults of one place, request by request; safe to use from several threads.

    A draw is a hash of (seed, number of the refund, kind, how often it came by): the order in
    which requests arrive does not matter, every design meets the same luck, and refund 7 of a
    run loses the same messages as history 7 of `simulate` with this seed. `struck` is called
    with each fault's kind.
    """

    def __init__(
        self,
        trouble: Trouble,
        kinds: tuple[str, ...],
        struck: Callable[[str], None] = lambda kind: None,
    ) -> None:
        self.trouble = trouble
        self.kinds = kinds
        self.struck = struck
        self._requests = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def throw(self, intent: str) -> str | None:
        """The fault of this request, if any."""
        with self._lock:
            self._requests += 1
            self._seen[intent] += 1
            for kind in self.kinds:
                scripted = self._requests in self.trouble.script.get(kind, ())
                if scripted or self._draw(kind, intent) < getattr(self.trouble, kind):
                    self.struck(kind)
                    return kind
        return None

    def _draw(self, kind: str, intent: str) -> float:
        # Names of intents are new in every run, but for the number at their end, from 1.
        number = intent.rpartition("-")[2]
        history = int(number) - 1 if number.isdecimal() else 0
        world = int.from_bytes(_hash(f"{self.trouble.seed}/{history}", 6), "big")
        drawn = _hash(f"{world}|{kind}|provider.refund|{self._seen[intent]}", 7)
        return (int.from_bytes(drawn, "big") >> 3) / 2.0**53


def _hash(text: str, size: int) -> bytes:
    return blake2b(text.encode(), digest_size=size).digest()

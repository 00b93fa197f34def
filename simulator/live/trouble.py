"""What goes wrong between us and the provider, at random rates or at a given request.

The network's faults are made by the proxy, the provider's own by its server.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b

__all__ = ["NETWORK", "SERVER", "Dice", "Trouble"]

NETWORK = ("lose_request", "reset_before", "slow", "lose_response", "reset_after")
SERVER = ("too_many", "error_before", "error_after", "withhold")


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
            stores that answer under the key.
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
        for kind in NETWORK + SERVER:
            p = getattr(self, kind)
            if not 0 <= p <= 1:
                raise ValueError(f"Trouble({kind}={p!r}): a probability is between 0 and 1.")
        for kind in self.script:
            if kind not in NETWORK + SERVER:
                raise ValueError(
                    f"Trouble(script={{{kind!r}: …}}): the faults are "
                    f"{', '.join(NETWORK + SERVER)}."
                )

    def __str__(self) -> str:
        given = [
            f"{entry.name} {getattr(self, entry.name):g}"
            for entry in fields(self)
            if entry.name in NETWORK + SERVER and getattr(self, entry.name)
        ]
        return ", ".join(given) or "no faults"


class Dice:
    """Draws the faults of one place, request by request; safe to use from several threads.

    A draw is a hash of (seed, kind, intent, how often this intent came by), so that the order
    in which requests arrive does not matter.
    """

    def __init__(self, trouble: Trouble, kinds: tuple[str, ...]) -> None:
        self.trouble = trouble
        self.kinds = kinds
        self.struck: Counter[str] = Counter()
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
                    self.struck[kind] += 1
                    return kind
        return None

    def _draw(self, kind: str, intent: str) -> float:
        text = f"{self.trouble.seed}|{kind}|{intent}|{self._seen[intent]}"
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big") / 2.0**48

"""What came of a campaign, in words and in figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from simulator.live.accounts import Accounts, counted
from simulator.live.processes import Death
from simulator.live.trouble import DEFINITE, Trouble
from simulator.service.design import Design
from simulator.service.schemas import money

__all__ = ["Report"]


@dataclass
class Report:
    """What came of a campaign.

    Attributes:
        accounts: the four.
        deaths: who was killed, and where.
        faults: how often each kind of trouble struck.
        silences: sends to the provider that ended without an answer.
        rested: whether everything came to its end in time.
        seconds: of the wall's clock.
        product: the database.
    """

    design: Design
    accounts: Accounts
    deaths: list[Death]
    faults: Counter[str]
    silences: int
    rested: bool
    seconds: float
    product: str
    trouble: Trouble

    @property
    def findings(self) -> dict[str, list[str]]:
        """What is wrong; see `Accounts.findings`."""
        found = self.accounts.findings()
        if not self.rested:
            found.setdefault("stuck", []).append("the whole run")
        return found

    @property
    def late(self) -> int:
        """Silences that no fault of ours explains: kills, and answers of a busy machine."""
        silent = sum(count for kind, count in self.faults.items() if kind not in DEFINITE)
        return max(0, self.silences - silent)

    def __str__(self) -> str:
        accounts = self.accounts
        amount = money(next(iter(accounts.owed.values())))
        lines = [
            f"{self.design.name} on {self.product}: {len(accounts.owed)} refunds of "
            f"{amount} on {len(accounts.captured)} orders, {self.trouble}, "
            f"{len(self.deaths)} kills, {self.seconds:.0f} s"
        ]
        if self.deaths:
            who = Counter(death.process for death in self.deaths)
            at = Counter(death.what or "random moments" for death in self.deaths)
            words = ", ".join(f"{name} {count}" for name, count in sorted(who.items()))
            places = ", ".join(f"{name} {count}" for name, count in sorted(at.items()))
            lines += [f"  killed               {words}", f"  at                   {places}"]
        if self.faults or self.silences:
            lines.append(
                f"  sends in silence     {self.silences}, of which {self.silences - self.late} by "
                f"these faults: {counted(self.faults)}"
            )
        lines += accounts.lines()
        if not self.rested:
            lines.append("  It did not come to rest.")
        return "\n".join(lines)

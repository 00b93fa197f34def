"""What is written down of a world: the trace, and the words of messages and wishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.service.schemas import money
from simulator.world.agent import ToolRequest
from simulator.world.approver import DecisionRequest
from simulator.world.reports import ReportRequest
from simulator.world.trace import Event

if TYPE_CHECKING:
    from simulator.world.clock import Clock
    from simulator.world.database import VirtualDatabase
    from simulator.world.settings import Intent, Submission

__all__ = ["Journal"]


class Journal:
    """Writes the trace of a world.

    Attributes:
        quiet: write nothing; everything else is the same.
    """

    clock: Clock
    database: VirtualDatabase

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.trace: list[Event] = []
        self._noted = 0
        self._asked = 0

    def note(
        self,
        process: str,
        kind: str,
        what: str,
        peer: str = "",
        message: int = 0,
        amount: int = 0,
        text: str = "",
    ) -> None:
        """Appends an event to the trace."""
        if self.quiet:
            return
        self.trace.append(
            Event(int(self.clock.now), process, kind, what, peer, message, amount, text)
        )

    def note_changes(self, process: str) -> None:
        """Appends the changes of state that a commit made."""
        if self.quiet:
            return
        changes = self.database.changes
        for _, before, after in changes[self._noted :]:
            self.note(process, "state", f"{before or ''}->{after}", "database")
        self._noted = len(changes)
        tasks = self.database.tasks
        for topic, reason in tasks[self._asked :]:
            self.note(process, "task", topic, "database", text=reason)
        self._asked = len(tasks)

    def label(self, request: Any) -> str:
        """What a request says, in short."""
        if self.quiet:
            return ""
        if isinstance(request, ToolRequest):
            call = request.call
            said = f"refund {_shown(call.arguments.get('amount'))}"
            return f"{call.call_id}: {said if call.name == 'issue_refund' else call.name}"
        if isinstance(request, DecisionRequest):
            return "yes" if request.decision.approve else "no"
        if isinstance(request, ReportRequest):
            return f"{request.report.kind}, {request.report.id}"
        amount = getattr(request, "amount", None)
        if amount is None:
            answer = getattr(request, "answer", None)
            return "" if answer is None else str(answer.kind)
        key = getattr(request, "key", None)
        return f"{money(amount, request.currency)}, " + (f"key {_short(key)}" if key else "no key")

    def words(self, intent: Intent, submission: Submission) -> str:
        """What the customer says."""
        if self.quiet:
            return ""
        if submission.tool != "issue_refund":
            named = submission.written().get("order_ids", [])
            names = ", ".join(map(str, named if isinstance(named, list) else [named]))
            return f"Please {submission.tool.replace('_', ' ')} {names}".strip()
        return f"Please refund {money(intent.amount, intent.currency)} of order {intent.order_id}."


def _shown(amount: Any) -> str:
    """An amount as the model wrote it; a number of thousands of digits has no text."""
    try:
        return str(amount)
    except ValueError:
        return "of a huge number"


def _short(key: str) -> str:
    """A digest by its beginning; what a model invents in full, for such keys begin alike."""
    return key if len(key) < 32 else key[:8]

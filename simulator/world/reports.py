"""The provider's reports on their way to us: it repeats each until it is answered with 200."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.service.errors import Silence
from simulator.service.webhooks import OK, Report
from simulator.world.provider import Change

if TYPE_CHECKING:
    from simulator.world.runtime import VirtualRuntime
    from simulator.world.settings import WebhookSettings

__all__ = ["ReportRequest", "deliver"]

FIRST_WAIT, LONGEST_WAIT = 5.0, 3600.0


class ReportRequest:
    """A report on its way to an instance."""

    __slots__ = ("instance", "report")

    def __init__(self, report: Report, instance: str) -> None:
        self.report = report
        self.instance = instance


def deliver(rt: VirtualRuntime, settings: WebhookSettings, report: Report, seconds: float) -> Any:
    """One copy of a report: sets out after so many seconds, and comes again until it is taken."""
    clock = rt.world.clock
    happened = int(clock.now)
    yield from rt.sleep(seconds)
    for attempt in range(settings.tries):
        try:
            request = ReportRequest(report, "backend-1")
            status = yield from rt.call("webhook.report", request, settings.patience)
        except Silence:
            status = 0
        if status == OK:
            if not report.intent_id:
                which = report.tenant_id, report.order_id
                known = Change(*which, happened, int(clock.now), report.reference)
                rt.world.provider.changes.append(known)
            return
        yield from rt.sleep(min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt, 20)))

"""The provider's reports: in copies, early, out of order, and again until they are taken."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from simulator.service.designs import SAFE
from simulator.service.webhooks import ByOperation, IgnoreWebhooks
from simulator.world import faults
from simulator.world.scenario import Intent, Outside, ProviderSettings, Scenario, WebhookSettings

Run = Callable[..., Any]
REPORT = "webhook.report"


def reporting(**webhooks: Any) -> Scenario:
    return Scenario.one_refund().but(
        provider=ProviderSettings(webhooks=WebhookSettings(**webhooks))
    )


def sent(made: Any) -> list[tuple[float, str]]:
    """(seconds after the payment, what) of every report that set out."""
    (paid,) = [effect.time for effect in made.provider.ledger]
    return [
        (round((e.time - paid) / 1e6, 3), e.text.split(",")[0])
        for e in made.trace
        if (e.process, e.kind, e.what) == ("provider", "request", REPORT)
    ]


def test_each_number_is_a_copy_that_sets_out_then(world: Run) -> None:
    made = world(SAFE, scenario=reporting(created=(0.2, 90.0), succeeded=(0.0, 0.0, 30.0)))
    assert sorted(sent(made)) == [
        (0.0, "succeeded"),
        (0.0, "succeeded"),
        (0.2, "created"),
        (30.0, "succeeded"),
        (90.0, "created"),
    ]
    assert made.database.rows("SELECT COUNT(*) FROM webhook_events") == [(2,)]
    assert made.told[-1].kind == "done"


def test_a_provider_without_reports_sends_none_and_is_no_process(world: Run) -> None:
    made = world(SAFE)
    assert "provider" not in made.lives
    assert not [step for step in made.steps if step.what == REPORT]


def test_a_report_may_overtake_the_answer_and_ends_the_operation(world: Run) -> None:
    lost = faults.lose_response("provider.refund")
    made = world(SAFE, lost, scenario=reporting())
    ended = [(e.process, e.what) for e in made.trace if e.what.endswith("->succeeded")]
    assert ended == [("backend-1", "processing->succeeded")]
    assert len([s for s in made.steps if s.what == "provider.refund"]) == 1  # no second send


@pytest.mark.parametrize("fault", [faults.lose_request, faults.lose_response, faults.reset])
def test_a_report_that_gets_no_answer_comes_again(fault: Any, world: Run) -> None:
    made = world(SAFE, fault(REPORT), scenario=reporting())
    assert [what for _, what in sent(made)] == ["succeeded"] * 2
    assert made.database.rows("SELECT COUNT(*) FROM webhook_events") == [(1,)]


def test_it_waits_longer_each_time_an_hour_at_most_and_gives_up(world: Run) -> None:
    def refuses(self: Any, tx: Any, d: Any, notes: Any, report: Any) -> int:
        return 503

    class Never(IgnoreWebhooks):
        __slots__ = ()
        take = refuses

    made = world(SAFE.but(webhook=Never()), scenario=reporting(tries=13))
    times = [at for at, _ in sent(made)]
    assert len(times) == 13
    waits = [round(b - a) for a, b in pairwise(times)]
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    assert made.told[-1].kind == "done"  # nobody needed it


def test_a_report_that_meets_the_death_of_its_backend_comes_again(world: Run) -> None:
    made = world(SAFE, faults.crash("backend-1:note_report", when="before"), scenario=reporting())
    assert len(sent(made)) == 2
    assert made.database.rows("SELECT COUNT(*) FROM webhook_events") == [(1,)]


def test_the_provider_waits_as_long_as_it_is_set_to(world: Run) -> None:
    late = faults.delay_response(REPORT, seconds=7.0)
    assert len(sent(world(SAFE, late, scenario=reporting(patience=5.0)))) == 2
    assert len(sent(world(SAFE, late, scenario=reporting(patience=8.0)))) == 1


def test_copies_of_one_report_have_one_id_and_are_booked_once(world: Run) -> None:
    scenario = reporting(succeeded=(0.0, 0.0, 30.0)).but(
        intents=(Intent("intent-1", amount=200_00),),
        outside=(Outside("refund", at=600.0, amount=100_00),),
    )
    made = world(SAFE, scenario=scenario)
    assert made.database.rows("SELECT refunded FROM orders") == [(300_00,)]


def test_what_could_not_be_settled_is_reported_as_failed_and_names_its_intent(world: Run) -> None:
    made = world(SAFE, scenario=Scenario.returned_by_the_bank())
    (arrived,) = [
        e for e in made.trace if (e.kind, e.what, e.process) == ("request", REPORT, "provider")
    ]
    assert arrived.text.startswith("failed")
    assert arrived.time / 1e6 == pytest.approx(48 * 3600, abs=1.0)
    assert made.told[-1].kind == "refused"


@pytest.mark.parametrize("kind", ["crash", "pause"])
def test_nothing_kills_or_stops_the_provider_where_it_sends_a_report(kind: str, world: Run) -> None:
    struck = getattr(faults, kind)(f"provider:{REPORT}", when="before_send")
    made = world(SAFE, struck, scenario=reporting())
    assert made.struck == []
    assert made.lives["provider"].number == 1
    assert len(sent(made)) == 1


def test_a_design_that_marks_first_loses_the_report_that_a_crash_interrupts(world: Run) -> None:
    # Case B49: marked, dead, and told of its repetition that all is done.
    scenario = Scenario.one_refund().but(
        provider=ProviderSettings(settles_after=600.0, webhooks=WebhookSettings())
    )
    first = SAFE.but(webhook=ByOperation(marker_first=True))
    for design, step, when, who in (
        (first, "backend-1:mark", "after", "worker-1"),  # half an hour later, by asking
        (SAFE, "backend-1:note_report", "before", "backend-1"),
    ):
        made = world(design, faults.crash(step, when=when), scenario=scenario)
        assert made.struck
        ended = [e.process for e in made.trace if e.what.endswith("->succeeded")]
        assert ended == [who]


@pytest.mark.parametrize("settles_after", [None, 600.0])
@pytest.mark.parametrize("said", [0, 50_00, 5_000_00])
def test_a_report_that_names_another_sum_is_a_humans_and_nothing_of_it_is_booked(
    said: int, settles_after: float | None, world: Run
) -> None:
    webhooks = WebhookSettings(succeeded=(0.0, 30.0), misreports=said)
    provider = ProviderSettings(settles_after=settles_after, webhooks=webhooks)
    made = world(SAFE, scenario=Scenario.one_refund().but(provider=provider))
    rows = made.database.rows
    ((topic, reason),) = rows("SELECT topic, reason FROM tasks")
    assert (topic, f"reports {said} USD" in reason) == ("contradiction", True)
    assert rows("SELECT COUNT(*) FROM audit_log WHERE event = 'task'") == [(1,)]
    # What the provider itself answers is booked, and was paid before anybody was told so.
    (paid,) = [(effect.amount, effect.time) for effect in made.provider.ledger]
    assert paid[0] == 500_00
    assert rows("SELECT refunded, pending FROM orders") == [(500_00, 0)]
    assert [told.kind for told in made.told if told.time < paid[1]] == (
        [] if settles_after is None else ["verifying"]
    )
    assert {told.kind for told in made.told if told.time >= paid[1]} == {"done"}


def test_only_reports_of_refunds_that_we_asked_for_name_another_sum(world: Run) -> None:
    scenario = reporting(created=(0.0,), misreports=1).but(
        intents=(Intent("intent-1", amount=200_00),),
        outside=(Outside("refund", at=600.0, amount=100_00),),
    )
    made = world(SAFE, scenario=scenario)
    assert made.database.rows("SELECT refunded FROM orders") == [(300_00,)]

"""What happens to an order without us."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.designs import SAFE
from simulator.world import faults
from simulator.world.scenario import (
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Scenario,
    Submission,
    WebhookSettings,
)

Run = Callable[..., Any]
REFUND = "provider.refund"
BOOKS = "SELECT captured, refunded, pending, disputed, status, version FROM orders"


def smaller(*outside: Outside, reports: bool = False, at: float = 0.0) -> Scenario:
    """A refund of $200 of $500, and what happens beside it."""
    return Scenario(
        intents=(Intent("intent-1", amount=200_00),),
        submissions=(Submission("intent-1", at=at),),
        outside=outside,
        provider=ProviderSettings(webhooks=WebhookSettings() if reports else None),
    )


def paid(made: Any) -> list[tuple[str, int]]:
    return [(effect.source, effect.amount) for effect in made.provider.ledger]


def books(made: Any) -> Any:
    (row,) = made.database.rows(BOOKS)
    return row


@pytest.mark.parametrize("reports", [False, True])
def test_a_cancellation_pays_back_what_is_left_once_and_both_books_say_so(
    reports: bool, world: Run
) -> None:
    made = world(SAFE, scenario=smaller(Outside("cancel", at=60.0), reports=reports))
    assert [amount for _, amount in paid(made)] == [200_00, 300_00]
    assert books(made) == (500_00, 500_00, 0, 0, "cancelled", 2)
    assert made.provider.ledger[1].time == 60_000_000


def test_a_cancellation_of_what_was_paid_back_already_moves_nothing(world: Run) -> None:
    scenario = Scenario.one_refund().but(outside=(Outside("cancel", at=60.0),))
    made = world(SAFE, scenario=scenario)
    assert paid(made) == [("", 500_00)]
    assert books(made)[4] == "cancelled"


def test_a_second_cancellation_of_one_order_changes_nothing(world: Run) -> None:
    twice = (Outside("cancel", at=60.0), Outside("cancel", at=90.0))
    made = world(SAFE, scenario=smaller(*twice))
    assert [amount for _, amount in paid(made)] == [200_00, 300_00]
    assert books(made)[5] == 2
    assert not made.capped


def test_a_cancellation_waits_while_a_refund_is_under_way(world: Run) -> None:
    # Sent at 0.06 s, no answer, unknown until it is sent again; the colleague looks at 1 s.
    lost = (faults.lose_response(REFUND), faults.lose_response(REFUND, nth=2))
    made = world(SAFE, *lost, scenario=smaller(Outside("cancel", at=1.0)))
    assert [amount for _, amount in paid(made)] == [200_00, 300_00]
    (settled,) = [e.time for e in made.trace if e.what.endswith("->succeeded")]
    assert made.provider.ledger[1].time == 61_000_000 > settled


def test_a_cancellation_waits_for_the_database(world: Run) -> None:
    down = faults.database_down("backend-1:begin", seconds=100.0)
    made = world(SAFE, down, scenario=smaller(Outside("cancel", at=1.0)))
    times = [e.time for e in made.trace if (e.process, e.kind) == ("back office", "commit")]
    assert times == [121_000_000]  # 1 s and 61 s: down
    assert sum(amount for _, amount in paid(made)) == 500_00


def test_a_refund_that_comes_after_a_cancellation_is_refused(world: Run) -> None:
    made = world(SAFE, scenario=smaller(Outside("cancel", at=1.0), at=60.0))
    assert [amount for _, amount in paid(made)] == [500_00]
    assert made.told[-1].kind == "refused"


def test_a_refund_that_waits_for_a_person_does_not_stop_a_cancellation(world: Run) -> None:
    made = world(SAFE, scenario=Scenario.cancelled_meanwhile())
    assert [amount for _, amount in paid(made)] == [7_500_00]
    assert books(made) == (7_500_00, 7_500_00, 0, 0, "cancelled", 2)


@pytest.mark.parametrize(
    ("what", "source", "columns"),
    [("refund", "by hand", (300_00, 0)), ("chargeback", "chargeback", (200_00, 100_00))],
)
def test_money_that_goes_at_the_provider_reaches_our_books_by_its_report(
    what: str, source: str, columns: tuple[int, int], world: Run
) -> None:
    made = world(SAFE, scenario=smaller(Outside(what, at=60.0, amount=100_00), reports=True))
    assert paid(made) == [("", 200_00), (source, 100_00)]
    _, refunded, _, disputed, *_ = books(made)
    assert (refunded, disputed) == columns


def test_without_reports_our_books_never_hear_of_it(world: Run) -> None:
    made = world(SAFE, scenario=smaller(Outside("refund", at=60.0, amount=100_00)))
    assert paid(made) == [("", 200_00), ("by hand", 100_00)]
    assert books(made)[1] == 200_00


def test_what_happens_concerns_one_tenants_order_and_not_its_namesake(world: Run) -> None:
    scenario = Scenario.two_tenants_one_key()
    other = scenario.intents[1].tenant_id
    cancel = Outside("cancel", at=60.0, tenant_id=other)
    made = world(SAFE, scenario=scenario.but(outside=(cancel,)))
    stands = made.database.rows("SELECT tenant_id, status FROM orders")
    assert {tenant for tenant, status in stands if status == "cancelled"} == {other}
    assert [effect.source for effect in made.provider.ledger] == ["", ""]


def test_what_is_paid_by_hand_is_in_the_orders_own_currency(world: Run) -> None:
    scenario = Scenario(
        orders=(Order(captured=5_000, currency="JPY"),),
        intents=(Intent("intent-1", amount=2_000, currency="JPY"),),
        outside=(Outside("cancel", at=60.0),),
    )
    made = world(SAFE, scenario=scenario)
    assert [(e.amount, e.currency) for e in made.provider.ledger] == [
        (2_000, "JPY"),
        (3_000, "JPY"),
    ]

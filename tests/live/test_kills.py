"""Refunds while processes get SIGKILL, and the four accounts afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.live.accounts import Accounts
from simulator.live.campaign import Campaign
from simulator.live.course import steps_of
from simulator.live.people import Told
from simulator.live.trouble import Trouble
from simulator.service import designs
from simulator.service.design import Design
from simulator.service.recovery import SameKey


def test_200_refunds_and_50_kills_on_postgresql_leave_four_accounts_that_agree(
    postgresql: str,
) -> None:
    report = Campaign(designs.SAFE, postgresql, refunds=200, kills=50, speed=10.0).run()
    assert report.findings == {}, str(report)
    assert report.accounts.tasked == frozenset(), str(report)
    assert all(len(amounts) == 1 for amounts in report.accounts.paid.values())
    assert len(report.deaths) >= 50
    killed_at = {(death.process.split("-")[0], death.what, death.place) for death in report.deaths}
    assert killed_at >= set(steps_of(designs.SAFE)), "every named step was somebody's last"


def test_the_naive_design_pays_twice_under_the_same_kills(postgresql: str) -> None:
    report = Campaign(designs.NAIVE, postgresql, refunds=60, kills=16, speed=10.0).run()
    assert "double_refund" in report.findings, str(report)
    assert "too much" in str(report)


def test_a_sqlite_file_survives_the_kills_too() -> None:
    report = Campaign(designs.SAFE, refunds=30, kills=10, speed=10.0).run()
    assert report.findings == {}, str(report)


@pytest.mark.parametrize("trouble", [Trouble(error_after=0.3), Trouble(error_before=0.3)])
def test_a_500_stored_under_the_key_is_asked_about_and_never_paid_twice(trouble: Trouble) -> None:
    # Every send of the key gets the same 500. When nothing may be sent any more, the provider is
    # asked: what it paid is found, and for what it did not a person has to decide.
    design = designs.SAFE.but(name="SAFE", recovery=SameKey(every=5.0, horizon=30.0))
    report = Campaign(design, refunds=10, trouble=trouble, speed=20.0).run()
    assert report.findings == {}, str(report)
    unpaid = {intent for intent, paid in report.accounts.paid.items() if not paid}
    assert report.accounts.tasked == unpaid
    assert report.faults["error_before"] == len(unpaid)
    assert report.faults.total() > 0


# The accounts must be able to disagree.


def told(kind: str, at: float = 2.0) -> Told:
    return Told(at, "intent-1", kind, "")


RIGHT = Accounts(
    design=designs.SAFE,
    owed={"intent-1": 50_00},
    captured={"ORD-1": 500_00},
    paid={"intent-1": [50_00]},
    paid_at={"intent-1": 1.0},
    order_of={"intent-1": "ORD-1"},
    operations={"intent-1": ["succeeded"]},
    tasked=frozenset(),
    balances={"ORD-1": (50_00, 0)},
    told={"intent-1": [told("verifying"), told("done")]},
)
NOT_PAID = replace(RIGHT, paid={"intent-1": []}, paid_at={}, balances={"ORD-1": (0, 0)})
REFUSED = replace(
    NOT_PAID, operations={"intent-1": ["failed"]}, told={"intent-1": [told("refused")]}
)


@pytest.mark.parametrize(
    ("accounts", "wrong"),
    [
        (RIGHT, set()),
        (REFUSED, set()),
        (
            replace(RIGHT, paid={"intent-1": [50_00, 50_00]}, balances={"ORD-1": (100_00, 0)}),
            {"double_refund"},
        ),
        (replace(RIGHT, balances={"ORD-1": (0, 0)}), {"books_differ"}),
        (replace(RIGHT, balances={"ORD-1": (50_00, 50_00)}), {"books_differ"}),
        (replace(RIGHT, operations={"intent-1": ["failed"]}), {"books_differ"}),
        (replace(RIGHT, operations={"intent-1": ["outcome_unknown"]}), {"stuck"}),
        (replace(RIGHT, operations={"intent-1": []}), {"stuck"}),
        (replace(RIGHT, told={"intent-1": [told("verifying")]}), {"untold"}),
        (replace(RIGHT, told={"intent-1": []}), {"untold"}),
        (replace(RIGHT, told={"intent-1": [told("done", at=0.5)]}), {"false_answer"}),
        (replace(RIGHT, told={"intent-1": [told("refused")]}), {"false_answer"}),
        (NOT_PAID, {"lost_refund", "false_answer", "books_differ"}),
        (replace(RIGHT, captured={"ORD-1": 40_00}), {"over_refund"}),
    ],
)
def test_the_accounts_name_what_does_not_agree(accounts: Accounts, wrong: set[str]) -> None:
    assert set(accounts.findings()) == wrong
    assert ("agree" in accounts.lines()[-1]) == (not wrong)


@pytest.mark.parametrize("design", designs.LADDER, ids=lambda design: design.name)
def test_without_faults_every_rung_pays_each_refund_once(design: Design) -> None:
    # Slowly: at ten times the speed a timeout of 2 s is 0.2 s, which a busy machine can take.
    report = Campaign(design, refunds=4, speed=2.0).run()
    assert [len(amounts) for amounts in report.accounts.paid.values()] == [1] * 4
    assert report.findings == {}, str(report)

"""Deleting a profile: for ever, so never without a person, and never while money is open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simulator.service.approval import Approval, NoApproval
from simulator.service.designs import SAFE
from simulator.service.profiles import delete_profile, profile_exists

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
USER = "c0ffee00-1234-4abc-8def-000000001001"
KEPT = ("orders", "order_lines", "stock", "webhook_events")


def refund(tools: Any, status: str) -> None:
    """A refund of the user, in some state."""
    session = replace(tools.session, intent_id="intent-of-a-refund")
    tools.call("issue_refund", session, order_id="ORD-1001", amount="200.00")
    tools.desk.execute(
        "UPDATE tool_operations SET status = :status WHERE action_type = 'refund'",
        {"status": status},
    )
    tools.desk.execute("DELETE FROM outbox WHERE topic = 'refund'")


def test_a_deletion_always_waits_for_a_person(tools: Any) -> None:
    answer = tools.call("delete_profile")
    assert (answer.kind, "approval" in answer.text) == ("verifying", True)
    assert tools.statuses() == ["awaiting_approval"]
    assert tools.work() == []
    assert tools.profiles() == 3


def test_after_a_yes_only_this_profile_is_gone_and_all_that_the_law_wants_stays(
    tools: Any,
) -> None:
    tools.call("delete_profile")
    before = tools.dump()
    assert tools.decide() == "approved"
    (told,) = tools.work()
    assert told.topic == "tell"
    after = tools.dump()
    assert {table: after[table] for table in KEPT} == {table: before[table] for table in KEPT}
    assert len(after["tool_operations"]) == len(after["actions"]) == 1
    assert after["audit_log"][: len(before["audit_log"])] == before["audit_log"]
    assert not profile_exists(tools.desk, TENANT, USER)
    assert tools.profiles() == 2  # another user's, and the same user's in another shop
    assert tools.events() == [
        "->pending",
        "pending->awaiting_approval",
        "awaiting_approval->pending",
        "pending->processing",
        "processing->succeeded",
    ]
    assert tools.unaudited() == set()


def test_neither_name_nor_address_is_left_in_any_table(tools: Any) -> None:
    others = f"DELETE FROM profiles WHERE tenant_id <> '{TENANT}' OR user_id <> '{USER}'"
    tools.desk.execute(others)
    tools.call("delete_profile")
    tools.decide()
    tools.work()
    left = str(tools.dump())
    assert "Mira" not in left
    assert "mira@example.org" not in left
    assert USER in left  # an id that says nothing any more


def test_the_same_intent_again_gets_the_recorded_answer(tools: Any) -> None:
    tools.call("delete_profile")
    tools.decide()
    tools.work()
    before = tools.dump()
    answer = tools.call("delete_profile")
    assert (answer.kind, answer.text) == ("done", "Done: the profile is deleted, for ever.")
    assert tools.dump() == before


def test_what_is_gone_cannot_be_deleted_again_and_nobody_gets_it_back(tools: Any) -> None:
    assert delete_profile(tools.desk, TENANT, USER) is None
    assert delete_profile(tools.desk, TENANT, USER) == "there is no such profile."
    assert tools.profiles() == 2


def test_a_new_wish_to_delete_what_is_gone_is_refused_after_all(tools: Any) -> None:
    delete_profile(tools.desk, TENANT, USER)
    tools.call("delete_profile")
    assert tools.decide() == "approved"
    tools.work()
    answer = tools.call("delete_profile")
    assert (answer.kind, answer.text) == ("refused", "It was refused: there is no such profile.")


def test_of_two_wishes_that_were_both_approved_one_is_carried_out(tools: Any) -> None:
    second = replace(tools.session, intent_id="intent-2")
    tools.call("delete_profile")
    assert tools.decide() == "approved"
    tools.call("delete_profile", second)
    assert tools.decide() == "approved"
    tools.work()
    # The second consent was to a profile that was there, and it is not any more.
    assert sorted(tools.statuses()) == ["failed", "succeeded"]
    assert tools.profiles() == 2


@pytest.mark.parametrize(
    ("status", "possible"),
    [
        ("pending", False),
        ("awaiting_approval", False),
        ("processing", False),
        ("outcome_unknown", False),
        ("succeeded", True),
        ("failed", True),
    ],
)
def test_nobody_is_forgotten_while_a_refund_is_open(
    status: str, possible: bool, tools: Any
) -> None:
    refund(tools, status)
    tools.call("delete_profile")
    assert tools.decide() == "approved"
    tools.work()
    assert profile_exists(tools.desk, TENANT, USER) is not possible
    answer = tools.call("delete_profile")
    assert answer.kind == ("done" if possible else "refused")
    if not possible:
        assert answer.text == "It was refused: a refund of this customer is still open."


@pytest.mark.parametrize(
    "whose",
    [
        "UPDATE refunds SET user_id = 'somebody'",
        f"UPDATE tool_operations SET tenant_id = '{OTHER_TENANT}' WHERE action_type = 'refund'",
    ],
)
def test_a_refund_of_somebody_else_keeps_nobody(whose: str, tools: Any) -> None:
    refund(tools, "processing")
    tools.desk.execute(whose)
    assert delete_profile(tools.desk, TENANT, USER) is None


def test_a_consent_covers_nothing_when_the_profile_is_gone_already(tools: Any) -> None:
    tools.call("delete_profile")
    tools.decide()
    delete_profile(tools.desk, TENANT, USER)
    tools.work()
    assert tools.statuses() == ["failed"]
    assert tools.desk.one("SELECT used_at FROM approvals") == (None,)


@pytest.mark.parametrize(
    ("who", "word"),
    [
        ({"user_id": USER}, "denied"),
        ({"tenant_id": OTHER_TENANT}, "denied"),
        ({"permissions": frozenset({"cancel_orders:approve", "refund:approve"})}, "denied"),
        ({}, "approved"),
    ],
)
def test_only_another_person_of_the_shop_who_may_approve_deletions_can_say_yes(
    who: dict[str, Any], word: str, tools: Any
) -> None:
    tools.call("delete_profile")
    assert tools.decide(who=replace(tools.manager, **who)) == word
    tools.work()
    assert tools.profiles() == (2 if word == "approved" else 3)


@pytest.mark.parametrize("how", ["no", "silence"])
def test_a_no_and_silence_leave_the_profile(how: str, tools: Any) -> None:
    tools.call("delete_profile")
    if how == "no":
        assert tools.decide(approve=False) == "rejected"
        assert tools.decide(approve=True) == "closed"
    else:
        tools.desk.seconds = Approval().lifetime
    tools.work()
    assert tools.statuses() == ["failed"]
    assert tools.profiles() == 3
    assert tools.unaudited() == set()


def test_a_design_that_asks_nobody_deletes_at_once(tools: Any) -> None:
    tools.design = SAFE.but(approval=NoApproval())
    assert tools.call("delete_profile").kind == "done"
    assert not profile_exists(tools.desk, TENANT, USER)
    assert tools.desk.rows("SELECT * FROM approvals") == []

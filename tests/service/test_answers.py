from __future__ import annotations

import pytest

from simulator.service.answers import KINDS, WAITING, FromRecord, Optimistic, from_row
from simulator.service.operations import Row

OPEN = ("pending", "awaiting_approval", "processing", "outcome_unknown")


@pytest.mark.parametrize("status", OPEN)
@pytest.mark.parametrize("begun", ["new", "known"])
def test_while_a_refund_is_open_the_record_says_being_verified(begun: str, status: str) -> None:
    assert FromRecord()(begun, Row(status)).kind == "verifying"


def test_without_a_row_the_record_says_being_verified() -> None:
    assert from_row(None).kind == "verifying"


def test_a_succeeded_refund_is_done() -> None:
    assert FromRecord()("known", Row("succeeded", {"detail": "REF-1"})).kind == "done"


def test_a_failed_refund_is_refused_with_its_reason() -> None:
    answer = FromRecord()("known", Row("failed", {"detail": "the card was closed."}))
    assert answer.kind == "refused"
    assert "the card was closed." in answer.text


@pytest.mark.parametrize("policy", [FromRecord(), Optimistic()])
@pytest.mark.parametrize(
    ("begun", "kind", "words"),
    [
        ("conflict", "conflict", "409"),
        ("denied", "refused", "403"),
        ("refused", "refused", "refundable balance"),
    ],
)
def test_a_refusal_before_any_payment_says_why(
    begun: str, kind: str, words: str, policy: FromRecord | Optimistic
) -> None:
    answer = policy(begun, None)
    assert (answer.kind, words in answer.text) == (kind, True)


@pytest.mark.parametrize("status", OPEN)
def test_an_optimist_calls_done_what_is_not_known(status: str) -> None:
    assert Optimistic()("known", Row(status)).kind == "done"
    assert Optimistic()("known", None).kind == "done"
    assert Optimistic()("known", Row("failed")).kind == "refused"


@pytest.mark.parametrize("status", [*OPEN, "succeeded", "failed"])
def test_every_answer_is_of_a_known_kind(status: str) -> None:
    assert {policy("known", Row(status)).kind for policy in (FromRecord(), Optimistic())} <= KINDS


def test_a_final_answer_is_newer_than_an_open_one() -> None:
    # So that a late "being verified" cannot take back the follow-up that overtook it.
    versions = {
        status: from_row(Row(status)).version or 0 for status in ("pending", "succeeded", "failed")
    }
    assert versions["pending"] < versions["succeeded"] == versions["failed"]


@pytest.mark.parametrize("begun", ["new", "known"])
def test_what_waits_for_a_person_says_so(begun: str) -> None:
    assert FromRecord()(begun, Row("awaiting_approval")) == WAITING
    assert "manager" in WAITING.text
    assert WAITING.version == 1


@pytest.mark.parametrize(
    ("status", "seconds"),
    [
        ("pending", 30.0),
        ("processing", 30.0),
        ("outcome_unknown", 30.0),
        ("awaiting_approval", 3600.0),  # a person is slower than a worker
        ("succeeded", None),
        ("failed", None),
    ],
)
def test_an_answer_says_after_how_long_it_is_worth_asking_again(
    status: str, seconds: float | None
) -> None:
    assert from_row(Row(status)).retry_after == seconds


@pytest.mark.parametrize("begun", ["conflict", "denied", "refused"])
def test_a_refusal_is_not_worth_asking_again(begun: str) -> None:
    assert FromRecord()(begun, None).retry_after is None

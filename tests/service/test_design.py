from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from random import Random
from typing import Any

import pytest

from simulator.service.answers import Answer, FromRecord
from simulator.service.approval import Approval, ModelFlag, NoApproval
from simulator.service.balance import CheckThenAct, NoBalance, Reserved
from simulator.service.design import Design, PolicyMistake
from simulator.service.errors import CallTimeout
from simulator.service.keys import ModelKey
from simulator.service.operations import DurableRecord, MemoryRecord, NoRecord, Operation
from simulator.service.outbox import Inline, Outbox, Publish
from simulator.service.recovery import Blind, NoRecovery, SameKey
from simulator.service.retry import FullJitter, NoRetry
from simulator.service.silence import forgotten
from simulator.service.webhooks import BookByReference, ByOperation, IgnoreWebhooks

Make = Callable[..., Operation]
WEAK: dict[str, Any] = {
    "record": NoRecord(),
    "balance": NoBalance(),
    "dispatch": Inline(),
    "recovery": NoRecovery(),
    "answer": FromRecord(follow_up=False),
}


def raises(*_: Any) -> Any:
    raise KeyError("oops")


# Pairs that make no sense.


@pytest.mark.parametrize(
    ("slots", "words"),
    [
        ({"dispatch": Outbox()}, r"outbox row belongs to a durable record.*DurableRecord\(\)"),
        ({"dispatch": Outbox(), "record": MemoryRecord()}, "outbox row belongs to a durable"),
        ({"dispatch": Publish()}, "finds nothing in this one's memory"),
        ({"dispatch": Publish("before"), "record": MemoryRecord()}, "nothing in this one's memory"),
        ({"balance": Reserved()}, "reservation that no record remembers"),
        ({"balance": Reserved(), "record": MemoryRecord()}, "reservation that no record remembers"),
        ({"recovery": SameKey()}, r"recovery works on the rows of an outbox.*Outbox\(\)"),
        ({"recovery": Blind(), "record": DurableRecord()}, "recovery works on the rows"),
        ({"answer": FromRecord()}, "follow-up message is sent through the outbox"),
        (
            {"answer": FromRecord(), "record": DurableRecord(), "dispatch": Publish()},
            "follow-up message is sent through the outbox",
        ),
    ],
)
def test_policies_that_make_no_sense_together_are_refused_with_the_way_out(
    slots: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=rf"Design 'mine' makes no sense: .*{words}"):
        Design(name="mine", **{**WEAK, **slots})


def test_weak_policies_that_do_fit_together_are_allowed() -> None:
    assert Design(**WEAK).record == NoRecord()
    assert Design(**{**WEAK, "record": MemoryRecord(), "balance": CheckThenAct()})
    assert Design(**{**WEAK, "record": DurableRecord(), "balance": Reserved()})


# Slots filled wrongly.


@pytest.mark.parametrize(
    "slot", ["record", "balance", "approval", "dispatch", "recovery", "audit", "webhook"]
)
def test_a_policy_of_another_slot_is_refused_by_name(slot: str) -> None:
    with pytest.raises(ValueError, match=rf"{slot}=FullJitter.* is none of \w+, \w+") as wrong:
        Design(**{slot: FullJitter()})
    assert "parentheses" not in str(wrong.value)


@pytest.mark.parametrize(
    ("slot", "policy"), [("record", DurableRecord), ("dispatch", Outbox), ("recovery", SameKey)]
)
def test_a_policy_without_its_parentheses_is_noticed(slot: str, policy: type) -> None:
    with pytest.raises(ValueError, match=f"{slot}=.*Write it with parentheses"):
        Design(**{slot: policy})


@pytest.mark.parametrize(
    "slot",
    ["schema", "identity", "permission", "ownership", "key", "on_silence", "answer", "retry"],
)
@pytest.mark.parametrize("policy", ["outcome_unknown", 3, None])
def test_what_cannot_be_called_is_refused(slot: str, policy: Any) -> None:
    with pytest.raises(ValueError, match=f"{slot}=.* cannot be called"):
        Design(**{slot: policy})


def test_a_class_in_a_slot_for_a_function_is_refused() -> None:
    with pytest.raises(ValueError, match=r"answer=.*with its parentheses"):
        Design(answer=FromRecord)


def test_a_retry_policy_without_its_parentheses_is_noticed() -> None:
    with pytest.raises(ValueError, match="parentheses"):
        Design(retry=NoRetry)


def test_a_pipeline_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ValueError, match="handle"):
        Design(handle=5)


@pytest.mark.parametrize("slot", ["keys", "Record", "retries", "on_timeout"])
def test_a_slot_that_there_is_not_is_named_with_those_there_are(slot: str) -> None:
    with pytest.raises(ValueError, match=f"no slot '{slot}'. Its slots: .*record.*retry"):
        Design().but(**{slot: None})


def test_but_changes_one_slot_and_keeps_the_rest() -> None:
    before = Design(name="mine")
    after = before.but(retry=NoRetry())
    assert after.retry == NoRetry()
    assert after.but(name="mine", retry=before.retry) == before
    assert after.name == "mine, changed"


def test_but_refuses_nonsense_too() -> None:
    with pytest.raises(ValueError, match="makes no sense"):
        Design().but(record=NoRecord())


def test_a_design_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        Design().retry = NoRetry()


# What policies return.


@pytest.mark.parametrize("key", [42, b"key", "", "k" * 256, ["k"], True])
def test_a_key_that_is_no_short_text_is_the_policys_mistake(key: Any, make_operation: Make) -> None:
    with pytest.raises(PolicyMistake, match=r"`key`.*Expected: a text of 1 to 255") as mistake:
        Design(key=lambda operation, attempt: key).key_for(make_operation(), 3)
    assert mistake.value.slot == "key"
    assert mistake.value.called_with[1] == 3
    assert mistake.value.returned is key


@pytest.mark.parametrize("key", ["k", "k" * 255, None])
def test_a_key_is_a_text_of_1_to_255_characters_or_none(key: Any, make_operation: Make) -> None:
    # 255 is Stripe's limit (reference, section 4).
    assert Design(key=lambda operation, attempt: key).key_for(make_operation(), 0) == key


@pytest.mark.parametrize("word", ["unknown", None, True, "Failed", 1])
def test_a_word_that_silence_does_not_have_is_the_policys_mistake(
    word: Any, make_operation: Make
) -> None:
    design = Design(on_silence=lambda operation, silence: word)
    with pytest.raises(
        PolicyMistake, match=r"`on_silence`.*'again', 'failed', 'forgotten' or 'outcome_unknown'"
    ):
        design.status_after(make_operation(), CallTimeout("2 s"))


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "1", True, [1.0]])
def test_a_delay_that_nobody_can_wait_is_the_policys_mistake(delay: Any) -> None:
    with pytest.raises(PolicyMistake, match=r"`retry`.*seconds, a number from 0 up, or None"):
        Design(retry=lambda attempt, random: delay).delay_after(0, Random(1))


@pytest.mark.parametrize(("delay", "seconds"), [(0, 0.0), (1.5, 1.5), (None, None)])
def test_a_retry_may_be_a_plain_function(delay: Any, seconds: Any) -> None:
    design = Design(retry=lambda attempt, random: delay)
    assert design.delay_after(0, Random(1)) == seconds


@pytest.mark.parametrize("answer", ["done", None, ("done", "paid"), Answer("paid", "hooray")])
def test_an_answer_of_no_known_kind_is_the_policys_mistake(answer: Any) -> None:
    with pytest.raises(PolicyMistake, match=r"`answer`.*an Answer of kind conflict, done"):
        Design(answer=lambda begun, row: answer).answer_to("known", None)


def test_a_policy_that_raises_is_named_with_its_arguments_and_its_error(
    make_operation: Make,
) -> None:
    design = Design(key=raises, on_silence=raises, retry=raises, answer=raises)
    for ask in (
        lambda: design.key_for(make_operation(), 0),
        lambda: design.status_after(make_operation(), CallTimeout("2 s")),
        lambda: design.delay_after(0, Random(1)),
        lambda: design.answer_to("known", None),
    ):
        with pytest.raises(PolicyMistake, match=r"raised KeyError: 'oops'. Expected: a value") as e:
            ask()
        assert isinstance(e.value.__cause__, KeyError)


def test_a_policy_of_the_wrong_shape_says_so(make_operation: Make) -> None:
    with pytest.raises(PolicyMistake, match=r"`key`.*TypeError.*takes 1 positional argument"):
        Design(key=lambda operation: "k").key_for(make_operation(), 0)


def test_a_mistake_shows_no_address_of_this_machine(make_operation: Make) -> None:
    with pytest.raises(PolicyMistake) as mistake:
        Design(key=lambda operation, attempt: object()).key_for(make_operation(), 0)
    assert "0x" not in str(mistake.value)


# Our own key.


def test_our_record_is_found_by_the_intent_whatever_the_provider_is_sent(
    make_operation: Any, make_call: Any
) -> None:
    design = Design(key=lambda operation, attempt: None)
    operation = make_operation(model_key="one")
    assert design.identified(operation, make_call()) == operation


def test_a_key_policy_with_a_name_of_its_own_names_our_record(
    make_operation: Any, make_call: Any
) -> None:
    operation = make_operation(model_key="one")
    assert Design(key=ModelKey()).identified(operation, make_call()).key == "one"


# The slots for consent and for reports.


@pytest.mark.parametrize(
    ("slot", "policy", "names"),
    [
        ("approval", ByOperation(), "NoApproval, ModelFlag, Approval"),
        ("approval", None, "NoApproval, ModelFlag, Approval"),
        ("approval", Approval, "NoApproval, ModelFlag, Approval. Write it with parentheses"),
        ("webhook", NoApproval(), "IgnoreWebhooks, BookByReference, ByOperation"),
        ("webhook", ByOperation, "ByOperation. Write it with parentheses"),
    ],
)
def test_a_slot_for_consent_or_reports_takes_its_own_policies_only(
    slot: str, policy: Any, names: str
) -> None:
    with pytest.raises(ValueError, match=f"{slot}=.* is none of .*{names}"):
        Design(**{slot: policy})


def test_the_defaults_ask_a_person_and_match_reports_by_operation() -> None:
    assert (Design().approval, Design().webhook) == (Approval(), ByOperation())


@pytest.mark.parametrize("approval", [NoApproval(), ModelFlag(), Approval(above=1)])
@pytest.mark.parametrize("webhook", [IgnoreWebhooks(), BookByReference(), ByOperation(True)])
def test_every_consent_goes_with_every_webhook(approval: Any, webhook: Any) -> None:
    design = Design(approval=approval, webhook=webhook)
    assert (design.approval, design.webhook) == (approval, webhook)


@pytest.mark.parametrize("dispatch", [Outbox(), Publish()])
def test_a_record_that_is_looked_up_first_belongs_to_code_that_does_all_itself(
    dispatch: Any,
) -> None:
    slots = {**WEAK, "record": DurableRecord(claim="look up")}
    with pytest.raises(ValueError, match=r"looked up before it is written.*Inline\(\)"):
        Design(**{**slots, "dispatch": dispatch})
    assert Design(**slots).record.looks_first


def test_nothing_is_looked_up_first_where_all_is_one_transaction() -> None:
    slots = {**WEAK, "record": DurableRecord(claim="look up")}
    with pytest.raises(ValueError, match=r"never made where all is one.*Inline\(\)"):
        Design(**{**slots, "dispatch": Inline(inside=True)})


# Keys that look at the clock, or at the process.


class Clock:
    def __call__(self, operation: Operation, attempt: int) -> str:
        return "called"

    def at(self, operation: Operation, attempt: int, now: float) -> Any:
        return f"{attempt} at {now}"


class Process:
    def __call__(self, operation: Operation, attempt: int) -> str:
        return "called"

    def by(self, operation: Operation, attempt: int, owner: str) -> Any:
        return f"{attempt} by {owner}"


class Both(Clock, Process):
    """The clock comes first."""


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        (Clock(), "2 at 7.5"),
        (Process(), "2 by worker-1#2"),
        (Both(), "2 at 7.5"),
        (lambda operation, attempt: f"{attempt}", "2"),
    ],
)
def test_a_key_is_told_the_time_or_the_process_if_it_asks(
    policy: Any, key: str, make_operation: Make
) -> None:
    design = Design(key=policy)
    assert design.key_for(make_operation(), 2, 7.5, "worker-1#2") == key


@pytest.mark.parametrize("kind", [Clock, Process])
@pytest.mark.parametrize("key", [7, "", "k" * 256])
def test_what_such_a_key_returns_is_checked_too(
    kind: Any, key: Any, make_operation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "at" if kind is Clock else "by", lambda *_: key)
    with pytest.raises(PolicyMistake, match="`key`") as mistake:
        Design(key=kind()).key_for(make_operation(), 0, 7.5, "worker-1#2")
    assert mistake.value.called_with[2] == (7.5 if kind is Clock else "worker-1#2")


def test_forgotten_is_a_word_that_silence_has(make_operation: Make) -> None:
    design = Design(on_silence=forgotten)
    assert design.status_after(make_operation(), CallTimeout("2 s")) == "forgotten"

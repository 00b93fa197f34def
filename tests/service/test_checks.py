"""Settings are looked at where they are made, and refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from simulator.experiments.replay import replay
from simulator.service.answers import FromRecord
from simulator.service.approval import Approval, ModelFlag
from simulator.service.authorization import RefundPermission
from simulator.service.checks import TEN_YEARS, fits_its_types, needs, positive, whole
from simulator.service.designs import SAFE
from simulator.service.keys import DateStamped, Truncated
from simulator.service.operations import DurableRecord
from simulator.service.outbox import Inline, Outbox
from simulator.service.recovery import AskOnly, SameKey
from simulator.service.retry_limits import ReadRetry
from simulator.service.schemas import FreeDict, Session
from simulator.service.webhooks import ByOperation
from simulator.world import faults
from simulator.world.scenario import Scenario

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True, slots=True)
class Sample:
    number: int = 1
    seconds: float | None = 1.0
    word: Literal["yes", "no"] = "yes"
    flag: bool = False
    names: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()
    either: str | tuple[str, ...] = ()
    of_the_class: ClassVar[int] = 1

    def __post_init__(self) -> None:
        fits_its_types(self)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"number": "1"}, r"Sample\(number='1'\): it should be a valid integer\."),
        ({"number": True}, r"Sample\(number=True\): it should be a valid integer\."),
        ({"number": 1.0}, r"Sample\(number=1\.0\): it should be a valid integer\."),
        ({"seconds": NAN}, r"Sample\(seconds=nan\): it should be a finite number\."),
        ({"seconds": INF}, r"Sample\(seconds=inf\): it should be a finite number\."),
        ({"seconds": "1"}, r"Sample\(seconds='1'\): it should be a valid number\."),
        ({"word": "maybe"}, r"Sample\(word='maybe'\): it should be 'yes' or 'no'\."),
        ({"flag": 1}, r"Sample\(flag=1\): it should be a valid boolean\."),
        ({"names": "one"}, r"Sample\(names='one'\): it should be a valid tuple\."),
        ({"names": (1,)}, r"Sample\(names=\(1,\)\): it should be a valid string\."),
        ({"ids": "one"}, r"Sample\(ids='one'\): it should be a valid frozenset\."),
        ({"names": ["x" * 100, 1]}, r"Sample\(names=\('x{70,80}\.\.\.\): it should"),
    ],
)
def test_another_type_than_the_one_that_is_written_is_refused(
    wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Sample(**wrong)


def test_what_fits_stays_as_it_is_and_collections_become_what_is_meant() -> None:
    assert Sample(seconds=None, number=3, flag=True).seconds is None
    assert Sample(seconds=2).seconds == 2  # a whole number is a number
    made = Sample(names=["a", "b"], ids={"c"})  # type: ignore[arg-type]
    assert (made.names, made.ids) == (("a", "b"), frozenset({"c"}))
    assert Sample(ids=("c", "c")).ids == frozenset({"c"})  # type: ignore[arg-type]
    assert Sample(either=["a"]).either == ("a",)  # type: ignore[arg-type]
    assert Sample(either="a").either == "a"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FromRecord(follow_up="no"), r"FromRecord\(follow_up='no'\)"),  # type: ignore[arg-type]
        (lambda: ModelFlag(above=-1), r"ModelFlag\(above=-1\): give whole units"),
        (lambda: RefundPermission(needed=None), r"RefundPermission\(needed=None\)"),  # type: ignore[arg-type]
        (lambda: Truncated(length=0), r"Truncated\(length=0\): give a whole number, 1 or more"),
        (lambda: DateStamped(day_begins="09:00"), r"DateStamped\(day_begins='09:00'\)"),  # type: ignore[arg-type]
        (lambda: DurableRecord(keep=-1), r"DurableRecord\(keep=-1\): give seconds, more than 0"),
        (lambda: DurableRecord(fingerprint=None), r"DurableRecord\(fingerprint=None\)"),  # type: ignore[arg-type]
        (lambda: DurableRecord(keep=1e9), r"DurableRecord\(keep=1.*\): give .*at most ten years"),
        (lambda: Inline(reruns=-1), r"Inline\(reruns=-1\): give a whole number, 0 or more"),
        (lambda: Outbox(fence="yes"), r"Outbox\(fence='yes'\)"),  # type: ignore[arg-type]
        (lambda: Outbox(lease=1e9), r"Outbox\(lease=1.*\): give .*at most ten years \(315576000\)"),
        (lambda: Outbox(max_attempts=1.5), r"Outbox\(max_attempts=1\.5\)"),  # type: ignore[arg-type]
        (lambda: Approval(lifetime=1e9), r"Approval\(lifetime=1.*\): give .*at most ten years"),
        (lambda: SameKey(horizon=1e9), r"SameKey\(horizon=1.*\): give .*at most ten years"),
        (lambda: SameKey(every=1e9), r"SameKey\(every=1.*\): give .*at most ten years"),
        (lambda: AskOnly(horizon=1e9), r"AskOnly\(horizon=1.*\): give .*at most ten years"),
        (lambda: AskOnly(every=1e9), r"AskOnly\(every=1.*\): give .*at most ten years"),
        (lambda: SameKey(waits_for_settlement=0), r"SameKey\(waits_for_settlement=0\)"),  # type: ignore[arg-type]
        (lambda: ReadRetry(attempts=None), r"ReadRetry\(attempts=None\)"),  # type: ignore[arg-type]
        (lambda: FreeDict(cents="x"), r"FreeDict\(cents='x'\): it should be 'round' or"),  # type: ignore[arg-type]
        (lambda: ByOperation(on_unknown=0), r"ByOperation\(on_unknown=0\): give an HTTP status"),
        (lambda: SAFE.but(name=3), r"Design\(name=3\): give a text"),
    ],
)
def test_a_policy_refuses_a_setting_that_would_mean_something_else(
    make: Callable[[], Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_permissions_that_are_one_text_are_no_permissions() -> None:
    # "refund:create" in "refund:create:never" would be True: a session that fails open.
    with pytest.raises(ValueError, match=r"Session\(permissions='refund:create:never'\)"):
        Session("user", "tenant", "refund:create:never", "intent-1")  # type: ignore[arg-type]
    assert Session("user", "tenant", ["a"], "intent-1").permissions == frozenset({"a"})  # type: ignore[arg-type]


def test_a_whole_number_is_no_truth_value_and_a_time_is_finite() -> None:
    assert whole(1, 1)
    assert not any(whole(number, 1) for number in (0, True, 1.0, "1", None))
    assert positive(0.5)
    assert not any(positive(seconds) for seconds in (0, -1, NAN, INF, True, "1", None))


def test_what_does_not_fit_is_named_with_its_value_and_what_it_should_be() -> None:
    needs(Sample(), "number", True, "anything")
    with pytest.raises(ValueError, match=r"Sample\(number=1\): give 2 or more\."):
        needs(Sample(), "number", False, "2 or more")


def test_ten_years_lead_to_a_date_in_every_policy_that_waits() -> None:
    waiting = SAFE.but(
        dispatch=Outbox(lease=TEN_YEARS),
        record=DurableRecord(keep=TEN_YEARS),
        recovery=SameKey(every=TEN_YEARS, horizon=TEN_YEARS),
        approval=Approval(lifetime=TEN_YEARS),
    )
    lost = [faults.lose_response("provider.refund")]
    assert replay(waiting, faults=lost).struck
    assert replay(waiting, Scenario.approval_between()).answers.answer[0] == "verifying"

from __future__ import annotations

import pickle
from typing import Any

import pytest

from simulator.service.policy import PolicyMistake, ask_policy, shortened


class Plain:
    """Something whose text is an address."""


def test_a_policy_is_asked_with_its_arguments() -> None:
    assert ask_policy("key", lambda one, two: (two, one), (1, 2)) == (2, 1)


def test_a_policy_that_raises_is_named_with_what_it_was_called_with() -> None:
    def oops(*_: Any) -> Any:
        raise KeyError("oops")

    with pytest.raises(PolicyMistake) as mistake:
        ask_policy("retry", oops, (3, "x"))
    assert str(mistake.value) == (
        "The design's policy `retry`, called with (3, 'x'), raised KeyError: 'oops'. "
        "Expected: a value, not an exception."
    )
    assert isinstance(mistake.value.__cause__, KeyError)
    assert (mistake.value.slot, mistake.value.called_with) == ("retry", (3, "x"))
    assert isinstance(mistake.value.returned, KeyError)
    assert mistake.value.expected == "a value, not an exception"


def test_a_wrong_value_is_shown_beside_what_was_expected() -> None:
    assert str(PolicyMistake("key", (), 42, "a text")) == (
        "The design's policy `key`, called with (), returned 42. Expected: a text."
    )


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_order_to_stop_is_no_policys_mistake(stop: type[BaseException]) -> None:
    def stops() -> Any:
        raise stop

    with pytest.raises(stop):
        ask_policy("key", stops, ())


def test_a_mistake_travels_between_processes_as_its_sentence() -> None:
    class Local:
        """Nothing that could be pickled."""

    mistake = PolicyMistake("key", (Local(),), lambda: 1, "a text")
    copy = pickle.loads(pickle.dumps(mistake))
    assert type(copy) is PolicyMistake
    assert str(copy) == str(mistake)


def test_a_kind_of_mistake_keeps_its_kind_on_the_way() -> None:
    copy = pickle.loads(pickle.dumps(Special("key", (), 1, "a text")))
    assert type(copy) is Special
    assert "returned 1" in str(copy)


class Special(PolicyMistake):
    """A kind of its own."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (42, "42"),
        ("x" * 158, repr("x" * 158)),
        ("x" * 159, "'" + "x" * 156 + "..."),
        (Plain(), "a Plain"),
        ([Plain()], "a list"),
    ],
)
def test_a_value_is_shown_in_at_most_160_characters_without_addresses(
    value: Any, text: str
) -> None:
    assert shortened(value) == text
    assert len(text) <= 160

from __future__ import annotations

from dataclasses import fields

import pytest

from simulator.service import designs, silence
from simulator.service.design import Design
from simulator.service.keys import NoKey, OperationKey

# What a published answer about keys promises at least (Stripe's first API).
KEY_LIFETIME = 24 * 3600.0
SLOTS = [field.name for field in fields(Design) if field.name != "name"]


def changed(one: Design, other: Design) -> set[str]:
    return {slot for slot in SLOTS if getattr(one, slot) != getattr(other, slot)}


def test_the_ladder_has_its_ten_rungs_in_order() -> None:
    assert [design.name for design in designs.LADDER] == [
        "NAIVE",
        "ONE_SHOT",
        "MODEL_KEY",
        "MEMORY_RECORD",
        "DURABLE_RECORD",
        "PROVIDER_KEY",
        "RESERVED",
        "PUBLISH_AFTER_COMMIT",
        "OUTBOX",
        "SAFE",
    ]
    assert all(getattr(designs, design.name) is design for design in designs.LADDER)


@pytest.mark.parametrize(
    ("rung", "below", "slots"),
    [
        ("ONE_SHOT", "NAIVE", {"on_silence", "retry"}),
        ("MODEL_KEY", "NAIVE", {"key"}),
        ("MEMORY_RECORD", "NAIVE", {"record"}),
        ("DURABLE_RECORD", "MEMORY_RECORD", {"record"}),
        ("PROVIDER_KEY", "DURABLE_RECORD", {"key"}),
        ("RESERVED", "PROVIDER_KEY", {"balance"}),
        ("PUBLISH_AFTER_COMMIT", "RESERVED", {"dispatch", "answer"}),
        ("OUTBOX", "PUBLISH_AFTER_COMMIT", {"dispatch", "recovery"}),
    ],
)
def test_a_rung_is_one_idea_above_the_one_below(rung: str, below: str, slots: set[str]) -> None:
    assert changed(getattr(designs, rung), getattr(designs, below)) == slots


def test_every_ablation_lacks_something_and_says_what() -> None:
    for name, design in designs.ablations().items():
        assert design.name == f"SAFE without {name}"
        assert changed(design, designs.SAFE), name


def test_every_safeguard_is_taken_away_once() -> None:
    gone = {
        slot for design in designs.ablations().values() for slot in changed(design, designs.SAFE)
    }
    assert gone >= {
        "record",
        "balance",
        "key",
        "dispatch",
        "on_silence",
        "recovery",
        "answer",
        "audit",
    }


def test_the_safe_design_takes_silence_for_silence_and_sends_one_key() -> None:
    assert designs.SAFE.on_silence is silence.outcome_unknown
    assert designs.SAFE.key == OperationKey()
    assert designs.NAIVE.key == NoKey()


def test_the_safe_design_stops_sending_before_the_provider_forgets_the_key() -> None:
    horizon = designs.SAFE.recovery.horizon
    assert horizon is not None
    assert horizon < KEY_LIFETIME

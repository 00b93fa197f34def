"""The ablation table: what breaks when one safeguard, or several, are taken away."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from simulator.cli import cli
from simulator.experiments.ablation import (
    ABLATIONS,
    SHOWN_BY_STORMS,
    Ablation,
    ablation_table,
    without,
)
from simulator.service import designs
from simulator.service.design import Design
from simulator.service.keys import NoKey
from simulator.service.operations import DurableRecord
from simulator.service.outbox import Outbox

KNOWN = ("provider key", "operation key", "reservation", "fencing token")


def row(*arguments: Any, **more: Any) -> Any:
    """The table's row for one ablation."""
    (found,) = ablation_table([Ablation(*arguments, **more)]).itertuples()
    return found


def test_known_losses_have_known_smallest_histories() -> None:
    table = ablation_table([row for row in ABLATIONS if row.safeguard in KNOWN])
    found = table[["safeguard", "faults", "breaks", "covered_by"]].to_numpy().tolist()
    doubled = "double_refund, over_refund, books_differ"
    pause = "pause(worker-1:provider.refund, before_send, 42 s)"
    assert found == [
        ["provider key", "lose_response(worker-1:provider.refund)", doubled, ""],
        ["operation key", "none", "double_refund", ""],
        ["reservation", "delay_request(worker-1:provider.refund, 1.5 s)", "over_refund", ""],
        ["fencing token", pause, "books_differ", ""],
        ["fencing token", pause, doubled, "provider key"],
    ]


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda a: f"{a.safeguard}-{a.breaks}")
def test_every_row_of_the_table_is_as_expected(ablation: Ablation) -> None:
    (found,) = ablation_table([ablation]).itertuples()
    assert found.as_expected, found


def test_every_safeguard_that_can_be_taken_away_has_a_row() -> None:
    assert {row.safeguard for row in ABLATIONS} == designs.ablations().keys()


def test_rows_are_the_same_on_two_processes() -> None:
    rows = ABLATIONS[:3]
    assert ablation_table(rows, n_jobs=2).equals(ablation_table(rows))


# --- rows that are wrong ---------------------------------------------------------------------


def test_a_safeguard_whose_loss_breaks_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    known = designs.ablations()
    safe = known | {"provider key": designs.SAFE.but(name="SAFE without provider key")}
    monkeypatch.setattr(designs, "ablations", lambda: safe)
    found = row("provider key", "one_refund", ("lose_response",), "double_refund")
    assert not found.as_expected
    assert (found.faults, found.breaks) == ("", "")
    assert found.histories > 3  # no fault, and each of three calls or more without its answer


def test_a_loss_that_breaks_something_else_is_reported() -> None:
    found = row("provider key", "one_refund", ("lose_response",), "stuck or untold")
    assert not found.as_expected
    assert "double_refund" in found.breaks


def test_without_kinds_no_fault_is_tried() -> None:
    found = row("provider key", "one_refund", (), "double_refund", max_faults=2)
    assert not found.as_expected
    assert found.histories == 1


def test_no_more_faults_than_allowed_are_tried() -> None:
    needs_two = ("follow-up", "one_refund", ("lose_response",), "untold")
    assert not row(*needs_two).as_expected
    found = row(*needs_two, max_faults=2)
    assert found.as_expected
    assert found.faults.count("lose_response") == 2


def test_a_safeguard_that_another_covers_is_right_alone_and_broken_without_both() -> None:
    covered = ("fencing token", "one_refund", ("pause",), "double_refund")
    assert row(*covered, ("provider key",)).as_expected
    assert not row(*covered).as_expected


def test_a_cover_that_does_not_cover_is_reported() -> None:
    found = row("provider key", "one_refund", ("lose_response",), "double_refund", ("lease",))
    assert not found.as_expected
    assert found.note == "not covered: it breaks when only provider key is missing"


def test_a_cover_without_which_nothing_breaks_either_is_reported() -> None:
    found = row("fencing token", "one_refund", ("lose_response",), "double_refund", ("lease",))
    assert not found.as_expected
    assert found.breaks == ""


def test_it_is_said_when_the_cover_alone_is_enough_to_break_it() -> None:
    covered = ("fencing token", "one_refund", ("pause",), "double_refund", ("provider key",))
    said = "the same history breaks it when only provider key is missing, too"
    assert row(*covered).note == said
    assert row(*covered, note="A remark").note == f"A remark; {said}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("lease", "one_refnd", (), "stuck"), "there is no Scenario.one_refnd()"),
        (("lease", "one_refund", ("crush",), "stuck"), "there is no fault 'crush'"),
        (("lease", "one_refund", (), "stuk or untold"), "there is no invariant 'stuk'"),
        (("lease", "one_refund", "crash", "stuck"), "kinds='crash' is a text; write ('crash',)."),
        (("lease", "one_refund", (), "stuck", "outbox"), "covered_by='outbox' is a text"),
    ],
)
def test_a_row_with_a_slip_is_refused_in_a_sentence(arguments: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="Ablation of 'lease'") as refused:
        Ablation(*arguments)
    assert sentence in str(refused.value)


# --- several at once -------------------------------------------------------------------------


def test_without_nothing_is_safe_and_without_one_is_its_ablation() -> None:
    assert without() is designs.SAFE
    assert without("lease") == designs.ablations()["lease"]


def test_two_safeguards_of_one_policy_are_both_taken_away() -> None:
    design = without("lease", "fencing token")
    assert design.name == "SAFE without lease and fencing token"
    assert design.dispatch == Outbox(lease=None, fence=False)
    expected = designs.SAFE.but(name=design.name, dispatch=design.dispatch)
    assert design == expected
    record = without("fingerprint", "tombstone").record
    assert record == DurableRecord(fingerprint=False, keep=24 * 3600.0)


def test_safeguards_in_different_slots_are_all_taken_away() -> None:
    design = without("provider key", "fingerprint", "fencing token")
    assert design.name == "SAFE without provider key, fingerprint and fencing token"
    assert design.key == NoKey()
    assert design.record == DurableRecord(fingerprint=False)
    assert design.dispatch == Outbox(fence=False)


def test_what_two_safeguards_change_alike_is_changed_once() -> None:
    alone = designs.ablations()
    assert alone["outbox"].recovery == alone["recovery"].recovery != designs.SAFE.recovery
    assert without("outbox", "recovery").but(name="x") == alone["outbox"].but(name="x")


@pytest.mark.parametrize("pair", [("outbox", "fencing token"), ("operation key", "provider key")])
def test_policies_of_two_kinds_in_one_slot_are_refused(pair: tuple[str, str]) -> None:
    slot = {"outbox": "dispatch", "operation key": "key"}[pair[0]]
    with pytest.raises(ValueError, match=f"{pair[0]} and {pair[1]} at once: .* slot '{slot}'"):
        without(*pair)


def test_one_field_with_two_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def ablations() -> dict[str, Design]:
        leases = {"short": 1.0, "long": 99.0}
        return {name: designs.SAFE.but(dispatch=Outbox(lease=s)) for name, s in leases.items()}

    monkeypatch.setattr(designs, "ablations", ablations)
    with pytest.raises(ValueError, match=r"dispatch\.lease=1\.0, and another 99\.0"):
        without("short", "long")


def test_a_safeguard_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no safeguard 'leese'\. There are: schema, identity"):
        without("lease", "leese")


# --- what only a storm shows -----------------------------------------------------------------


@pytest.mark.parametrize("shown", SHOWN_BY_STORMS, ids=lambda shown: shown.safeguard)
def test_what_shows_a_safeguard_without_an_invariant_can_be_run(shown: Any) -> None:
    program, *arguments = shown.command.partition(" storm")[::2]
    if program == "python -m simulator":
        cli.commands["storm"].make_context("storm", shlex.split(arguments[0]))
        return
    names: dict[str, Any] = {}
    *imports, call = shown.command.split("; ")
    for line in imports:
        exec(line, names)
    assert set(compile(call, shown.safeguard, "eval").co_names) <= names.keys()

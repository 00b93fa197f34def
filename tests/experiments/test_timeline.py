"""The space-time diagram: what it shows, that it can be read, and that it is said in words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.patches import FancyBboxPatch
from matplotlib.transforms import Bbox

from simulator import Scenario, designs, faults, replay
from simulator.experiments.style import CourseFigure, png
from simulator.experiments.timeline import describe, draw
from simulator.experiments.timeline_rows import LANES, MOST_ROWS, Picture, Row, arrange
from simulator.world.trace import KINDS, Event

ASK = "Please refund $500.00 of order ORD-1001."
PAID = "Your refund has been paid."


class Script:
    """A history written by hand."""

    def __init__(self) -> None:
        self.trace: list[Event] = []
        self.now = 0
        self.messages = 0

    def wait(self, seconds: float) -> Script:
        self.now += round(seconds * 1e6)
        return self

    def note(self, process: str, kind: str, what: str = "", **more: object) -> Script:
        self.trace.append(Event(self.now, process, kind, what, **more))  # type: ignore[arg-type]
        return self

    def send(
        self,
        process: str,
        peer: str,
        what: str,
        text: str = "",
        *,
        kind: str = "request",
        seconds: float = 0.05,
        lost: bool = False,
    ) -> Script:
        self.messages += 1
        number = self.messages
        self.note(process, kind, what, peer=peer, message=number, text=text)
        if lost:
            return self.note(peer, "lost", what, peer=process, message=number)
        return self.wait(seconds).note(peer, "arrive", what, peer=process, message=number)

    def ask(self, intent: str = "intent-1") -> Script:
        return self.note("customer", "submit", intent, peer="agent", text=ASK)

    def pay(self, intent: str = "intent-1", amount: int = 500_00) -> Script:
        return self.note("provider", "effect", "provider.refund", amount=amount, text=intent)

    def tell(self, kind: str = "done", text: str = PAID, intent: str = "intent-1") -> Script:
        return self.note("customer", "told", kind, peer=intent, text=text)


def lost_answer() -> list[Event]:
    """The thousand-dollar refund."""
    script = Script().ask().send("agent", "backend-1", "tool.issue_refund", "call-1: refund 500")
    script.note("backend-1", "fault", "provider.refund", text="lose_response(provider.refund)")
    script.send("backend-1", "provider", "provider.refund", "$500.00, no key").pay()
    script.send("provider", "backend-1", "provider.refund", "REF-1", kind="response", lost=True)
    script.wait(1.95).note("backend-1", "timeout", "provider.refund", text="after 2 s")
    script.send("backend-1", "provider", "provider.refund", "$500.00, no key").pay()
    script.send("provider", "backend-1", "provider.refund", "REF-2", kind="response")
    script.send("backend-1", "agent", "tool.issue_refund", "done", kind="response").tell()
    return script.trace


def takeover() -> list[Event]:
    """A worker dies with the money on its way; another takes over after the lease."""
    script = Script().ask().send("agent", "backend-1", "tool.issue_refund", "call-1: refund 500")
    script.note("backend-1", "commit", "begin", peer="database")
    script.note("backend-1", "state", "->pending", peer="database")
    script.note("worker-1", "fault", "provider.refund", text="crash(provider.refund, after_send)")
    script.note("worker-1", "request", "provider.refund", peer="provider", message=90)
    script.note("worker-1", "crash", "worker-1#1").wait(0.05)
    script.note("provider", "arrive", "provider.refund", peer="worker-1", message=90).pay()
    script.wait(5).note("worker-1", "restart", "worker-1#2").wait(25)
    script.note("worker-2", "commit", "claim", peer="database")
    script.note("worker-2", "state", "processing->outcome_unknown", peer="database")
    script.note("worker-2", "state", "outcome_unknown->processing", peer="database")
    script.send("worker-2", "provider", "provider.refund", "$500.00, key 1c7b")
    script.note("provider", "replayed", "provider.refund", text="intent-1")
    script.send("provider", "worker-2", "provider.refund", "REF-1", kind="response")
    script.send("worker-2", "customer", "customer.notify", "done").tell()
    script.send("customer", "worker-2", "customer.notify", "read", kind="response")
    return script.trace


def zombie() -> list[Event]:
    """A worker sleeps past its lease, wakes, and sends what it still believes in."""
    script = Script().ask()
    script.note("worker-1", "fault", "provider.refund", text="pause(provider.refund, 40 s)")
    script.note("worker-1", "pause", "worker-1#1", text="40 s").wait(30)
    script.send("worker-2", "provider", "provider.refund").pay().tell().wait(10)
    script.note("worker-1", "resume", "worker-1#1")
    script.send("worker-1", "provider", "provider.refund", seconds=3600).pay()
    script.note("worker-1", "rollback", "finish", peer="database", text="fenced off")
    script.note("worker-1", "task", "refund", text="The books and the provider disagree.")
    return script.trace


def everything() -> list[Event]:
    """One event of every kind, in one instant."""
    script = Script()
    for kind in KINDS:
        script.note(
            "backend-1",
            kind,
            "provider.refund",
            peer="provider" if kind in ("request", "response", "arrive", "lost") else "",
            message={"request": 1, "arrive": 1, "response": 2, "lost": 2}.get(kind, 0),
            amount=500_00 if kind == "effect" else 0,
            text="words",
        )
    return script.trace


HAND_WRITTEN = {
    "lost_answer": lost_answer,
    "takeover": takeover,
    "zombie": zombie,
    "everything": everything,
}


def marks(picture: Picture) -> list[str]:
    return [row.mark for row in picture.rows]


def the(picture: Picture, mark: str) -> Row:
    """The only row with this mark."""
    (row,) = (row for row in picture.rows if row.mark == mark)
    return row


# What is shown ----------------------------------------------------------------------------


def test_only_lanes_that_occur_are_drawn_and_in_the_order_of_a_refunds_way() -> None:
    assert arrange(lost_answer()).lanes == ("customer", "agent", "backend-1", "provider")
    assert arrange(takeover()).lanes == tuple(
        lane for lane in LANES if lane not in ("backend-2", "broker", "approver", "back office")
    )


def test_a_provider_that_was_never_reached_by_a_refund_has_an_empty_lane() -> None:
    fault = faults.crash("backend-1:provider.refund", when="before_send")
    trace = replay(designs.RESERVED, faults=[fault]).trace
    assert "provider" not in {name for event in trace for name in (event.process, event.peer)}
    assert arrange(trace).lanes == ("customer", "agent", "backend-1", "database", "provider")


def test_a_process_that_nobody_foresaw_gets_the_last_lane() -> None:
    trace = Script().note("auditor", "note", text="looks").note("agent", "note", text="x").trace
    assert arrange(trace).lanes == ("agent", "auditor")


def test_the_second_payment_of_one_intent_says_how_much_it_is_in_all() -> None:
    picture = arrange(lost_answer())
    assert the(picture, "effect").text == "$500 paid"
    assert (the(picture, "again").text, the(picture, "again").small) == (
        "paid again",
        "$1,000 in all",
    )


def test_a_third_payment_counts_on() -> None:
    picture = arrange(Script().pay().pay().pay().trace)
    assert [(row.text, row.small) for row in picture.rows] == [
        ("$500 paid", ""),
        ("paid again", "$1,000 in all"),
        ("paid 3 times", "$1,500 in all"),
    ]


def test_two_honest_refunds_are_not_a_double_one_and_are_named() -> None:
    trace = Script().ask("intent-1").ask("intent-2").pay("intent-1").pay("intent-2").trace
    picture = arrange(trace)
    assert marks(picture) == ["submit", "submit", "effect", "effect"]
    assert [row.small for row in picture.rows[2:]] == ["intent-1", "intent-2"]
    assert picture.rows[0].text == f"intent-1: “{ASK}”"
    named = arrange(trace, intents={"intent-1": "shoes", "intent-2": "hat"})
    assert [row.small for row in named.rows[2:]] == ["shoes", "hat"]


def test_a_long_id_is_replaced_by_a_number() -> None:
    one, other = "c0ffee00-1234-4abc-8def-000000001001", "c0ffee00-1234-4abc-8def-000000001002"
    picture = arrange(Script().pay(one).pay(other).trace)
    assert [row.small for row in picture.rows] == ["refund 1", "refund 2"]


def test_a_lost_message_is_cut_and_carries_the_fault_that_lost_it() -> None:
    picture = arrange(lost_answer())
    cut = the(picture, "cut")
    assert (cut.process, cut.peer, cut.answer, cut.fault) == (
        "provider",
        "backend-1",
        True,
        "answer lost",
    )
    assert "fault" not in marks(picture)


def test_a_fault_that_shows_nowhere_has_a_row_of_its_own() -> None:
    trace = Script().note("agent", "fault", "x.y", text="lose_response(agent:x.y, nth=2)").trace
    assert the(arrange(trace), "fault").text == "answer lost"


def test_a_fault_is_not_hung_on_the_next_try() -> None:
    script = Script().note("agent", "fault", "x.y", text="lose_response(x.y)")
    script.send("agent", "backend-1", "x.y").wait(2).note("agent", "timeout", "x.y")
    script.send("agent", "backend-1", "x.y")
    script.send("backend-1", "agent", "x.y", kind="response", lost=True)
    picture = arrange(script.trace)
    assert the(picture, "cut").fault == ""
    assert the(picture, "fault").text == "answer lost"


@pytest.mark.parametrize(
    ("fault", "mark", "words"),
    [
        (faults.lose_request("provider.refund"), "cut", "request lost"),
        (faults.lose_response("provider.refund"), "cut", "answer lost"),
        (
            faults.reset("provider.refund", when="before"),
            "cut",
            "connection broken on the way there",
        ),
        (faults.reset("provider.refund"), "cut", "connection broken on the way back"),
        (faults.duplicate_request("provider.refund"), "request", "request doubled"),
        (faults.delay_request("provider.refund", seconds=3), "request", "request late by 3 s"),
        (faults.delay_response("provider.refund", seconds=1), "response", "answer late by 1 s"),
        (faults.crash("provider.refund", when="after_send"), "crash", "killed after sending"),
        (faults.crash("finish", when="before"), "crash", "killed before its commit"),
        (
            faults.pause("provider.refund", when="before_send", seconds=40),
            "pause",
            "stopped for 40 s before sending",
        ),
        (faults.crash_provider("provider.refund"), "down", "provider killed after it paid"),
        (faults.provider_down("provider.refund", seconds=10), "down", "provider down for 10 s"),
        (faults.database_down("finish", seconds=10), "down", "database down for 10 s"),
        (faults.lose_commit_ack("finish"), "ack_lost", "committed, answer lost"),
        (faults.lose_commit_ack("finish", when="before"), "ack_lost", "not committed, answer lost"),
    ],
    ids=str,
)
def test_every_kind_of_fault_hangs_on_what_shows_it(
    fault: faults.Fault, mark: str, words: str
) -> None:
    picture = arrange(replay(designs.SAFE, faults=[fault]).trace)
    flagged = [(row.mark, row.fault) for row in picture.rows if row.fault]
    assert flagged == [(mark, words)]


def test_a_message_that_is_late_by_a_second_has_a_row_where_it_arrives() -> None:
    picture = arrange(zombie())
    assert the(picture, "late").text == "arrives 1 h later"
    sent = [row for row in picture.rows if row.mark == "request"][-1]
    assert sent.until == the(picture, "late").place


def test_a_dead_lane_is_broken_until_it_starts_again_or_for_ever() -> None:
    trace = takeover()
    (span,) = arrange(trace).spans
    assert (span.process, span.mark) == ("worker-1", "crash")
    assert trace[span.begin].kind == "crash"
    assert trace[span.end].kind == "restart"
    unfinished = Script().note("worker-1", "crash").wait(9).note("agent", "note", text="x").trace
    assert arrange(unfinished).spans[0].end == -1


def test_a_paused_lane_and_a_provider_that_is_down_are_marked() -> None:
    script = Script().note("worker-1", "pause").note("provider", "down", "outage").wait(5)
    script.note("provider", "up").note("worker-1", "resume")
    assert [(s.process, s.mark, s.begin, s.end) for s in arrange(script.trace).spans] == [
        ("worker-1", "pause", 0, 3),
        ("provider", "down", 1, 2),
    ]


def test_states_stand_at_the_commit_that_reached_them() -> None:
    picture = arrange(takeover())
    assert [row.text for row in picture.rows if row.mark == "commit"] == [
        "begin: pending",
        "claim: outcome_unknown, processing",
    ]


def test_arrivals_and_receipts_are_left_out_of_the_story_and_kept_in_all() -> None:
    trace = takeover()
    story, full = marks(arrange(trace)), marks(arrange(trace, detail="all"))
    assert "arrive" not in story
    assert "state" not in story
    assert story.count("response") == 1  # of the two, one only says that it was read
    assert full.count("arrive") == sum(event.kind == "arrive" for event in trace)
    # A fault is hung on another row; everything else has its own.
    assert len(full) == len(trace) - 1


def test_a_timeout_says_how_long_was_waited() -> None:
    assert the(arrange(lost_answer()), "timeout").text == "no answer after 2 s"


def test_of_many_equal_rounds_the_first_and_the_last_are_shown() -> None:
    script = Script().ask()
    for _ in range(9):
        script.send("worker-1", "provider", "provider.refund")
        script.note("worker-1", "reset", "provider.refund").wait(1)
    picture = arrange(script.tell().trace)
    assert marks(picture) == [
        "submit",
        "request",
        "reset",
        "rounds",
        "request",
        "reset",
        "told",
    ]
    assert the(picture, "rounds").text == "7 more rounds like this"
    assert picture.rows[-2].time == 8 * 1_050_000 + 50_000


def test_two_equal_rounds_are_both_shown_and_of_three_the_second_is_left_out() -> None:
    def rounds(count: int) -> list[str]:
        script = Script()
        for _ in range(count):
            script.send("worker-1", "provider", "provider.refund")
            script.note("worker-1", "reset", "provider.refund").wait(1)
        return marks(arrange(script.trace))

    assert rounds(2) == ["request", "reset"] * 2
    assert rounds(3) == ["request", "reset", "rounds", "request", "reset"]


def test_money_is_never_left_out() -> None:
    script = Script()
    for _ in range(9):
        script.send("worker-1", "provider", "provider.refund").pay().wait(1)
    assert marks(arrange(script.trace)).count("again") == 8


def test_a_history_without_end_is_shown_without_its_middle() -> None:
    script = Script().ask()
    for number in range(5000):
        script.send("agent", "backend-1", "x.y", f"try {number}")
    picture = arrange(script.tell().trace)
    assert len(picture.rows) == MOST_ROWS + 1
    assert the(picture, "rounds").text == f"{5002 - MOST_ROWS:,} more rows are left out"
    assert picture.rows[-1].mark == "told"


def test_another_detail_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"detail is 'some': choose \"story\" or \"all\""):
        draw(lost_answer(), detail="some")


# How it is drawn --------------------------------------------------------------------------


# Measures as the picture's own renderer does, without a canvas of millions of pixels.
RULER = RendererAgg(16, 16, 100)


def words_of(figure: CourseFigure) -> dict[str, Bbox]:
    return {
        f"{number}: {text.get_text()}": text.get_window_extent(RULER)
        for number, text in enumerate(figure.axes[0].texts)
    }


def overlap(one: Bbox, other: Bbox) -> bool:
    """Whether two boxes share more than a pixel's width."""
    return (
        min(one.x1, other.x1) - max(one.x0, other.x0) > 1
        and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
    )


def troubles(figure: CourseFigure) -> list[str]:
    """Everything in a picture that is cut off, or meets what it should not."""
    words = words_of(figure)
    boxes = [
        patch.get_window_extent(RULER)
        for patch in figure.axes[0].patches
        if isinstance(patch, FancyBboxPatch)
    ]
    width, height = figure.bbox.width, figure.bbox.height
    found = [
        f"{name} is cut off"
        for name, box in [*words.items(), *(("a box", box) for box in boxes)]
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
    ]
    rows = sorted(words.items(), key=lambda word: word[1].y0)
    for (one, first), (other, second) in combinations(rows, 2):
        if overlap(first, second):
            found.append(f"{one} meets {other}")
    for name, word in words.items():
        for box in boxes:
            inside = (
                word.x0 >= box.x0 and word.x1 <= box.x1 and word.y0 >= box.y0 and word.y1 <= box.y1
            )
            if overlap(word, box) and not inside:
                found.append(f"{name} meets the edge of a box")
    found += ["two boxes meet" for one, other in combinations(boxes, 2) if overlap(one, other)]
    return found


@pytest.mark.parametrize("detail", ["story", "all"])
@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_nothing_is_cut_off_and_no_two_labels_meet(name: str, detail: str) -> None:
    figure = draw(HAND_WRITTEN[name](), title=f"{name}, {detail}", detail=detail)
    assert troubles(figure) == []


SCENARIOS = (
    Scenario.one_refund,
    Scenario.double_click,
    Scenario.two_partial_refunds,
    Scenario.resubmitted_elsewhere,
    Scenario.new_thought,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("design", designs.LADDER, ids=lambda design: design.name)
def test_real_histories_can_be_read(design: designs.Design, scenario: object) -> None:
    run = replay(
        design,
        scenario(),  # type: ignore[operator]
        [faults.lose_response("provider.refund"), faults.crash("finish", nth=1, when="before")],
    )
    assert troubles(draw(run.trace, title=run.headline)) == []


@pytest.mark.parametrize(
    "fault",
    [
        faults.pause("provider.refund", when="after_send", seconds=42),
        faults.delay_request("tool.issue_refund", seconds=90_000),
        faults.provider_down("provider.refund", seconds=42),
        faults.database_down("finish", seconds=42),
        faults.lose_commit_ack("begin"),
        faults.duplicate_request("tool.issue_refund"),
    ],
    ids=str,
)
@pytest.mark.parametrize("heal", [True, False])
def test_real_histories_with_every_sort_of_fault_can_be_read(
    fault: faults.Fault, heal: bool
) -> None:
    second = faults.crash("provider.refund", nth=2)
    run = replay(designs.SAFE, Scenario.double_click(), [fault, second], heal=heal)
    note = "What went wrong: a note that takes more than one line. " * 3
    assert troubles(draw(run.trace, title=run.headline, note=note)) == []


names = st.sampled_from((*LANES, "somebody-else"))
texts = st.one_of(
    st.just(""),
    st.sampled_from(["done", "$500.00, key 1c7b0f97", "W" * 90, "many words " * 30]),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=40),
)
events = st.builds(
    Event,
    time=st.integers(0, 3_000_000),
    process=names,
    kind=st.sampled_from(sorted(KINDS)),
    what=st.sampled_from(["provider.refund", "begin", "a->b", "x" * 50]),
    peer=names,
    message=st.integers(0, 6),
    amount=st.integers(0, 10**9),
    text=texts,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(events, max_size=30), st.sampled_from(["story", "all"]))
def test_whatever_a_trace_holds_its_picture_can_be_read(gaps: Sequence[Event], detail: str) -> None:
    now, trace = 0, []
    for event in gaps:
        now += event.time**2 // 1_000_000  # from nothing to hours
        trace.append(event._replace(time=now))
    assert troubles(draw(trace, detail=detail, title="Anything may happen, " * 8)) == []
    assert describe(trace)


def test_rows_of_one_instant_lie_below_each_other_in_the_order_of_the_trace() -> None:
    trace = Script().note("agent", "note", text="first").note("agent", "note", text="second").trace
    words = words_of(draw(trace))
    first, second = (
        next(box for name, box in words.items() if name.endswith(word))
        for word in ("first", "second")
    )
    assert first.y0 >= second.y1  # pixels count from below


def test_a_gap_in_time_is_marked_with_its_length_and_true_times_stand_at_the_rows() -> None:
    said = [name.partition(": ")[2] for name in words_of(draw(zombie()))]
    assert "+ 30 s" in said
    assert "+ 1 h" in said
    assert "0.000 s" in said
    assert "1:00:40 h" in said


def test_the_legend_explains_the_marks_that_occur_and_no_others() -> None:
    said = [name.partition(": ")[2] for name in words_of(draw(lost_answer()))]
    assert {"what we broke", "lost on the way", "stopped waiting", "time passes"} <= set(said)
    assert not {"process dies", "process stands still"} & set(said)


def test_letters_that_the_font_lacks_are_seen_to_be_missing() -> None:
    trace = (
        Script().note("customer", "submit", "intent-1", text="\u4f60\u597d\tSch\u00f6n \x07").trace
    )
    said = [name.partition(": ")[2] for name in words_of(draw(trace, title="\u597d"))]
    assert "“□□ Schön □”" in said
    assert "□" in said


def test_words_without_end_are_wrapped_or_cut_with_an_ellipsis() -> None:
    long = "W" * 200
    script = Script().note("agent", "fault", "x", text=long).ask("i").pay("a").tell("d", long, "b")
    script.send("agent", "backend-1", long, long, lost=True).note("a-process-with-a-long-name", "x")
    script.note("provider", "lost", message=1, text=long).note("agent", "task", text=long)
    figure = draw(script.trace, title=long, intents={"i": long, "a": long, "b": long})
    assert troubles(figure) == []
    assert any(name.endswith("W…") for name in words_of(figure))


def test_an_empty_history_is_drawn_too() -> None:
    figure = draw([])
    assert troubles(figure) == []
    assert figure.caption == "Nothing happens. The history is empty."


def test_a_figure_of_eighty_events_takes_less_than_seven_tenths_of_a_second() -> None:
    script = Script()
    while len(script.trace) < 80:
        number = len(script.trace)
        script.ask().send("agent", "backend-1", "tool.issue_refund", f"call-1: refund {number}")
        script.note("backend-1", "commit", "begin", peer="database")
        script.send("backend-1", "provider", "provider.refund", "$500.00, no key").pay().tell()
        script.note("worker-1", "timeout", "x", text="after 2 s").wait(2)
    took = []
    for _ in range(4):
        start = time.process_time()
        png(draw(script.trace))
        took.append(time.process_time() - start)
    assert min(took) < 0.7


def test_equal_traces_give_equal_bytes_in_this_process() -> None:
    assert png(draw(takeover())) == png(draw(takeover()))


def test_equal_traces_give_equal_bytes_whatever_the_hash_seed() -> None:
    program = (
        "import hashlib; from simulator import Scenario, designs, faults, replay;"
        "from simulator.experiments.style import png;"
        "run = replay(designs.SAFE, Scenario.double_click(), [faults.crash('provider.refund')]);"
        "print(hashlib.sha256(png(run.timeline())).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


# In words ---------------------------------------------------------------------------------


def test_the_description_tells_the_thousand_dollar_refund() -> None:
    assert describe(lost_answer()) == (
        f"The customer asks: “{ASK}” "
        "What we broke: answer lost (provider.refund of backend-1). "
        "Backend-1 waits in vain once for provider.refund and sends provider.refund twice in all. "
        "The provider pays: $500.00 at 0.100 s and again at 2.100 s, "
        "$1,000.00 in all for one intent. "
        f"The last word to the customer, at 2.200 s, is “{PAID}”"
    )


def test_the_description_tells_of_death_records_and_humans() -> None:
    told = describe(takeover())
    assert "Worker-1 dies and starts again." in told
    assert "pays once: $500.00" in told
    assert "it answers once from its record and moves nothing" in told
    told = describe(zombie())
    assert "Worker-1 stands still for a while." in told
    assert told.endswith("1 question waits for a human.")


def test_the_description_does_not_blame_two_honest_refunds() -> None:
    told = describe(Script().ask().pay("intent-1").pay("intent-2", 200_00).trace)
    assert "$500.00 at 0.000 s; for another intent $200.00 at 0.000 s" in told
    assert "again" not in told
    assert "The customer hears nothing" in told


@pytest.mark.parametrize("design", designs.LADDER, ids=lambda design: design.name)
def test_a_description_has_two_to_five_sentences(design: designs.Design) -> None:
    for plan in ([], [faults.lose_response("provider.refund")], [faults.crash("provider.refund")]):
        told = describe(replay(design, faults=plan).trace)
        quoted_as_one = re.sub(r"“[^”]*”", "Q.", told)
        assert 2 <= len(re.findall(r"\.(?= |$)", quoted_as_one)) <= 5


def test_the_picture_carries_its_description() -> None:
    assert draw(takeover()).caption == describe(takeover())


def test_words_need_no_matplotlib() -> None:
    program = (
        "import sys; from simulator import designs, replay; run = replay(designs.NAIVE);"
        "run.describe(); str(run); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert done.stdout == "False\n"


# Money that nobody asked us for.


def test_money_that_went_without_us_says_why_and_is_nobodys_second_refund() -> None:
    run = replay(designs.SAFE, Scenario.cancelled_meanwhile())
    paid = the(arrange(run.trace), "effect")
    assert (paid.text, paid.small) == ("$7,500 paid", "cancellation")
    assert "PAYS $7,500.00: ORD-7001, cancellation" in run.text
    assert "The provider pays nothing that we asked for. Without us it pays $7,500.00 at 60" in (
        run.describe()
    )

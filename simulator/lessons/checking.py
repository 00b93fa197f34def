"""Checking an exercise: not attempted, right, wrong, or raised; and saying so helpfully.

A function is checked by property: Hypothesis looks for the smallest input on which it differs
from the reference, the same one every time. A policy is put into a design and explored: the
history with the fewest faults that breaks something is drawn. Whatever the student's code
does, the answer is a card of sentences; our own traceback is never what a student meets first.

"Elaborated" feedback (what was expected, and why) teaches about ten times as much as right or
wrong alone (Van der Kleij 2015), hence the number of words in a "wrong".
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import io
import linecache
import math
import random
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simulator import explore
from simulator.experiments.words import counted
from simulator.lessons import course, hints
from simulator.lessons.cards import Card, at_once, code, in_notebook
from simulator.lessons.limit import TooLong, limit
from simulator.lessons.logbook import folder, load, record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simulator.experiments.run import Run

__all__ = ["SECONDS", "Outcome", "check"]

SECONDS = 1.0
"""Time for one call of a student's function. What is slower than that goes round in circles."""

ALL_SECONDS = 10.0
"""Time for everything that a check runs. Exercises are made to need a fraction of a second; this
much is for busy machines, on which the same answer must meet the same words."""

FICKLE = (
    "It gave one answer and then, for the very same input, another. An answer must not depend on "
    "chance, on the clock or on earlier calls: keep nothing outside the function."
)

EXAMPLES = 150
"""Inputs that Hypothesis tries before an answer counts as right."""


@dataclass(frozen=True, repr=False)
class Outcome(Card):
    """The card of a check.

    Attributes:
        run: the history that shows what went wrong, where there is one.
        error: what the student's code raised, for `raise outcome.error`.
    """

    run: Run | None = None
    error: BaseException | None = field(default=None, compare=False)


@at_once
def check(name: object, answer: Any) -> Outcome:
    """Check an answer to an exercise, and show what came of it.

    Args:
        name: the exercise, as the lesson calls it, in quotes.
        answer: the student's function, table or policy; itself, not what it returns.

    Returns:
        A card; its `kind` is "not attempted", "right", "wrong" or "raised", the last also where
        the course has no such exercise.
    """
    if not isinstance(name, str):
        meant = answer if isinstance(answer, str) else getattr(name, "__name__", "the_exercise")
        return Outcome(
            "raised",
            "Give the name first, in quotes",
            (f'Like this: `check("{meant}", {meant})`.',),
        )
    try:
        exercise = course.exercise(name)
    except course.UnknownNameError as error:
        return Outcome("raised", str(error))
    if answer is ... or answer is None:
        outcome = _not_attempted(exercise)
    elif isinstance(exercise, course.SortExercise):
        outcome = _check_sorted(exercise, answer)
    elif isinstance(exercise, course.FunctionExercise):
        outcome = _check_function(exercise, answer)
    elif isinstance(exercise, course.MeasuredExercise):
        outcome = _check_measured(exercise, answer)
    else:
        outcome = _check_policy(exercise, answer)
    if outcome.kind != "not attempted" and load()["exercises"].get(name) != "right":
        record("exercises", name, outcome.kind)
    return outcome


# ------------------------------------------------------------------------- the four outcomes


def _not_attempted(exercise: course.Exercise) -> Outcome:
    return Outcome(
        "not attempted",
        f"Not attempted yet: {exercise.name}",
        (
            f"It should {exercise.task}.",
            "Put your answer in place of the three dots and run the cell again. "
            + hints.left(exercise.name),
        ),
    )


def _right(exercise: course.Exercise, text: str) -> Outcome:
    return Outcome("right", f"Right: {exercise.name}", (text,))


def _wrong(
    exercise: course.Exercise,
    *paragraphs: str,
    run: Run | None = None,
    figure: Figure | None = None,
) -> Outcome:
    told = [text for text in (*paragraphs, hints.left(exercise.name)) if text]
    if run is not None:
        told.append("A history in which this happens:")
    return Outcome("wrong", f"Not yet: {exercise.name}", tuple(told), figure, run)


def _raised(
    exercise: course.Exercise, called: str, error: BaseException, answer: Any, printed: str = ""
) -> Outcome:
    """The student's own line and the error's own words, in a sentence."""
    if isinstance(error, TooLong):
        return _wrong(
            exercise,
            f"I called {called}",
            "It did not come to an end, so after a moment I stopped it. Is there a loop that goes "
            "on for ever, or a function that calls itself?",
            _printed(printed),
        )
    if isinstance(error, RecursionError):
        stopped = (
            f"{_place(error, answer)} called itself again and again until Python gave up. Where "
            "does it stop calling itself?"
        )
    else:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        said = code(said) if set("*`") & set(said) else f"**{said}**"
        stopped = f"{_place(error, answer)} stopped with {said}."
    return Outcome(
        "raised",
        f"Your code stopped with an error: {exercise.name}",
        (
            f"I called {called}",
            stopped,
            *_meaning(exercise, error),
            *([_printed(printed)] if printed else []),
            hints.left(exercise.name),
        ),
        error=error,
    )


def _meaning(exercise: course.Exercise, error: BaseException) -> tuple[str, ...]:
    """What this error means in this exercise, where it has words for it."""
    words = exercise.raised if isinstance(exercise, course.FunctionExercise) else {}
    return tuple(says for name, says in words.items() if name == type(error).__name__)


def _place(error: BaseException, answer: Any) -> str:
    """Where the student's code stopped: the last frame that lies in the student's own file."""
    own = getattr(getattr(answer, "__code__", None), "co_filename", None)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == own:
            line = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
            shown = f", {code(line)}," if line else ""
            return f"Line {frame.lineno} of your cell{shown}"
    return "It"


def _printed(text: str) -> str:
    """What the student's function printed, which is not shown by itself."""
    return f"(Your function printed: {shown})" if (shown := _one_line(text)) else ""


def _one_line(text: str) -> str:
    """What was printed as a piece of code, its lines parted by strokes; "" if it is blank."""
    shown = " / ".join(line.strip() for line in text.split("\n") if line.strip())
    return shown and code(shown if len(shown) <= 300 else shown[:297] + "…")


# ---------------------------------------------------------------------------- telling stubs


def _empty() -> None: ...


def _documented() -> None:
    """A function with a docstring only compiles to the same as one without."""


def _is_empty(answer: Any) -> bool:
    """Whether a function has no body yet but a docstring, `pass` or three dots.

    `return None` looks the same from here, and is no answer to any exercise on functions. It is
    one to some on policies, whose stubs therefore return three dots.
    """
    code = getattr(answer, "__code__", None)
    if code is None:
        return False
    empty = {_empty.__code__.co_code, _documented.__code__.co_code}
    return code.co_code in empty and all(
        value is None or value == answer.__doc__ for value in code.co_consts
    )


# -------------------------------------------------------------------------------- functions


@dataclass
class _Trial:
    """All calls of one check, with what came back."""

    exercise: course.FunctionExercise
    function: Callable[..., Any]
    calls: list[tuple[tuple[Any, ...], Any]] = field(default_factory=list)
    running: tuple[Any, ...] | None = None
    failing: tuple[Any, ...] | None = None
    got: Any = None
    error: BaseException | None = None
    printed: str = ""
    changed: str = ""
    end: float = field(default_factory=lambda: time.monotonic() + ALL_SECONDS)

    def fails(self, arguments: tuple[Any, ...]) -> bool:
        """Call the student's function; remember a failure. The last one kept is the smallest."""
        got: Any = None
        error: BaseException | None = None
        if time.monotonic() > self.end:
            raise TooLong
        self.running = arguments
        # Copies: a function that changes its arguments changes nobody else's.
        mine = copy.deepcopy(arguments)
        # What is printed, hundreds of times, is not shown: only what the failing call printed.
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), limit(SECONDS):
                got = self.function(*mine)
        except (Exception, SystemExit) as raised:
            error = raised
        except TooLong:
            self.printed = printed.getvalue()
            raise
        self.running = None
        self.changed = self.changed or self.changed_in(arguments, mine)
        if error is None:
            self.calls.append((arguments, got))
            if self.exercise.accepts(got) and self.exercise.same(
                got, self.exercise.reference(*copy.deepcopy(arguments))
            ):
                return False
        self.failing, self.got, self.error = arguments, got, error
        self.printed = printed.getvalue()
        return True

    def changed_in(self, arguments: tuple[Any, ...], mine: tuple[Any, ...]) -> str:
        """The name of a list, dict or set among the arguments that the call has changed."""
        names = list(inspect.signature(self.exercise.reference).parameters)
        for name, before, after in zip(names, arguments, mine, strict=False):
            # What does not equal its own copy can't be compared.
            with suppress(Exception):
                comparable = isinstance(before, list | dict | set)
                if comparable and before == copy.deepcopy(before) and before != after:
                    return name
        return ""

    def contradicts(self) -> bool:
        """Whether the first input, or the one that failed, gets another answer by now."""
        before = self.calls[:1]
        if self.failing is not None and self.error is None:
            before.append((self.failing, self.got))
        for arguments, got in before:
            with (
                suppress(Exception, SystemExit, TooLong),
                redirect_stdout(io.StringIO()),
                limit(SECONDS),
            ):
                again = self.function(*copy.deepcopy(arguments))
                if self.exercise.accepts(got) and not self.exercise.same(again, got):
                    return True
        return False


def _check_function(exercise: course.FunctionExercise, answer: Any) -> Outcome:
    if not callable(answer):
        return _wrong(
            exercise,
            f"I was given {_short(answer)}, a value. Give me the function itself: "
            f'`check("{exercise.name}", {exercise.name})`, with no parentheses after its name.',
        )
    misfit = _misfit(exercise, answer)
    if misfit is not None:
        return misfit
    if _is_empty(answer):
        return _not_attempted(exercise)
    trial = _Trial(exercise, answer)
    search = _searcher(exercise)
    fickle = False
    try:
        for arguments in exercise.examples:
            trial.fails(arguments)
        if trial.calls and all(got is ... for _, got in trial.calls):
            return _not_attempted(exercise)
        fickle = search(trial.fails)
    except TooLong as error:
        if trial.failing is None and trial.running is not None:
            called = _call(answer, trial.running)
            return _raised(exercise, called, error, answer, trial.printed)
    if trial.failing is None and not trial.contradicts():
        right = (
            "It did what it should on every input I tried, the small, the empty and the odd ones "
            "among them."
        )
        if trial.changed:
            right += (
                f" One thing to know: it also changes `{trial.changed}`, which belongs to whoever "
                "called. That is a side effect: a second call with the same list or dict may give "
                "something else."
            )
        return _right(exercise, right)
    failing = trial.failing if trial.failing is not None else trial.calls[0][0]
    if fickle or trial.failing is None:
        return _wrong(exercise, f"I called {_call(answer, failing)}", FICKLE)
    if trial.error is not None:
        return _raised(exercise, _call(answer, failing), trial.error, answer, trial.printed)
    return _explain(trial)


def _misfit(exercise: course.FunctionExercise, answer: Callable[..., Any]) -> Outcome | None:
    arguments = exercise.examples[0]
    names = list(inspect.signature(exercise.reference).parameters)
    try:
        signature = inspect.signature(answer)
    except ValueError:  # a function written in C, without a signature
        return None
    given = list(signature.parameters)
    wanted = ", ".join(names)
    is_given = (
        f"it should be `{exercise.name}({wanted})`, and is {code(exercise.name + str(signature))}."
    )
    try:
        signature.bind(*arguments)
    except TypeError:
        return _wrong(exercise, f"Your function does not take what I give it: {is_given}")
    if given != names and sorted(given) == sorted(names):
        return _wrong(exercise, f"Your function's parameters are in another order: {is_given}")
    return None


def _searcher(exercise: course.FunctionExercise) -> Callable[[Callable[..., bool]], bool]:
    """The search for the smallest failing input; it returns whether answers contradicted.

    What takes long the first time (the import) is done here, outside the time for calls.
    """
    import hypothesis
    from hypothesis.configuration import set_hypothesis_home_dir
    from hypothesis.errors import Flaky, NoSuchExample

    if in_notebook():  # else a folder .hypothesis appears among the student's lessons
        set_hypothesis_home_dir(folder() / "hypothesis")
    settings = hypothesis.settings(
        database=None,
        deadline=None,  # the check as a whole has one
        max_examples=EXAMPLES,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    arguments = exercise.arguments()

    def search(fails: Callable[..., bool]) -> bool:
        try:
            # The same seed every time: the same mistake meets the same words.
            hypothesis.find(arguments, fails, settings=settings, random=random.Random(1611))
        except NoSuchExample:
            pass
        except Flaky:
            return True
        return False

    return search


def _explain(trial: _Trial) -> Outcome:
    exercise = trial.exercise
    arguments, got = trial.failing, trial.got
    assert arguments is not None
    expected = exercise.reference(*copy.deepcopy(arguments))
    run = exercise.history(*copy.deepcopy(arguments))
    only_printed = _only_printed(trial)
    return _wrong(
        exercise,
        f"I called {_call(trial.function, arguments)}",
        f"It returned {_short(got)}; expected {_short(expected)}. "
        f"{exercise.because(*copy.deepcopy(arguments))}",
        only_printed
        or (FICKLE if trial.contradicts() else "")
        or _known_mistake(trial)
        or _strange(exercise, got),
        "" if only_printed else _printed(trial.printed),
        f"Why it costs money: {exercise.costs}",
        run=run,
        figure=run.timeline() if run is not None else None,
    )


def _only_printed(trial: _Trial) -> str:
    """Words for a function that prints its answer and returns nothing."""
    shown = _one_line(trial.printed)
    if not shown or any(got is not None for _, got in trial.calls):
        return ""
    return (
        f"Your function **printed** {shown} and returned nothing. `print` shows a value to you; "
        "`return` hands it to whoever called."
    )


def _strange(exercise: course.FunctionExercise, got: Any) -> str:
    """Words for a value that is not even of the right kind."""
    if got is None:
        return "Nothing came back: is there a `return` on every way through your function?"
    if got is ...:
        return "For this input the three dots are still what comes back."
    if inspect.isgenerator(got) or inspect.iscoroutine(got):
        return "What came back is a generator: this exercise wants `return`, not `yield`."
    if not exercise.accepts(got):
        return f"It should be {exercise.returns}, and this is of type `{type(got).__name__}`."
    return ""


def _known_mistake(trial: _Trial) -> str:
    """The words for a mistake that people make, when the answer behaves just like it."""
    for mistake in trial.exercise.mistakes:
        with suppress(Exception):
            if all(
                trial.exercise.same(got, mistake.like(*copy.deepcopy(arguments)))
                for arguments, got in trial.calls
            ):
                return mistake.says
    return ""


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    name = getattr(function, "__name__", "your function")
    shown = [_text(value) for value in arguments]
    with suppress(ValueError, TypeError):  # a function written in C has no names to show
        bound = inspect.signature(function).bind(*shown)
        shown = [f"{parameter}={value}" for parameter, value in bound.arguments.items()]
    return f"{code(name + '(' + ', '.join(shown) + ')')}."


def _short(value: Any) -> str:
    """A value as Python writes it, as a piece of code, and not too long."""
    return code(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        value = float(f"{value:.6g}")
    text = repr(value)
    if " at 0x" in text:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 300 else text[:297] + "…"


# ---------------------------------------------------------------------------------- sorting


def _check_sorted(exercise: course.SortExercise, answer: Any) -> Outcome:
    if not isinstance(answer, Mapping):
        return _wrong(exercise, f"I expected a dict from item to group, and got {_short(answer)}.")
    given = {item: answer.get(item, ...) for item in exercise.right}
    if all(group is ... for group in given.values()):
        return _not_attempted(exercise)
    for item, group in given.items():
        right = exercise.right[item]
        if group == right:
            continue
        if group is ...:
            return _wrong(exercise, f"`{item}` is not sorted yet.")
        if group not in exercise.groups:
            groups = " or ".join(f'"{name}"' for name in exercise.groups)
            return _wrong(exercise, f"`{item}` is {_short(group)}; it must be {groups}.")
        return _wrong(
            exercise,
            f'You sorted `{item}` as "{group}"; expected "{right}". {exercise.because[item]}',
            exercise.mistakes.get((item, group), ""),
            f"Why it costs money: {exercise.costs}",
        )
    return _right(exercise, f"All {len(given)} are where they belong.")


# ------------------------------------------------------------------------------- measuring


def _check_measured(exercise: course.MeasuredExercise, answer: Any) -> Outcome:
    printed = io.StringIO()
    try:
        with redirect_stdout(printed), limit(ALL_SECONDS):
            found = exercise.judge(answer)
    except (TooLong, Exception) as error:
        called = f"your answer, {_short(answer)}."
        return _raised(exercise, called, error, answer, printed.getvalue())
    if found is None:
        return _not_attempted(exercise)
    if found.right:
        right = _right(exercise, " ".join(found.sentences))
        return dataclasses.replace(right, figure=found.figure)
    costs = f"Why it costs money: {exercise.costs}"
    told = (*found.sentences, _printed(printed.getvalue()), costs)
    return _wrong(exercise, *told, figure=found.figure)


# --------------------------------------------------------------------------------- policies


def _check_policy(exercise: course.PolicyExercise, answer: Any) -> Outcome:
    from simulator.service.design import PolicyMistake
    from simulator.world.mistakes import Mistake

    called = "your policy, in a design of your own."
    tried = 0
    broken: Run | None = None
    try:
        with redirect_stdout(io.StringIO()), limit(SECONDS):
            if callable(answer) and exercise.probe and answer(*exercise.probe) is ...:
                return _not_attempted(exercise)
        with redirect_stdout(io.StringIO()), limit(ALL_SECONDS):
            design = exercise.design(answer)
            for scenario in exercise.scenarios():
                found = explore(
                    design, scenario, max_faults=exercise.max_faults, kinds=exercise.kinds
                )
                tried += found.schedules
                if (broken := found.counterexample) is not None:
                    break
    except (PolicyMistake, Mistake) as error:
        if error.__cause__ is not None:
            return _raised(exercise, called, error.__cause__, answer)
        return _wrong(exercise, str(error))
    except (TooLong, Exception) as error:  # from the probe, or a design that makes no sense
        return _raised(exercise, called, error, answer)
    if broken is not None:
        return _explain_run(exercise, broken, tried)
    return _right(
        exercise,
        f"Nothing breaks in {tried:,} histories: that is every one with up to "
        f"{counted(exercise.max_faults, 'fault')}.",
    )


def _explain_run(exercise: course.PolicyExercise, run: Run, tried: int) -> Outcome:
    broken = [name for name in exercise.costs if name in run.verdict]
    count = len(run.faults)
    faults = counted(count, "fault") if count else "no fault at all"
    return _wrong(
        exercise,
        f"I put your policy into a design and tried its histories one by one. Number {tried:,}, "
        f"with {faults}, breaks: **{run.verdict}**.",
        run.describe(),
        *(f"Why it costs money: {exercise.costs[name]}" for name in broken[:1]),
        run=run,
        figure=run.timeline(),
    )

"""What a lesson asks, as data: predictions, questions, exercises, each with its words.

A lesson's module, `simulator/lessons/lesson_NN.py`, holds one `Lesson` named `LESSON`. The
notebooks name its parts (`check("overpaid", overpaid)`), so that a student reads no answer
before giving one, and so that the words are reviewed and tested in one place. Names are
unique in the whole course.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import simulator.lessons

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from simulator import Scenario
    from simulator.experiments.run import Run
    from simulator.experiments.style import CourseFigure
    from simulator.service.design import Design

__all__ = [
    "Choice",
    "Exercise",
    "FunctionExercise",
    "Judgement",
    "Lesson",
    "MeasuredExercise",
    "Mistake",
    "Number",
    "Option",
    "PolicyExercise",
    "Question",
    "SortExercise",
    "UnknownNameError",
    "exercise",
    "lesson_of",
    "lessons",
    "prediction",
    "question",
]


Part = TypeVar("Part")


class UnknownNameError(LookupError):
    """No part of the course has this name; the message is a sentence that says which do."""


@dataclass(frozen=True)
class Option:
    """One answer to choose: its words, what is said of it afterwards, the value it stands for.

    A prediction's option with a `value` is the right one when the run gives that value.
    """

    text: str
    says: str = ""
    value: Any = None


@dataclass(frozen=True)
class Choice:
    """A prediction by choice; the options are named by letters from a."""

    name: str
    asks: str
    options: Mapping[str, Option]


@dataclass(frozen=True)
class Number:
    """A prediction by number, between `low` and `high`, in `unit` (written after it).

    It is called close within the share `close` of the true value, or within `slack`. `actual`
    is the true value where no run of the lesson gives it.
    """

    name: str
    asks: str
    unit: str
    low: float
    high: float
    says: str = ""
    close: float = 0.2
    slack: float = 0.0
    actual: float | None = None


@dataclass(frozen=True)
class Question:
    """A question about the lesson before; every option says why it is right or wrong."""

    name: str
    asks: str
    options: Mapping[str, Option]
    right: str


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people give: a function that makes it, and the words meant for it."""

    like: Callable[..., Any]
    says: str


@dataclass(frozen=True)
class FunctionExercise:
    """A pure function, checked by property against a reference.

    Attributes:
        task: what the function does, as the end of "It should …".
        arguments: strategy for the tuples of positional arguments; simplest values first.
        examples: tuples that are always tried, chosen to tell the mistakes apart.
        reference: the right function.
        returns: the kind of value, in words ("a whole number of cents").
        accepts: whether a value is of that kind at all.
        same: whether two values of that kind are the same answer.
        costs: why a wrong answer costs money.
        because: why the reference gives what it gives, for these arguments.
        raised: name of an error that people run into -> what it means here.
        history: a history that shows where such arguments come from, or None.
    """

    name: str
    task: str
    arguments: Callable[[], SearchStrategy[tuple[Any, ...]]]
    examples: Sequence[tuple[Any, ...]]
    reference: Callable[..., Any]
    returns: str
    accepts: Callable[[Any], bool]
    costs: str
    because: Callable[..., str]
    mistakes: Sequence[Mistake]
    hints: tuple[str, str, str]
    minutes: float = 5.0
    same: Callable[[Any, Any], bool] = lambda got, expected: bool(got == expected)
    raised: Mapping[str, str] = field(default_factory=dict)
    history: Callable[..., Run | None] = lambda *arguments: None


@dataclass(frozen=True)
class SortExercise:
    """Items to be put into groups: a dict from item to group.

    Attributes:
        groups: the names of the groups.
        right: item -> its group.
        because: item -> why it belongs there.
        mistakes: (item, wrong group) -> words for this one confusion.
        costs: why a wrong answer costs money.
    """

    name: str
    task: str
    groups: Sequence[str]
    right: Mapping[str, str]
    because: Mapping[str, str]
    costs: str
    hints: tuple[str, str, str]
    mistakes: Mapping[tuple[str, str], str]
    minutes: float = 3.0


@dataclass(frozen=True)
class PolicyExercise:
    """A policy, put into a design of the student's own and explored.

    Attributes:
        design: the student's policy -> the design that has it.
        scenarios: the scenarios that are explored, simplest first; a function, to be lazy.
        max_faults: how many faults a history may have.
        kinds: kinds of fault that are tried; None for all.
        costs: invariant -> why breaking it costs money.
        probe: what to call the policy with to see whether it was attempted.
    """

    name: str
    task: str
    design: Callable[[Any], Design]
    scenarios: Callable[[], Sequence[Scenario]]
    max_faults: int
    costs: Mapping[str, str]
    hints: tuple[str, str, str]
    probe: tuple[Any, ...] = ()
    kinds: tuple[str, ...] | None = None
    minutes: float = 10.0


@dataclass(frozen=True)
class Judgement:
    """What came of trying an answer out: right or not, in sentences, perhaps with a picture."""

    right: bool
    sentences: tuple[str, ...]
    figure: CourseFigure | None = None


@dataclass(frozen=True)
class MeasuredExercise:
    """An answer that is tried out and measured: a storm is run with it, a function called.

    Attributes:
        judge: the answer -> what came of it, or None if nothing was tried yet. What it raises
            was raised by the student's part.
        costs: why a wrong answer costs money.
    """

    name: str
    task: str
    judge: Callable[[Any], Judgement | None]
    costs: str
    hints: tuple[str, str, str]
    minutes: float = 10.0


Exercise = FunctionExercise | SortExercise | PolicyExercise | MeasuredExercise


@dataclass(frozen=True)
class Lesson:
    """One lesson: its number ("01"), its name, the file's name and everything it asks."""

    number: str
    name: str
    file: str
    predictions: Sequence[Choice | Number] = ()
    questions: Sequence[Question] = ()
    exercises: Sequence[Exercise] = ()


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons there are, in order."""
    names = sorted(
        module.name
        for module in pkgutil.iter_modules(simulator.lessons.__path__)
        if module.name.startswith("lesson_")
    )
    return tuple(importlib.import_module(f"simulator.lessons.{name}").LESSON for name in names)


def prediction(name: str) -> Choice | Number:
    """The prediction of that name.

    Raises:
        UnknownNameError: there is none.
    """
    return _find(name, "prediction", {part.name: part for x in lessons() for part in x.predictions})


def question(name: str) -> Question:
    """The question of that name.

    Raises:
        UnknownNameError: there is none.
    """
    return _find(name, "question", {part.name: part for x in lessons() for part in x.questions})


def exercise(name: str) -> Exercise:
    """The exercise of that name.

    Raises:
        UnknownNameError: there is none.
    """
    return _find(name, "exercise", {part.name: part for x in lessons() for part in x.exercises})


def lesson_of(name: str) -> Lesson:
    """The lesson that has an exercise of that name.

    Raises:
        UnknownNameError: there is none.
    """
    return _find(name, "exercise", {part.name: x for x in lessons() for part in x.exercises})


def _find(name: object, kind: str, parts: Mapping[str, Part]) -> Part:
    if not isinstance(name, str):
        raise UnknownNameError(
            f"The name of the {kind} comes first, in quotes: {min(parts)!r} for example."
        )
    if name in parts:
        return parts[name]
    near = difflib.get_close_matches(name, parts, n=1)
    known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(parts))}."
    raise UnknownNameError(f"The course has no {kind} called {name!r}; {known}")

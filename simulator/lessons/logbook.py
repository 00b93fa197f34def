"""What a student has done so far: a plain JSON file that never stands in a lesson's way.

The folder is `REFUND_COURSE_PROGRESS` if that is set (tests and builds use folders of their
own), else `.exactly-one-refund` in the home folder. A missing file is an empty one. A damaged
one is kept beside, as `progress.damaged.json`, and a new one is begun. Where nothing can be
written, the lesson goes on and forgets.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from simulator.lessons.cards import Card, at_once
from simulator.lessons.course import Lesson, lessons

__all__ = ["VARIABLE", "folder", "load", "next_lesson", "progress", "record"]

VARIABLE = "REFUND_COURSE_PROGRESS"
DAMAGED = "progress.damaged.json"
SECTIONS = ("predictions", "questions", "exercises")


def folder() -> Path:
    """Where the file is kept."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path.home() / ".exactly-one-refund"


def load() -> dict[str, dict[str, Any]]:
    """What is recorded: section -> name -> value; empty where there is no readable file."""
    empty: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    try:
        path = folder() / "progress.json"
        content = path.read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: no home folder to be found
        return empty
    try:
        found = json.loads(content)
    except ValueError:  # also where it is no text at all
        found = None
    if not isinstance(found, dict):
        with suppress(OSError):
            os.replace(path, path.with_name(DAMAGED))
            print(
                f"Your progress: the file was damaged; it is kept as {DAMAGED}, "
                "and this begins anew."
            )
        return empty
    for section in SECTIONS:
        if isinstance(found.get(section), dict):
            empty[section] = found[section]
    return empty


def record(section: str, name: str, value: Any) -> None:
    """Record one value; the file is replaced in one step, so a reader never sees half of it."""
    known = load()
    known[section][name] = value
    temporary = None
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=place, prefix="progress.", suffix=".part", delete=False, encoding="utf-8"
        ) as file:
            temporary = file.name
            json.dump(known, file, indent=1, sort_keys=True)
        os.replace(temporary, place / "progress.json")
    except (OSError, RuntimeError):
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _right(lesson: Lesson, known: dict[str, dict[str, Any]]) -> int:
    return sum(known["exercises"].get(exercise.name) == "right" for exercise in lesson.exercises)


def next_lesson() -> Lesson:
    """The first lesson with an exercise that is not right yet; the last one if all are."""
    known = load()
    for lesson in lessons():
        if _right(lesson, known) < len(lesson.exercises):
            return lesson
    return lessons()[-1]


@at_once
def progress() -> Card:
    """Show how far one has come, lesson by lesson."""
    known = load()
    rows = []
    for lesson in lessons():
        right, of = _right(lesson, known), len(lesson.exercises)
        predicted = sum(part.name in known["predictions"] for part in lesson.predictions)
        mark = "✓" if right == of else "·"
        rows.append(
            f"{mark} **{lesson.number}** {lesson.name}: {right} of {of} exercises right, "
            f"{predicted} of {len(lesson.predictions)} predictions made"
        )
    return Card("progress", "How far you have come", tuple(rows))

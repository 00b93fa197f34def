"""What every lesson keeps to (style.md): its shape, its length, its parts."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

from simulator.lessons import course
from simulator.lessons.build import sources
from simulator.lessons.minutes import minutes, words
from simulator.lessons.source import Source, read

SOURCES = sources()
LESSONS = [path for path in SOURCES if not path.stem.startswith("00")]


def source_of(path: Path) -> Source:
    return read(path.read_text(encoding="utf-8"), path.name)


def code_of(source: Source) -> list[str]:
    return [cell.code("solution") for cell in source.side("solution") if not cell.markdown]


def prose_of(source: Source) -> str:
    return "\n\n".join(cell.prose() for cell in source.cells if cell.markdown)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_40_to_60_cells_and_1500_to_3000_words(path: Path) -> None:
    source = source_of(path)
    assert 40 <= len(source.side("student")) <= 60
    assert 1500 <= words(source) <= 3000


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_most_code_cells_have_a_line_or_two_and_none_over_30(path: Path) -> None:
    lengths = [len(code.split("\n")) for code in code_of(source_of(path))]
    assert statistics.median(lengths) <= 2
    assert max(lengths) <= 30


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_line_of_code_runs_out_of_the_page(path: Path) -> None:
    assert max(len(line) for code in code_of(source_of(path)) for line in code.split("\n")) <= 90


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_its_parts(path: Path) -> None:
    source = source_of(path)
    prose, code = prose_of(source), "\n".join(code_of(source))
    assert len(re.findall(r"^# ", re.sub(r"```.*?```", "", prose, flags=re.DOTALL), re.M)) == 1
    head = source.cells[0].prose()
    assert "{{minutes}} minutes" in head
    assert "After this lesson you can" in head
    for title in ("## Key points", "## What comes next"):
        assert title in prose
    assert 2 <= len(re.findall(r"^question\(", code, re.M)) <= 3
    predictions = re.findall(r"^predict\.(?:choice|number)\(\"([^\"]+)\"", code, re.M)
    assert len(predictions) >= 3
    revealed = re.findall(r"predict\.reveal\(\"([^\"]+)\"", code)
    assert predictions == [name for name in predictions if name in revealed], "each is revealed"
    assert re.search(r"\*Lesson \d\d\..*section", head, re.DOTALL), "which sections of the source"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_lesson_asks_all_that_its_module_holds_and_nothing_else(path: Path) -> None:
    code = "\n".join(code_of(source_of(path)))
    (lesson,) = [lesson for lesson in course.lessons() if lesson.file == path.stem]
    called = r"^(?:predict\.choice|predict\.number|question|check)\(\"([^\"]+)\""
    parts = (*lesson.predictions, *lesson.questions, *lesson.exercises)
    assert set(re.findall(called, code, re.M)) == {part.name for part in parts}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_predictions_come_before_what_they_predict(path: Path) -> None:
    code = "\n".join(code_of(source_of(path)))
    for name in re.findall(r"predict\.reveal\(\"([^\"]+)\"", code):
        asked = re.search(rf"predict\.(?:choice|number)\(\"{name}\"", code)
        assert asked is not None
        between = code[asked.end() : code.index(f'predict.reveal("{name}"')]
        assert between.count("\n") >= 1


def test_the_minutes_grow_with_words_runs_and_exercises() -> None:
    prose = '# %% [markdown] id=p{0}\n"""\n' + "word " * 1000 + '\n"""\n\n'
    run = "# %% id=r{0}\n1\n\n"
    exercise = '# %% id=e{0}\ncheck("overpaid", 1)\n\n'
    assert minutes(read(run.format(1))) == 5
    assert minutes(read("".join(prose.format(n) for n in range(3)))) == 15
    assert minutes(read("".join(run.format(n) for n in range(60)))) == 15
    assert minutes(read("".join(exercise.format(n) for n in range(2)))) == 10

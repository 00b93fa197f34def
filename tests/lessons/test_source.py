from __future__ import annotations

from pathlib import Path

import pytest

from simulator.lessons.build import sources
from simulator.lessons.source import SourceError, notebook, read, write

TEXT = '''# For the readers of this file.

# %% [markdown] id=title
r"""
# A lesson of {{minutes}} minutes, with \\alpha
"""

# %% id=answer tags=important
def answer(x):
    # --- solution
    return x + 1
    # --- stub
    # return ...  # yours
    #
    # --- end

# %% id=secret only=solution
print(answer(1))
'''


def test_a_source_that_is_read_and_written_is_the_same_text() -> None:
    assert write(read(TEXT)) == TEXT


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.stem)
def test_every_lesson_survives_being_written_and_read(path: Path) -> None:
    # Not equal text: a formatter puts two blank lines before a cell that begins with a `def`.
    source = read(path.read_text(encoding="utf-8"), path.name)
    assert read(write(source)) == source


def test_the_solved_notebook_has_the_solution_and_the_students_the_stub() -> None:
    solved, student = notebook(read(TEXT), "solution"), notebook(read(TEXT), "student")
    assert solved.cells[1].source == "def answer(x):\n    return x + 1"
    assert student.cells[1].source == "def answer(x):\n    return ...  # yours"
    assert [cell.id for cell in solved.cells] == ["title", "answer", "secret"]
    assert [cell.id for cell in student.cells] == ["title", "answer"]
    assert student.cells[1].metadata.tags == ["important"]


def test_prose_is_raw_where_it_says_so_and_its_minutes_are_filled_in() -> None:
    made = notebook(read(TEXT), "student")
    assert made.cells[0].source == "# A lesson of 5 minutes, with \\alpha"


def test_money_in_prose_is_escaped_and_formulas_and_code_are_not() -> None:
    text = '# %% [markdown] id=a\nr"""\n$500 to $1,000 is $p$, `$7`\n```\n$9\n```\n"""'
    money = "<span>\\$</span>"
    made = f"{money}500 to {money}1,000 is $p$, `$7`\n```\n$9\n```"
    assert read(text).cells[0].prose() == made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# %% [raw] id=a\n1", "line 1: '# %% [raw] id=a' is no cell header"),
        ("# %%\n1", "needs an id"),
        ("# %% id=a colour=red\n1", "no option 'colour'"),
        ("# %% id=a only=teacher\n1", "only=teacher"),
        ("# %% id=a\n1\n# %% id=a\n2", "line 3: a second cell has the id 'a'"),
        ("# %% [markdown] id=a\nprose", 'one string in """'),
        ('# %% [markdown] id=a\n""" """', "empty"),
        ("# %% id=a\n# --- stub\n# 1\n# --- end", "'# --- stub' where '# --- solution' must come"),
        ("# %% id=a\n# --- solution\n1\n# --- stub", "ends inside a region"),
        ("# %% id=a\n# --- solution\n1\n# --- stub\n2\n# --- end", "must be comments: '2'"),
    ],
)
def test_a_mistake_in_a_source_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(SourceError, match=r"^lesson, line \d+: ") as caught:
        read(text)
    assert says in str(caught.value)

"""The notebooks that students open: made from their sources, run, compared, and guarded."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode, v4

from simulator.lessons import build, guards, logbook
from simulator.lessons.source import METADATA

SOURCES = build.sources()
IDS = [path.stem for path in SOURCES]


def kernel_environment(folder: Path) -> dict[str, str]:
    """A progress of its own, and another hash seed than the build's: sets print otherwise."""
    return {
        **os.environ,
        logbook.VARIABLE: str(folder),
        "PYTHONHASHSEED": "1611",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def nbval(kind: str, notebook: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run nbval in a process of its own, so that it never meets this suite's settings."""
    command = [sys.executable, "-m", "pytest", kind, "--nbval-current-env"]
    command += ["--nbval-cell-timeout", "60", "-p", "no:cacheprovider", "-q", "--no-header"]
    command += ["-c", os.devnull, "--rootdir", str(notebook.parent), str(notebook)]
    return subprocess.run(
        command,
        env=kernel_environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=notebook.parent,
    )


# --------------------------------------------------------------------- twins of one source


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_the_twins_are_what_the_source_makes(source: Path) -> None:
    assert list(build.differences(source)) == []


def test_a_change_in_a_twin_is_found(tmp_path: Path) -> None:
    for name in ("notebooks", "solutions"):
        (tmp_path / name).mkdir()
        file = f"{SOURCES[0].stem}.ipynb"
        text = (build.ROOT / name / file).read_text(encoding="utf-8")
        (tmp_path / name / file).write_text(text, encoding="utf-8")
    assert list(build.differences(SOURCES[0], tmp_path)) == []
    for name in ("notebooks", "solutions"):
        path = tmp_path / name / f"{SOURCES[0].stem}.ipynb"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("# Start here", "# Start there"), encoding="utf-8")
        (found,) = build.differences(SOURCES[0], tmp_path)
        assert f"{name}/{path.name} is not what" in found.replace(os.sep, "/")
        path.write_text(text, encoding="utf-8")
    path.unlink()
    assert "is missing" in next(build.differences(SOURCES[0], tmp_path))


def test_every_notebook_has_a_source() -> None:
    for folder in ("notebooks", "solutions"):
        there = {path.stem for path in (build.ROOT / folder).glob("*.ipynb")}
        assert there == set(IDS)


def test_building_twice_gives_equal_files() -> None:
    shortest = SOURCES[0]
    there = shortest.with_suffix(".ipynb")
    first, second = build.text(build.execute(shortest)), build.text(build.execute(shortest))
    assert first == second
    # What is stored may come from another version of matplotlib, or from when there were fewer
    # lessons to make progress in: aside from those it is equal.
    assert _comparable(first) == _comparable(there.read_text(encoding="utf-8"))


def _comparable(text: str) -> NotebookNode:
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            cell.outputs = []
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    return notebook


# ------------------------------------------------------------------------------ executing


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_solved_notebook_gives_what_is_stored_in_it(source: Path, tmp_path: Path) -> None:
    ran = nbval("--nbval", source.with_suffix(".ipynb"), tmp_path)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_students_notebook_runs_before_anything_is_answered(source: Path, tmp_path: Path) -> None:
    notebook = build.ROOT / "notebooks" / f"{source.stem}.ipynb"
    ran = nbval("--nbval-lax", notebook, tmp_path)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def test_nbval_finds_an_output_that_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "changed.ipynb"
    cell = v4.new_code_cell("print(6 * 7)", execution_count=1, id="sum")
    cell.outputs = [v4.new_output("stream", name="stdout", text="41\n")]
    nbformat.write(v4.new_notebook(cells=[cell], metadata=METADATA), path)
    ran = nbval("--nbval", path, tmp_path)
    assert ran.returncode == 1, ran.stdout


# -------------------------------------------------------------------------------- guards


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_no_guard_finds_anything(source: Path) -> None:
    solved = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    student = nbformat.read(build.ROOT / "notebooks" / f"{source.stem}.ipynb", as_version=4)
    assert guards.complaints(solved, guards.GUARDS) == []
    assert guards.complaints(student, guards.STUDENT_GUARDS) == []


def good() -> NotebookNode:
    """An executed notebook that no guard minds."""
    cells = [
        v4.new_markdown_cell(
            "# Prose, with input(), <span>\\$</span>5, `$5`, $p$ and a ; at its end;", id="prose"
        ),
        v4.new_code_cell("print(1)", execution_count=1, id="first"),
        v4.new_code_cell("progress()", execution_count=2, id="second"),
        v4.new_code_cell("# NBVAL_IGNORE_OUTPUT\n1", execution_count=3, id="third"),
    ]
    cells[2].metadata.tags = ["nbval-ignore-output"]
    cells[1].outputs = [v4.new_output("stream", name="stdout", text="1\n")]
    return v4.new_notebook(cells=cells, metadata=copy.deepcopy(METADATA))


def _source(text: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[1].update(source=text)


def _text(text: str, name: str = "stdout") -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[1].update(
        outputs=[v4.new_output("stream", name=name, text=text)]
    )


def _shown(*bundles: dict[str, str]) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[1].update(
        outputs=[v4.new_output("display_data", data=bundle) for bundle in bundles]
    )


def _tags(*tags: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[1].metadata.update(tags=list(tags))


PICTURE = {"image/png": "aGVsbG8="}

BREAKS: list[tuple[str, guards.Guard, Callable[[NotebookNode], None]]] = [
    ("not executed", guards.executed, lambda nb: nb.cells[1].update(execution_count=None)),
    ("out of order", guards.executed, lambda nb: nb.cells[1].update(execution_count=7)),
    ("semicolon", guards.semicolons, _source("figure();\n")),
    ("marker with words", guards.markers, _source("# NBVAL_IGNORE_OUTPUT: times differ\n1")),
    ("marker indented", guards.markers, _source("if 1:\n    # NBVAL_IGNORE_OUTPUT\n    1")),
    ("marker mistyped", guards.markers, _source("# NBVAL_IGNORE_OUTPUTS\n1")),
    ("marker after code", guards.markers, _source("1  # NBVAL_IGNORE_OUTPUT")),
    ("tag mistyped", guards.markers, _tags("nbval_ignore_output")),
    ("tag without a raise", guards.raises, _tags("raises-exception")),
    ("marker without a raise", guards.raises, _source("# NBVAL_RAISES_EXCEPTION\n1")),
    ("address", guards.addresses, _text("<object at 0x7f3a2b1c9d00>")),
    ("styler's id", guards.addresses, _shown({"text/html": "<td id='T_9f3ab_row0'>"})),
    ("home folder", guards.machine_paths, _text("saved to /home/mira/out.png")),
    ("installed folder", guards.machine_paths, _text("in site-packages")),
    ("folder on Windows", guards.machine_paths, _text("C:\\Users\\mira")),
    ("kernel's file", guards.machine_paths, _text("File ipykernel_123/1.py")),
    ("warning", guards.warned, _text("UserWarning: deprecated", name="stderr")),
    (
        "widget",
        guards.unstable_outputs,
        _shown({"application/vnd.jupyter.widget-view+json": "{}"}),
    ),
    ("svg", guards.unstable_outputs, _shown({"image/svg+xml": "<svg/>"})),
    ("pyplot", guards.shown_twice, _source("import matplotlib.pyplot as plt\nplt.plot([1])")),
    ("picture twice", guards.shown_twice, _shown(PICTURE, PICTURE)),
    ("figure as text", guards.shown_twice, _shown({"text/plain": "<Figure size 640x480>"})),
    ("input", guards.interaction, _source('name = input("your name? ")')),
    ("clear_output", guards.interaction, _source("clear_output(wait=True)")),
    ("magic", guards.magics, _source("%matplotlib inline")),
    ("shell", guards.magics, _source("!pip install simpy")),
    ("progress compared", guards.state_on_disk, _source("progress()")),
    (
        "money as a formula",
        guards.money,
        lambda nb: nb.cells[0].update(source="From $500 to $1,000, and `$5` in code."),
    ),
    ("other kernel", guards.kernel, lambda nb: nb.metadata.kernelspec.update(name="venv-311")),
]


@pytest.mark.parametrize(("name", "guard", "spoil"), BREAKS, ids=[row[0] for row in BREAKS])
def test_each_guard_turns_red(
    name: str, guard: guards.Guard, spoil: Callable[[NotebookNode], None]
) -> None:
    notebook = good()
    assert guards.complaints(notebook, guards.GUARDS) == []
    spoil(notebook)
    found = guards.complaints(notebook, (guard,))
    assert found, name
    assert guards.complaints(notebook, guards.GUARDS) != []


STUDENT_BREAKS: list[tuple[guards.Guard, Callable[[NotebookNode], None]]] = [
    (guards.clean, lambda nb: nb.cells[1].update(execution_count=1)),
    (guards.clean, _text("left over")),
    (guards.clean, _source("# --- solution\n1")),
    (guards.answered, _source('predict.choice("our-books", "c")')),
    (guards.answered, _source('predict.number("rate", 10)')),
    (guards.answered, _source('question("who-runs-a-tool", "b")')),
]


@pytest.mark.parametrize(("guard", "spoil"), STUDENT_BREAKS)
def test_each_guard_of_a_students_notebook_turns_red(
    guard: guards.Guard, spoil: Callable[[NotebookNode], None]
) -> None:
    notebook = good()
    for cell in notebook.cells[1:]:
        cell.update(outputs=[], execution_count=None)
    assert guards.complaints(notebook, guards.STUDENT_GUARDS) == []
    spoil(notebook)
    assert guards.complaints(notebook, (guard,)) != []


def test_every_guard_is_turned_red_by_something() -> None:
    spoiled = {guard for _, guard, _ in BREAKS} | {guard for guard, _ in STUDENT_BREAKS}
    assert spoiled == {*guards.GUARDS, *guards.STUDENT_GUARDS}


# --------------------------------------------------------------------------------- build


def test_the_build_refuses_a_notebook_that_a_guard_minds(tmp_path: Path) -> None:
    source = tmp_path / "01_bad.py"
    source.write_text("# %% id=address\nprint(object())\n", encoding="utf-8")
    with pytest.raises(build.BuildError, match="addresses: cell address"):
        build.execute(source)


def test_the_build_names_the_lessons_there_are_when_one_is_not_found() -> None:
    with pytest.raises(build.BuildError, match="There is no lesson '77'; there are 00_start_here"):
        build.sources(["77"])


def test_the_build_says_which_cell_failed(tmp_path: Path) -> None:
    source = tmp_path / "01_bad.py"
    source.write_text("# %% id=divide\n1 / 0\n", encoding="utf-8")
    with pytest.raises(build.BuildError, match=r"(?s)01_bad\.py: .*ZeroDivisionError"):
        build.execute(source)

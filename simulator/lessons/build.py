"""Make the notebooks: `python -m simulator.lessons.build [NAME …] [--check]`.

Each `solutions/NN_name.py` becomes `solutions/NN_name.ipynb`, solved and executed, and
`notebooks/NN_name.ipynb`, with stubs and without outputs. Building twice gives equal files.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

from simulator.lessons import guards, logbook, source

__all__ = [
    "PICTURES",
    "ROOT",
    "differences",
    "execute",
    "main",
    "picture",
    "sources",
    "student",
    "text",
]

ROOT = Path(__file__).resolve().parents[2]
"""The project's folder: the course is installed in place, beside its notebooks."""

PICTURES = {
    "01_the_thousand_dollar_refund": "lost-show",
    "02_five_ways_a_tool_call_fails": "grid",
    "09_backoff_and_jitter": "seven-show",
}
"""Lessons that the README shows a figure of: the cell that makes it."""

CELL_SECONDS = 60
"""No cell may take longer: nbclient would wait for ever for one that hangs."""


class BuildError(RuntimeError):
    """A lesson can't be built; the message says why."""


def sources(names: Sequence[str] = (), root: Path = ROOT) -> list[Path]:
    """The sources of the lessons that `names` name by number, name or file; all if empty.

    Raises:
        BuildError: a name fits no lesson.
    """
    every = sorted((root / "solutions").glob("[0-9][0-9]_*.py"))
    chosen = []
    for name in names:
        stem = Path(name).stem
        fits = [path for path in every if path.stem == stem or path.stem.split("_")[0] == stem]
        if not fits:
            known = ", ".join(path.stem for path in every)
            raise BuildError(f"There is no lesson {name!r}; there are {known}.")
        chosen += fits
    return chosen if names else every


def text(notebook: NotebookNode) -> str:
    """The file's text: keys sorted, so that equal notebooks are equal files."""
    return str(nbformat.writes(notebook)) + "\n"


def student(path: Path) -> NotebookNode:
    """The student's twin.

    Raises:
        BuildError: a guard found something.
    """
    made = source.notebook(_read(path), "student")
    _guard(path, made, guards.STUDENT_GUARDS)
    return made


def execute(path: Path) -> NotebookNode:
    """The solved twin, executed in a fresh kernel, in its folder, with a progress of its own.

    Raises:
        BuildError: a cell failed or took too long, or a guard found something.
    """
    made = source.notebook(_read(path), "solution")
    client = NotebookClient(
        made,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],  # its warnings are about no lesson
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        with _environment():
            client.execute()
    except CellTimeoutError as error:
        raise BuildError(f"{path.name}: a cell took more than {CELL_SECONDS} s.") from error
    except CellExecutionError as error:
        raise BuildError(f"{path.name}: {error}") from error
    # The kernel writes its Python's version in here; the twins' metadata is fixed.
    made.metadata = nbformat.from_dict(source.METADATA)
    for cell in made.cells:
        cell.metadata.pop("execution", None)
    _guard(path, made, guards.GUARDS)
    return made


def picture(notebook: NotebookNode, cell_id: str) -> bytes:
    """The PNG that the cell with this id shows.

    Raises:
        BuildError: there is no such cell, or it shows no picture.
    """
    for cell in notebook.cells:
        if cell.id == cell_id:
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    return base64.b64decode(output["data"]["image/png"])
    raise BuildError(f"No cell {cell_id!r} shows a picture.")


def differences(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Where the twins on disk are not what the source makes, in sentences.

    Outputs are not looked at here: nbval compares them, by running the cells.
    """
    solved = source.notebook(_read(path), "solution")
    for made, there in (
        (student(path), root / "notebooks" / f"{path.stem}.ipynb"),
        (solved, root / "solutions" / f"{path.stem}.ipynb"),
    ):
        name = there.relative_to(root)
        if not there.exists():
            yield f"{name} is missing"
            continue
        found = nbformat.read(there, as_version=4)
        if made is solved:
            problems = guards.complaints(found, guards.GUARDS)
            yield from (f"{name}: {problem}" for problem in problems)
            for cell in found.cells:
                if cell.cell_type == "code":
                    cell.update(outputs=[], execution_count=None)
        if found != made or (made is not solved and there.read_text("utf-8") != text(made)):
            yield f"{name} is not what {path.name} makes"


def _read(path: Path) -> source.Source:
    try:
        return source.read(path.read_text(encoding="utf-8"), path.name)
    except source.SourceError as error:
        raise BuildError(str(error)) from error


def _guard(path: Path, made: NotebookNode, chosen: tuple[guards.Guard, ...]) -> None:
    problems = guards.complaints(made, chosen)
    if problems:
        raise BuildError("\n  ".join([f"{path.name} would make a bad notebook:", *problems]))


@contextmanager
def _environment() -> Iterator[None]:
    """Variables of the kernel: nobody's progress, this environment's kernel, one hash seed."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = {
            logbook.VARIABLE: folder,
            "JUPYTER_PREFER_ENV_PATH": "1",
            "PYTHONHASHSEED": "0",
        }
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _write(path: Path, content: str) -> bool:
    """Write a file whose content differs; whether it did."""
    if path.exists() and path.read_text(encoding="utf-8") == content:
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return True


@click.command()
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True, help="Compare with the files on disk and write nothing.")
def main(names: tuple[str, ...], check: bool) -> None:
    """Build the lessons NAMES ("01", "01_the_thousand_dollar_refund"), or all of them."""
    wrong = 0
    try:
        for path in sources(names):
            if check:
                found = list(differences(path))
                wrong += len(found)
                click.echo("\n".join(found) or f"{path.stem}: the twins are what the source makes")
                continue
            made = execute(path)
            solved = _write(path.with_suffix(".ipynb"), text(made))
            if path.stem in PICTURES:
                shown = path.parent / "pictures" / f"{path.stem}.png"
                shown.parent.mkdir(exist_ok=True)
                shown.write_bytes(picture(made, PICTURES[path.stem]))
            clean = _write(ROOT / "notebooks" / f"{path.stem}.ipynb", text(student(path)))
            click.echo(f"{path.stem}: {'written' if solved or clean else 'unchanged'}")
    except BuildError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    if wrong:
        click.echo("Run `python3 start.py build` to make them anew.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    door = os.environ.get("REFUND_COURSE_COMMAND")  # start.py says how it is called itself
    main(prog_name=f"{door} build" if door else None)

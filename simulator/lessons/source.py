"""The text from which a lesson's two notebooks are made.

A lesson is one Python file, `solutions/NN_name.py`, in cells:

    # %% [markdown] id=story
    \"\"\"
    Prose, as Markdown.
    \"\"\"

    # %% id=overpaid
    def overpaid(paid, owed):
        # --- solution
        return sum(paid) - owed
        # --- stub
        # return ...  # your answer here
        # --- end

Whatever stands before the first cell is for the readers of the file. A header may add
`tags=a,b` and `only=student` or `only=solution`. The solved notebook keeps what stands under
`solution`; the student's gets what stands under `stub`, with its `# ` taken off. `{{minutes}}`
in prose becomes the minutes that the lesson takes (see `simulator.lessons.minutes`). A dollar sign
before a digit is money: it is escaped, since Jupyter would take two of them for a formula. (A
formula that begins with a digit is written `${}2p$`.)
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Literal

import nbformat
from nbformat import NotebookNode

from simulator.lessons.minutes import minutes

__all__ = ["Cell", "Source", "SourceError", "notebook", "read", "write"]

Side = Literal["student", "solution"]

HEADER = re.compile(r"# %%(?P<markdown> \[markdown\])?(?P<options>( \w+=\S+)*) *")
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
CODE = re.compile(r"(```.*?```|`[^`\n]*`|<span>.{1,2}</span>)|\$(?=\d)", re.DOTALL)
"""Code, in which nothing is escaped (and what is escaped already); or a dollar of money."""

MONEY = r"<span>\$</span>"
"""A dollar that is no formula's: JupyterLab needs the element of its own (it takes the backslash
off before it looks for formulas), other readers of notebooks need the backslash."""

SOLUTION, STUB, END = "# --- solution", "# --- stub", "# --- end"

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}
"""The same in every notebook: a version of Python in here would change with the builder's."""


class SourceError(ValueError):
    """A lesson's source can't be read; the message says where and what to do."""


@dataclass(frozen=True)
class Cell:
    """One cell as it stands in the source; `text` of a markdown cell is its literal."""

    id: str
    markdown: bool
    text: str
    tags: tuple[str, ...] = ()
    only: Side | None = None

    def prose(self) -> str:
        """The Markdown of a markdown cell, its money escaped."""
        text = str(ast.literal_eval(self.text)).strip("\n")
        return CODE.sub(lambda part: part[1] or MONEY, text)

    def code(self, side: Side) -> str:
        """The code of one side: regions resolved, markers gone."""
        lines: list[str] = []
        region = ""
        for line in self.text.split("\n"):
            if (marker := line.strip()) in (SOLUTION, STUB, END):
                region = "" if marker == END else marker
            elif not region or (region == SOLUTION and side == "solution"):
                lines.append(line)
            elif region == STUB and side == "student":
                lines.append(re.sub(r"^(\s*)# ?", r"\1", line, count=1))
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    @property
    def has_solution(self) -> bool:
        """Whether the student's cell differs from the solved one."""
        return not self.markdown and SOLUTION in (line.strip() for line in self.text.split("\n"))


@dataclass(frozen=True)
class Source:
    """A lesson's source: what stands before its cells, and the cells."""

    head: str
    cells: tuple[Cell, ...] = field(default=())

    def side(self, side: Side) -> list[Cell]:
        """The cells that one of the twins has."""
        return [cell for cell in self.cells if cell.only in (None, side)]


def read(text: str, name: str = "lesson") -> Source:
    """Read a source. `name` is what error messages call the file.

    Raises:
        SourceError: a header, a region or a cell of prose is not as this module says.
    """
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    head = "\n".join(lines[: starts[0]] if starts else lines).strip("\n")
    cells: list[Cell] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        where = f"{name}, line {start + 1}"
        cell = _cell(lines[start], "\n".join(lines[start + 1 : end]).strip("\n"), where)
        if any(other.id == cell.id for other in cells):
            raise SourceError(f"{where}: a second cell has the id {cell.id!r}; ids must differ.")
        cells.append(cell)
    return Source(head, tuple(cells))


def _cell(header: str, text: str, where: str) -> Cell:
    match = HEADER.fullmatch(header)
    if match is None:
        raise SourceError(
            f"{where}: {header!r} is no cell header; write `# %% id=name` or "
            "`# %% [markdown] id=name`."
        )
    options = dict(option.split("=", 1) for option in match["options"].split())
    if unknown := sorted(set(options) - {"id", "tags", "only"}):
        raise SourceError(f"{where}: a cell has no option {unknown[0]!r}; use id, tags or only.")
    if CELL_ID.fullmatch(options.get("id", "")) is None:
        raise SourceError(
            f"{where}: a cell needs an id of letters, digits, - and _, for example `id=story`."
        )
    only = options.get("only")
    if only not in (None, "student", "solution"):
        raise SourceError(f"{where}: only={only} is not `only=student` or `only=solution`.")
    tags = tuple(options["tags"].split(",")) if "tags" in options else ()
    cell = Cell(options["id"], bool(match["markdown"]), text, tags, only)  # type: ignore[arg-type]
    (_check_prose if cell.markdown else _check_regions)(cell, where)
    return cell


def _check_prose(cell: Cell, where: str) -> None:
    try:
        prose = ast.literal_eval(cell.text)
    except (SyntaxError, ValueError) as error:
        raise SourceError(
            f'{where}: the prose of cell {cell.id!r} must be one string in """ and nothing else.'
        ) from error
    if not isinstance(prose, str) or not prose.strip():
        raise SourceError(f"{where}: the prose of cell {cell.id!r} is empty or no string.")


def _check_regions(cell: Cell, where: str) -> None:
    expected = SOLUTION
    after = {SOLUTION: STUB, STUB: END, END: SOLUTION}
    for line in cell.text.split("\n"):
        text = line.strip()
        if text.startswith("# ---"):
            if text != expected:
                raise SourceError(
                    f"{where}: cell {cell.id!r} has {text!r} where {expected!r} must come."
                )
            expected = after[expected]
        elif expected == END and text and not text.startswith("#"):
            raise SourceError(f"{where}: the stub in cell {cell.id!r} must be comments: {text!r}.")
    if expected != SOLUTION:
        raise SourceError(f"{where}: cell {cell.id!r} ends inside a region; add {expected!r}.")


def write(source: Source) -> str:
    """The text of a source; `read` of it gives the source back."""
    parts = [source.head] if source.head else []
    for cell in source.cells:
        header = "# %%" + (" [markdown]" if cell.markdown else "") + f" id={cell.id}"
        header += f" tags={','.join(cell.tags)}" if cell.tags else ""
        header += f" only={cell.only}" if cell.only else ""
        parts.append(f"{header}\n{cell.text}")
    return "\n\n".join(parts) + "\n"


def notebook(source: Source, side: Side) -> NotebookNode:
    """One of the twins, not executed: no outputs, no execution counts."""
    length = str(minutes(source))
    cells = []
    for cell in source.side(side):
        metadata = {"tags": list(cell.tags)} if cell.tags else {}
        if cell.markdown:
            text = cell.prose().replace("{{minutes}}", length)
            node = nbformat.v4.new_markdown_cell(text, id=cell.id, metadata=metadata)
        else:
            node = nbformat.v4.new_code_cell(cell.code(side), id=cell.id, metadata=metadata)
        cells.append(node)
    made = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    made.nbformat_minor = 5
    nbformat.validate(made)
    return made  # type: ignore[no-any-return]

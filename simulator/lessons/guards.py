"""What would make a notebook pass nbval although it is wrong, or fail it although it is right.

nbval compares text exactly, compares pictures never, and ignores in silence what it does not
understand. Each function here looks for one of its blind spots and yields sentences; the build
refuses to write a notebook that has any, and a test turns each of them red once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nbformat import NotebookNode

__all__ = ["GUARDS", "STUDENT_GUARDS", "complaints"]

Guard = Callable[[NotebookNode], Iterator[str]]

NBVAL_MARKERS = {
    "# NBVAL_IGNORE_OUTPUT",
    "# NBVAL_CHECK_OUTPUT",
    "# NBVAL_RAISES_EXCEPTION",
    "# NBVAL_SKIP",
}
KNOWN_TAGS = {
    "nbval-ignore-output",
    "nbval-check-output",
    "nbval-raises-exception",
    "nbval-skip",
    "raises-exception",
}


def _code(notebook: NotebookNode) -> Iterator[NotebookNode]:
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip():
            yield cell


def _outputs(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    for cell in _code(notebook):
        for output in cell.get("outputs", []):
            yield cell, output


def _texts(output: NotebookNode) -> Iterator[str]:
    """Everything in an output that a reader sees as text."""
    if "text" in output:
        yield str(output["text"])
    for kind, value in output.get("data", {}).items():
        if not kind.startswith("image/p") and isinstance(value, str):
            yield value
    yield from output.get("traceback", [])


def executed(notebook: NotebookNode) -> Iterator[str]:
    """A cell without an execution count is run by nbval and not compared."""
    for place, cell in enumerate(_code(notebook), start=1):
        if cell.get("execution_count") != place:
            yield f"cell {cell.id}: execution count {cell.get('execution_count')}, not {place}"


def semicolons(notebook: NotebookNode) -> Iterator[str]:
    """A semicolon at the end silences nothing for nbval; write `_ = …`."""
    for cell in _code(notebook):
        if cell.source.rstrip().endswith(";"):
            yield f"cell {cell.id} ends with a semicolon"


def markers(notebook: NotebookNode) -> Iterator[str]:
    """A marker must be the whole line, a tag exactly spelled: others are ignored in silence."""
    for cell in notebook.cells:
        for line in cell.source.split("\n"):
            if re.search(r"#.*nbval", line, re.IGNORECASE) and line not in NBVAL_MARKERS:
                yield f"cell {cell.id}: {line!r} is no marker that nbval knows"
        for tag in cell.metadata.get("tags", []):
            if re.search(r"nbval|rais|skip", tag, re.IGNORECASE) and tag not in KNOWN_TAGS:
                yield f"cell {cell.id}: {tag!r} is no tag that nbval knows"


def raises(notebook: NotebookNode) -> Iterator[str]:
    """A cell that is marked as raising passes when it raises nothing."""
    for cell in _code(notebook):
        marked = {"raises-exception", "nbval-raises-exception"} & set(cell.metadata.get("tags", []))
        marked |= {line for line in cell.source.split("\n") if line == "# NBVAL_RAISES_EXCEPTION"}
        raised = any(output.output_type == "error" for output in cell.get("outputs", []))
        if bool(marked) != raised:
            yield f"cell {cell.id}: marked as raising: {bool(marked)}; raised: {raised}"


def addresses(notebook: NotebookNode) -> Iterator[str]:
    """Addresses in reprs and the ids of pandas' Styler differ in every run."""
    for cell, output in _outputs(notebook):
        for text in _texts(output):
            if found := re.search(r"0x[0-9a-fA-F]{6,}|T_[0-9a-f]{5}(?![0-9a-zA-Z])", text):
                yield f"cell {cell.id}: {found[0]} in an output"


def machine_paths(notebook: NotebookNode) -> Iterator[str]:
    """Folders of the machine that built the notebook."""
    places = r"/(?:tmp|home|root|work|Users|usr|opt|var)/\w|[A-Z]:\\|site-packages|ipykernel_\d"
    for cell, output in _outputs(notebook):
        for text in _texts(output):
            if found := re.search(places, text):
                yield f"cell {cell.id}: {found[0]!r} in an output"


def warned(notebook: NotebookNode) -> Iterator[str]:
    """A warning, or anything else on stderr, changes with versions and folders."""
    for cell, output in _outputs(notebook):
        if output.get("name") == "stderr":
            yield f"cell {cell.id} wrote to stderr: {output['text'][:80]!r}"


def unstable_outputs(notebook: NotebookNode) -> Iterator[str]:
    """Widgets have random ids, SVG random marks; neither compares equal."""
    for cell, output in _outputs(notebook):
        for kind in output.get("data", {}):
            if "widget" in kind or kind == "image/svg+xml":
                yield f"cell {cell.id} has an output of kind {kind}"


def shown_twice(notebook: NotebookNode) -> Iterator[str]:
    """A figure that is returned while open in pyplot shows twice, and nbval passes it."""
    for cell in _code(notebook):
        if re.search(r"\bpyplot\b|\bplt\.", cell.source):
            yield f"cell {cell.id} uses pyplot; build with matplotlib.figure.Figure"
        pictures = [
            output["data"]["image/png"]
            for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})
        ]
        if len(pictures) != len(set(pictures)):
            yield f"cell {cell.id} shows one picture twice"
    for cell, output in _outputs(notebook):
        text = output.get("data", {}).get("text/plain", "")
        if text.startswith("<Figure") and "image/png" not in output["data"]:
            yield f"cell {cell.id} has a figure that shows only as text"


def interaction(notebook: NotebookNode) -> Iterator[str]:
    """`input()` fails, and display updates and `interact` do not compare."""
    for cell in _code(notebook):
        found = re.search(
            r"(?<!\w)(input|getpass|clear_output|update_display|interact)\(", cell.source
        )
        if found:
            yield f"cell {cell.id} calls {found[1]}()"


def magics(notebook: NotebookNode) -> Iterator[str]:
    """A magic that fails, together with a `raise`, passes; and it is no Python to learn from."""
    for cell in _code(notebook):
        if found := re.search(r"^\s*[%!]", cell.source, re.MULTILINE):
            yield f"cell {cell.id} has a magic or a shell command: {found[0].strip()!r}"


def state_on_disk(notebook: NotebookNode) -> Iterator[str]:
    """What `progress()` and `hint()` show depends on what was done before."""
    for cell in _code(notebook):
        ignored = "nbval-ignore-output" in cell.metadata.get("tags", [])
        if re.search(r"^progress\(\)", cell.source, re.MULTILINE) and not ignored:
            yield f"cell {cell.id} compares what progress() shows"


def kernel(notebook: NotebookNode) -> Iterator[str]:
    """A stored kernel that does not exist elsewhere fails there."""
    name = notebook.metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"the kernel is {name!r}, not 'python3'"


def money(notebook: NotebookNode) -> Iterator[str]:
    """Two dollar signs in one paragraph are a formula to Jupyter: `$500 into $1,000`."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            harmless = r"```.*?```|`[^`\n]*`|<span>\\\$</span>"
            text = re.sub(harmless, "", cell.source, flags=re.DOTALL)
            if found := re.search(r"\$\d.*", text):
                yield f"cell {cell.id}: {found[0][:40]!r} is money in no element of its own"


def clean(notebook: NotebookNode) -> Iterator[str]:
    """A student's notebook has no outputs and no answers: a prediction must be one."""
    for cell in _code(notebook):
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield f"cell {cell.id} was executed"
        if re.search(r"^\s*# --- ", cell.source, re.MULTILINE):
            yield f"cell {cell.id} has a marker of a region"


def answered(notebook: NotebookNode) -> Iterator[str]:
    """A student's prediction is the student's."""
    for cell in _code(notebook):
        if re.search(r"^(predict\.(choice|number)|question)\([^,)]+,", cell.source, re.MULTILINE):
            yield f"cell {cell.id} has its prediction or answer filled in"


SOURCE_GUARDS: tuple[Guard, ...] = (
    semicolons,
    markers,
    shown_twice,
    interaction,
    magics,
    state_on_disk,
    kernel,
    money,
)
GUARDS: tuple[Guard, ...] = (
    *SOURCE_GUARDS,
    executed,
    raises,
    addresses,
    machine_paths,
    warned,
    unstable_outputs,
)
STUDENT_GUARDS: tuple[Guard, ...] = (*SOURCE_GUARDS, clean, answered)


def complaints(notebook: NotebookNode, guards: tuple[Guard, ...]) -> list[str]:
    """Everything that these guards find, a sentence each."""
    return [f"{guard.__name__}: {text}" for guard in guards for text in guard(notebook)]

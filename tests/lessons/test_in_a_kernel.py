"""The helpers where students meet them: in a Jupyter kernel, as a cell's last value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode, v4

CELLS = {
    "import": "from simulator.lessons import check, hint, predict, progress, question, show",
    "ask": 'predict.choice("our-books")',
    "ask-number": 'predict.number("rate")',
    "question": 'question("who-runs-a-tool")',
    "reveal": 'predict.reveal("our-books", 500)',
    "loop": (
        "def total_paid(payments):\n"
        "    total = 0\n"
        "    while len(payments) >= 0:\n"
        "        try:\n"
        "            total += 1\n"
        "        except:\n"
        "            pass\n"
        "    return total\n\n"
        'check("total_paid", total_paid)'
    ),
    "raises": (
        'def total_paid(payments):\n    return payments[0]\n\ncheck("total_paid", total_paid)'
    ),
    "draws": (
        "def overpaid(paid, owed):\n"
        "    return sum(max(0, c - owed.get(r, 0)) for r, c in paid)\n\n"
        'check("overpaid", overpaid)'
    ),
    "first-line": (
        'outcome = check("total_paid", sum)\n'
        'predict.reveal("our-books", 500)\n'
        'hint("total_paid")\n'
        "1 + 1"
    ),
    "again": "outcome",
    "show": "from simulator import designs, replay\nshow(replay(designs.NAIVE))",
    "files": "import os\nsorted(name for name in os.listdir() if not name.startswith('progress'))",
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    folder: Path = tmp_path_factory.mktemp("kernel")
    cells = [v4.new_code_cell(code, id=name) for name, code in CELLS.items()]
    notebook = v4.new_notebook(cells=cells)
    client = NotebookClient(
        notebook,
        timeout=60,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=ERROR"],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REFUND_COURSE_PROGRESS", str(folder / "progress"))
        client.execute()
    return notebook


@pytest.fixture(scope="module")
def outputs(executed: NotebookNode) -> dict[str, list[NotebookNode]]:
    return {cell.id: cell.outputs for cell in executed.cells}


def bundle(outputs: list[NotebookNode], place: int = 0) -> dict[str, Any]:
    return dict(outputs[place]["data"])


@pytest.mark.parametrize("name", ["ask", "ask-number", "question"])
def test_a_question_is_a_widget_with_its_words_for_pages_without(
    name: str, outputs: dict[str, list[NotebookNode]]
) -> None:
    (output,) = outputs[name]
    assert "application/vnd.jupyter.widget-view+json" in output["data"]
    assert "Write" in output["data"]["text/plain"]
    assert "VBox" not in output["data"]["text/plain"]


def test_who_can_not_use_a_widget_is_told_what_to_do(executed: NotebookNode) -> None:
    widgets = str(executed.metadata.widgets)
    assert "Do the buttons not work?" in widgets
    assert "Does the field not work?" in widgets


def test_a_card_is_text_and_html_with_the_same_words(
    outputs: dict[str, list[NotebookNode]],
) -> None:
    shown = bundle(outputs["reveal"])
    for words in (
        "You made no prediction.",
        "The answer: ",
        "Books hold what the service has heard",
    ):
        assert words in shown["text/plain"]
        assert words in shown["text/html"]


def test_a_card_shows_wherever_in_a_cell_it_is_made_and_once(
    outputs: dict[str, list[NotebookNode]],
) -> None:
    checked, revealed, hinted, last = outputs["first-line"]
    assert "Right: total_paid" in checked["data"]["text/plain"]
    assert "You made no prediction." in revealed["data"]["text/plain"]
    assert "Hint 1 of 3" in hinted["data"]["text/plain"]
    assert last["data"]["text/plain"] == "2"
    assert len(outputs["reveal"]) == 1, "as a cell's last value too"
    assert len(outputs["again"]) == 1, "in another cell it shows again"


def test_an_endless_loop_in_a_cell_is_stopped_with_a_sentence(
    outputs: dict[str, list[NotebookNode]],
) -> None:
    assert "did not come to an end" in bundle(outputs["loop"])["text/plain"]


def test_an_error_in_a_cell_is_told_with_the_students_line(
    outputs: dict[str, list[NotebookNode]],
) -> None:
    told = bundle(outputs["raises"])["text/plain"]
    assert "Line 2 of your cell, `return payments[0]`, stopped with IndexError" in told


def test_a_wrong_answer_is_drawn_below_its_words(outputs: dict[str, list[NotebookNode]]) -> None:
    assert "Not yet: overpaid" in bundle(outputs["draws"], 0)["text/plain"]
    assert "image/png" in bundle(outputs["draws"], 1)


def test_a_picture_comes_first_and_its_sentence_below(
    outputs: dict[str, list[NotebookNode]],
) -> None:
    assert "image/png" in bundle(outputs["show"], 0)
    assert "The provider pays once" in bundle(outputs["show"], 1)["text/html"].replace(
        "<span>$</span>", "$"
    )


def test_nothing_is_left_behind(outputs: dict[str, list[NotebookNode]]) -> None:
    assert bundle(outputs["files"])["text/plain"] == "[]", "no folder among the lessons"


def test_nothing_is_written_to_stderr(outputs: dict[str, list[NotebookNode]]) -> None:
    assert [o for found in outputs.values() for o in found if o.get("name") == "stderr"] == []

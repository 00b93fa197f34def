"""A student's first hour, in a real browser: the lab, lesson 01, a prediction, a wrong answer.

Pictures for people to look at are kept in the folder `SCREENSHOTS` names, by default `out/`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import chromium
import nbformat
import pytest

from simulator.lessons import lab, logbook
from simulator.lessons.build import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PICTURES = Path(os.environ.get("SCREENSHOTS", ROOT / "out"))

WRONG = """def overpaid(paid, owed): return sum(
    max(0, cents - owed.get(refund, 0)) for refund, cents in paid)
check("overpaid", overpaid)"""
RIGHT = """def overpaid(paid, owed): return sum(
    max(0, sum(c for r, c in paid if r == name) - owed.get(name, 0))
    for name in {r for r, _ in paid})
check("overpaid", overpaid)"""


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A lab of its own, on a copy of the notebooks, for a student who has done lesson 00."""
    if chromium.find() is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER=1, and there is no chromium on the PATH")
        pytest.skip("there is no chromium on the PATH (Debian: apt-get install chromium)")
    monkeypatch.setenv(logbook.VARIABLE, str(tmp_path / "progress"))
    logbook.record("exercises", "total_paid", "right")
    notebooks = tmp_path / "notebooks"
    shutil.copytree(ROOT / "notebooks", notebooks)
    variables = lab.environment(os.environ)
    for name in ("RUNTIME_DIR", "CONFIG_DIR", "DATA_DIR"):
        variables[f"JUPYTER_{name}"] = str(tmp_path / name)
    for name in ("WORKSPACES_DIR", "SETTINGS_DIR"):
        variables[f"JUPYTERLAB_{name}"] = str(tmp_path / name)
    command = lab.command(["--no-browser", "--ServerApp.port=0"], notebooks)
    log = tmp_path / "lab.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            command, env=variables, stdout=file, stderr=file, stdin=subprocess.DEVNULL, cwd=tmp_path
        )
    pattern = re.compile(r"http://127\.0\.0\.1:\d+/lab/tree/\S+")
    try:
        chromium.wait_for(lambda: pattern.search(log.read_text()), 60)
        found = pattern.search(log.read_text())
        assert found is not None
        yield found[0]
    except TimeoutError:
        pytest.fail(f"the lab did not start:\n{log.read_text()[-3000:]}")
    finally:
        server.terminate()
        server.wait(20)


def cell(name: str) -> str:
    """The element of a cell of lesson 01, by its id in the source."""
    path = ROOT / "notebooks" / "01_the_thousand_dollar_refund.ipynb"
    names = [found.id for found in nbformat.read(path, as_version=4).cells]
    return f"document.querySelectorAll('.jp-Notebook .jp-Cell')[{names.index(name)}]"


def shown(name: str) -> str:
    return f"({cell(name)}?.querySelector('.jp-Cell-outputArea')?.textContent ?? '')"


IDLE = "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status == 'idle'"
WAITING = (
    "[...document.querySelectorAll('.jp-InputPrompt')]"
    ".filter(e => e.textContent.includes('*')).length"
)


def rewrite(page: chromium.Chromium, name: str, code: str) -> None:
    """Type over a cell as a student would, the editor indenting, and run it."""
    page.click(f"{cell(name)}.querySelector('.cm-content')")
    page.key("a", "Control")
    page.type(code)
    page.key("Enter", "Shift")


def test_a_student_does_lesson_01_in_the_browser(address: str) -> None:
    assert "01_the_thousand_dollar_refund" in address, "the next unfinished lesson"
    with chromium.Chromium(failed=PICTURES / "lab-failed.png") as page:
        page.open(address)
        page.until("document.querySelectorAll('.jp-Notebook .jp-Cell').length >= 40", 90)
        page.until(IDLE, 60)
        page.until(f"{cell('title')}.innerText.includes('The thousand-dollar refund')", 30)
        page.until("document.querySelector('.jp-KernelName').innerText.includes('Python 3')", 60)
        assert page.run("document.querySelectorAll('.jp-Dialog, .Toastify__toast').length") == 0
        page.until(f"{cell('title')}.textContent.includes('$500 into $1,000')", 10)
        page.screenshot(PICTURES / "lab-1-opened.png")

        # Down to the first prediction, a cell at a time, with the keyboard.
        page.click(f"{cell('title')}")
        page.key("Escape")
        for _ in range(40):
            page.key("Enter", "Shift")
            if page.run(f"{cell('lost')}.classList.contains('jp-mod-active')"):
                break
        page.until(f"{cell('predict-books')}.querySelectorAll('input[type=radio]').length == 3", 60)
        page.run(f"{cell('predict-books')}.querySelector('input[type=radio]').focus()")
        page.key("Tab")
        page.key(" ")
        page.until(f"{shown('predict-books')}.includes('Recorded, you predict: b, $500.')", 20)

        # And on to the end.
        page.click(f"{cell('lost')}.querySelector('.jp-InputPrompt')")
        for _ in range(60):
            page.key("Enter", "Shift")
            if page.run(f"{cell('progress')}.classList.contains('jp-mod-active')"):
                page.key("Enter", "Shift")
                break
        page.until(f"{WAITING} == 0 && {IDLE}", 90)
        page.until(f"{shown('reveal-books')}.includes('You predicted b, and so it was.')", 10)
        assert "it has heard one answer" in page.run(shown("reveal-books"))
        assert "You made no prediction." in page.run(shown("reveal-rate"))
        assert "Not attempted yet" in page.run(shown("overpaid"))
        assert page.run("document.querySelectorAll('.jp-Notebook .jp-Cell img').length") >= 6
        errors = "document.querySelectorAll('[data-mime-type$=\"jupyter.error\"]').length"
        assert page.run(errors) == 0
        page.run(f"{cell('predict-books')}.scrollIntoView()")
        page.screenshot(PICTURES / "lab-2-predicted.png")

        # A wrong answer is explained, with a picture; a right one is right.
        rewrite(page, "overpaid", WRONG)
        page.until(f"{shown('overpaid')}.includes('Not yet: overpaid')", 30)
        told = page.run(shown("overpaid"))
        for words in ("I called overpaid(", "expected", "each one alone is fine", "costs money"):
            assert words in told
        page.until(f"{cell('overpaid')}.querySelectorAll('.jp-OutputArea img').length == 1", 30)
        page.run(f"{cell('overpaid')}.scrollIntoView()")
        page.screenshot(PICTURES / "lab-3-wrong.png")
        rewrite(page, "overpaid", RIGHT)
        page.until(f"{shown('overpaid')}.includes('Right: overpaid')", 30)

"""What README.md and CONTRIBUTING.md say is so."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path

import nbformat
import pytest

from simulator.lessons import build
from simulator.service import designs

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_every_command_that_they_name_is_there() -> None:
    start = runpy.run_path(str(ROOT / "start.py"), run_name="start")
    known = {*start["SIMULATOR"], *start["LESSONS"], "test"}
    named = set(re.findall(r"python3? start\.py (\w+)", README + CONTRIBUTING))
    assert {"demo", "lab", "test", "build", "doctor"} <= named
    assert named <= known


def test_every_file_that_they_name_is_there() -> None:
    named = set(re.findall(r"\]\(([^):]+)\)", README + CONTRIBUTING))
    named |= set(re.findall(r"^\| `([\w/]+)` \|", README, re.MULTILINE))
    assert len(named) > 8
    for name in named:
        assert (ROOT / name).exists(), name


def test_the_pythons_are_those_that_the_package_names() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    versions = re.findall(r"Python :: (3\.\d+)", text)
    assert f"Python {', '.join(versions[:-1])} or {versions[-1]}" in README


def test_the_number_of_designs_is_right() -> None:
    assert len(designs.LADDER) == 10
    assert "for ten designs from naive to safe" in README


def test_the_python_of_the_readme_runs_and_shows_what_it_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    # The same in short: two faults take ten seconds, 10,000 refunds five.
    code = code.replace("max_faults=2", "max_faults=1")
    code = code.replace("lose_response=0.1)", "lose_response=0.1), refunds=100")
    said = io.StringIO()
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), names)
    run = names["run"]
    assert [float(amount) for amount in run.ledger["amount"]] == [500.0, 500.0]  # type: ignore[attr-defined]
    assert "none broke an invariant" in said.getvalue()
    assert "NAIVE, one_refund, Rates(lose_response=0.1): 100 refunds" in said.getvalue()


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_they_name_no_registry(text: str) -> None:
    assert not re.search(r"pypi|conda-forge|anaconda", text, re.IGNORECASE)


@pytest.mark.parametrize("lesson", build.PICTURES)
def test_its_pictures_are_those_of_the_solved_lessons(lesson: str) -> None:
    solved = nbformat.read(ROOT / "solutions" / f"{lesson}.ipynb", as_version=4)
    shown = ROOT / "solutions" / "pictures" / f"{lesson}.png"
    assert f"](solutions/pictures/{lesson}.png)" in README
    assert shown.read_bytes() == build.picture(solved, build.PICTURES[lesson])

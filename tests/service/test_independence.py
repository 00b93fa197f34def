"""The arrows run one way: lessons -> experiments -> world -> service."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import simulator

HOUSE = Path(simulator.__file__).parent
SERVICE = sorted((HOUSE / "service").glob("*.py"))
WORLD = sorted((HOUSE / "world").glob("*.py"))
ABOVE_SERVICE = ("world", "experiments", "live", "lessons", "casebook", "cli")
ABOVE_WORLD = ("experiments", "live", "lessons", "casebook", "cli")


def imports(path: Path) -> set[str]:
    """Every module that a file names in an import, those for type checkers included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def loaded(statement: str, *names: str) -> list[str]:
    """Which of these modules a fresh interpreter has loaded after a statement."""
    code = (
        f"{statement}\nimport sys\n"
        f"print(*[n for n in {names!r} "
        "if any(m == n or m.startswith(n + '.') for m in sys.modules)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=HOUSE.parent,
    )
    return done.stdout.split()


def test_there_are_files_to_look_at() -> None:
    assert len(SERVICE) > 15
    assert len(WORLD) > 10


@pytest.mark.parametrize("path", SERVICE, ids=lambda path: path.name)
def test_the_service_names_neither_simpy_nor_anything_above_it(path: Path) -> None:
    wrong = {
        name
        for name in imports(path)
        if name.split(".")[0] == "simpy"
        or any(name.startswith(f"simulator.{layer}") for layer in ABOVE_SERVICE)
    }
    assert wrong == set()


@pytest.mark.parametrize("path", WORLD, ids=lambda path: path.name)
def test_the_world_names_nothing_above_it(path: Path) -> None:
    wrong = {
        name
        for name in imports(path)
        if any(name.startswith(f"simulator.{layer}") for layer in ABOVE_WORLD)
    }
    assert wrong == set()


def test_the_service_loads_neither_simpy_nor_the_world() -> None:
    modules = ", ".join(
        f"simulator.service.{path.stem}" for path in SERVICE if path.stem != "__init__"
    )
    assert loaded(f"import {modules}", "simpy", "simulator.world", "simulator.experiments") == []


def test_the_check_notices_what_is_loaded() -> None:
    assert loaded("import simulator.world.clock", "simpy", "simulator.world") == [
        "simpy",
        "simulator.world",
    ]


def test_importing_the_simulator_loads_neither_matplotlib_nor_pandas() -> None:
    assert loaded("import simulator", "matplotlib", "pandas", "numpy", "scipy", "simpy") == []


def test_running_and_printing_histories_loads_neither_matplotlib_nor_pandas() -> None:
    # They are extras: the light core has to do without.
    statement = (
        "from simulator import designs, explore, faults, replay, simulate\n"
        "str(replay(designs.SAFE)); explore(designs.NAIVE, max_faults=1)\n"
        "str(simulate(designs.SAFE, faults.Rates(lose_response=0.5), refunds=3))"
    )
    assert loaded(statement, "matplotlib", "pandas", "numpy", "scipy") == []

"""pyproject.toml, requirements.lock and environment.yml say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))

#: What conda leaves to pip.
PIP_UNDER_CONDA = next(entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict))

#: Where conda-forge calls a package otherwise: matplotlib-base is matplotlib without Qt.
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


def direct_requirements() -> dict[str, SpecifierSet]:
    """Every requirement that pyproject.toml names, extras included."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    found: dict[str, SpecifierSet] = {}
    for line in (line for group in groups for line in group):
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            continue
        name = canonicalize_name(requirement.name)
        assert found.setdefault(name, requirement.specifier) == requirement.specifier, (
            f"two extras ask for different versions of {name}"
        )
    return found


def pins() -> dict[str, list[str]]:
    """The versions that the lock names; there are several where Pythons differ."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", LOCK, re.MULTILINE):
        found.setdefault(name, []).append(version)
    return found


DIRECT = direct_requirements()


@pytest.mark.parametrize("name", DIRECT)
def test_the_lock_pins_each_requirement_within_its_bounds(name: str) -> None:
    versions = pins().get(name, [])
    assert versions, f"{name} is not in requirements.lock: compile it anew (CONTRIBUTING.md)"
    for version in versions:
        assert DIRECT[name].contains(version)


def test_every_entry_of_the_lock_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) > 100
    for entry in entries:
        first, *rest = entry.splitlines()
        assert re.match(r"[a-z0-9.-]+==\S+", first), f"not a pinned package: {first}"
        assert rest, f"{first} has no hash"
        for line in rest:
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line)


def test_the_lock_names_no_address_of_any_registry() -> None:
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host| @ ", LOCK)


def test_every_requirement_has_a_lower_and_an_upper_bound() -> None:
    # start.py reads these bounds itself, and knows no other operators.
    for name, bounds in DIRECT.items():
        assert sorted(bound.operator for bound in bounds) == ["<", ">="], name


def test_conda_users_get_the_same_packages_within_the_same_bounds() -> None:
    conda: dict[str, SpecifierSet] = {}
    for entry in CONDA["dependencies"]:
        if isinstance(entry, str) and entry != "pip":
            name, bounds = entry.split(" ")
            conda[CONDA_NAMES.get(name, name)] = SpecifierSet(bounds)
    for entry in PIP_UNDER_CONDA:
        if not entry.startswith("-e"):
            name, bounds = entry.split(" ")
            conda[name] = SpecifierSet(bounds)
    python = conda.pop("python")
    assert conda == DIRECT
    for minor in (11, 12, 13):
        assert python.contains(f"3.{minor}.1")
    assert not python.contains("3.10.9")


def test_conda_users_get_the_project_itself() -> None:
    assert "-e ." in PIP_UNDER_CONDA


def test_the_change_log_has_the_version() -> None:
    assert f"## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_every_file_of_the_service_is_in_the_package() -> None:
    # SQL is not Python: a build that took modules only would leave it out.
    from importlib import resources

    assert "CREATE TABLE" in (resources.files("simulator.service") / "schema.sql").read_text()

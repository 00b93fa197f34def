from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from simulator.lessons import lab
from simulator.lessons.logbook import record


def test_the_lab_opens_at_lesson_00_first_and_then_at_the_next() -> None:
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in lab.command()
    record("exercises", "total_paid", "right")
    assert "/lab/tree/01_the_thousand_dollar_refund.ipynb" in " ".join(lab.command())


def test_what_else_is_given_is_passed_on() -> None:
    assert lab.command(["--no-browser", "--port=9999"])[-2:] == ["--no-browser", "--port=9999"]


def test_one_ctrl_c_closes_it_without_a_question() -> None:
    assert "--ServerApp.answer_yes=True" in lab.command()


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_only_root_is_allowed_as_root(
    user: int, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--allow-root" in lab.command()) is allowed


def test_our_settings_go_first_and_the_users_stay() -> None:
    made = lab.environment({"JUPYTER_CONFIG_PATH": "theirs", "PATH": "bin"})
    assert made["JUPYTER_CONFIG_PATH"] == os.pathsep.join([str(lab.SETTINGS), "theirs"])
    assert made["PATH"] == "bin"
    assert made["JUPYTER_PREFER_ENV_PATH"] == "1"


def test_the_settings_turn_off_the_news() -> None:
    (file,) = Path(lab.SETTINGS).rglob("*.json")
    settings = json.loads(file.read_text(encoding="utf-8"))
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"

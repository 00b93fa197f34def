from __future__ import annotations

from pathlib import Path

import pytest

from simulator.lessons import hints, logbook, predict


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A progress folder of the test's own, and a session in which nothing was said yet."""
    monkeypatch.setenv(logbook.VARIABLE, str(tmp_path / "progress"))
    monkeypatch.setattr(predict, "_said", {})
    monkeypatch.setattr(predict, "_seen", set())
    monkeypatch.setattr(hints, "_shown", {})
    return tmp_path / "progress"

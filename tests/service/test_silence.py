from __future__ import annotations

from collections.abc import Callable

import pytest

from simulator.service import silence
from simulator.service.errors import CallTimeout, ConnectionLost, Silence
from simulator.service.operations import Operation


@pytest.mark.parametrize("error", [CallTimeout("2 s"), ConnectionLost("reset")])
def test_each_policy_has_one_word_for_every_kind_of_silence(
    error: Silence, make_operation: Callable[..., Operation]
) -> None:
    operation = make_operation()
    assert silence.again(operation, error) == "again"
    assert silence.failed(operation, error) == "failed"
    assert silence.forgotten(operation, error) == "forgotten"
    assert silence.outcome_unknown(operation, error) == "outcome_unknown"

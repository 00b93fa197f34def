from __future__ import annotations

import pytest

from simulator.service.errors import (
    CallTimeout,
    CommitUnknown,
    ConnectionLost,
    DatabaseUnavailable,
    Declined,
    RateLimited,
    Silence,
)


@pytest.mark.parametrize("error", [CallTimeout, ConnectionLost])
def test_after_a_timeout_or_a_reset_nobody_knows(error: type[Exception]) -> None:
    assert issubclass(error, Silence)


@pytest.mark.parametrize("error", [Declined, RateLimited, DatabaseUnavailable, CommitUnknown])
def test_what_was_answered_is_no_silence(error: type[Exception]) -> None:
    # Taking a decline for silence would send it again, and silence for a decline loses a refund.
    assert not issubclass(error, Silence)


def test_a_rate_limit_says_when_to_come_back() -> None:
    busy = RateLimited(1.5)
    assert busy.retry_after == 1.5
    assert "1.5 s" in str(busy)

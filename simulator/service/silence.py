"""What to make of an answer that never came.

A policy is called with the operation and the `Silence`, and says "again", "failed",
"forgotten" or "outcome_unknown". Only the last is true: the others claim to know.
"""

from __future__ import annotations

from simulator.service.errors import Silence
from simulator.service.operations import Operation

__all__ = ["again", "failed", "forgotten", "outcome_unknown"]


def again(operation: Operation, silence: Silence) -> str:
    """Send it again at once, as if it had never been sent."""
    return "again"


def failed(operation: Operation, silence: Silence) -> str:
    """Call it a failure, as if it could not have happened."""
    return "failed"


def forgotten(operation: Operation, silence: Silence) -> str:
    """Remove the row, as an error handler that tidies up (case B05): a later call is the first."""
    return "forgotten"


def outcome_unknown(operation: Operation, silence: Silence) -> str:
    """Write down that nobody knows, and find out."""
    return "outcome_unknown"

"""What a call or a transaction may end in, sorted by what the caller then knows."""

from __future__ import annotations

__all__ = [
    "CallTimeout",
    "CommitUnknown",
    "ConnectionLost",
    "DatabaseUnavailable",
    "Declined",
    "InProgress",
    "RateLimited",
    "ServerError",
    "Silence",
]


class Silence(Exception):
    """No answer came. The request may have been carried out, or not, or not yet: nobody knows."""


class CallTimeout(Silence):
    """The caller stopped waiting."""


class ConnectionLost(Silence):
    """The connection broke before an answer came."""


class ServerError(Silence):
    """The other end answered 500: it failed, before the effect or after it, nobody knows."""


class Declined(Exception):
    """A definite no: the provider refused, nothing was moved and nothing will be.

    Attributes:
        reason: a sentence.
        takes_for_duplicate: it refused because it thinks that it has done this already. Then
            the refusal says nothing of what the customer is owed.
    """

    def __init__(self, reason: str, takes_for_duplicate: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.takes_for_duplicate = takes_for_duplicate


class RateLimited(Exception):
    """Too many requests: this one was not carried out. It says nothing of earlier ones.

    Attributes:
        retry_after: seconds to wait before the next request.
    """

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too many requests, come back in {retry_after:g} s")
        self.retry_after = retry_after


class InProgress(RateLimited):
    """A request with this key is being worked on (409): this one was not carried out."""


class DatabaseUnavailable(Exception):
    """The database did not take the transaction: it was not carried out."""


class CommitUnknown(Exception):
    """The connection broke during COMMIT: carried out or not, nobody knows."""

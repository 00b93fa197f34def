"""A transaction, run until it is known to have been committed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from simulator.service import audit
from simulator.service.errors import CommitUnknown, DatabaseUnavailable

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps, Transaction

__all__ = ["DATABASE_TRIES", "once", "write_audit"]

T = TypeVar("T")

DATABASE_TRIES = 6
"""Tries to get a transaction committed, 0.5 s, 1 s, 2 s … apart: 15 s, half a lease. After
that the process gives up: a backend answers with an error, a worker is started anew."""


def once(rt: Runtime, d: Design, transaction: Callable[..., T], *arguments: Any) -> Steps[T]:
    """Runs a transaction until it is known to have been committed, or gives up.

    With a durable record every transaction here may run twice and changes things once, so an
    unknown commit is simply run again. Without one, nothing protects a second run: the error
    goes up, and the caller gets no answer.
    """
    for attempt in count():
        later: list[tuple[Any, ...]] = []
        try:
            result = yield from rt.transact(transaction, d, later, *arguments)
        except (DatabaseUnavailable, CommitUnknown):
            if not d.record.durable or attempt + 1 >= DATABASE_TRIES:
                raise
            yield from rt.sleep(0.5 * 2.0**attempt)
            continue
        if later:
            yield from rt.transact(write_audit, later)
        return result
    raise AssertionError("unreachable")


def write_audit(tx: Transaction, entries: list[tuple[Any, ...]]) -> None:
    """The audit rows of a change that is committed already (AuditAfterwards)."""
    for entry in entries:
        audit.append(tx, *entry)

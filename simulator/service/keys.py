"""Idempotency keys: what our record is found by, and what the provider is sent.

A key policy is called with an operation and the number of the attempt (0 is the first
send) and returns the key to send, or None for none. `identity` names the operation in our
own record; a policy without one of its own uses the operation's.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from simulator.service.operations import Operation
from simulator.service.schemas import ToolCall

__all__ = [
    "ModelKey",
    "NoKey",
    "OperationKey",
    "PerAttempt",
    "fingerprint",
    "operation_key",
]


def _digest(*parts: object) -> str:
    # JSON quotes and separates its parts, so no two lists of parts give one text.
    text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@lru_cache(maxsize=4096)
def operation_key(tenant_id: str, action: str, intent_id: str) -> str:
    """The key of an intent: 32 hex digits, the same on every attempt, instance and day."""
    return _digest(tenant_id, action, intent_id)


@lru_cache(maxsize=4096)
def fingerprint(tenant_id: str, action: str, order_id: str, amount: int, currency: str) -> str:
    """Digest of what is asked for. `amount` in minor units: 500 and 500.00 give one digest."""
    return _digest(tenant_id, action, order_id, amount, currency)


@dataclass(frozen=True, slots=True)
class NoKey:
    """Sends no key: to the provider every request is a new one."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class PerAttempt:
    """A fresh key for every send: as good as none."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return f"{operation.id}-{attempt}"


@dataclass(frozen=True, slots=True)
class ModelKey:
    """The key that the model wrote into its tool call: a new thought, a new key."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.model_key

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return operation.model_key


@dataclass(frozen=True, slots=True)
class OperationKey:
    """The operation's own key, on every attempt."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation_key(operation.tenant_id, operation.action, operation.intent_id)

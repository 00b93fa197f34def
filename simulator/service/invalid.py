"""The error of whoever asks for something that cannot be done as it is written."""

from __future__ import annotations

__all__ = ["InvalidRequest"]


class InvalidRequest(ValueError):
    """The arguments do not fit the tool's schema. The message is a sentence for the model.

    Attributes:
        field: the argument that is wrong; None: the call as a whole.
        code: one word for programs: "missing", "unknown_field", "unknown_tool", "not_a_number",
            "not_text", "too_precise", "out_of_range", "unknown_currency", "not_json",
            "duplicate_field", "not_a_call", or "invalid".
    """

    def __init__(self, message: str, field: str | None = None, code: str = "invalid") -> None:
        super().__init__(message)
        self.field = field
        self.code = code

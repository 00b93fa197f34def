"""Wrong answers to lesson 00: the code, the outcome, and words of the message meant for it."""

from __future__ import annotations

WRONG: dict[str, list[tuple[str, str, str]]] = {
    "total_paid": [
        (
            "def total_paid(payments):\n    return sum(set(payments))",
            "wrong",
            "A set keeps one of two equal payments",
        ),
        (
            "def total_paid(payments):\n    return len(payments)",
            "wrong",
            "how many payments there were",
        ),
        (
            "def total_paid(payments):\n"
            "    total = 0\n"
            "    for payment in payments:\n"
            "        total = payment\n"
            "    return total",
            "wrong",
            "overwrite the total in your loop",
        ),
        (
            "def total_paid(payments):\n"
            "    for payment in payments:\n"
            "        return payment\n"
            "    return 0",
            "wrong",
            "first payment only",
        ),
        (
            "def total_paid(payments):\n"
            "    total = 0\n"
            "    for payment in payments:\n"
            "        total += payment\n"
            "        return total",
            "wrong",
            "Is your `return` inside the loop?",
        ),
        (
            "def total_paid(payments):\n    return sum(payments) // 100",
            "wrong",
            "You turned cents into dollars",
        ),
        (
            "def total_paid(payments):\n    return 0",
            "wrong",
            "There was one payment, of ",
        ),
        (
            "def total_paid(payments):\n    if payments:\n        return sum(payments)",
            "wrong",
            "Nothing came back: is there a `return` on every way",
        ),
        ("def total_paid(payments):\n    return max(payments or [0])", "wrong", "largest payment"),
        ("def total_paid(payments):\n    return 50_000", "wrong", "and for nothing else"),
        (
            "def total_paid(payments):\n    return sum(payments) / 100",
            "wrong",
            "a whole number of cents, and this is of type `float`",
        ),
        ("def total_paid(payments):\n    print(sum(payments))", "wrong", "Your function printed `"),
        (
            "def total_paid(payments):\n    total = 0\n    for p in payments:\n        yield p",
            "wrong",
            "wants `return`, not `yield`",
        ),
        (
            "def total_paid(payments):\n"
            "    total = payments[0]\n"
            "    for payment in payments[1:]:\n"
            "        total += payment\n"
            "    return total",
            "raised",
            "Line 2 of your cell, `total = payments[0]`, stopped with IndexError: list index",
        ),
        (
            "def total_paid(payments):\n"
            "    total, place = 0, 0\n"
            "    while place < len(payments):\n"
            "        total += payments[place]\n"
            "    return total",
            "wrong",
            "did not come to an end, so after a moment I stopped it",
        ),
        (
            "def total_paid(payments):\n    print('here', '`')\n    return payments[0]",
            "raised",
            "(Your function printed: `here ``)",
        ),
        (
            "def total_paid(payments):\n    print('round')\n    while True:\n        pass",
            "wrong",
            "(Your function printed: `round`)",
        ),
        ("def total_paid():\n    return 0", "wrong", "does not take what I give it"),
        ("total_paid = sum([50_000])", "wrong", "Give me the function itself"),
    ],
}

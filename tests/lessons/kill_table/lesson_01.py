"""Wrong answers to lesson 01: the code, the outcome, and words of the message meant for it."""

from __future__ import annotations

TOOLS = {
    "get_order_status": "read",
    "issue_refund": "write",
    "search_books": "read",
    "send_apology_email": "write",
    "estimate_refund": "read",
    "buy_return_label": "write",
    "get_voucher_code": "write",
}

SUMS = "    sums = {}\n    for refund, cents in paid:\n"

WRONG: dict[str, list[tuple[str, str, str]]] = {
    "sort_tools": [
        (
            f"sort_tools = {TOOLS | {'get_voucher_code': 'read'}}",
            "wrong",
            "A name that begins with `get` promises nothing",
        ),
        (
            f"sort_tools = {TOOLS | {'send_apology_email': 'read'}}",
            "wrong",
            "someone's mailbox is outside",
        ),
        (
            f"sort_tools = {TOOLS | {'estimate_refund': 'write'}}",
            "wrong",
            "does not move money yet",
        ),
        (f"sort_tools = {TOOLS | {'buy_return_label': 'read'}}", "wrong", "an invoice will come"),
        (f"sort_tools = {TOOLS | {'get_order_status': 'write'}}", "wrong", "a line to a log"),
        (f"sort_tools = {TOOLS | {'issue_refund': 'read'}}", "wrong", "what it leaves behind"),
        (f"sort_tools = {TOOLS | {'search_books': 'write'}}", "wrong", "A slow read"),
        (f"sort_tools = {TOOLS | {'search_books': 'reed'}}", "wrong", 'must be "read" or "write"'),
        (f"sort_tools = {TOOLS | {'search_books': ...}}", "wrong", "is not sorted yet"),
        ("sort_tools = ['read']", "wrong", "expected a dict"),
    ],
    "overpaid": [
        (
            "def overpaid(paid, owed):\n"
            "    return sum(cents for _, cents in paid) - sum(owed.values())",
            "wrong",
            "the result can even be negative",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    return max(0, sum(c for _, c in paid) - sum(owed.values()))",
            "wrong",
            "You compare two grand totals",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    seen, extra = set(), 0\n"
            "    for _, cents in paid:\n"
            "        if cents in seen:\n"
            "            extra += cents\n"
            "        seen.add(cents)\n"
            "    return extra",
            "wrong",
            "You took equal amounts for the same refund",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    names = [refund for refund, _ in paid]\n"
            "    return len(names) - len(set(names))",
            "wrong",
            "asks how many cents",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    return sum(max(0, cents - owed.get(refund, 0)) for refund, cents in paid)",
            "wrong",
            "each one alone is fine",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    names = [refund for refund, _ in paid]\n"
            "    return sum(cents for refund, cents in paid if names.count(refund) > 1)",
            "wrong",
            "One of them was owed",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    seen, extra = set(), 0\n"
            "    for refund, cents in paid:\n"
            "        if refund in seen:\n"
            "            extra += cents\n"
            "        seen.add(refund)\n"
            "    return extra",
            "wrong",
            "a first payment may be wrong already",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    extra = 0\n"
            "    for refund, right in owed.items():\n"
            "        got = sum(cents for name, cents in paid if name == refund)\n"
            "        extra += max(0, got - right)\n"
            "    return extra",
            "wrong",
            "a refund that nobody asked for",
        ),
        (
            "def overpaid(paid, owed):\n    return sum(cents for _, cents in paid)",
            "wrong",
            "what was owed included",
        ),
        (
            "def overpaid(paid, owed):\n"
            f"{SUMS}        sums[refund] = sums.get(refund, 0) + cents\n"
            "    return sum(max(0, total - owed[refund]) for refund, total in sums.items())",
            "raised",
            "dict for a key that it does not have",
        ),
        (
            "def overpaid(paid, owed):\n"
            f"{SUMS}        sums[refund] += cents\n"
            "    return sum(sums.values())",
            "raised",
            "Line 4 of your cell, `sums[refund] += cents`, stopped with KeyError",
        ),
        (
            "extra = 0\n"
            "def overpaid(paid, owed):\n"
            "    global extra\n"
            "    sums = {}\n"
            "    for refund, cents in paid:\n"
            "        sums[refund] = sums.get(refund, 0) + cents\n"
            "    extra += sum(max(0, t - owed.get(r, 0)) for r, t in sums.items())\n"
            "    return extra",
            "wrong",
            "keep nothing outside the function",
        ),
        (
            "def overpaid(paid, owed):\n"
            f"{SUMS}        sums[refund] = sums.get(refund, 0) + cents\n"
            "    return sum(total - owed.get(refund, 0) for refund, total in sums.items())",
            "wrong",
            "`max(0, …)`, refund by refund",
        ),
        (
            "def overpaid(paid, owed):\n"
            f"{SUMS}        sums[refund] = sums.get(refund, 0) + cents\n"
            "    return sum(abs(total - owed.get(refund, 0)) for refund, total in sums.items())",
            "wrong",
            "`abs` counts what is still missing",
        ),
        (
            "def overpaid(paid, owed):\n"
            "    return sum(max(0, c - owed.get(r, 0)) for r, c in dict(paid).items())",
            "wrong",
            "A dict keeps one value for each refund",
        ),
        (
            "def overpaid(paid, owed):\n"
            f"{SUMS}        sums[refund] = sums.get(refund, 0) + cents\n"
            "    return sum(max(0, t - owed.get(r, 0)) for r, t in sums.items()) // 100",
            "wrong",
            "You turned cents into dollars",
        ),
        (
            "def overpaid(owed, paid):\n    return 0",
            "wrong",
            "parameters are in another order: it should be `overpaid(paid, owed)`",
        ),
        (
            "def overpaid(paid, owed):\n    print('half way')\n    return 1",
            "wrong",
            "(Your function printed: `half way`)",
        ),
    ],
    "expected_payments": [
        (
            "def expected_payments(p, attempts):\n    return 1 + p",
            "wrong",
            "You stop at the second payment",
        ),
        (
            "def expected_payments(p, attempts):\n    return 1 + p + p**2",
            "wrong",
            "always three",
        ),
        (
            "def expected_payments(p, attempts):\n    return 1 + p * (attempts - 1)",
            "wrong",
            "The third is sent only if",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return sum(p**k for k in range(1, attempts + 1))",
            "wrong",
            "begins one step too late",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return sum(p**k for k in range(attempts + 1))",
            "wrong",
            "one term too many",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return sum(p**k for k in range(attempts - 1))",
            "wrong",
            "one term too few",
        ),
        (
            "def expected_payments(p, attempts):\n    return p ** (attempts - 1)",
            "wrong",
            "all attempts are used up",
        ),
        (
            "def expected_payments(p, attempts):\n    return attempts",
            "wrong",
            "That is the most it can be",
        ),
        (
            "def expected_payments(p, attempts):\n    return p if attempts > 1 else 0",
            "wrong",
            "at least twice",
        ),
        (
            "def expected_payments(p, attempts):\n    return 1 / (1 - p)",
            "wrong",
            "never gives up",
        ),
        (
            "def expected_payments(p, attempts):\n    return (1 - p**attempts) / (1 - p)",
            "raised",
            "ZeroDivisionError",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return 1 + expected_payments(p, attempts) * p",
            "raised",
            "Line 2 of your cell, `return 1 + expected_payments(p, attempts) * p`, called itself "
            "again and again until Python gave up. Where",
        ),
        (
            "def expected_payments(p, attempts):\n    return (1 - p ** attempts) / (1 - p ** 1)",
            "raised",
            "`return (1 - p ** attempts) / (1 - p ** 1)`",
        ),
        (
            "def expected_payments(p, attempts):\n    return p ** '`attempts`'",
            "raised",
            "stopped with `TypeError: unsupported operand type(s) for ** or pow(): 'float'",
        ),
        (
            "def expected_payments(p, attempts):\n    return p * attempts",
            "wrong",
            "You multiply the two",
        ),
        (
            "def expected_payments(p, attempts):\n    return p**attempts",
            "wrong",
            "every answer is lost",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return sum(k * p ** (k - 1) * (1 - p) for k in range(1, attempts + 1))",
            "wrong",
            "whose last answer is lost as well",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return sum(k * p ** (k - 1) * (1 - p) for k in range(1, attempts))",
            "wrong",
            "use up all attempts",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return int(sum(p**k for k in range(attempts)))",
            "wrong",
            "You cut the average",
        ),
        (
            "def expected_payments(p, attempts):\n"
            "    return round(sum(p**k for k in range(attempts)))",
            "wrong",
            "You round the average",
        ),
        (
            "def expected_payments(p, attempts):\n    return 1 + p * attempts",
            "wrong",
            "Of the attempts, the first is sent (and paid) with probability 1. The average is",
        ),
    ],
}

"""Wrong answers to lesson 02: the code, the outcome, and words of the message meant for it."""

from __future__ import annotations

MODE = "def name_mode(log):\n"
DEAD = "    if 'died' in log:\n        return 'death'\n"
CALLS = (
    "    if log.count('asked') > 1:\n"
    "        second = log.index('asked', log.index('asked') + 1)\n"
    "        return 'again' if 'booked' in log[:second] else 'at once'\n"
)
LOST = (
    "    if log.count('paid') < log.count('sent'):\n"
    "        return 'lost request'\n"
    "    return 'lost response' if log.count('heard') < log.count('paid') else 'none'\n"
)

KNOWS = "def what_it_knows(heard):\n"
SILENT = "    silent = ('timeout', 'reset', 'error 500')\n"
PAID = "    if 'paid' in heard:\n        return 'done'\n"
REST = "    return 'unknown' if any(word in silent for word in heard) else 'not done'\n"

DOUBLE = "def p_double(a, b, n):\n    s = 1 - a - b\n"

FEWEST = "def fewest_faults(tried, broken):\n"

WRONG: dict[str, list[tuple[str, str, str]]] = {
    "name_mode": [
        (
            f"{MODE}    if log.count('paid') > 1:\n        return 'lost response'\n"
            f"{DEAD}{CALLS}{LOST}",
            "wrong",
            "You go by the damage",
        ),
        (
            f"{MODE}    if log.count('sent') > 1:\n        return 'lost request'\n"
            f"{DEAD}{CALLS}{LOST}",
            "wrong",
            "A second `sent` says that the service heard nothing",
        ),
        (f"{MODE}{CALLS}{LOST}", "wrong", "You do not look at `died`"),
        (f"{MODE}{CALLS}{DEAD}{LOST}", "wrong", "All that follows comes from that"),
        (
            f"{MODE}{DEAD}    if log.count('asked') > 1:\n        return 'again'\n{LOST}",
            "wrong",
            "You call every second call `again`",
        ),
        (
            f"{MODE}{DEAD}    if log.count('asked') > 1:\n        return 'at once'\n{LOST}",
            "wrong",
            "You call every second call `at once`",
        ),
        (
            f"{MODE}{DEAD}{CALLS}"
            "    return 'lost response' if log.count('heard') < log.count('sent') else 'none'",
            "wrong",
            "You take every silence for a lost response",
        ),
        (
            f"{MODE}{DEAD}{CALLS}"
            "    return 'lost request' if log.count('heard') < log.count('sent') else 'none'",
            "wrong",
            "You take every silence for a lost request",
        ),
        (
            f"{MODE}{DEAD}{CALLS}    if log.count('sent') == 1:\n        return 'none'\n{LOST}",
            "wrong",
            "A service that gives up makes none",
        ),
        (f"{MODE}    return 'timeout'", "wrong", "It should be one of"),
        (
            f"{MODE}    return 'lost response' if log.count('paid') > 1 else 'none'",
            "wrong",
            "some logs are wrong without a second one",
        ),
        (
            f"{MODE}    second = log.index('asked', log.index('asked') + 1)\n{DEAD}{CALLS}{LOST}",
            "raised",
            "stopped with ValueError",
        ),
        (f"{MODE}    if 'died' in log:\n        return 'death'", "wrong", "Nothing came back"),
    ],
    "what_it_knows": [
        (
            f"{KNOWS}    return 'done' if 'paid' in heard else 'not done'",
            "wrong",
            "You take silence for a no",
        ),
        (
            f"{KNOWS}    silent = ('timeout', 'error 500')\n{PAID}{REST}",
            "wrong",
            "breaks while you wait is no refusal",
        ),
        (
            f"{KNOWS}    silent = ('timeout', 'reset')\n{PAID}{REST}",
            "wrong",
            "indeterminate",
        ),
        (f"{KNOWS}    heard = heard[-1:]\n{SILENT}{PAID}{REST}", "wrong", "the last send alone"),
        (f"{KNOWS}    heard = heard[:1]\n{SILENT}{PAID}{REST}", "wrong", "the first send alone"),
        (
            f"{KNOWS}{SILENT}{PAID}    if 'declined' in heard:\n        return 'not done'\n{REST}",
            "wrong",
            "is about that one send",
        ),
        (
            f"{KNOWS}{SILENT}    if any(word in silent for word in heard):\n"
            "        return 'unknown'\n    return 'done' if 'paid' in heard else 'not done'",
            "wrong",
            'One "paid" is enough',
        ),
        (
            f"{KNOWS}    silent = ('timeout', 'reset', 'error 500', 'no connection')\n{PAID}{REST}",
            "wrong",
            "harmless to repeat",
        ),
        (
            f"{KNOWS}{SILENT}    if not heard:\n        return 'unknown'\n{PAID}{REST}",
            "wrong",
            "Before anything was sent",
        ),
        (
            f"{KNOWS}{SILENT}    if 'paid' in heard or any(word in silent for word in heard):\n"
            "        return 'done'\n    return 'not done'",
            "wrong",
            "You hope",
        ),
        (f"{KNOWS}    return {{'paid': 'done'}}[heard[0]]", "raised", "stopped with"),
        (f"{KNOWS}{PAID}", "wrong", "Nothing came back"),
    ],
    "p_double": [
        ("def p_double(a, b, n):\n    return b", "wrong", "takes one attempt away"),
        ("def p_double(a, b, n):\n    return b / (1 - a)", "wrong", "never gives up"),
        (
            f"{DOUBLE}    return 1 - s * sum(a**k for k in range(n))",
            "wrong",
            "only one of the three harmless cases",
        ),
        (
            f"{DOUBLE}    return 1 - s * sum(a**k for k in range(n)) - n * a**(n - 1) * b",
            "wrong",
            "that are never paid because all `n` requests are lost",
        ),
        (
            f"{DOUBLE}    return 1 - a**n - s * sum(a**k for k in range(n))",
            "wrong",
            "paid once and never heard of",
        ),
        (
            f"{DOUBLE}    return 1 - a**n - n * a**(n - 1) * b",
            "wrong",
            "the most frequent case",
        ),
        (
            f"{DOUBLE}    return 1 - a**n - s * sum(a**k for k in range(n)) - a**(n - 1) * b",
            "wrong",
            "can be any of the `n`",
        ),
        (
            f"{DOUBLE}    return 1 - a**3 - s * (1 + a + a**2) - 3 * a**2 * b",
            "wrong",
            "always three",
        ),
        (
            f"{DOUBLE}    return 1 - a**n - s - n * a**(n - 1) * b",
            "wrong",
            "not the only good end",
        ),
        (
            f"{DOUBLE}    return (1 - a**n - s * sum(a**k for k in range(1, n + 1))\n"
            "            - n * a**(n - 1) * b)",
            "wrong",
            "begins one step too late",
        ),
        (
            f"{DOUBLE}    return a**n + s * sum(a**k for k in range(n)) + n * a**(n - 1) * b",
            "wrong",
            "asked for the rest",
        ),
        (
            f"{DOUBLE}    return 1 - a**n - s * sum(a**k for k in n) - n * a**(n - 1) * b",
            "raised",
            "stopped with TypeError",
        ),
        (
            "s = 1 - 0.25 - 0.1875\n"
            "def p_double(a, b, n):\n"
            "    return 1 - a**n - s * sum(a**k for k in range(n)) - n * a**(n - 1) * b",
            "wrong",
            "You use the `s` of the notebook",
        ),
        (
            "s = 1 - 0.25 - 0.1875\n"
            "def p_double(a, b, n):\n    return 1 - a**3 - s * (1 + a + a**2) - 3 * a**2 * b",
            "wrong",
            "You use the `s` of the notebook",
        ),
        (
            "def p_double(a, b, n):\n    return 1 - a**n - s * sum(a**k for k in range(n))",
            "raised",
            "name 's' is not defined",
        ),
    ],
    "fewest_faults": [
        (
            f"{FEWEST}    return min((len(f) for f, v in tried if v), default=-1)",
            "wrong",
            "You take any broken history",
        ),
        (
            f"{FEWEST}    return min((len(f) for f, v in tried), default=-1)",
            "wrong",
            "the histories that broke nothing as well",
        ),
        (
            f"{FEWEST}    for f, v in tried:\n        if broken in v:\n            return len(f)\n"
            "    return -1",
            "wrong",
            "The list is in no order",
        ),
        (
            f"{FEWEST}    return min((len(f) for f, v in tried if v == {{broken}}), default=-1)",
            "wrong",
            "use `in`, not `==`",
        ),
        (
            f"{FEWEST}    return max((len(f) for f, v in tried if broken in v), default=-1)",
            "wrong",
            "the most faults",
        ),
        (
            f"{FEWEST}    return sum(broken in v for f, v in tried)",
            "wrong",
            "how many histories break it",
        ),
        (
            f"{FEWEST}    return min((len(f) for f, v in tried if broken in v), default=0)",
            "wrong",
            "it breaks by itself",
        ),
        (
            f"{FEWEST}    return min(len(f) for f, v in tried if broken in v)",
            "raised",
            "stopped with ValueError",
        ),
        (
            f"{FEWEST}    return min((f for f, v in tried if broken in v), key=len, default=-1)",
            "wrong",
            "It should be a whole number",
        ),
    ],
}

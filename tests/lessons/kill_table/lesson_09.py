"""Wrong answers to lesson 09: the code, the outcome, and words of the message meant for it."""

from __future__ import annotations

HEAD = "def full_jitter(attempt, base, cap, luck):\n"
CEILING = "    ceiling = min(cap, base * 2.0 ** min(attempt, 1000))\n"
CHAT, WORKER, LIBRARY = "Pip's chat", "the outbox worker", "the worker's HTTP library"
QUICK, LONG, NONE = "two quick tries", "full jitter, long", "no retry"
PLACES = {CHAT: QUICK, WORKER: LONG, LIBRARY: NONE}
BUGS = {"A": (1024, 0.5), "B": (5, 0.5), "C": (0, 0.9)}
TUNED = "from simulator.service.retry import *\ntune_retry = "

WRONG: dict[str, list[tuple[str, str, str]]] = {
    "full_jitter": [
        (
            f"{HEAD}    return luck * min(cap, base * 2**attempt)",
            "raised",
            "Keep the exponent small before you take the power",
        ),
        (
            f"{HEAD}    return luck * min(cap, base * 2.0**attempt)",
            "raised",
            "a float ends near 1.8e308",
        ),
        (
            f"{HEAD}{CEILING}    return min(cap, ceiling + luck * 0.2 * ceiling)",
            "wrong",
            "a fifth of jitter on top",
        ),
        (
            f"{HEAD}    return min(cap, luck * base * 2.0 ** min(attempt, 1000))",
            "wrong",
            "First the cap, then luck",
        ),
        (f"{HEAD}{CEILING}    return ceiling", "wrong", "the ceiling itself, without luck"),
        (
            f"{HEAD}{CEILING}    return ceiling / 2 + luck * ceiling / 2",
            "wrong",
            "Full jitter begins at 0",
        ),
        (
            f"{HEAD}    return luck * base * 2.0 ** min(attempt, 1000)",
            "wrong",
            "There is no cap in it",
        ),
        (
            f"{HEAD}    return luck * min(cap, base * 2.0 ** min(attempt + 1, 1000))",
            "wrong",
            "one step ahead",
        ),
        (
            f"{HEAD}    return luck * min(cap, base * 2.0 ** (min(attempt, 1000) - 1))",
            "wrong",
            "one step behind",
        ),
        (f"{HEAD}    return luck * min(cap, base * (2 ^ attempt))", "wrong", "`^` is a bitwise"),
        (f"{HEAD}    return luck * min(cap, base * attempt)", "wrong", "by the same step"),
        (f"{HEAD}    return luck * cap", "wrong", "over the whole cap from the first"),
        (
            f"import random\n{HEAD}{CEILING}    return random.uniform(0, ceiling)",
            "wrong",
            "An answer must not depend on chance",
        ),
        (f"{HEAD}{CEILING}    print(luck * ceiling)", "wrong", "returned nothing"),
        ("def full_jitter(attempt, base, cap):\n    return cap", "wrong", "does not take what I"),
    ],
    "find_bugs": [
        (f"find_bugs = {BUGS | {'A': (10, 0.5)}}", "wrong", "0.0 to 30.0 s: nothing is wrong"),
        (f"find_bugs = {BUGS | {'A': (1023, 0.5)}}", "wrong", "Where does a float end?"),
        (f"find_bugs = {BUGS | {'B': (4, 0.9)}}", "wrong", "look one attempt further"),
        (f"find_bugs = {BUGS | {'B': (0, 0.9)}}", "wrong", "1.0 to 11.0 s: nothing is wrong"),
        (f"find_bugs = {BUGS | {'C': (0, 0.2)}}", "wrong", "What happens with more luck?"),
        (f"find_bugs = {BUGS | {'C': (9, 0.9)}}", "wrong", "28.0 to 30.0 s"),
        (f"find_bugs = {BUGS | {'C': (0, 1.5)}}", "wrong", "`luck` a number from 0 up to 1"),
        (f"find_bugs = {BUGS | {'A': 1024}}", "wrong", "A is 1024."),
        (f"find_bugs = {BUGS | {'B': (-1, 0.5)}}", "wrong", "a whole number from 0"),
        (f"find_bugs = {BUGS | {'C': (..., ...)}}", "wrong", "C has no call yet"),
        ("find_bugs = [1024, 5, 0]", "wrong", "I expected a dict from A, B and C"),
    ],
    "tune_retry": [
        (f"{TUNED}FullJitter(1.0, 30.0, 20)", "wrong", "still sleeps through"),
        (f"{TUNED}FullJitter(2.0, 8.0, 20)", "wrong", "the shorter the cap, the closer"),
        (f"{TUNED}FullJitter(0.5, 20.0, 20)", "wrong", "makes the early waits longer?"),
        (f"{TUNED}FullJitter(2.0, 20.0, 7)", "wrong", "Their sends were used up"),
        (f"{TUNED}FullJitter(2.0, 20.0, None)", "wrong", "would be sent for ever"),
        (f"{TUNED}Exponential(2.0, 20.0, 20)", "wrong", "leaves those who failed together"),
        (f"{TUNED}LessonFormula(2.0, 20.0, 20)", "wrong", "leaves those who failed together"),
        (f"{TUNED}NoRetry()", "wrong", "nobody answered"),
        (f"{TUNED}FullJitter", "wrong", "a policy with its numbers"),
        (f"{TUNED}20", "wrong", "a policy with its numbers"),
        (
            "class Own:\n"
            "    max_attempts = 20\n"
            "    def delay(self, attempt, random):\n"
            "        return 30 / attempt\n"
            "tune_retry = Own()",
            "raised",
            "ZeroDivisionError",
        ),
    ],
    "choose_policy": [
        (f"choose_policy = {PLACES | {CHAT: LONG}}", "wrong", "Mira has closed the window"),
        (f"choose_policy = {PLACES | {CHAT: NONE}}", "wrong", "One second try costs her"),
        (f"choose_policy = {PLACES | {WORKER: QUICK}}", "wrong", "every refund of that minute"),
        (f"choose_policy = {PLACES | {WORKER: NONE}}", "wrong", "the outbox was built in vain"),
        (f"choose_policy = {PLACES | {LIBRARY: QUICK}}", "wrong", "the two multiply"),
        (f"choose_policy = {PLACES | {LIBRARY: LONG}}", "wrong", "a whole series of attempts"),
        (f"choose_policy = {PLACES | {WORKER: 'jitter'}}", "wrong", "it must be"),
        (f"choose_policy = {PLACES | {WORKER: ...}}", "wrong", "is not sorted yet"),
    ],
}

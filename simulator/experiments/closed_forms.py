"""What mathematics says about retries and queues: the answers that simulations must meet."""

from __future__ import annotations

from math import exp, factorial, prod

__all__ = [
    "calls_with_retries",
    "delay_probability",
    "doubled_by_naive_retries",
    "executions_past_timeout",
    "mean_wait",
    "success_with_retries",
]


def success_with_retries(failure: float, retries: int) -> float:
    """The probability that one of 1 + `retries` sends succeeds: 1 - p^(N + 1).

    The post that table B comes from (brooker.co.za, 28 February 2022) prints p^N, which counts
    the first send as a retry.
    """
    return 1.0 - failure ** (retries + 1)


def calls_with_retries(failure: float, retries: int) -> float:
    """Mean sends of one refund, at most 1 + `retries`: the sum of p^i for i from 0 to N."""
    return sum(failure**sent for sent in range(retries + 1))


def doubled_by_naive_retries(lose_request: float, lose_response: float, attempts: int) -> float:
    """The probability that a refund is paid twice or more, by at most `attempts` sends (derived).

    Each send is lost before the provider with probability a, or its answer is lost with
    probability b, or it is answered, which ends the retries: s = 1 - a - b. Nobody pays twice if
    the first effect was answered, or no send arrived, or just one did and its answer was lost:

        1 - s * sum(a^k, k < n) - a^n - n * a^(n - 1) * b

    Args:
        lose_request: a.
        lose_response: b, as a share of all sends: not "given that there is an answer".
        attempts: n, the first send included.
    """
    a, b, n = lose_request, lose_response, attempts
    answered_at_once = (1.0 - a - b) * sum(a**k for k in range(n))
    return 1.0 - answered_at_once - a**n - n * a ** (n - 1) * b


def executions_past_timeout(
    mean: float, timeout: float, retries: int, *, late_answers: bool
) -> float:
    """Mean executions of a refund whose work may outlast its client's patience (derived).

    Work takes an exponential time, on a provider that is never busy; a client that hears nothing
    for `timeout` sends again at once, at most `retries` times. Send k is made if no earlier one
    was answered: with `late_answers`, none of all earlier ones, which have had k * timeout,
    (k - 1) * timeout ... to finish; without, the answer to an abandoned send is thrown away, and
    each send had one timeout.

    Args:
        mean: seconds of work.
        timeout: seconds a client waits.
        retries: sends after the first.
        late_answers: whether a late answer ends the retries.
    """
    silent = exp(-timeout / mean)  # the probability that a send outlasts its client's patience
    if not late_answers:
        return sum(silent**sent for sent in range(retries + 1))
    return sum(prod(silent**waited for waited in range(1, sent + 1)) for sent in range(retries + 1))


def delay_probability(servers: int, offered: float) -> float:
    """Erlang C: the probability that a request must wait in an M/M/c queue (A. K. Erlang, 1917).

    Args:
        servers: c.
        offered: arrivals a second times seconds of work; less than c, or the queue has no end.

    Raises:
        ValueError: `offered` is not between 0 and `servers`.
    """
    if not 0 <= offered < servers:
        raise ValueError(
            f"offered load is {offered} on {servers} servers; without an end to the queue there "
            "is no mean wait: it must be less than the number of servers."
        )
    top = offered**servers / factorial(servers) * servers / (servers - offered)
    return top / (sum(offered**k / factorial(k) for k in range(servers)) + top)


def mean_wait(servers: int, rate: float, service: float) -> float:
    """Mean seconds in the queue of M/M/c, without the work itself: C / (c / service - rate).

    Args:
        servers: c.
        rate: arrivals a second.
        service: mean seconds of work.
    """
    return delay_probability(servers, rate * service) / (servers / service - rate)

# Lesson 02. People edit this file; `python3 start.py build` makes the two notebooks from it.
# Its questions, predictions and exercises are in simulator/lessons/lesson_02.py, its pictures of
# rates in simulator/lessons/rates_plots.py, its formulas in simulator/lessons/five_ways.py.

# %% [markdown] id=title
"""
# Five ways a tool call fails

*Lesson 02. About {{minutes}} minutes. After section 3 of the source lesson, 16.11.*

After this lesson you can

* cause each of the five ways in which a tool call fails, and name it from a log;
* say after any failure what the caller knows: done, not done, or unknown;
* answer "how often?" with a formula, and check the formula by counting;
* say why "one in a thousand" comes this month, and what no rule without a key can avoid.

You need lesson 01. From mathematics you need only that probabilities of things that can't both
happen are added, and those of things that must both happen are multiplied.
"""

# %% id=import
import pandas as pd

from simulator import Scenario, designs, explore, faults, replay, simulate, sweep
from simulator.lessons import check, predict, progress, question, rates_plots, show
from simulator.lessons.five_ways import FORMULAS, histories, log_of
from simulator.lessons.plots import rate_curve

# %% [markdown] id=questions
"""
## Two questions first

About lesson 01, from memory.
"""

# %% id=question-timeout
# --- solution
question("what-a-timeout-says", "b")
# --- stub
# question("what-a-timeout-says")
# --- end

# %% id=question-share
# --- solution
question("blind-retry-share", "b")
# --- stub
# question("blind-retry-share")
# --- end

# %% [markdown] id=story
"""
## Thursday, half past ten

Tomas has told Ines, and Ines runs the shop. She comes with a pen and two questions:

> "One lost answer did that? Then tell me **what else** can go wrong with such a call. All of it, on
> one page. And then tell me **how often**. If it is once in a blue moon, I have other worries."

The first question has a short answer. (A definite no, such as "this card was closed", is not meant:
that is an answer.) Whatever else befalls a tool call that moves money is one of five things. The
source lesson announces them in its section 3; here they are in words.

| mode | what happens |
|---|---|
| lost request | the provider never hears of it |
| lost response | it pays, and nobody hears of that |
| death | the service dies after the effect and before its record |
| again | the same wish is submitted once more: by Mira, by Pip, by a queue |
| at once | two calls for one wish run at the same time |

All five on the same order, ORD-1001, $500. The first three are faults, and the last two need none:
there it is enough that somebody asks twice.
"""

# %% id=predict-modes
# --- solution
predict.number("modes-that-double", 3)
# --- stub
# predict.number("modes-that-double")
# --- end

# %% [markdown] id=mode-1
"""
### 1. The request is lost

Here are the five in code: what is broken, or who asks when. Then the first of them.
"""

# %% id=show-lost-request
modes = {
    "lost request": {"faults": [faults.lose_request("provider.refund")]},
    "lost response": {"faults": [faults.lose_response("provider.refund")]},
    "death": {"faults": [faults.crash("provider.refund", when="after_answer")]},
    "again": {"scenario": Scenario.resubmitted_elsewhere()},
    "at once": {"scenario": Scenario.double_click()},
}
show(replay(designs.NAIVE, **modes["lost request"]))

# %% [markdown] id=mode-2
"""
For once the blind retry is just right. Nothing had happened, so sending it again repeats nothing.

### 2. The response is lost

You know this one. Put the two pictures side by side and look only at the lane `backend-1`: up to
the clock they are the same.
"""

# %% id=show-lost-response
show(replay(designs.NAIVE, **modes["lost response"]))

# %% [markdown] id=mode-3
"""
### 3. Death between effect and record

Now nothing is wrong with the network. The provider has paid, its answer has arrived, and before the
service can write a line of it to its database, someone pulls the plug: a deployment, a full memory,
a power cut.

Let `ONE_SHOT` face this one. It is the careful design of lesson 01: it sends once, and never again.
"""

# %% id=predict-crash
# --- solution
predict.choice("careful-crash", "b")
# --- stub
# predict.choice("careful-crash")
# --- end

# %% id=show-death
careful = replay(designs.ONE_SHOT, **modes["death"])
show(careful)

# %% id=reveal-crash
assert careful.ledger["amount"].sum() == 1000
predict.reveal("careful-crash", careful.ledger["amount"].sum())

# %% [markdown] id=mode-4
"""
The service did not retry. Pip did, as agents do, and the new life of the service had no memory of
the old one.

### 4. Submitted again

Mira has been told that it is paid, sees no money yet, and asks once more after ten seconds. No
message is lost, nobody dies.
"""

# %% id=show-again
show(replay(designs.NAIVE, **modes["again"]))

# %% [markdown] id=mode-5
"""
### 5. Two at once

She clicks twice, 50 milliseconds apart, and each click reaches another instance of your service.
When the second call comes, the first is still on its way: who looks into the books finds nothing.
"""

# %% id=show-at-once
show(replay(designs.NAIVE, **modes["at once"]))

# %% id=table
page = pd.DataFrame(index=list(modes))
for design in (designs.NAIVE, designs.ONE_SHOT):
    page[design.name] = [str(replay(design, **mode).verdict) for mode in modes.values()]
page

# %% id=reveal-modes
doubled = page["NAIVE"].str.contains("double_refund").sum()
predict.reveal("modes-that-double", doubled)

# %% [markdown] id=page
"""
That is Ines's page. Note the column of the careful one: it goes wrong in all five, in three
different ways.

### Exercise: name the mode

On another day there will be no picture, only a log. `log_of` writes a history in six words:
**asked** (a tool call has come), **sent** (a request to the provider), **paid**, **heard** (its
answer has come), **booked**, **died**. The log of mode 2 is

```python
["asked", "sent", "paid", "sent", "paid", "heard", "booked"]
```

Write a function that reads such a list and names what went wrong: `"lost request"`,
`"lost response"`, `"death"`, `"again"`, `"at once"`, or `"none"`. The logs come from services that
send again, and from services that don't. At most one thing goes wrong in each. (The cell after it
tries your function on the five histories above.)
"""


# %% id=name_mode
def name_mode(log):
    # --- solution
    if "died" in log:
        return "death"
    if log.count("asked") > 1:
        second = log.index("asked", log.index("asked") + 1)
        return "again" if "booked" in log[:second] else "at once"
    if log.count("paid") < log.count("sent"):
        return "lost request"
    return "lost response" if log.count("heard") < log.count("paid") else "none"
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("name_mode", name_mode)

# %% id=name-mode-run
logs = {mode: log_of(replay(designs.NAIVE, **modes[mode])) for mode in modes}
{mode: name_mode(log) for mode, log in logs.items()}

# %% [markdown] id=knows-task
"""
### Exercise: what does the caller know?

`name_mode` could look at `paid`, as we can in a simulator. The service can't: it has only what came
back. A send comes back with one of six words:

* `"paid"`; `"declined"`: the provider says that it will not do it;
* `"no connection"`: it could not even be sent;
* `"timeout"`: nothing came; `"reset"`: the connection broke while waiting;
* `"error 500"`: something went wrong over there, we are not told what.

What does the service know after the sends so far: `"done"`, `"not done"` or `"unknown"`?
"""


# %% id=what_it_knows
def what_it_knows(heard):
    # --- solution
    if "paid" in heard:
        return "done"
    silent = ("timeout", "reset", "error 500")
    return "unknown" if any(word in silent for word in heard) else "not done"
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("what_it_knows", what_it_knows)

# %% [markdown] id=knows-after
"""
Take this with you: **an error is not a no.** Of 21 published systems that promise to call exactly
once, 18 took some silence for a failure and could then pay again.

## How often?

For Ines's second question let each fault strike at random, and count three things: refunds **paid
twice**, refunds **never paid**, and customers **told untruly** ("paid" when it is not, "refused"
when it is). Four designs meet the same luck. Two of them you know. The two others are further up
the ladder that this course climbs:

* `DURABLE_RECORD` first writes each refund down, under a name of its own, in a table that takes a
  name only once. To the provider it sends as before;
* `PROVIDER_KEY` does the same, and tells the provider that name as well, on every attempt. The
  provider pays no name twice.

`faults.Rates` says how likely each fault is. First the messages to and from the provider. Then
`crash`, which kills the service at any of its steps, and `duplicate_request`, which delivers any
message a second time, Pip's tool call among them: that is mode 5, and mode 4 in a hurry.
"""

# %% id=count-messages
four = [designs.NAIVE, designs.ONE_SHOT, designs.DURABLE_RECORD, designs.PROVIDER_KEY]
levels = (0.05, 0.1, 0.2, 0.3)


def count(fault, **settings):
    rates = [faults.Rates(**{fault: p}, **settings) for p in levels]
    return sweep(four, rates, refunds=250).rename(columns={fault: "x"})


counted = {"request lost": count("lose_request"), "answer lost": count("lose_response")}

# %% id=grid
counted["service dies"] = count("crash")
counted["delivered twice"] = count("duplicate_request", where="everywhere")
show(rates_plots.rate_grid(counted, FORMULAS, draw_caption=False))

# %% [markdown] id=grid-read
"""
Each small picture is one fault (column) and one kind of harm (row). Points are counts of 250
refunds each, with 95 % intervals, set side by side so that you see them; lines are formulas. About
one interval in twenty may miss its line.

* **Row 1, paid twice.** `NAIVE` rises in three columns. `ONE_SHOT` stays at zero only in the first
  two: it doubles just as often as `NAIVE` when the service dies or a call comes twice.
* **Rows 2 and 3.** What `ONE_SHOT` saves by not sending again comes back here: people who are never
  paid, and people who were paid and are told that they were not.
* `DURABLE_RECORD` knows a call that comes again, so the last two columns get better, and the second
  does not. `PROVIDER_KEY` never pays twice at all. But both leave refunds behind, half done, when
  the service dies. Mending that is most of this course.

## The formula, in three small steps

Where do the lines come from? Take the hardest: `NAIVE`, at most $n$ sends, when both kinds of
message get lost. Each send ends in one of three ways:

* its request is **lost**, with probability $a$: not paid;
* it is paid and its answer is lost, it stays **unheard**, with probability $b$;
* it is **answered**, with probability $s = 1 - a - b$, and nothing more is sent.

It is easier to count the refunds that are *not* paid twice. There are three sorts of them, one step
for each. `chance` checks every step the long way: it goes through all ways in which $n$ sends can
end, and adds up the probabilities of those that fit.
"""

# %% id=chance
from itertools import product
from math import isclose, prod


def chance(fits, a, b, n):
    ends = {"lost": a, "unheard": b, "answered": 1 - a - b}
    total = 0
    for way in product(ends, repeat=n):
        sends = way[: way.index("answered") + 1] if "answered" in way else way
        if fits(len(sends) - sends.count("lost"), "answered" in way):
            total += prod(ends[end] for end in way)
    return total


a, b = 0.25, 0.1875
s = 1 - a - b

# %% [markdown] id=steps
"""
**Step 1: never paid.** All three requests are lost, one after the other: $a \\cdot a \\cdot a$.

**Step 2: paid once, and heard.** The answered send may be the first, or come after one lost
request, or after two: $s + a s + a^2 s$.

**Step 3: paid once, and unheard.** One request arrives, its answer is lost, and so are the two
other requests. That one is yours; first the check of the other two.
"""

# %% id=steps-check
never = a**3
once_heard = s * (1 + a + a**2)
assert isclose(never, chance(lambda paid, heard: paid == 0, a, b, 3))
assert isclose(once_heard, chance(lambda paid, heard: paid == 1 and heard, a, b, 3))

# %% id=predict-unheard
# --- solution
predict.choice("one-unheard", "a")
# --- stub
# predict.choice("one-unheard")
# --- end

# %% id=step-3-check
once_unheard = 3 * a**2 * b
assert isclose(once_unheard, chance(lambda paid, heard: paid == 1 and not heard, a, b, 3))
predict.reveal("one-unheard", "b")

# %% [markdown] id=p-double-task
"""
### Exercise: complete the formula

All else is paid twice, or more often. Write it for any `a`, `b` and number `n` of sends. (Work out
the `s` inside the function: the one above belongs to one `a` and one `b`.)
"""


# %% id=p_double
def p_double(a, b, n):
    # --- solution
    s = 1 - a - b
    return 1 - a**n - s * sum(a**k for k in range(n)) - n * a ** (n - 1) * b
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("p_double", p_double)

# %% id=p-double-run
# Your formula, the three steps, and all ways one by one.
by_steps = 1 - never - once_heard - once_unheard
p_double(a, b, 3), by_steps, chance(lambda paid, heard: paid > 1, a, b, 3)

# %% [markdown] id=curve-words
"""
Three roads to one number. And a fourth: count. Requests and answers are each lost with probability
$p$. (An answer can only be lost if there is one, so $a = p$ and $b = (1 - p)\\,p$.) The lines are
the course's own copy of your formula.
"""

# %% id=curve
from simulator.experiments.closed_forms import doubled_by_naive_retries
from simulator.service.retry import Immediate

tries = {f"{n} sends": designs.NAIVE.but(retry=Immediate(n)) for n in (2, 3, 6)}
both = [faults.Rates(lose_request=p, lose_response=p) for p in (0.1, 0.2, 0.3, 0.4, 0.5)]
measured = sweep(tries, both, refunds=500).rename(columns={"lose_request": "x"})
formula = {
    "2 sends": lambda p: doubled_by_naive_retries(p, (1 - p) * p, 2),
    "3 sends": lambda p: doubled_by_naive_retries(p, (1 - p) * p, 3),
    "6 sends": lambda p: doubled_by_naive_retries(p, (1 - p) * p, 6),
}
show(
    rate_curve(
        measured,
        closed_form=formula,
        where="With {x} of requests and of answers lost",
        xlabel="probability, for requests and for answers",
        draw_caption=False,
    )
)

# %% [markdown] id=rare-words
"""
Four roads, one number. (And do you see the lower two lines fall again? Where most requests are
lost, few are paid even once, let alone twice. A bad network hides the fault. It does not cure it.)

## "One in a thousand is not often"

So says Ines. Her network is a good one: say that in the end one refund in a thousand is paid twice.
Lantern Books makes 40 refunds a day.
"""

# %% id=predict-odds
# --- solution
predict.number("even-odds", 500)
# --- stub
# predict.number("even-odds")
# --- end

# %% id=reveal-odds
days = rates_plots.days_to_even_odds(40, 0.001)
assert days == 18
predict.reveal("even-odds", days)

# %% id=odds
show(rates_plots.first_double([40, 400, 4_000], 0.001, draw_caption=False))

# %% [markdown] id=rare-formula
"""
That one refund goes well has probability $1 - p$; that $N$ of them all go well, $(1 - p)^N$. The
odds are even on the day when this has fallen to one half.

Count it as well: 100 working days of Lantern Books, 4,000 refunds, with one answer in a thousand
lost. The formula expects 4. And then a large shop: at 10,000 refunds a day, with *each* of the
four faults at one in a thousand, the formulas give this many a day. (Faults that rare hardly ever
meet in one refund, so their rates may be added.)
"""

# %% id=hundred-days
hundred_days = simulate(designs.NAIVE, faults.Rates(lose_response=0.001), refunds=4_000)
hundred_days.frame.query("outcome == 'double_refund'").round(4)

# %% id=per-day
names = [design.name for design in four]
per_day = pd.DataFrame(0.0, index=names, columns=list(rates_plots.OUTCOMES))
for (_, outcome), rates in FORMULAS.items():
    for name, rate in rates.items():
        per_day.loc[name, outcome] += 10_000 * rate(0.001)
per_day.round(1)

# %% [markdown] id=rare-after
"""
$500 too much, 47 times a day: more than $23,000. Every one of them is a rare event.

## Turning the dial

Ines looks at the rows. "Then set it somewhere in the middle. Let it try *a bit*."
"""

# %% id=predict-attempts
# --- solution
predict.choice("more-attempts", "a")
# --- stub
# predict.choice("more-attempts")
# --- end

# %% id=dial
dial = {str(n): designs.NAIVE.but(retry=Immediate(n)) for n in range(1, 7)}
bad_day = faults.Rates(lose_request=a, lose_response=b / (1 - a))
turned = sweep(dial, bad_day, refunds=1_200)
turned = turned.assign(x=turned["design"].astype(int))
by_theory = {
    "double_refund": lambda n: doubled_by_naive_retries(a, b, n),
    "lost_refund": lambda n: a**n,
    "false_answer": lambda n: (a + b) ** n - a**n,
}
show(rates_plots.by_attempts(turned, by_theory, draw_caption=False))

# %% id=reveal-attempts
predict.reveal("more-attempts", "b")

# %% [markdown] id=fewest-task
"""
One attempt is `ONE_SHOT`, and the harm is all on the customer's side. From there on it moves over
to the shop's. Nowhere is it gone.

## Which design is least bad?

Rates depend on a network, and networks differ. Another question does not: how **few** things must
go wrong? Where one is enough, it will happen; where three must come together, you may wait for
years.

### Exercise: how few faults?

How few faults make `ONE_SHOT` lie to Mira (`false_answer`)? `histories(design)` plays the refund
without a fault, and with every single fault that there is. It gives a list of `(faults, verdict)`:
the faults of a history, and the names of what it broke. For example:

```python
tried = [([], set()), (["lose_request"], {"lost_refund"}), (["lose_response"], {"false_answer"})]
fewest_faults(tried, "false_answer")       # 1
fewest_faults(tried, "double_refund")      # -1: none of these breaks it
```
"""


# %% id=fewest_faults
def fewest_faults(tried, broken):
    # --- solution
    counts = [len(faults) for faults, verdict in tried if broken in verdict]
    return min(counts, default=-1)
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("fewest_faults", fewest_faults)

# %% id=fewest-run
# To make ONE_SHOT lie? To make it pay twice? And the one with the key?
one_shot, with_key = histories(designs.ONE_SHOT), histories(designs.PROVIDER_KEY)
[
    fewest_faults(one_shot, "false_answer"),
    fewest_faults(one_shot, "double_refund"),
    fewest_faults(with_key, "double_refund"),
]

# %% id=predict-least
# --- solution
predict.choice("least-bad", "b")
# --- stub
# predict.choice("least-bad")
# --- end

# %% [markdown] id=proof
"""
One fault makes `ONE_SHOT` lie, and one makes it pay twice. No single fault, of all there are, makes
`PROVIDER_KEY` pay twice.

## Why the dial has no good setting

Suppose the provider takes each request for a new one, as it does without a key. Your service hears
nothing. Its rule at that moment, however clever, says *send again* or *don't*, and it says the same
whether the request or the answer was lost: in lesson 01 you saw that the two look alike.

* A rule that sends again pays twice where the answer was lost.
* A rule that does not leaves the refund unpaid where the request was lost.

So **without a key one lost message is always enough**: at best you choose which one. `explore`
checks it. It tries the history without a fault, then each with one, then each with two, and stops
at the first that goes wrong. Four rules, with nothing but lost messages; then the one with the key.
"""

# %% id=rules
from simulator.service.retry import Exponential
from simulator.service.silence import outcome_unknown

rules = [
    designs.NAIVE,
    designs.NAIVE.but(name="PATIENT", retry=Exponential(max_attempts=10)),
    designs.ONE_SHOT,
    designs.ONE_SHOT.but(name="HOPE", on_silence=outcome_unknown),
    designs.PROVIDER_KEY,
]
for rule in rules:
    found = explore(rule, kinds=["lose_request", "lose_response"])
    run = found.counterexample
    says = f"{run.faults[0].kind} breaks {run.verdict}" if run else "nothing breaks"
    print(f"{rule.name:<12} {found.schedules:>3} histories: {says}")

# %% id=reveal-least
assert found.complete
predict.reveal("least-bad", None)

# %% [markdown] id=end
"""
The last line is the way out: with the same key on every attempt, sending again is harmless, and the
service need not know what it cannot know. (Asking the provider first is another way, if its look-up
is never late.)

## Key points

* Five modes: lost request, lost response, death between effect and record, again, at once. In four
  of them a blind retry, or a second call, pays twice.
* An error is not a no. After a timeout, a reset or an error 500 the outcome is **unknown**.
* Never sending again does not protect from paying twice: agents, customers and queues repeat, too.
* $P(\\text{double}) = 1 - a^n - s\\,(1 + a + \\dots + a^{n-1}) - n\\,a^{n-1} b$. More attempts move
  the harm from the customer to the shop.
* One in a thousand, 40 times a day: even odds within 18 days.
* Without a key a rule can choose between paying twice and not paying, and can't avoid both.

## What comes next

"Then give it a key", says Ines, and goes. But what is the same request, exactly? In **lesson 03,
what idempotency is**, you find out that doing a thing twice *as if* it had been done once is a
promise that can be tested, and that most code which makes it breaks it.
"""

# %% id=progress tags=nbval-ignore-output
progress()

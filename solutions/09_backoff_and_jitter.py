# Lesson 09. People edit this file; `python3 start.py build` makes the two notebooks from it.
# Its questions, predictions and exercises are in simulator/lessons/lesson_09.py.

# %% [markdown] id=title
"""
# Backoff and jitter

*Lesson 09. About {{minutes}} minutes. After section 11 of the source lesson, 16.11, and the part
of section 10 that it rests on.*

After this lesson you can

* say what a thousand polite customers do to a provider that has just come back;
* write a delay that spreads them out, and find the fault in three that don't;
* tune base, cap and attempts against numbers, and not by feeling;
* tell a slow service from one that will never recover, and end it;
* say why none of this makes a retry safe.

You need the lessons before this one, for the key above all, and nothing about queues.
"""

# %% id=import
import random

import pandas as pd

from simulator import storm
from simulator.lessons import backoff, check, predict, progress, question, show
from simulator.lessons.storm_plots import beat, calls_after_outage
from simulator.service import retry

# %% [markdown] id=questions
"""
## Two questions first

About section 10 of the source lesson, and about the key. From memory, please.
"""

# %% id=question-blind
# --- solution
question("blind-replay", "b")
# --- stub
# question("blind-replay")
# --- end

# %% id=question-key
# --- solution
question("same-key-again", "b")
# --- stub
# question("same-key-again")
# --- end

# %% [markdown] id=story
"""
## The recall

Mira's refund once more, and this time she is not alone. On Monday at nine the publisher of the
atlas recalls all copies. A thousand schools ask Pip for their money at once, ORD-1001 among them,
and at that very moment the payment provider goes down. For ten seconds it hears nothing. Then it is
back, and does what it can: 125 refunds a second. Eight seconds of work, and all is well.

Your service waits one second for an answer, then pauses one second and sends again, twelve times in
all. To see the load by itself, the key is switched off for now; we come back to it. What will
become of the thousand?
"""

# %% id=predict-fixed
# --- solution
predict.number("fixed-pause", 900)
# --- stub
# predict.number("fixed-pause")
# --- end

# %% id=fixed
fixed = storm(1_000, retry.Fixed(seconds=1.0, max_attempts=12), outages=[(0, 10)])
predict.reveal("fixed-pause", fixed.answered)

# %% id=fixed-show
show(calls_after_outage({"fixed": fixed}, capacity=125, until=30))

# %% [markdown] id=fixed-read
"""
Read the picture from the left. The grey band is the outage. The line is calls a second: a
thousand, nothing, a thousand, nothing. They failed together, so they wait together and come back
together: a **thundering herd**. The filled block, right after the outage, is what arrives in time
to be heard: the first of the thousand, as many as fit into one second.

And the others? The provider did not turn them away. It stood them in its queue and did the work:
"""

# %% id=fixed-work
assert fixed.answered < 130
pd.Series({"paid": fixed.paid, "twice": fixed.double_refunds, "heard": fixed.answered})

# %% [markdown] id=formulas
"""
All thousand were paid, 876 of them more than once, and just these 876 never heard of it. No single
retry was rude. Together they were.

## Wait longer, and not all equally long

The cure has two halves. **Backoff**: wait longer after each failure, so that a provider in trouble
is asked less and less. **Jitter**: add luck, so that those who failed together don't come back
together. This is what the source lesson prints in section 11:

```python
def calculate_retry_delay(
    attempt: int, base_delay: float = 1.0, max_delay: float = 30.0
) -> float:
    # 2^attempt (1s, 2s, 4s, 8s, 16s...)
    exponential_delay = min(max_delay, base_delay * (2 ** attempt))

    # Full Jitter: randomize within the window
    jitter = random.uniform(0, exponential_delay * 0.2)

    return min(max_delay, exponential_delay + jitter)
```

The usual forms, where *ceiling* is `min(cap, base * 2 ** attempt)` and U draws a number evenly
between two ends:

| name | delay after failed attempt `attempt` = 0, 1, 2, … |
|---|---|
| fixed | base |
| exponential | ceiling |
| the lesson's | min(cap, ceiling + U(0, 0.2 · ceiling)) |
| full jitter | U(0, ceiling) |
| equal jitter | ceiling / 2 + U(0, ceiling / 2) |
| decorrelated | min(cap, U(base, 3 · the delay before)) |

Base 1 s, cap 30 s, twelve sends in all, for each of them the same outage. Which makes the lowest
wave?
"""

# %% id=predict-wave
# --- solution
predict.choice("lowest-wave", "c")
# --- stub
# predict.choice("lowest-wave")
# --- end

# %% id=seven
from simulator.experiments.outage import policies

seven = {name: policy for name, policy in policies().items() if name != "immediate"}
loads = {name: storm(1_000, policy, outages=[(0, 10)]) for name, policy in seven.items()}
served = {name: load for name, load in loads.items() if load.answered == 1_000}
predict.reveal("lowest-wave", min(served, key=lambda name: served[name].peak))

# %% id=seven-show
show(calls_after_outage(loads, capacity=125, until=100))

# %% [markdown] id=seven-read
"""
All panels have one scale. *None* is quiet, and has helped nobody. *Exponential* waits longer and
longer, and still comes as one block: each block is a thousand calls against 125 a second, so it
takes beat after beat. The lesson's formula makes hills out of blocks. With *full* there are no more
hills. The three with real jitter are done within half a minute; compare where their first calls
after the outage stand against the dashed line.
"""

# %% [markdown] id=cap
"""
## At the cap

Ten seconds is a short outage. Let it last five minutes, and let nobody give up. By then everybody
has backed off to the cap of 30 seconds. This is when jitter is needed most.
"""

# %% id=predict-beat
# --- solution
predict.number("seconds-with-calls", 30)
# --- stub
# predict.number("seconds-with-calls")
# --- end

# %% id=beat
from simulator.experiments.outage import at_the_cap

capped = at_the_cap(retry.LessonFormula(max_attempts=None), outage=300)
last_minute = capped.series["calls"].loc[240:299]
predict.reveal("seconds-with-calls", (last_minute > 0).sum())

# %% [markdown] id=why
"""
A heartbeat: silence, then everybody. But the formula has luck in it! Where did it go? Read its
three lines above once more, slowly, with `attempt = 5`.
"""

# %% id=predict-why
# --- solution
predict.choice("where-luck-goes", "a")
# --- stub
# predict.choice("where-luck-goes")
# --- end

# %% id=why-ask
# Ask the formula itself, as it was published: six customers each, after four attempts.
random.seed(1611)
for attempt in (2, 4, 5, 9):
    print(attempt, [round(retry.calculate_retry_delay(attempt), 1) for _ in range(6)])
predict.reveal("where-luck-goes", "c")

# %% id=why-show
from simulator.lessons.backoff_plots import delay_cloud

lesson, full = retry.LessonFormula(max_attempts=None), retry.FullJitter(max_attempts=None)
show(delay_cloud({"the lesson's formula": lesson, "full jitter": full}))

# %% [markdown] id=why-read
"""
Each dot is one customer's delay. From attempt 5 on the power alone is at the cap; luck is added *on
top*, and `min` takes all of it off again. The name in the comment is wrong as well: full jitter
means anywhere from 0 to the ceiling, and this is the ceiling and up to a fifth more.

### Exercise: repair it

Write full jitter. So that it can be checked, luck comes as an argument: a number from 0 up to 1,
and the delay is that share of the ceiling. An outage may be long and a cap short, so it must work
for every attempt up to a million.

```python
full_jitter(3, 1.0, 30.0, 0.5)       # 4.0: half of 8
full_jitter(10, 1.0, 30.0, 0.5)      # 15.0: half of the cap
```
"""


# %% id=full_jitter
def full_jitter(attempt, base, cap, luck):
    # --- solution
    return luck * min(cap, base * 2.0 ** min(attempt, 1000))
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("full_jitter", full_jitter)

# %% id=yours
# The same five minutes: with the lesson's formula, and with yours, once it gives numbers.
show(beat(backoff.returning(full_jitter)))

# %% [markdown] id=libraries
"""
### Exercise: three libraries

Yours is not the first repair. Here are three formulas as published libraries had them, retold in
one notation: base 1 s, cap 30 s, `luck` from 0 up to 1. Each has one fault. (A was reported for
Twisted, stamina and elastic-transport, C for Caldera; B is the order of steps in urllib3.)
"""

# %% id=libraries-show
from inspect import getsource

print("\n\n".join(getsource(formula) for formula in backoff.LIBRARIES.values()))

# %% [markdown] id=libraries-ask
"""
Show the bug: give for each a pair `(attempt, luck)` at which it raises an error, or gives a
negative delay, or gives everybody the same one, whatever their luck.
"""

# %% id=find_bugs
find_bugs = {
    # --- solution
    "A": (1024, 0.5),
    "B": (5, 0.5),
    "C": (0, 0.9),
    # --- stub
    # "A": (..., ...),  # (attempt, luck)
    # "B": (..., ...),
    # "C": (..., ...),
    # --- end
}
check("find_bugs", find_bugs)

# %% [markdown] id=tune
"""
### Exercise: tune it

Full jitter still has three numbers. Choose them for an outage of **30 seconds**. In each of five
runs, with five kinds of luck:

* nobody is left without an answer, and all have one within 25 s after the outage;
* no second after it has more than 120 calls, since the provider can do 125;
* a refund takes at most 7 calls, and nobody sends more than 20 times.

The check runs the storm with your policy and draws it. Feel free to miss: each miss says what the
number did.
"""

# %% id=tune_retry
from simulator.service.retry import FullJitter

# --- solution
tune_retry = FullJitter(base=2.0, cap=20.0, max_attempts=20)
# --- stub
# tune_retry = ...  # FullJitter(base=1.0, cap=30.0, max_attempts=12), to begin with
# --- end
check("tune_retry", tune_retry)

# %% [markdown] id=famous
"""
## The famous figure, and its trap

Most of what people say about jitter comes from one article (M. Brooker, AWS, 2015) and one figure.
Its clients all change one row of a database: read its version, write, and if somebody else was
faster, wait and try again. Nothing is down; they only get in each other's way. Which policy has
190 of them done first?
"""

# %% id=predict-first
# --- solution
predict.choice("first-to-finish", "a")
# --- stub
# predict.choice("first-to-finish")
# --- end

# %% id=unlimited
from simulator.experiments.occ import compare

unlimited = compare([10, 50, 100, 190], repetitions=5)
last = unlimited.query("clients == 190 and metric == 'seconds'").set_index("policy")
predict.reveal("first-to-finish", last["mean"].idxmin())

# %% [markdown] id=capacity
"""
*No backoff* wins? Then what is all this for? Here is the trap: that server has **no capacity**. It
answers a thousand calls as fast as one, so a call in vain costs nobody anything. Give it a limit of
500 requests a second, and draw both, with intervals (95 %, from 5 races each; the article has
none).
"""

# %% id=busy-show
from simulator.lessons.storm_plots import contention

busy = compare([10, 50, 100, 190], repetitions=5, service=0.002)
show(contention(unlimited, busy=busy, service=0.002))

# %% [markdown] id=sentences
"""
Above, the article's world; below, one where work takes time. There *none* is last of all: its own
retries stand in the queue before the writes that would succeed. Ask of every such figure: *what
could the server do?*

Two of the article's sentences don't survive more clients either. It says that equal jitter does
slightly more work than full, and that full takes slightly more time than decorrelated. Take 250
clients, the same luck for both, and look at the differences, with their intervals:
"""

# %% id=sentences-run
differences = backoff.differences(clients=250, races=25)
assert (differences["high"] < 0).all()
differences.round(1)

# %% [markdown] id=metastable
"""
All ends are below zero: here equal does *less* work than full, and full is the *faster* one.
Neither sentence was false for the sizes it was measured at. Measure at yours.

## Work that nobody waits for

So far everybody came once. A real service has traffic: new refunds come, whatever became of the old
ones. Say 200 a second, steadily, from many shops, at a provider that can do 300. All clients wait
one second and retry once. At second 10 the provider freezes, for ten seconds: a long pause for
garbage collection, a failing disk. Requests wait in its queue; nothing is lost. At second 20 it
goes on at full speed.
"""

# %% id=predict-freeze
# --- solution
predict.number("after-the-freeze", 200)
# --- stub
# predict.number("after-the-freeze")
# --- end

# %% id=freeze
frozen = backoff.after_freeze(retry.Immediate(max_attempts=2))
predict.reveal("after-the-freeze", frozen.series["goodput"].iloc[-10:].mean())

# %% [markdown] id=goodput
"""
The trigger is long gone, the provider is healthy and works at its limit, and **nobody** is served.
Its work is called *throughput*; what still helps somebody is **goodput**. This state keeps itself
alive and has a name, **metastable** (Bronson and others, HotOS 2021).

Below it is drawn in another way: traffic goes up slowly, then down again, and each point is the
goodput at that load. On the left the provider's queue holds 1,000 requests, more than three seconds
of work, for clients who wait one. On the right it holds 150 and turns the rest away.
"""

# %% id=hysteresis-show
from simulator.lessons.storm_plots import hysteresis_loop

long_queue, short_queue = backoff.up_and_down(1_000), backoff.up_and_down(150)
show(hysteresis_loop({"a long queue": long_queue, "a short queue": short_queue}))

# %% [markdown] id=ends
"""
At the same load, two states, depending on where one came from: **hysteresis**. Turning the traffic
back down to where all was well does not help; it must go far below. (Three runs a point.)

Back to the freeze. What would have ended it?
"""

# %% id=predict-ends
# --- solution
predict.choice("what-ends-it", "b")
# --- stub
# predict.choice("what-ends-it")
# --- end

# %% id=ends-run
from simulator.experiments.storm import TokenBucket
from simulator.lessons.backoff_plots import recovery

ends = {
    "one retry at once": frozen,
    "one retry with full jitter": backoff.after_freeze(retry.FullJitter(max_attempts=2)),
    "no retry": backoff.after_freeze(retry.NoRetry()),
    "a budget": backoff.after_freeze(guard=TokenBucket),
    "shedding": backoff.after_freeze(sheds=True),
    "a short queue": backoff.after_freeze(queue_limit=150),
}
at_the_end = {name: load.series["goodput"].loc[70:].mean() for name, load in ends.items()}
predict.reveal("what-ends-it", [name for name in ends if at_the_end[name] < 100][-1])

# %% id=ends-show
show(recovery(ends, offered=200, capacity=300))

# %% [markdown] id=ends-read
"""
Jitter moves calls about. It does not remove one. That was enough for the recall, where a thousand
came and then no more; it is not enough where the next two hundred come every second. What ends a
metastable state is **less work**: fewer retries (a limit, or a **budget** that allows them to be at
most a tenth of all refunds), or less work in vain (**shedding** what nobody waits for, a queue
shorter than anybody's patience). Brooker said it himself in 2022: backoff helps only if it reduces
the total work.

## And the money?

Full jitter was the calmest of all, and after that first outage it paid nobody twice: no wave, no
late answer. So is it safe? Let one answer in a hundred get lost, as on any day.
"""

# %% id=predict-money
# --- solution
predict.number("jitter-and-money", 0)
# --- stub
# predict.number("jitter-and-money")
# --- end

# %% id=money
lossy = {"outages": [(0, 10)], "lose_response": 0.01}
runs = [storm(1_000, seven["full"], seed=seed, **lossy) for seed in range(1, 11)]
predict.reveal("jitter-and-money", sum(run.double_refunds for run in runs) / 10)

# %% id=money-show
from simulator.experiments.outage import storms, summary
from simulator.lessons.storm_plots import doubles_and_load

some = {name: policy for name, policy in seven.items() if name != "none"}
bare = summary(storms(some, seeds=(1, 2, 3), **lossy))
keyed = summary(storms(some, seeds=(1, 2, 3), key=True, **lossy))
show(doubles_and_load(bare, keyed=keyed))

# %% [markdown] id=money-read
"""
To the right, waves; upwards, money. Backoff and jitter move a policy to the left, and some way
down: a smaller wave is heard in time. The rest of the way is the key's alone. With it (the hollow
marks) the waves are as high as before, and every refund is paid once.

### Exercise: three places that retry

Three places of your own service could retry. **Pip's chat**: Mira looks at the screen; what can't
be finished is "being verified", and the worker goes on with it. **The outbox worker**: it sends
what is in the outbox, with the key, and nobody waits on the line. **The worker's HTTP library**,
inside each of the worker's sends: it offers retries, too.
"""

# %% id=choose_policy
choose_policy = {
    # --- solution
    "Pip's chat": "two quick tries",
    "the outbox worker": "full jitter, long",
    "the worker's HTTP library": "no retry",
    # --- stub
    # "Pip's chat": ...,  # "two quick tries", "full jitter, long" or "no retry"
    # "the outbox worker": ...,
    # "the worker's HTTP library": ...,
    # --- end
}
check("choose_policy", choose_policy)

# %% [markdown] id=plateau
"""
Now predict the worker's curve. 500 refunds are in the outbox, the provider has been down for
minutes, and full jitter has them all at the cap.
"""

# %% id=predict-plateau
# --- solution
predict.number("plateau", 500)
# --- stub
# predict.number("plateau")
# --- end

# %% id=plateau-run
long, quick = retry.FullJitter(max_attempts=None), retry.FullJitter(max_attempts=2)
library = retry.Immediate(max_attempts=3)
workers = {
    "full jitter, long": at_the_cap(long, clients=500),
    "two quick tries": at_the_cap(quick, clients=500),
    "full jitter, and a library below it": at_the_cap([long, library], clients=500),
}
calls = {name: run.series["calls"][150:300].sum() / 150 for name, run in workers.items()}
predict.reveal("plateau", calls["full jitter, long"])

# %% id=plateau-table
heard = {name: run.answered for name, run in workers.items()}
pd.DataFrame({"calls a second": calls, "answered in the end": heard}).round().astype(int)

# %% [markdown] id=key-points
"""
A flat line, and you can compute it: customers, divided by half the cap plus the timeout. Two quick
tries leave the worker with nothing, and a library that tries three times below it nearly triples
the load. Nobody who reads the worker's code would see why.

## Key points

* Those who fail together come back together. Backoff makes the herd rarer, **jitter** takes it
  apart. Full jitter: anywhere from 0 to min(cap, base · 2^attempt).
* First the power, with a small exponent; then the cap; then luck *below* it. The lesson's formula
  adds luck above the cap and cuts it off: at the cap it is one beat.
* At the cap a fleet makes customers / (cap / 2 + timeout) calls a second. It must be well below
  what the provider can do.
* Ask of every figure what the server could do. Without a capacity *no backoff* wins.
* Steady traffic with retries can lock a healthy service up. Less work ends it: a limit, a budget,
  shedding, a short queue, retries in one layer. Jitter alone doesn't.
* When a retry is sent decides about load. Whether it is safe is decided by the **key**.

## What comes next

One thousand customers wanted a thousand refunds. What if two of them want the *same* one, at the
same time? **Lesson 10, race conditions**, lets two requests meet on one balance.
"""

# %% id=progress tags=nbval-ignore-output
progress()

from __future__ import annotations

import pytest

from simulator.experiments.layers import layered, layers_by_attempts


def test_while_the_provider_is_down_layers_multiply() -> None:
    for row in layers_by_attempts(layers=(1, 2, 3), attempts=(1, 2, 3)).to_dict("records"):
        assert row["calls"] == row["attempts"] ** row["layers"]


def test_layers_are_one_loop_with_as_many_attempts_as_their_product() -> None:
    # with failures at random, a layer stops at the first success: a sum of p^i, 9 attempts
    calls = layered(2, 3, failure_rate=0.7, clients=5_000).calls / 5_000
    assert calls == pytest.approx(sum(0.7**sent for sent in range(9)), rel=0.05)

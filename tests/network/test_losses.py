"""The losses of Algorithm 1, with numbers worked out by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepcfr.network.fit import advantage_loss, masked_softmax, strategy_loss

LEGAL = torch.tensor([[True, True, False], [True, True, True]])
Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def test_advantage_loss_by_hand() -> None:
    predicted = torch.tensor([[1.0, 2.0, 50.0], [0.0, -1.0, 2.0]], requires_grad=True)
    advantage = torch.tensor([[0.0, 4.0, 0.0], [1.0, 1.0, 2.0]])
    # first sample 1 + 4, second 1 + 4 + 0; the sum of 0.5 * 5 and 2 * 5
    loss = advantage_loss(predicted, advantage, LEGAL, torch.tensor([0.5, 2.0]))
    assert loss.item() == 12.5
    loss.backward()
    assert predicted.grad.tolist() == [[1.0, -2.0, 0.0], [-4.0, -8.0, 0.0]]  # 2 * weight * (predicted - advantage)
    assert advantage_loss(predicted, advantage, LEGAL, torch.tensor([1.0, 0.0])).item() == 5.0
    assert float(advantage_loss(advantage, advantage, LEGAL, torch.ones(2))) == 0.0


def test_strategy_loss_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0, 7.0], [math.log(1.0), math.log(3.0), math.log(4.0)]])
    strategy = torch.tensor([[1.0, 0.0, 0.0], [0.125, 0.625, 0.25]])
    # first (1/2, 1/2, 0): 1/4 + 1/4; second (1/8, 3/8, 4/8): 0 + 1/16 + 1/16; the sum of 1 * 1/2 and 4 * 1/8
    assert float(strategy_loss(logits, strategy, LEGAL, torch.tensor([1.0, 4.0]))) == pytest.approx(1.0, abs=1e-6)
    assert float(strategy_loss(logits, strategy, LEGAL, torch.tensor([0.0, 1.0]))) == pytest.approx(0.125, abs=1e-6)


def test_strategy_gradient_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0, 7.0]], requires_grad=True)
    strategy_loss(logits, torch.tensor([[1.0, 0.0, 0.0]]), LEGAL[:1], torch.tensor([3.0])).backward()
    # d/dx of 3 (s - 1)^2 + 3 (1 - s)^2 with ds/dx = s (1 - s) = 1/4 is 12 (s - 1) / 4
    assert logits.grad[0].tolist() == pytest.approx([-1.5, 1.5, 0.0], abs=1e-6)


@pytest.mark.parametrize("loss", [advantage_loss, strategy_loss])
@settings(max_examples=20)
@given(st.floats(-1e6, 1e6, width=32))
def test_outputs_of_illegal_actions_have_no_influence(loss: Loss, illegal: float) -> None:
    results = []
    for value in (0.0, illegal):
        predicted = torch.tensor([[0.3, -0.2, value], [0.1, 0.2, 0.4]], requires_grad=True)
        target = torch.tensor([[0.75, 0.25, value if loss is advantage_loss else 0.0], [0.5, 0.25, 0.25]])
        result = loss(predicted, target, LEGAL, torch.tensor([1.0, 2.0]))
        result.backward()
        assert predicted.grad[0, 2] == 0
        assert bool((predicted.grad[LEGAL] != 0).all())
        results.append((result.item(), predicted.grad.tolist()))
    assert results[0] == results[1]


LOGITS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=4, max_size=4)
MASKS = st.lists(st.booleans(), min_size=4, max_size=4).filter(any)


@settings(max_examples=50)
@given(LOGITS, MASKS)
def test_masked_softmax_is_a_distribution_over_legal_actions(logits: list[float], legal: list[bool]) -> None:
    mask = torch.tensor([legal])
    probabilities = masked_softmax(torch.tensor([logits]), mask)
    assert probabilities.sum().item() == pytest.approx(1, abs=1e-6)
    assert bool((probabilities[~mask] == 0).all())
    assert bool((probabilities >= 0).all())
    allowed = [x for x, ok in zip(logits, legal, strict=True) if ok]
    weights = [math.exp(x - max(allowed)) if ok else 0.0 for x, ok in zip(logits, legal, strict=True)]
    assert probabilities[0].tolist() == pytest.approx([w / sum(weights) for w in weights], abs=1e-6)


def test_masked_softmax_broadcasts_masks_over_hands() -> None:
    logits = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    whole = masked_softmax(logits, LEGAL[:, None])
    for node in range(2):
        for hand in range(5):
            torch.testing.assert_close(whole[node, hand], masked_softmax(logits[node, hand], LEGAL[node]))

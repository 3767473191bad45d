"""History values in outcome sampling: exact ones against enumeration, what is learnt from, and the variance they leave."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from test_external import Enumeration, RandomTable, every_deal
from test_outcome import Table, dense, enumerated, few_ranks

from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL
from deepcfr.game.base import Deals
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.sample.external import Traversals
from deepcfr.sample.outcome import Learnt, history_cards, traverse_outcomes


def exact_values(game: PokerGame, deals: Deals, profile: RandomTable | Table) -> torch.Tensor:
    """The value to player 0 of every action at every history under the profile, by plain recursion, [B, N, A]."""
    values = torch.zeros(len(deals), len(game.actor), game.encoding.num_actions)

    def of(row: int, node: int) -> float:
        player = int(game.actor[node])
        if player == TERMINAL:
            return float(game.payoff(torch.tensor([node]), torch.tensor([row]), deals))
        cards = tuple(deals.visible_cards[row, player, game.round[node]].tolist())
        strategy, total = profile(node, cards), 0.0
        for action in game.legal[node].nonzero()[:, 0].tolist():
            values[row, node, action] = of(row, int(game.tree.child[node, action]))
            total += strategy[action] * float(values[row, node, action])
        return total

    for row in range(len(deals)):
        of(row, 0)
    return values


def run(
    game: PokerGame, profile: RandomTable, traverser: int, known: torch.Tensor | None, *, alone: bool, repeats: int
) -> tuple[Traversals, torch.Tensor]:
    """Traversals of every deal, `repeats` of each, with given history values; and the deal of each traversal."""
    every = every_deal(game)
    again = torch.arange(len(every)).repeat(repeats)
    deals = Deals(torch.arange(len(again)), every.visible_cards[again], every.hidden[again])
    learnt = None if known is None else Learnt(lambda node, row: known[again[row], node], alone)
    strategies = dense(game, profile, deals)
    exploration = 1.0 if alone else 0.5
    return traverse_outcomes(game, deals, traverser, strategies, exploration, key(3, "actions"), 7, learnt), again


@pytest.mark.parametrize(("name", "traverser"), [("kuhn", 0), ("leduc", 1)])
def test_advantages_from_exact_values_have_the_mean_of_lemma_1(
    name: str, traverser: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ESCHER's targets by enumeration of all deals and actions: their mean at every infoset is the exact advantage.

    An infoset is met with the others' probability to reach it, times that of the traverser's uniform play.
    """
    game = few_ranks(name)
    profile, every = Table(game, 3), every_deal(game)
    exact = Enumeration(game, every, traverser, profile).run()
    known = exact_values(game, every, profile)
    advantages, _, _, _ = enumerated(game, profile, traverser, monkeypatch, known, alone=True)
    for at, visits in exact.visits.items():
        before = [node for node, _ in game.tree.path(at[0]) if int(game.actor[node]) == traverser]
        uniform = float(np.prod([1 / int(game.legal[node].sum()) for node in before]))
        assert advantages.count[at] == pytest.approx(uniform * visits, abs=1e-6)
        if visits > 0:
            mean = advantages.target[at] / advantages.count[at]
            np.testing.assert_allclose(mean, exact.regrets[at] / visits, atol=1e-5, err_msg=str(at))
    assert max(np.abs(regret).max() for regret in exact.regrets.values()) > 0.01


@pytest.mark.parametrize(("exploration", "known", "traverser"), [(1.0, 0.0, 0), (0.5, 1.0, 1)])
def test_the_mean_target_of_a_step_is_the_value_under_the_profile(
    exploration: float, known: float, traverser: int
) -> None:
    """From values of 0, so that the sampled history alone teaches it, and from any others."""
    game = load_game("kuhn")
    every, profile = every_deal(game), RandomTable(game, 4, interior=True)
    exact = exact_values(game, every, profile)
    values = known * torch.randn(exact.shape, generator=torch.Generator().manual_seed(3))
    found, _ = run(game, profile, traverser, values, alone=exploration == 1, repeats=2_000)
    assert found.histories is not None
    steps = found.histories
    assert len(steps) == int(found.decisions.sum())
    assert (~steps.target.isnan()).sum(1).eq(1).all()
    seen = [tuple(cards.tolist()) for cards in history_cards(every)[:, 0]]
    at = torch.tensor([seen.index(tuple(cards.tolist())) for cards in steps.infosets.cards])
    taken = (~steps.target.isnan()).long().argmax(1)
    target = steps.target.gather(1, taken[:, None])[:, 0].double()
    place = (at * len(game.actor) + steps.infosets.node.long()) * exact.shape[2] + taken
    count, total, square = (
        torch.zeros(exact.numel(), dtype=torch.float64).index_add_(0, place, part)
        for part in (torch.ones_like(target), target, target.square())
    )
    met = count > 100
    assert met.sum() > 30
    mean = total[met] / count[met]
    error = ((square[met] / count[met] - mean.square()).clamp(min=0) / count[met]).sqrt()
    assert ((mean - exact.flatten()[met]).abs() < 5 * error + 1e-5).all()


def test_steps_are_stored_history_by_history() -> None:
    """So a full window drops whole histories, and not the deepest steps of all."""
    game = load_game("leduc")
    known = torch.zeros(len(every_deal(game)), len(game.actor), game.encoding.num_actions)
    found, again = run(game, RandomTable(game, 6), 0, known, alone=False, repeats=2)
    assert found.histories is not None
    nodes = found.histories.infosets.node.tolist()
    parent = {int(child): node for node in range(len(game.actor)) for child in game.tree.child[node] if child >= 0}
    roots = [place for place, node in enumerate(nodes) if node == 0]
    assert len(roots) == len(again)
    assert nodes[-1] == 0
    for earlier, later in pairwise(nodes):
        assert later == parent[earlier] if earlier else True, "a step follows the one that it led to"


def test_a_good_baseline_leaves_little_variance_and_no_values_leave_the_most() -> None:
    """The spread of targets on the same deals and actions: values known exactly, roughly and not at all."""
    game, profile = load_game("leduc"), RandomTable(load_game("leduc"), 5, interior=True)
    known = exact_values(game, every_deal(game), profile)
    rough = known + torch.randn(known.shape, generator=torch.Generator().manual_seed(2))
    spread = []
    for values in (known, rough, None):
        found, _ = run(game, profile, 0, values, alone=False, repeats=20)
        spread.append(float(found.advantages.target.square().sum(1).mean()))
    assert spread[0] < 0.9 * spread[1]
    assert spread[1] < 0.5 * spread[2]


def test_with_values_alone_a_visit_is_one_sample() -> None:
    game, profile = load_game("leduc"), RandomTable(load_game("leduc"), 5, interior=True)
    known = exact_values(game, every_deal(game), profile)
    found, _ = run(game, profile, 0, known, alone=True, repeats=3)
    assert len(found.advantages) + len(found.strategies) == int(found.decisions.sum())
    corrected, _ = run(game, profile, 0, known, alone=False, repeats=3)
    assert len(corrected.advantages) + len(corrected.strategies) > int(corrected.decisions.sum())

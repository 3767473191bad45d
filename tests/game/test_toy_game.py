"""A game without cards that is no poker, written against the `Game` contract: checked, solved, and broken in many ways."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from deepcfr.config import AdvantageFitConfig, FitConfig, MemoryConfig, NetworkConfig, RunConfig, SamplingConfig
from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms
from deepcfr.core.types import TERMINAL, Encoding, Infosets
from deepcfr.game.base import Deals, Game, check_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.solve.deep_cfr import DeepCFR

PASS, CALL, BET = 0, 1, 2
STRONG, WEAK, FACING_BET = 0, 1, 2  # infosets
NODES = [
    # actor, infoset, children after pass, call and bet, what player 0 gains
    (0, STRONG, (4, -1, 2), 0.0),
    (0, WEAK, (5, -1, 3), 0.0),
    (1, FACING_BET, (6, 8, -1), 0.0),
    (1, FACING_BET, (7, 9, -1), 0.0),
    (TERMINAL, 0, (-1, -1, -1), 1.0),  # strong and passed
    (TERMINAL, 0, (-1, -1, -1), -1.0),  # weak and passed
    (TERMINAL, 0, (-1, -1, -1), 1.0),  # strong, bet and folded
    (TERMINAL, 0, (-1, -1, -1), 1.0),  # weak, bet and folded
    (TERMINAL, 0, (-1, -1, -1), 3.0),  # strong, bet and called
    (TERMINAL, 0, (-1, -1, -1), -3.0),  # weak, bet and called
]


class Bluff:
    """Player 0 alone sees whether it is strong or weak, one time in two each, and passes or bets two into a pot of two.

    A strong player 0 wins the showdown. In the only equilibrium it always bets when strong and one time in two when
    weak, player 1 calls one time in two, and the game is worth 1/2 to player 0.
    """

    name, unit, milli_unit, device = "bluff", "antes", "mA/g", "cpu"

    def __init__(self) -> None:
        self.actor = torch.tensor([actor for actor, *_ in NODES])
        self.round = torch.zeros(len(NODES), dtype=torch.int64)
        self.infoset = torch.tensor([infoset for _, infoset, *_ in NODES])
        self.child = torch.tensor([child for _, _, child, _ in NODES])
        self.legal = self.child >= 0
        self.gain = torch.tensor([gain for *_, gain in NODES])
        self.deals_before = torch.tensor([1, 1, *[0] * 8])
        self.encoding = Encoding(
            node_features=torch.eye(3),
            legal=torch.tensor([[True, False, True], [True, False, True], [True, True, False]]),
            card_groups=(),
            num_ranks=0,
            num_suits=0,
        )

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        traversal = torch.arange(first, first + count)
        weak = addressed_uniforms(stream, traversal, torch.tensor(0)) < 0.5
        return Deals(traversal, torch.zeros(count, 2, 1, 0, dtype=torch.uint8), weak.long())

    def start(self, deals: Deals) -> torch.Tensor:
        return deals.hidden

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self.child[node, action]

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self.gain[node]


EVERY = Infosets(torch.arange(3), torch.empty(3, 0, dtype=torch.uint8))
EQUILIBRIUM = torch.tensor([[0.0, 0.0, 1.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])


def best_responses(strategy: torch.Tensor) -> tuple[float, float]:
    """Each player's gain by a best response to the other's row of `strategy` [3, A], worked out by hand."""
    bluff, value_bet, call = float(strategy[WEAK, BET]), float(strategy[STRONG, BET]), float(strategy[FACING_BET, CALL])
    first = 0.5 * max(1, 1 + 2 * call) + 0.5 * max(-1, 1 - 4 * call)
    passes = -0.5 * (1 - value_bet) + 0.5 * (1 - bluff)  # to player 1
    second = passes + 0.5 * max(-(value_bet + bluff), -3 * value_bet + 3 * bluff)
    return first, second


def exploitability_of(strategy: torch.Tensor) -> float:
    return sum(best_responses(strategy)) / 2


# The game keeps the contract, and Deep CFR solves it


def test_the_game_keeps_the_contract() -> None:
    check_game(Bluff())
    check_game(Bluff(), playouts=1)
    check_game(Bluff(), seed=9)


def test_the_equilibrium_is_one() -> None:
    assert best_responses(EQUILIBRIUM) == (0.5, -0.5)
    assert exploitability_of(UniformPolicy(Bluff()).probabilities(EVERY)) == pytest.approx(0.25)


FIT = FitConfig(steps=40, batch_size=128, learning_rate=1e-2, schedule="cosine")
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
CONFIG = RunConfig(
    game="bluff",
    iterations=40,
    sampling=SamplingConfig(traversals=200),
    memory=MemoryConfig(advantage_capacity=20_000, strategy_capacity=20_000),
    network=NetworkConfig(kind="mlp", width=16, layers=2),
    advantage=ADVANTAGE,
    average=replace(FIT, steps=300, batch_size=256),
)


def test_deep_cfr_learns_to_bluff_and_to_call() -> None:
    solver = DeepCFR(Bluff(), CONFIG)
    for _ in solver.iterations():
        pass
    solver.fit_average()
    strategy = solver.average_policy().probabilities(EVERY)
    torch.testing.assert_close(strategy, EQUILIBRIUM, atol=0.12, rtol=0)
    assert exploitability_of(strategy) < 0.1  # 0.25 for uniform play
    assert float(strategy[~solver.game.encoding.legal].abs().max()) == 0
    # one deal, one decision, a pass, a bet and its answer and end; or a deal, a decision and what follows it
    samples = solver.memories.strategies[slice(0, None)]
    owners = torch.bincount(samples.infosets.node.long(), minlength=3)
    assert owners[FACING_BET] == 40 * 200  # player 0's traversals always reach a bet
    assert owners[STRONG] + owners[WEAK] == 40 * 200
    answered = len(solver.memories.advantages[1])  # traversals of player 1 that reach a bet
    assert solver.nodes_touched == 40 * 200 * (5 + 3) + 2 * answered


def test_exact_evaluation_by_ranges_says_that_it_needs_poker() -> None:
    with pytest.raises(GameError, match="needs a poker game or an OpenSpiel game, but 'bluff' is neither"):
        exploitability(UniformPolicy(Bluff()))


# Every breach of the contract is a sentence. A mutation is a game with one thing wrong.


def replaced(**fields: Any) -> Callable[[Bluff], None]:
    """Set fields of the game; values that are functions are applied to what was there."""

    def mutate(game: Bluff) -> None:
        for name, value in fields.items():
            setattr(game, name, value(getattr(game, name)) if callable(value) else value)

    return mutate


def encoded(**fields: Any) -> Callable[[Bluff], None]:
    def mutate(game: Bluff) -> None:
        changes = {name: value(getattr(game.encoding, name)) for name, value in fields.items()}
        game.encoding = replace(game.encoding, **changes)

    return mutate


def method(name: str, change: Callable[..., Any]) -> Callable[[Bluff], None]:
    """Replace a method by `change(original, *arguments)`."""

    def mutate(game: Bluff) -> None:
        original = getattr(game, name)
        setattr(game, name, lambda *arguments, **named: change(original, *arguments, **named))

    return mutate


def put(index: Any, value: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        tensor[index] = value
        return tensor

    return change


def dealt(change: Callable[[Deals], Deals]) -> Callable[[Bluff], None]:
    return method("deal", lambda deal, *arguments, **named: change(deal(*arguments, **named)))


def with_card(game: Bluff) -> None:
    """One card each, dealt from its place in the chunk instead of its number."""
    game.encoding = replace(game.encoding, card_groups=(1,), num_ranks=3, num_suits=1)
    original = game.deal

    def deal(count: int, stream: int, first: int = 0) -> Deals:
        hands = (torch.arange(count) % 3).to(torch.uint8)[:, None, None, None].expand(count, 2, 1, 1)
        return replace(original(count, stream, first), visible_cards=hands)

    game.deal = deal  # type: ignore[method-assign]


def fail_at_endless(game: Bluff) -> None:
    game.child = put((2, CALL), 0)(game.child)  # a call leads back to the start


CAUGHT: dict[str, tuple[Callable[[Bluff], None], str]] = {
    "actor type": (replaced(actor=lambda x: x.int()), "actor must be int64"),
    "actor length": (replaced(round=lambda x: x[:-1]), "round must be int64"),
    "infoset shape": (replaced(infoset=lambda x: x[:, None]), "infoset must be int64"),
    "deals_before type": (replaced(deals_before=lambda x: x.float()), "deals_before must be int64"),
    "legal shape": (replaced(legal=lambda x: x[:, :2]), "legal must be bool"),
    "legal type": (replaced(legal=lambda x: x.long()), "legal must be bool"),
    "third player": (replaced(actor=put([2, 3], 2)), "actor must be 0, 1 or TERMINAL"),
    "chance player": (replaced(actor=put([2, 3], -2)), "actor must be 0, 1 or TERMINAL"),
    "no decisions": (replaced(actor=lambda x: x * 0 + TERMINAL), "there must be one"),
    "infoset too large": (replaced(infoset=put(3, 3)), "infoset must index the rows of the encoding"),
    "infoset negative": (replaced(infoset=put(0, -1)), "infoset must index the rows of the encoding"),
    "no action": (
        lambda game: (replaced(legal=put(0, False))(game), encoded(legal=put(0, False))(game)),  # type: ignore[dict-item]
        "every decision node needs a legal action",
    ),
    "legal unlike its infoset": (replaced(legal=put((2, BET), True)), "must be those of its infoset"),
    "encoding unlike its nodes": (encoded(legal=put((WEAK, BET), False)), "must be those of its infoset"),
    "infoset of both players": (
        lambda game: (  # type: ignore[dict-item]
            encoded(legal=lambda x: x | True)(game),
            replaced(legal=lambda x: (game.actor >= 0)[:, None] | x, infoset=put(2, STRONG))(game),
        ),
        "must belong to one player",
    ),
    "features not a number": (encoded(node_features=put((1, 0), torch.nan)), "node_features must be finite"),
    "features infinite": (encoded(node_features=put((1, 0), torch.inf)), "node_features must be finite"),
    "views of one player": (dealt(lambda d: replace(d, visible_cards=d.visible_cards[:, :1])), "visible_cards must be"),
    "views of no round": (
        dealt(lambda d: replace(d, visible_cards=d.visible_cards[:, :, :0])),
        "visible_cards must be",
    ),
    "views of too few deals": (
        dealt(lambda d: replace(d, visible_cards=d.visible_cards[:-1])),
        "visible_cards must be",
    ),
    "views of too few cards": (encoded(card_groups=lambda _: (2,)), "visible_cards must be"),
    "rounds without views": (replaced(round=put(2, 1)), "visible_cards must be"),
    "deals by place": (with_card, "the same deal in any chunking"),
    "step below the nodes": (replaced(child=put((1, BET), -1)), "step() must lead to a node"),
    "step beyond the nodes": (replaced(child=put((1, BET), 10)), "step() must lead to a node"),
    "endless": (fail_at_endless, "a playout does not end"),
    "payoff not a number": (replaced(gain=put(9, torch.nan)), "payoffs must be finite"),
    "payoff infinite": (replaced(gain=put(5, -torch.inf)), "payoffs must be finite"),
}


# Breaches of types, shapes and numbering, which would otherwise surface in the middle of a run

LATE: dict[str, tuple[Callable[[Bluff], None], str]] = {
    "too few rows of features": (encoded(node_features=lambda x: x[:2]), "node_features must be float32 [3, 3]"),
    "features of the wrong type": (encoded(node_features=lambda x: x.double()), "node_features must be float32"),
    "traversals by place": (dealt(lambda d: replace(d, traversal=torch.arange(len(d)))), "number its traversals"),
    "traversals of the wrong type": (
        dealt(lambda d: replace(d, traversal=d.traversal.float())),
        "traversal must be int64",
    ),
    "views of the wrong type": (
        dealt(lambda d: replace(d, visible_cards=d.visible_cards.long())),
        "visible_cards must be uint8",
    ),
    "views without cards": (
        dealt(lambda d: replace(d, visible_cards=d.visible_cards.sum(-1).byte())),
        "visible_cards must be uint8",
    ),
    "outcomes by place": (
        dealt(lambda d: replace(d, hidden=torch.arange(len(d)) % 2)),
        "the same outcome in any chunking",
    ),
    "start at a terminal node": (
        method("start", lambda start, deals: start(deals) + 4),
        "start() must lead to decision",
    ),
    "start beyond the nodes": (method("start", lambda start, deals: start(deals) + 100), "start() must lead to a node"),
    "start of the wrong shape": (method("start", lambda start, deals: start(deals)[:-1]), "start() must be int64"),
    "step of the wrong type": (method("step", lambda step, *a: step(*a).int()), "step() must be int64"),
    "payoffs of the wrong shape": (
        method("payoff", lambda payoff, *a: payoff(*a)[:, None]),
        "payoff() must be float32",
    ),
    "payoffs of the wrong type": (method("payoff", lambda payoff, *a: payoff(*a).double()), "payoff() must be float32"),
}


def broken(mutate: Callable[[Bluff], object]) -> Game:
    game = Bluff()
    mutate(game)
    return game


@pytest.mark.parametrize("name", [*CAUGHT, *LATE])
def test_a_breach_is_reported_as_a_sentence(name: str) -> None:
    mutate, words = (CAUGHT | LATE)[name]
    with pytest.raises(GameError) as caught:
        check_game(broken(mutate))
    assert len(caught.value.problems) == 1
    (problem,) = caught.value.problems
    assert problem.startswith("The game 'bluff' breaks the contract: ")
    assert words in problem
    assert problem.endswith(".")


def test_all_breaches_of_one_kind_are_reported_together() -> None:
    def mutate(game: Bluff) -> None:
        replaced(actor=lambda x: x.int(), round=lambda x: x[:-1], legal=lambda x: x.long())(game)

    with pytest.raises(GameError) as caught:
        check_game(broken(mutate))
    assert [problem.split(": ")[1].split()[0] for problem in caught.value.problems] == ["actor", "round", "legal"]


def card_beyond_the_deck(game: Bluff) -> None:
    game.encoding = replace(game.encoding, card_groups=(1,), num_ranks=3, num_suits=1)
    dealt(lambda d: replace(d, visible_cards=torch.full((len(d), 2, 1, 1), 77, dtype=torch.uint8)))(game)


UNSEEN: dict[str, Callable[[Bluff], None]] = {
    "legal actions of infosets of the wrong type": encoded(legal=lambda x: x.long()),
    "a card beyond the deck": card_beyond_the_deck,
    "a round before the first": replaced(round=put(2, -1)),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_other_breaches_are_reported_too(name: str) -> None:
    with pytest.raises(GameError):
        check_game(broken(UNSEEN[name]))

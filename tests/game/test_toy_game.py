"""A game without cards that is no poker, written against the `Game` contract: checked, solved, and broken in many ways."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from class_games import BET, CALL, FACING_BET, STRONG, WEAK, Bluff
from deepcfr.config import AdvantageFitConfig, FitConfig, MemoryConfig, NetworkConfig, RunConfig, SamplingConfig
from deepcfr.core.errors import GameError
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.base import Deals, Game, check_game
from deepcfr.solve.deep_cfr import DeepCFR
from tables import finished

EVERY = Infosets(torch.arange(3), torch.empty(3, 0, dtype=torch.uint8))
EQUILIBRIUM = torch.tensor([[0.0, 0.0, 1.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])


def best_responses(strategy: torch.Tensor) -> tuple[float, float]:
    """Each player's gain by a best response to the other's row of `strategy` [3, A], worked out by hand."""
    bluff, value_bet, call = float(strategy[WEAK, BET]), float(strategy[STRONG, BET]), float(strategy[FACING_BET, CALL])
    first = 0.5 * max(1, 1 + 2 * call) + 0.5 * max(-1, 1 - 4 * call)
    passes = -0.5 * (1 - value_bet) + 0.5 * (1 - bluff)  # to player 1
    second = passes + 0.5 * max(-(value_bet + bluff), -3 * value_bet + 3 * bluff)
    return first, second


# The game keeps the contract, and Deep CFR solves it


def test_the_game_keeps_the_contract() -> None:
    check_game(Bluff())
    check_game(Bluff(), playouts=1)
    check_game(Bluff(), seed=9)


FIT = FitConfig(steps=40, batch_size=128, learning_rate=1e-2, schedule="cosine")
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
CONFIG = RunConfig(
    game="bluff",
    iterations=8,
    sampling=SamplingConfig(traversals=200),
    memory=MemoryConfig(capacity=20_000),
    network=NetworkConfig(kind="mlp", width=16, layers=2),
    advantage=ADVANTAGE,
    average=replace(FIT, steps=300, batch_size=256),
)


def test_deep_cfr_learns_to_bluff_and_to_call() -> None:
    solver = finished(DeepCFR(Bluff(), CONFIG))
    solver.fit_average()
    strategy = solver.average_policy().probabilities(EVERY)
    assert best_responses(EQUILIBRIUM) == (0.5, -0.5)
    torch.testing.assert_close(strategy, EQUILIBRIUM, atol=0.2, rtol=0)
    assert sum(best_responses(strategy)) / 2 < 0.15  # 0.25 for uniform play
    assert float(strategy[~solver.game.encoding.legal].abs().max()) == 0
    # one deal, one decision, a pass, a bet and its answer and end; or a deal, a decision and what follows it
    samples = solver.memories.strategies[slice(0, None)]
    owners = torch.bincount(samples.infosets.node.long(), minlength=3)
    assert owners[FACING_BET] == 8 * 200  # player 0's traversals always reach a bet
    assert owners[STRONG] + owners[WEAK] == 8 * 200
    answered = len(solver.memories.advantages[1])  # traversals of player 1 that reach a bet
    assert solver.nodes_touched == 8 * 200 * (5 + 3) + 2 * answered


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


def both(*mutations: Callable[[Bluff], object]) -> Callable[[Bluff], object]:
    return lambda game: [mutate(game) for mutate in mutations]


def of_one_player(game: Bluff) -> None:
    encoded(legal=lambda x: x | True)(game)
    replaced(legal=lambda x: (game.actor >= 0)[:, None] | x, infoset=put(2, STRONG))(game)


def views(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Bluff], None]:
    return dealt(lambda d: replace(d, visible_cards=change(d.visible_cards)))


BREACHES: dict[str, list[Callable[[Bluff], object]]] = {
    "actor must be int64": [replaced(actor=lambda x: x.int())],
    "round must be int64": [replaced(round=lambda x: x[:-1])],
    "infoset must be int64": [replaced(infoset=lambda x: x[:, None])],
    "deals_before must be int64": [replaced(deals_before=lambda x: x.float())],
    "legal must be bool": [replaced(legal=lambda x: x[:, :2]), replaced(legal=lambda x: x.long())],
    "actor must be 0, 1 or TERMINAL": [replaced(actor=put([2, 3], 2)), replaced(actor=put([2, 3], -2))],
    "there must be one": [replaced(actor=lambda x: x * 0 + TERMINAL)],
    "infoset must index the rows of the encoding": [replaced(infoset=put(3, 3)), replaced(infoset=put(0, -1))],
    "every decision node needs a legal action": [both(replaced(legal=put(0, False)), encoded(legal=put(0, False)))],
    "must be those of its infoset": [replaced(legal=put((2, BET), True)), encoded(legal=put((WEAK, BET), False))],
    "must belong to one player": [of_one_player],
    "node_features must be finite": [
        encoded(node_features=put((1, 0), torch.nan)),
        encoded(node_features=put((1, 0), torch.inf)),
    ],
    "node_features must be float32": [
        encoded(node_features=lambda x: x[:2]),
        encoded(node_features=lambda x: x.double()),
    ],
    "visible_cards must be": [
        views(lambda cards: cards[:, :1]),
        views(lambda cards: cards[:, :, :0]),
        views(lambda cards: cards[:-1]),
        encoded(card_groups=lambda _: (2,)),
        replaced(round=put(2, 1)),
    ],
    "visible_cards must be uint8": [views(lambda cards: cards.long()), views(lambda cards: cards.sum(-1).byte())],
    "the same deal in any chunking": [with_card],
    "the same outcome in any chunking": [dealt(lambda d: replace(d, hidden=torch.arange(len(d)) % 2))],
    "number its traversals": [dealt(lambda d: replace(d, traversal=torch.arange(len(d))))],
    "traversal must be int64": [dealt(lambda d: replace(d, traversal=d.traversal.float()))],
    "start() must lead to decision": [method("start", lambda start, deals: start(deals) + 4)],
    "start() must lead to a node": [method("start", lambda start, deals: start(deals) + 100)],
    "start() must be int64": [method("start", lambda start, deals: start(deals)[:-1])],
    "step() must lead to a node": [replaced(child=put((1, BET), -1)), replaced(child=put((1, BET), 10))],
    "step() must be int64": [method("step", lambda step, *a: step(*a).int())],
    "a playout does not end": [replaced(child=put((2, CALL), 0))],
    "payoffs must be finite": [replaced(gain=put(9, torch.nan)), replaced(gain=put(5, -torch.inf))],
    "payoff() must be float32": [
        method("payoff", lambda payoff, *a: payoff(*a)[:, None]),
        method("payoff", lambda payoff, *a: payoff(*a).double()),
    ],
}


def broken(mutate: Callable[[Bluff], object]) -> Game:
    game = Bluff()
    mutate(game)
    return game


@pytest.mark.parametrize("words", BREACHES)
def test_a_breach_is_reported_as_a_sentence(words: str) -> None:
    for mutate in BREACHES[words]:
        with pytest.raises(GameError) as caught:
            check_game(broken(mutate))
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


@pytest.mark.parametrize("mutate", [encoded(legal=lambda x: x.long()), replaced(round=put(2, -1))])
def test_other_breaches_are_reported_too(mutate: Callable[[Bluff], None]) -> None:
    with pytest.raises(GameError):
        check_game(broken(mutate))

"""Self-play that is recorded: the transitions are those of games played one after another, and they add up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL
from deepcfr.game.base import Deals, Game
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.presets import load_game
from deepcfr.sample.external import Strategy, play_games
from deepcfr.solve.self_play import Episodes, Transitions, play_episodes

JACK, QUEEN, KING = 0, 1, 2
STREAM = key(0, "test")
COUNT = 200


def some_game(name: str) -> Game:
    return load_openspiel_game("liars_dice(dice_sides=3)") if name == "openspiel" else load_game(name)


def tilted(game: Game) -> Strategy:
    """A strategy that is different at every node."""

    def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        weight = (
            game.legal[node]
            * (1 + (node[:, None] * torch.tensor([[3, 5, 7]]).repeat(1, 9)) % 11)[:, : game.legal.shape[1]]
        )
        return weight / weight.sum(1, keepdim=True)

    return ask


def modes(count: int) -> torch.Tensor:
    return (3 * addressed_uniforms(STREAM + 2, torch.arange(count)[:, None], torch.arange(2))).long()


def played(game: Game, deals: Deals) -> Episodes:
    return play_episodes(game, deals, (tilted(game), tilted(game)), modes(len(deals)), STREAM + 1)


def one_by_one(game: Game, deals: Deals) -> tuple[list[list[tuple[object, ...]]], int]:
    """Each player's transitions as tuples, from games played one after another, and the nodes touched."""
    found: list[list[tuple[object, ...]]] = [[], []]
    touched = 0
    for game_row in range(len(deals)):
        row = torch.tensor([game_row])
        node = game.start(deals)[row]
        touched += 1 + int(game.deals_before[node])
        mine: list[list[list[object]]] = [[], []]
        while (player := int(game.actor[node])) != TERMINAL:
            probabilities = tilted(game)(node, row)[0].tolist()
            chance, action, upper = float(addressed_uniforms(STREAM + 1, deals.traversal[row], node)), -1, 0.0
            while upper <= chance:
                action += 1
                upper += probabilities[action]
            seen = (int(game.infoset[node]), deals.visible_cards[game_row, player, int(game.round[node])].tolist())
            mine[player].append([seen, action])
            node = game.step(node, torch.tensor([action]), row, deals)
            touched += 1 + int(game.deals_before[node])
        paid = float(game.payoff(node, row, deals))
        for player, steps in enumerate(mine):
            for i, (seen, action) in enumerate(steps):
                last = i == len(steps) - 1
                reward = (paid if player == 0 else -paid) if last else 0.0
                found[player].append((seen, action, reward, steps[i if last else i + 1][0], last))
    return found, touched


def as_tuples(transitions: Transitions) -> list[tuple[object, ...]]:
    def places(infosets: object) -> list[object]:
        return list(zip(infosets.node.tolist(), infosets.cards.tolist(), strict=True))  # type: ignore[attr-defined]

    return list(
        zip(
            places(transitions.infosets),
            transitions.action.tolist(),
            transitions.reward.tolist(),
            places(transitions.following),
            transitions.terminal.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("name", ["kuhn", "leduc", "openspiel"])
def test_transitions_are_those_of_games_played_one_after_another(name: str) -> None:
    game = some_game(name)
    deals = game.deal(COUNT, STREAM)
    episodes = played(game, deals)
    expected, touched = one_by_one(game, deals)
    for player in (0, 1):
        assert as_tuples(episodes.transitions[player]) == expected[player]
    assert episodes.nodes_touched == touched
    assert episodes.decisions == len(expected[0]) + len(expected[1])


@pytest.mark.parametrize("name", ["leduc", "openspiel"])
def test_rewards_add_up_to_the_payoffs_of_the_same_games(name: str) -> None:
    game = some_game(name)
    deals = game.deal(COUNT, STREAM)
    episodes = played(game, deals)
    assert torch.equal(episodes.payoffs, play_games(game, deals, (tilted(game), tilted(game)), STREAM + 1))
    for player, sign in ((0, 1), (1, -1)):
        mine = episodes.transitions[player]
        ends = mine.reward[mine.terminal]
        acted = len(ends)  # games in which the player acted at all, each of which ends once for it
        assert acted <= COUNT
        if acted == COUNT:
            assert torch.equal(ends, sign * episodes.payoffs)
        assert not bool(mine.reward[~mine.terminal].any())


def test_every_decision_carries_the_modes_of_both_players_in_its_game() -> None:
    game = load_game("leduc")
    deals = game.deal(COUNT, STREAM)
    episodes = played(game, deals)
    for player in (0, 1):
        ends = episodes.transitions[player].terminal.nonzero()[:, 0].tolist()
        assert len(ends) == COUNT  # in Leduc nobody is left without a decision
        starts = [0, *(end + 1 for end in ends[:-1])]
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            (pair,) = set(map(tuple, episodes.modes[player][start : end + 1].tolist()))
            assert pair == (modes(COUNT)[row, player], modes(COUNT)[row, 1 - player])


def test_a_game_of_kuhn_by_hand() -> None:
    """Check, bet, call with a king against a queen: the first player decides twice, the second one once."""
    game = load_game("kuhn")
    deals = game.deals_of(np.array([[KING, QUEEN]], np.uint8))

    def first(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return torch.eye(3)[CALL].repeat(len(node), 1)

    def second(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return torch.eye(3)[RAISE].repeat(len(node), 1)

    episodes = play_episodes(game, deals, (first, second), torch.tensor([[1, 0]]), STREAM)
    mine, theirs = episodes.transitions
    assert (mine.action.tolist(), mine.reward.tolist(), mine.terminal.tolist()) == ([CALL, CALL], [0, 2], [False, True])
    assert (theirs.action.tolist(), theirs.reward.tolist(), theirs.terminal.tolist()) == ([RAISE], [-2], [True])
    assert mine.following.node.tolist() == [mine.infosets.node[1], mine.infosets.node[1]]
    assert bool(game.legal[mine.infosets.node[1], FOLD])  # there it faces a bet
    assert mine.infosets.cards.tolist() == [[KING], [KING]]
    assert theirs.infosets.cards.tolist() == [[QUEEN]]
    assert [m.tolist() for m in episodes.modes] == [[[1, 0], [1, 0]], [[0, 1]]]
    assert episodes.nodes_touched == 1 + 3 + 1  # the deal, three decisions, the end


def test_episodes_are_the_same_in_any_batch() -> None:
    game = load_game("leduc")
    whole = played(game, game.deal(COUNT, STREAM))
    parts = [game.deal(n, STREAM, first=f) for f, n in ((0, 1), (1, 79), (80, COUNT - 80))]
    cut = [
        play_episodes(game, deals, (tilted(game), tilted(game)), modes(COUNT)[deals.traversal], STREAM + 1)
        for deals in parts
    ]
    for player in (0, 1):
        assert as_tuples(whole.transitions[player]) == [t for e in cut for t in as_tuples(e.transitions[player])]
        assert torch.equal(whole.modes[player], torch.cat([e.modes[player] for e in cut]))
    assert whole.nodes_touched == sum(e.nodes_touched for e in cut)

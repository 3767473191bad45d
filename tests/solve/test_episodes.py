"""Self-play that is recorded: the transitions are those of games played one after another, and they add up."""

from __future__ import annotations

import pytest
import torch

from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL
from deepcfr.game.base import Deals, Game
from deepcfr.game.presets import build_game, load_source
from deepcfr.sample.external import Strategy, last_nodes
from deepcfr.solve.self_play import Episodes, Transitions, play_episodes

STREAM = key(0, "test")
COUNT = 120


def tilted(game: Game, player: int) -> Strategy:
    """A strategy that is different at every node and for each player, and is asked at the player's nodes only."""

    def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        assert (game.actor[node] == player).all()
        tilts = torch.tensor([[3, 5, 7], [5, 2, 3]])[player].repeat(9)[: game.legal.shape[1]]
        weight = game.legal[node] * (1 + (node[:, None] * tilts) % 11)
        return weight / weight.sum(1, keepdim=True)

    return ask


def modes(count: int) -> torch.Tensor:
    return (3 * addressed_uniforms(STREAM + 2, torch.arange(count)[:, None], torch.arange(2))).long()


def played(game: Game, deals: Deals) -> Episodes:
    return play_episodes(game, deals, (tilted(game, 0), tilted(game, 1)), modes(len(deals)), STREAM + 1)


def one_by_one(game: Game, deals: Deals) -> tuple[list[list[tuple[object, ...]]], list[float], int]:
    """Each player's transitions as tuples, from games played one after another, the payoffs and the nodes touched."""
    found: list[list[tuple[object, ...]]] = [[], []]
    payoffs = []
    touched = 0
    for game_row in range(len(deals)):
        row = torch.tensor([game_row])
        node = game.start(deals)[row]
        touched += 1 + int(game.deals_before[node])
        mine: list[list[list[object]]] = [[], []]
        while (player := int(game.actor[node])) != TERMINAL:
            probabilities = tilted(game, player)(node, row)[0].tolist()
            chance, action, upper = float(addressed_uniforms(STREAM + 1, deals.traversal[row], node)), -1, 0.0
            while upper <= chance:
                action += 1
                upper += probabilities[action]
            seen = (int(game.infoset[node]), deals.visible_cards[game_row, player, int(game.round[node])].tolist())
            mine[player].append([seen, action])
            node = game.step(node, torch.tensor([action]), row, deals)
            touched += 1 + int(game.deals_before[node])
        paid = float(game.payoff(node, row, deals))
        payoffs.append(paid)
        for player, steps in enumerate(mine):
            for i, (seen, action) in enumerate(steps):
                last = i == len(steps) - 1
                reward = (paid if player == 0 else -paid) if last else 0.0
                found[player].append((seen, action, reward, steps[i if last else i + 1][0], last))
    return found, payoffs, touched


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


@pytest.mark.parametrize("name", ["leduc", "openspiel:liars_dice(dice_sides=3)"])
def test_transitions_are_those_of_games_played_one_after_another(name: str) -> None:
    game = build_game(load_source(name))
    deals = game.deal(COUNT, STREAM, first=7)
    episodes = played(game, deals)
    expected, payoffs, touched = one_by_one(game, deals)
    assert episodes.payoffs.tolist() == payoffs
    ends = last_nodes(game, deals, (tilted(game, 0), tilted(game, 1)), STREAM + 1)
    assert game.payoff(ends, torch.arange(len(deals)), deals).tolist() == payoffs
    for player in (0, 1):
        assert as_tuples(episodes.transitions[player]) == expected[player]
    assert episodes.nodes_touched == touched
    assert episodes.decisions == len(expected[0]) + len(expected[1])
    for player in (0, 1):  # every decision carries the modes of both players in its game
        ends = episodes.transitions[player].terminal.long()
        game_of = ends.cumsum(0) - ends
        if int(ends.sum()) == COUNT:  # in Leduc nobody is left without a decision
            assert torch.equal(episodes.modes[player], modes(COUNT)[game_of][:, [player, 1 - player]])
        else:
            assert name != "leduc"


def test_games_that_end_before_anyone_acts_are_over() -> None:
    """A game whose start may be terminal, as after a deal that decides it."""

    class Decided:
        actor = torch.tensor([TERMINAL, TERMINAL])

        def start(self, deals: Deals) -> torch.Tensor:
            return deals.traversal % 2

    deals, nobody = Deals(torch.arange(4), torch.zeros(4, 2, 1, 0, dtype=torch.uint8), None), (None, None)
    assert last_nodes(Decided(), deals, nobody, 0).tolist() == [0, 1, 0, 1]  # type: ignore[arg-type]

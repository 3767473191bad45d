"""OpenSpiel's games compiled: the same histories, chances, payoffs and infosets, and a `Game` that draws them fairly."""

import logging
import math
import re
import sys

import numpy as np
import pyspiel
import pytest
import torch

from deepcfr.config import NetworkConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import generator
from deepcfr.core.types import TERMINAL
from deepcfr.game import openspiel
from deepcfr.game.base import check_game
from deepcfr.game.explicit import CHANCE
from deepcfr.game.openspiel import OpenSpielGame, estimate_histories, load_openspiel_game
from deepcfr.network.networks import build_network

LIARS_DICE = "liars_dice(dice_sides=5)"
GOOFSPIEL = "goofspiel(num_cards=5,imp_info=True,points_order=descending)"
SMALL = ["kuhn_poker", "leduc_poker", "goofspiel(num_cards=3,imp_info=True)", "dark_hex(board_size=2)", "matrix_rps"]


@pytest.mark.parametrize(
    ("name", "histories", "infosets", "actions"),
    [
        ("kuhn_poker", 58, 12, 2),
        ("python_kuhn_poker", 58, 12, 2),
        ("leduc_poker", 9_457, 936, 3),
        (LIARS_DICE, 51_181, 5_120, 11),
        (GOOFSPIEL, 26_931, 2_124, 5),
        ("matrix_rps", 13, 2, 3),
    ],
)
def test_sizes(name: str, histories: int, infosets: int, actions: int) -> None:
    game = load_openspiel_game(name)
    assert (game.explicit.num_nodes, game.explicit.num_infosets, game.encoding.num_actions) == (
        histories,
        infosets,
        actions,
    )
    assert game.source == game.name == name


@pytest.mark.parametrize("name", SMALL)
def test_every_history_is_openspiels(name: str) -> None:
    game = load_openspiel_game(name)
    tree, seen = game.explicit, 0
    stack = [(game.spiel_game.new_initial_state(), 0)]
    while stack:
        state, node = stack.pop()
        seen += 1
        if state.is_terminal():
            assert tree.actor[node] == TERMINAL
            assert tree.payoff[node] == state.returns()[0]
            assert tree.num_children[node] == 0
            continue
        if state.is_chance_node():
            assert tree.actor[node] == CHANCE
            moves = state.chance_outcomes()
        else:
            player, infoset = state.current_player(), tree.infoset[node]
            assert tree.actor[node] == tree.infoset_actor[infoset] == player
            assert tree.infoset_names[infoset] == state.information_state_string()
            features = game.encoding.node_features[infoset].numpy()
            np.testing.assert_array_equal(features, np.array(state.information_state_tensor(), np.float32))
            moves = [(action, 1.0) for action in state.legal_actions()]
            actions = [action for action, _ in moves]
            assert tree.infoset_action_ids[infoset, : len(moves)].tolist() == actions
            assert game.action_ids[game.columns[infoset, : len(moves)].numpy()].tolist() == actions
            assert game.action_ids[game.encoding.legal[infoset].numpy()].tolist() == actions
        first = tree.first_child[node]
        assert tree.action[first : first + tree.num_children[node]].tolist() == [action for action, _ in moves]
        assert tree.chance[first : first + tree.num_children[node]].tolist() == [chance for _, chance in moves]
        stack += [(state.child(action), first + i) for i, (action, _) in enumerate(moves)]
    assert seen == tree.num_nodes
    check_game(game, playouts=200)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_deals_have_the_probabilities_of_chance(name: str) -> None:
    """All histories are tried with a fixed first action: their frequencies are the products of their chances."""
    game, count = load_openspiel_game(name), 30_000
    tree = game.explicit
    deals = game.deal(count, stream=3)
    rows = torch.arange(count)
    node = game.start(deals)
    while bool((game.actor[node] != TERMINAL).any()):
        live = (game.actor[node] != TERMINAL).nonzero()[:, 0]
        action = game.legal[node[live]].int().argmax(1)
        node = node.index_put((live,), game.step(node[live], action, rows[live], deals))
    histories, counts = np.unique(np.flatnonzero(tree.actor != CHANCE)[node.numpy()], return_counts=True)
    chances = []
    for history in histories:
        chance, at = 1.0, int(history)
        while at:
            chance *= tree.chance[at]
            at = int(tree.parent[at])
        chances.append(chance)
    assert sum(chances) == pytest.approx(1)  # all of them have been seen
    expected = count * np.array(chances)
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = max(1, len(counts) - 1)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_payoffs_of_a_constant_sum_game_are_taken_from_its_middle() -> None:
    spiel_game = pyspiel.create_matrix_game(
        "split", "Split", ["a", "b"], ["c", "d"], [[1, 7], [4, 2]], [[9, 3], [6, 8]]
    )
    assert spiel_game.get_type().utility == pyspiel.GameType.Utility.CONSTANT_SUM
    game = OpenSpielGame(spiel_game, "split")
    assert game.explicit.payoff[game.explicit.actor == TERMINAL].tolist() == [-4, 2, -1, -3]


def test_networks_refuse_a_game_that_they_cannot_see() -> None:
    game = load_openspiel_game("coordinated_mp")
    check_game(game)
    with pytest.raises(ConfigError, match="neither cards nor features"):
        build_network(game.encoding, NetworkConfig(kind="mlp"), generator(0))
    with pytest.raises(ConfigError, match="needs a game with cards"):
        build_network(load_openspiel_game("kuhn_poker").encoding, NetworkConfig(kind="paper"), generator(0))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("leduc_pokr", r"^OpenSpiel has no game 'leduc_pokr'\. Did you mean leduc_poker"),
        ("kuhn_poker(players=3)", r"^'kuhn_poker\(players=3\)' has 3 players, and two are supported\.$"),
        ("kuhn_poker(cards=3)", r"^OpenSpiel refuses 'kuhn_poker\(cards=3\)': Unknown parameter 'cards'"),
        ("python_hangman", r"^'python_hangman' has 1 players, and two are supported\.\n.* is neither zero-sum"),
        ("python_iterated_prisoners_dilemma", r" is neither zero-sum nor constant-sum\.\nOpenSpiel has no names"),
        ("matrix_pd", r"^'matrix_pd' is neither zero-sum nor constant-sum\.$"),
        ("backgammon", r"^OpenSpiel has no names .* for the infosets of 'backgammon'\.$"),
        ("chess", r"^'chess' has about \de\+1\d or more histories, and at most 20,000,000 can be compiled\."),
        ("repeated_leduc_poker", r"^'repeated_leduc_poker' has about \d{2,3},\d{3},\d{3} histories"),
        ("liars_dice_ir(dice_sides=4)", r"^'liars_dice_ir\(dice_sides=4\)' has imperfect recall"),
    ],
)
def test_refusals_are_sentences(name: str, sentence: str) -> None:
    with pytest.raises(GameError, match=sentence) as caught:
        load_openspiel_game(name)
    assert all(problem.endswith((".", "?")) and "\n" not in problem for problem in caught.value.problems)


def test_games_in_python_that_cannot_be_loaded_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_spiel.python.games", None)
    with pytest.raises(GameError, match=r"no game 'kuhn' in C\+\+, and its games in Python cannot be loaded: "):
        load_openspiel_game("kuhn")


def test_compiling_stops_at_the_limit() -> None:
    """The estimate refuses what is clearly too large; the walk itself stops where the estimate leaves a doubt."""
    assert load_openspiel_game("leduc_poker", most_histories=9_457).explicit.num_nodes == 9_457
    with pytest.raises(GameError, match=r"has more than 9,456 histories"):
        load_openspiel_game("leduc_poker", most_histories=9_456)
    with pytest.raises(GameError, match=r"has about [\d,]+ histories, and at most 1,000"):
        load_openspiel_game("leduc_poker", most_histories=1_000)


@pytest.mark.parametrize(("name", "histories"), [("kuhn_poker", 58), ("leduc_poker", 9_457)])
def test_the_size_estimate_is_unbiased(name: str, histories: int) -> None:
    mean, error = estimate_histories(pyspiel.load_game(name), rollouts=2_000)
    assert abs(mean - histories) < 5 * error + 1e-6
    assert error < histories / 4


def test_openspiel_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ConfigError, match=r"pip install 'deepcfr\[openspiel\]'"):
        load_openspiel_game("kuhn_poker")


def test_a_long_list_of_histories_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(openspiel, "_FIRST_NOTE", 0.0)
    monkeypatch.setattr(openspiel, "_BETWEEN_NOTES", 0.0)
    with caplog.at_level(logging.INFO, "deepcfr"):
        load_openspiel_game("kuhn_poker")
    said = r"listing the histories of kuhn_poker: (\d+) of about 60 so far, about (\d+) s left"  # 58 in two digits
    counts = [int(match[1]) for message in caplog.messages if (match := re.fullmatch(said, message))]
    assert counts == sorted(counts)
    assert (len(counts), counts[-1]) == (58, 58)

"""Games written as classes: listed from their deals, named `module:Class`, with exact values and mistakes in sentences."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch

from class_games import Leduc
from command_line import deepcfr, problem
from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.base import Deals, check_game
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import count_histories, load_source
from deepcfr.game.rules import PRESETS
from deepcfr.game.tree_game import ClassGame, class_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match.exact import exact_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.tables import TreePolicy, table_of
from deepcfr.run.folder import RunFolder

NAME = "class_games:Leduc"
TINY = ("--iterations", 2, "--sampling.traversals", 50, "--advantage.steps", 5, "--average.steps", 5)
TINY += ("--advantage.batch-size", 32, "--average.batch-size", 32)


class Biased(Policy):
    """Plays the same unequal probabilities in both forms of the game: by public node and cards."""

    kind = "biased"

    def __init__(self, game: Any) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        seed = infosets.node.long() * 7 + (infosets.cards.long() + 1).clamp(max=9).sum(1) * 3
        shares = (1 + (seed[:, None] * torch.tensor([1, 2, 5])) % 11).double()
        shares = shares * self.game.encoding.legal[infosets.node.long()]
        return shares / shares.sum(1, keepdim=True)


def test_the_tree_of_a_class_is_that_of_the_same_game_of_openspiel() -> None:
    ours, theirs = ClassGame(Leduc(), NAME).explicit, load_openspiel_game("leduc_poker").explicit
    assert ours.num_infosets == theirs.num_infosets == 936
    for player in (0, 1):
        found, right = (sorted(tree.infoset_actions[tree.infoset_actor == player]) for tree in (ours, theirs))
        assert found == right


def test_exact_values_and_matches_of_a_class_are_those_of_poker() -> None:
    games = (PokerGame(PRESETS["leduc"], "raw"), Leduc())
    poker, plain = (exploitability(Biased(game)) for game in games)
    assert plain.nash_conv == pytest.approx(poker.nash_conv, rel=1e-6)
    assert plain.value == pytest.approx(poker.value, rel=1e-6)
    assert plain.boards_used == f"no boards: all {1 + 120 * 85:,} histories"  # the deal comes first, then 85 positions
    seats, expected = (exact_match(Biased(game), UniformPolicy(game)).seats for game in games)
    assert seats == pytest.approx(expected, rel=1e-6)


def test_the_listed_game_keeps_the_contract_and_knows_its_cards() -> None:
    game = ClassGame(Leduc(), NAME)
    check_game(game)
    with pytest.raises(GameError, match="'big' has more than 100 histories"):
        ClassGame(Leduc(), "big", most_histories=100)
    assert count_histories(load_source(NAME), inf) == game.explicit.num_nodes
    assert len(torch.unique(game.encoding.node_features, dim=0)) == game.explicit.num_infosets
    listed = TreePolicy(game, table_of(Biased(Leduc())))
    assert exploitability(listed).nash_conv == pytest.approx(exploitability(Biased(Leduc())).nash_conv)


def test_a_class_goes_through_the_command_line(tmp_path: Path) -> None:
    solved, trained = tmp_path / "solved", tmp_path / "trained"
    exact = deepcfr("solve", NAME, "--iterations", 20, "--solver", "dcfr", "--out", solved, "--json").json
    assert (exact["game"], exact["unit"]) == (NAME, "mA/g")
    assert exact["value"] == pytest.approx(-85.6, abs=15)  # of Leduc hold'em to player 0
    assert deepcfr("exploitability", solved, "--json").json["nash_conv"] == pytest.approx(exact["nash_conv"])
    first = deepcfr("train", NAME, "--out", trained, *TINY, "--json").json
    again = deepcfr("resume", trained, "--iterations", 3, "--json").json
    assert (first["iterations"], again["iterations"]) == (2, 3)
    assert deepcfr("match", solved, trained, "--json").json["value"] > 0
    assert (trained / "report.html").is_file()


def test_an_infoset_of_a_class_is_asked_by_its_name(tmp_path: Path) -> None:
    assert deepcfr("solve", NAME, "--iterations", 3, "--out", tmp_path / "run", "--json").status == 0
    policy = RunFolder.open(tmp_path / "run").load_policy("average", pytest.fail)[0]
    game = policy.game
    assert isinstance(game, ClassGame)
    for infoset in (0, 500):
        name = game.explicit.infoset_names[infoset]
        found = deepcfr("strategy", tmp_path / "run", name, "--json").json
        legal = game.explicit.infoset_actions[infoset]
        assert list(found["probabilities"].values()) == pytest.approx(table_of(policy)[infoset, :legal].tolist())
        assert found["player"] == game.explicit.infoset_actor[infoset]
    sentence = problem(deepcfr("strategy", tmp_path / "run", "As"))
    assert sentence.startswith(f"'{NAME}' has no infoset 'As'; some are '0 / ")


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("", "absent:Game", "'absent:Game': there is no module 'absent' in this folder"),
        ("", "mine.sub:Game", "there is no module 'mine.sub'"),
        (
            "import absent",
            "mine:Game",
            "'mine:Game' cannot be imported: ModuleNotFoundError: No module named 'absent'.",
        ),
        ("x = (", "mine:Game", "'mine:Game' cannot be imported: SyntaxError: '\\(' was never closed"),
        ("class Games: pass", "mine:Game", "the module 'mine' has no class 'Game'. Did you mean Games?"),
        ("class Game:\n def __init__(self, x): pass", "mine:Game", "cannot be made without arguments: TypeError"),
        (
            "class Game:\n name = ''",
            "mine:Game",
            "is no game: it has no unit, no milli_unit",
        ),
    ],
)
def test_mistakes_in_the_name_of_a_class_are_sentences(
    text: str, name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    with pytest.raises(GameError, match=sentence):
        load_source(name)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert "mine" in problem(deepcfr("solve", name, "--out", tmp_path / "run")) or "absent" in name
    assert not (tmp_path / "run").exists()


def listing(change: str) -> Any:
    """A game whose list of deals is wrong."""
    deals, chance = Leduc().deals()
    if change == "shares":
        chance = chance / 2
    elif change == "fewer":
        chance = chance[1:]
    elif change == "missing":  # one card never
        kept = (deals.visible_cards[:, 0, 0, 0] != 0).nonzero()[:, 0]
        deals = Deals(deals.traversal[kept], deals.visible_cards[kept], deals.hidden[kept.numpy()])
        chance = torch.full((len(kept),), 1 / len(kept))
    elif change == "twice as often":
        chance = torch.where(deals.visible_cards[:, 0, 0, 0] == 0, 2 * chance, chance)
        chance = chance / chance.sum()
    return Leduc(deals=lambda: (deals, chance))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("shares", "positive probabilities, which add up to 1"),
        ("fewer", "positive probabilities, which add up to 1"),
        ("missing", "must list what deal\\(\\) draws"),
        ("twice as often", "must list what deal\\(\\) draws"),
    ],
)
def test_a_wrong_list_of_deals_breaks_the_contract(change: str, sentence: str) -> None:
    with pytest.raises(GameError, match=sentence):
        check_game(listing(change), playouts=20_000)


def test_a_game_without_a_list_of_deals_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Leduc, "deals")
    with pytest.raises(GameError, match="'leduc' is neither, and it has no method `deals`"):
        exploitability(UniformPolicy(Leduc(deals=None)))


class Unlisted:
    """The same game without a list of its deals."""

    def __init__(self) -> None:
        self._game = Leduc()

    def __getattr__(self, name: str) -> Any:
        if name == "deals" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._game, name)


def test_a_class_that_does_not_list_its_deals_is_learned_without_exact_values(tmp_path: Path) -> None:
    name, run = "test_class_game:Unlisted", tmp_path / "run"
    assert "nash_conv" not in deepcfr("train", name, "--out", run, *TINY, "--json").json
    assert "it has no method `deals`" in problem(deepcfr("exploitability", run))
    refused = problem(deepcfr("solve", name, "--out", tmp_path / "tables"))
    assert refused == "Tabular solvers need a list of histories, and 'leduc' has too many: use train."
    with pytest.raises(GameError, match=rf"'{name}' cannot be made with device='cuda': TypeError"):
        class_game(name, "cuda")

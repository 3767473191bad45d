"""`deepcfr review`: hands that were played elsewhere, in PHH, as an agent would have played them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bet_size_games import TWO_ROUNDS, random_table
from command_line import deepcfr, problem
from deepcfr.core.types import Infosets
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.cards import free_holes
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.play.costs import Costs, review_seats
from deepcfr.play.hand import Hand, adjusted_result, decisions, played
from deepcfr.policy.base import Policy
from deepcfr.policy.styles import scripted_policy

LIMIT = """variant = 'FT'
antes = [0, 0]
blinds_or_straddles = [2.5, 5]
small_bet = 5
big_bet = 5
starting_stacks = [300, 280]
actions = ['d dh p1 AcAs', 'd dh p2 {their}', 'p2 cbr 10', 'p1 cc', 'd db TcJdQh', 'p1 cbr 5', 'p2 cc']
players = ['Zoë', 'bob']
hand = 90210
_board_cards = [0, 3]
"""
NO_LIMIT = """variant = 'NT'
antes = [0, 0]
blinds_or_straddles = [0.25, 0.50]
min_bet = 0.50
starting_stacks = [64.10, 50.00]
actions = ['d dh p1 ????', 'd dh p2 AcAs', 'p2 cbr 1.25', 'p1 f']
"""
HOLDEM = BetSizeRules(
    name="bet_sizes", stack=10_000, bet_sizes=((250,), (50,)), measure=("chips", "pot"), max_raises=(2, 2),
    all_in=(True, True), blinds=(50, 100), first_player=(0, 1), num_ranks=13, num_suits=4, hole_cards=2,
    board_cards=(0, 3), unit_chips=100, unit="big blinds", milli_unit="mbb/g",
)  # fmt: skip


class Uneven(Policy):
    """Probabilities that differ with cards and nodes, and are never 0."""

    kind = "uneven"

    def __init__(self, game: PokerGame) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = self.game.encoding.legal[infosets.node.long()].double()
        angle = infosets.cards.double().sum(1)[:, None] + infosets.node.double()[:, None] + torch.arange(3)
        weight = legal * (1.2 + torch.sin(angle))
        return weight / weight.sum(1, keepdim=True)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Policy:
    """An agent that the command loads under any name; its first round needs no time."""
    policy = Uneven(PokerGame(PRESETS["fhp-mini"]))
    monkeypatch.setattr("deepcfr.run.players.load_players", lambda *_args, **_more: [policy])
    monkeypatch.setattr(Costs, "prepare", lambda _self: None)
    return policy


def write(folder: Path, text: str) -> Path:
    path = folder / "hand.phh"
    path.write_text(text, "utf-8")
    return path


def test_every_decision_of_a_player_whose_cards_are_known_is_reviewed(tmp_path: Path, agent: Policy) -> None:
    """In dollars, with a hand that nobody saw; values are those of the same hand with any other cards of the opponent."""
    found = deepcfr("review", "any", write(tmp_path, LIMIT.format(their="????")), "--json").json
    assert (found["game"], found["unit"], found["refused"]) == ("fhp-mini", "big blinds", [])
    (hand,) = found["hands"]
    assert (hand["number"], hand["hand"], hand["names"]) == (1, 90210, ["bob", "Zoë"])
    (player,) = hand["players"]
    assert (player["seat"], player["cards"]) == ("big blind", ["6c", "6s"])  # the highest of five ranks
    assert [decision["action"] for decision in player["decisions"]] == ["call", "bet"]
    same = Hand(agent, 3, 1, np.array([[2, 7, 16, 19, 0, 5, 10]], np.uint8))
    for action in (2, 1, 2, 1):
        same.act(action)
    for decision, expected in zip(player["decisions"], decisions(same), strict=True):
        assert list(decision["agent"].values()) == pytest.approx(list(expected.agent.values()))
    river = Costs(agent).at(same, 2)  # type: ignore[arg-type]
    assert river is not None
    assert player["decisions"][1]["exact"]
    assert list(player["decisions"][1]["values"].values()) == pytest.approx(list(river.actions.values()))
    assert player["decisions"][1]["cost"] == pytest.approx(river.cost)


@pytest.mark.usefixtures("agent")
def test_both_players_are_reviewed_and_shown(tmp_path: Path) -> None:
    shown = deepcfr("review", "any", write(tmp_path, LIMIT.format(their="KcKs"))).out
    assert shown.startswith(
        "Hand 1: bob (dealer) and Zoë (big blind)\n  bob with 5c 5s\n    pre-flop: raise; the agent: "
    )
    assert "\n  Zoë with 6c 6s\n" in shown
    assert shown.count(" big blinds, exactly\n") == 2  # the flop is the last round


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (LIMIT.format(their="KcKs"), ("--hand", 2), "Hand 2 is asked for, but '{path}' has hands from 1 to 1."),
        (LIMIT.format(their="????").replace("AcAs", "????"), (), "Hand 90210 shows nobody's cards."),
        (
            LIMIT.format(their="KcKs").replace("[300, 280]", "[300, 280, 90]").replace("[2.5, 5]", "[2.5, 5, 0]"), (),
            "Hand 90210 has 3 players, but fhp-mini has 2.",
        ),
        (NO_LIMIT, (), "Hand 1 has variant = 'NT', but fhp-mini has 'FT'."),
        (
            "".join(f"[{number}]\n{NO_LIMIT}" for number in (1, 2, 3)), (),
            "Hand 1 has variant = 'NT', but fhp-mini has 'FT'. No other hand of the file fits either.",
        ),
    ],
)  # fmt: skip
def test_hands_that_cannot_be_reviewed(tmp_path: Path, text: str, options: tuple[object, ...], sentence: str) -> None:
    path = write(tmp_path, text)
    assert problem(deepcfr("review", "any", path, *options)) == sentence.format(path=path)


@pytest.mark.usefixtures("agent")
def test_no_name_of_a_file_reaches_the_terminal_as_a_code(tmp_path: Path) -> None:
    text = LIMIT.format(their="KcKs").replace("'Zoë', 'bob'", '"Zo\\u001b[2J", "b\\nob"')
    shown = deepcfr("review", "any", write(tmp_path, text)).out
    assert shown.startswith("Hand 1: b?ob (dealer) and Zo?[2J (big blind)\n")
    named = text.replace("hand = 90210", 'hand = "\\u001b[2J"').replace("cbr 10", "cbr 11")
    assert problem(deepcfr("review", "any", write(tmp_path, named))).startswith("Hand '\\x1b[2J' has 'p2 cbr 11', but")


@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_games_that_have_no_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: str) -> None:
    policy = Uneven(PokerGame(PRESETS[game]))
    monkeypatch.setattr("deepcfr.run.players.load_players", lambda *_args, **_more: [policy])
    assert f"not {game}" in problem(deepcfr("review", "any", write(tmp_path, NO_LIMIT)))


def test_stacks_that_are_not_the_agents_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = scripted_policy("call", ImplicitPoker(HOLDEM))
    monkeypatch.setattr("deepcfr.run.players.load_players", lambda *_args, **_more: [policy])
    flop = NO_LIMIT + "_board_cards = [0, 3]\n"
    (hand,) = deepcfr("review", "any", write(tmp_path, flop), "--json").json["hands"]
    assert [player["seat"] for player in hand["players"]] == ["dealer"]
    short = write(tmp_path, flop.replace("50.00]", "40.00]"))
    assert problem(deepcfr("review", "any", short)) == (
        "Hand 1 has starting_stacks = [64.10, 40.00], but in bet_sizes the shorter one is 50."
    )


def test_a_bet_of_the_opponent_that_the_agent_never_makes_counts_as_the_one_it_is_translated_to() -> None:
    """A raise to 10 chips is above the largest of the agent, 8, so it stands for that one; a raise to 8 is its own."""
    policy = random_table(4, ImplicitPoker(TWO_ROUNDS))
    own, other = (played(policy, 1, 0, (0,), (), (total, 0)) for total in (8, 10))
    holes = free_holes(own.rules, (0,))
    assert np.ptp(own.chances(holes)) > 0
    np.testing.assert_array_equal(own.chances(holes), other.chances(holes))


def test_a_raise_that_the_agents_game_has_no_room_for_says_nothing_of_the_opponents_cards() -> None:
    """The agent's game has two raises in a round; the third one, of the dealer, is as likely with every hand."""
    policy = random_table(4, ImplicitPoker(TWO_ROUNDS))
    hand = played(policy, 1, 0, (0,), (), (4, 8, 12, 0))
    holes = free_holes(hand.rules, (0,))
    assert np.ptp(hand.chances(holes, 1)) > 0
    np.testing.assert_array_equal(hand.chances(holes, 3), hand.chances(holes, 1))


def test_the_value_of_a_last_call_is_exact_after_such_a_bet() -> None:
    policy = random_table(4, ImplicitPoker(TWO_ROUNDS))
    actions = (10, 1, 1, 16, 1)  # the dealer raises to 10, and puts in the rest when it is checked to
    hand = played(policy, 1, 0, (0,), (5,), actions)
    costs = Costs(policy)
    found = costs.at(hand, 4)
    assert found is not None
    assert found.exact
    assert found.actions[1] == pytest.approx(adjusted_result(hand))
    reviewed: list[dict[str, Any]] = review_seats(policy, costs, 0, ((), (0,)), (5,), actions)
    assert json.dumps(reviewed[0]["decisions"][-1]["values"]["call"]) == json.dumps(found.actions[1])
    assert "was translated" in reviewed[0]["note"]

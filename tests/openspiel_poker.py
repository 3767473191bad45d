"""OpenSpiel's forms of our poker games, and which of its infosets is which of ours: shared by tests of several modules."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pyspiel
import torch

from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.policy.base import Policy

FHP = PRESETS["fhp"]


def small_fhp(
    num_ranks: int,
    max_raises: tuple[int, ...],
    board: tuple[int, ...] = (0, 3),
    *,
    num_suits: int = 4,
    hole_cards: int = 2,
) -> PokerRules:
    """Flop hold'em with its blinds and raises, but a smaller deck."""
    name = f"fhp with {num_ranks} ranks of {num_suits}, {hole_cards} hole cards, board {board}, raises {max_raises}"
    return replace(
        FHP,
        name=name,
        num_ranks=num_ranks,
        num_suits=num_suits,
        hole_cards=hole_cards,
        board_cards=board,
        first_player=(0, *[1] * (len(board) - 1)),
        raise_size=(100,) * len(board),
        max_raises=max_raises,
        rank_symbols="",
        suit_symbols="",
    )


Place = tuple[int, bytes]  # a node and the cards in canonical hand


def no_limit_holdem(rules: PokerRules | BetSizeRules, stacks: tuple[int, int]) -> pyspiel.Game:
    """Hold'em with the blinds and caps of `rules`, in which every size of raise is an action."""
    return pyspiel.load_game(
        "universal_poker",
        {
            "betting": "nolimit",
            "bettingAbstraction": "fullgame",
            "numPlayers": 2,
            "numRounds": 4,
            "blind": f"{rules.blinds[0]} {rules.blinds[1]}",
            "firstPlayer": "1 2 2 2",
            "maxRaises": " ".join(map(str, rules.max_raises)),
            "numSuits": 4,
            "numRanks": 13,
            "numHoleCards": 2,
            "numBoardCards": "0 3 1 1",
            "stack": f"{stacks[0]} {stacks[1]}",
        },
    )


def openspiel_action(rules: PokerRules, legal: list[int], action: int) -> int:
    """Kuhn's passing and betting are fold or check, and call or bet; elsewhere the actions are numbered like ours."""
    return legal.index(action) if rules.name == "kuhn" else action


def covering_deals(rules: PokerRules) -> Iterator[tuple[int, ...]]:
    """Deals in which every player has every hand with every board; the opponent's cards are the lowest left over."""
    deck = range(rules.num_cards)
    boards: list[tuple[int, ...]] = [()]
    for size in rules.board_cards:
        boards = [(*board, *new) for board in boards for new in combinations([c for c in deck if c not in board], size)]
    for board in boards:
        free = [card for card in deck if card not in board]
        for own in combinations(free, rules.hole_cards):
            other = [card for card in free if card not in own][: rules.hole_cards]
            yield (*own, *other, *board)
            yield (*other, *own, *board)


def openspiel_infosets(game: PokerGame, other: pyspiel.Game) -> dict[str, tuple[Place, list[int]]]:
    """OpenSpiel's infosets by name, with our node and canonical hand and the legal actions, found by playing the same
    histories.
    """
    return _openspiel_infosets(game.rules, game.suits, str(other))


@cache
def _openspiel_infosets(rules: PokerRules, suits: Suits, name: str) -> dict[str, tuple[Place, list[int]]]:
    game, other = PokerGame(rules, suits), pyspiel.load_game(name)
    found: dict[str, tuple[Place, list[int]]] = {}
    deals = list(covering_deals(game.rules))
    hands = game.deals_of(np.array(deals, np.uint8)).visible_cards.numpy()

    def visit(state: pyspiel.State, node: int, row: int, cards: int) -> None:
        while state.is_chance_node():
            state.apply_action(deals[row][cards])
            cards += 1
        actor = int(game.tree.actor[node])
        assert state.is_terminal() == (actor == TERMINAL)
        if actor == TERMINAL:
            return
        assert state.current_player() == actor
        legal = np.flatnonzero(game.tree.legal[node]).tolist()
        place = (node, hands[row, actor, game.tree.round[node]].tobytes())
        assert found.setdefault(state.information_state_string(), (place, legal)) == (place, legal)
        assert state.legal_actions() == [openspiel_action(game.rules, legal, action) for action in legal]
        for action in legal:
            child = state.child(openspiel_action(game.rules, legal, action))
            visit(child, int(game.tree.child[node, action]), row, cards)

    for row in range(len(deals)):
        visit(other.new_initial_state(), 0, row, 0)
    return found


def openspiel_policy(policy: Policy, infosets: dict[str, tuple[Place, list[int]]]) -> pyspiel.TabularPolicy:
    places = [place for place, _ in infosets.values()]
    nodes = torch.tensor([node for node, _ in places])
    cards = torch.tensor(np.array([np.frombuffer(canonical, np.uint8) for _, canonical in places]))
    rows = policy.probabilities(Infosets(nodes, cards)).tolist()
    assert isinstance(policy.game, PokerGame)
    rules = policy.game.rules
    return pyspiel.TabularPolicy(
        {
            name: [(openspiel_action(rules, legal, action), row[action]) for action in legal]
            for (name, (_, legal)), row in zip(infosets.items(), rows, strict=True)
        }
    )

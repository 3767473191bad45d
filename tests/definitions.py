"""Rules as the text of a game-definition file of the Annual Computer Poker Competition."""

from __future__ import annotations

from collections.abc import Iterable

from deepcfr.core.errors import GameError
from deepcfr.game.rules import WHOLE_POT, PokerRules


def format_game_definition(rules: PokerRules) -> str:
    """Write rules as the text of a game-definition file; reading the text gives the same rules.

    Pot betting is written as a no-limit game. Raises GameError if reading it would give other rules: rules without
    limping, or with raises of another size than the pot.
    The small blind is the second player, as in the competition's own definitions. The format has no room for names, symbols
    and units: `parse_game_definition` sets its defaults.
    """
    pot = rules.betting == "pot"
    if not rules.limp or rules.betting == "no-limit" or (pot and set(rules.raise_size) != {WHOLE_POT}):
        raise GameError(
            f"A game definition has no key for the rules of {rules.name} on limping or on the size of raises."
        )
    lines = [
        "GAMEDEF",
        "nolimit" if pot else "limit",
        "numPlayers = 2",
        f"numRounds = {rules.num_rounds}",
        *([f"stack = {rules.stack} {rules.stack}"] if pot else []),
        f"blind = {_join(rules.blinds[::-1])}",
        *([] if pot else [f"raiseSize = {_join(rules.raise_size)}"]),
        f"firstPlayer = {_join(2 - player for player in rules.first_player)}",
        f"maxRaises = {_join(rules.max_raises)}",
        f"numSuits = {rules.num_suits}",
        f"numRanks = {rules.num_ranks}",
        f"numHoleCards = {rules.hole_cards}",
        f"numBoardCards = {_join(rules.board_cards)}",
        "END GAMEDEF",
    ]
    return "\n".join(lines) + "\n"


def _join(values: Iterable[int]) -> str:
    return " ".join(map(str, values))

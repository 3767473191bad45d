"""The games that an exact evaluation can enumerate, from their rules alone."""

from __future__ import annotations

from deepcfr.core.errors import GameError
from deepcfr.game.rules import PokerRules

MOST_BOARDS = 1_000_000  # limit on the full runouts that an exact evaluation enumerates


def too_many_boards(rules: PokerRules) -> str | None:
    """A sentence that says why a game is too large for exact evaluation; None if it is not."""
    if rules.hole_cards > 2:
        return f"Exact evaluation needs one or two hole cards, but {rules.name} deals {rules.hole_cards}."
    boards = rules.count_boards()[-1]
    if boards > MOST_BOARDS:
        return f"{rules.name} has {boards:,} boards, but exact evaluation enumerates at most {MOST_BOARDS:,}."
    return None


def require_few_boards(rules: PokerRules) -> None:
    """Raise GameError if a game is too large for exact evaluation."""
    if reason := too_many_boards(rules):
        raise GameError(reason + instead(rules))


def instead(rules: PokerRules) -> str:
    """Name what there is instead of an exact evaluation, as a sentence to add."""
    return " deepcfr lbr gives a lower bound." if rules.hole_cards < 3 else ""

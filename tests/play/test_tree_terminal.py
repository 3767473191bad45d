"""A session in a game whose histories are listed: what is paid is what was played, and the agent's moves stay hidden."""

import io
from pathlib import Path

from rich.console import Console

from class_games import Leduc
from command_line import deepcfr
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.tree_game import ClassGame, TreeGame
from deepcfr.play.terminal import play
from deepcfr.policy.tables import TreePolicy

NAMED = ClassGame(Leduc(action_names=("fold", "call", "raise")), "leduc")


def session(game: TreeGame, answer: str, hands: int, seed: int = 5) -> tuple[float, str, list[str]]:
    """What a person wins who always answers alike against uniform play, what was shown, and the questions."""
    shown, asked = io.StringIO(), []

    def read(question: str) -> str:
        asked.append(question)
        return answer

    score = play(
        TreePolicy(game, game.explicit.uniform()), Console(file=shown, width=200), read, seed=seed, hands=hands
    )
    assert score.hands == hands
    return score.chips, shown.getvalue(), asked


def test_a_class_is_played_by_the_names_of_its_actions() -> None:
    won, shown, asked = session(NAMED, "call", 6)
    assert (won, shown) == session(NAMED, "call", 6)[:2]
    assert (won, shown) != session(NAMED, "call", 6, seed=6)[:2]
    assert "Game 1: you are player 0." in shown
    assert "Game 2: you are player 1." in shown
    assert set(asked) <= {f"  {names} or quit (q)? " for names in ("call, raise", "fold, call, raise", "fold, call")}
    results = [
        float(line.split()[2]) * (1 if " win " in line else -1)
        for line in shown.splitlines()
        if "You win" in line or "You lose" in line
    ]
    assert sum(results) == won


def test_a_game_of_openspiel_is_played_by_its_infosets() -> None:
    _, shown, asked = session(load_openspiel_game("kuhn_poker"), "0", 4)  # 0 passes
    assert set(asked) == {"  0, 1 or quit (q)? "}
    assert "You know: " in shown
    lost = [line for line in shown.splitlines() if "You lose" in line or "You win" in line]
    assert all(" 1 point" in line for line in lost)  # who always passes plays for the ante


def test_the_command_plays_a_class(tmp_path: Path) -> None:
    assert deepcfr("solve", "class_games:Leduc", "--iterations", 2, "--out", tmp_path / "run", "--json").status == 0
    outcome = deepcfr("play", tmp_path / "run", "--seed", 1, answers="7\n1\nq\n")
    assert outcome.status == 0
    assert "'7' is not possible here: type one of 1, 2 or q." in outcome.out
    assert "the unfinished hand does not count" in outcome.out

"""A session in the terminal: what is shown is what was played, and what was played is what is paid."""

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from phevaluator import evaluate_cards
from rich.console import Console

from class_games import Leduc
from command_line import deepcfr
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import key
from deepcfr.core.types import Infosets
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.game.tree_game import ClassGame, TreeGame
from deepcfr.measure.intervals import Score, score_of
from deepcfr.play.terminal import amount, cards_markup, play
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.policy.query import infosets_with, parse_situation
from deepcfr.policy.tables import TreePolicy

GAMES = {name: PokerGame(rules) for name, rules in PRESETS.items()}


class Script:
    """Answers for `read`, one after the other and then end of file, keeping the prompts; exceptions are raised."""

    def __init__(self, answers: Iterable[str | type[BaseException]]) -> None:
        self.answers = iter(answers)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        answer = next(self.answers, EOFError)
        if isinstance(answer, str):
            return answer
        raise answer


class Always(UniformPolicy):
    """The first of `order` that is legal."""

    def __init__(self, game: PokerGame, order: str) -> None:
        super().__init__(game)
        self.order = ["fcr".index(letter) for letter in order]
        self.asked: list[Infosets] = []

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        self.asked.append(infosets)
        legal = self.game.encoding.legal[infosets.node]
        chosen = next(action for action in self.order if legal[0, action])
        return torch.nn.functional.one_hot(torch.tensor([chosen]), 3).float()


def session(
    policy: Policy, read: Callable[[str], str], seed: int = 0, hands: int | None = None
) -> tuple[Score, list[str]]:
    """The result and the lines that the person sees."""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    result = play(policy, console, read, seed, hands)
    return result, console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def hands_of(lines: list[str]) -> list[list[str]]:
    """The lines of every hand that was finished."""
    text = "\n".join(lines)
    parts = [part.splitlines() for part in re.split(r"(?=^Hand \d+:)", text, flags=re.M)[1:]]
    return [part for part in parts if any(line.startswith(("  Showdown", "  Fold")) for line in part)]


def better(rules: PokerRules, mine: list[str], theirs: list[str], board: list[str]) -> int:
    """1, 0 or -1 if the first hand wins, ties or loses, by another evaluator than the library's."""
    if rules.hole_cards == 2:
        one, two = (evaluate_cards(*hand, *board) for hand in (mine, theirs))
        return (one < two) - (one > two)
    scores = [(bool(board) and hand[0][0] == board[0][0], "JQK".index(hand[0][0])) for hand in (mine, theirs)]
    return (scores[0] > scores[1]) - (scores[0] < scores[1])


def replay(rules: PokerRules, lines: list[str]) -> float:
    """The person's winnings in a hand, computed only from the shown actions, boards and hands."""
    person = int("you act second" in lines[0])
    chips, round_, board = list(rules.blinds), 0, list[str]()
    for line in lines:
        if match := re.match(r"  (You|Agent): (\w+)$", line):
            actor = person if match[1] == "You" else 1 - person
            if match[2] != "fold":
                top = chips[1 - actor]
                raised = 3 * top if rules.betting == "pot" else top + rules.raise_size[round_]
                capped = min(raised, rules.stack) if rules.betting == "pot" else raised
                chips[actor] = capped if match[2] in ("bet", "raise") else top
            elif actor == person:
                return -chips[person] / rules.unit_chips
            else:
                return chips[1 - person] / rules.unit_chips
        elif match := re.match(r"  (?:Round \d|Pre-flop|Flop|Turn|River): (?:(.*), )?pot ([\d.]+) ", line):
            board = match[1].split() if match[1] else []
            round_ = next(r for r in range(4) if sum(rules.board_cards[: r + 1]) == len(board))
            assert float(match[2]) == sum(chips) / rules.unit_chips
        elif match := re.match(r"  Pot ([\d.]+) [a-z ]+(?:, ([\d.]+) [a-z ]+ to call)?\.$", line):
            owed = chips[1 - person] - chips[person]
            assert [float(match[1]), float(match[2] or 0)] == [sum(chips) / rules.unit_chips, owed / rules.unit_chips]
        elif match := re.match(r"  Showdown: you had (.*), the agent had (.*)\.$", line):
            assert chips[0] == chips[1]
            mine, theirs = match[1].split(), match[2].split()
            assert len({*mine, *theirs, *board}) == 2 * rules.hole_cards + sum(rules.board_cards)
            return better(rules, mine, theirs, board) * chips[0] / rules.unit_chips
    raise AssertionError("the hand has no end")


def shown_result(lines: list[str]) -> float:
    text = next(line for line in lines if re.match(r"  (You (win|lose)|The pot)", line))
    match = re.match(r"  You (win|lose) ([\d.]+) ", text)
    return (1 if match[1] == "win" else -1) * float(match[2]) if match else 0.0


@pytest.mark.parametrize(
    ("name", "answers"),
    [*((name, "rrrrcrcf") for name in GAMES), ("leduc", "c"), ("hulh", "rc"), ("hunl-pot", "ffcrcc")],
)
def test_results_are_those_of_an_independent_replay(name: str, answers: str) -> None:
    if not PRESETS[name].limp:
        answers = answers.replace("c", "cr")  # who may not call raises instead
    script = Script(answers[i % len(answers)] for i in range(3000))
    result, lines = session(UniformPolicy(GAMES[name]), script, seed=5, hands=20)
    played = hands_of(lines)
    again = session(
        UniformPolicy(GAMES[name]), Script(answers[i % len(answers)] for i in range(3000)), seed=5, hands=20
    )
    assert again == (result, lines)
    replayed = [replay(PRESETS[name], hand) for hand in played]
    assert len(played) == result.hands == 20
    assert [shown_result(hand) for hand in played] == replayed
    assert result.chips == sum(replayed) * PRESETS[name].unit_chips
    assert result.mean == pytest.approx(1000 * np.mean(replayed))
    assert result.interval == pytest.approx(1000 * 1.959964 * np.std(replayed, ddof=1) / 20**0.5, rel=1e-6)


def test_the_agent_knows_its_own_cards_and_no_others() -> None:
    game = GAMES["fhp"]
    agent = Always(game, "rc")
    _, lines = session(agent, Script("c" * 100), seed=2, hands=2)
    texts = []
    # The agent raises before the flop and bets on it: as player 1 of hand 1, then as player 0 of hand 2.
    for hand, betting, flop_betting in zip(hands_of(lines), ("c", ""), ("", "c"), strict=True):
        (hole,), (flop,) = (
            re.findall(words, "\n".join(hand)) for words in (r"the agent had (.*)\.", "Flop: (.*), pot")
        )
        texts += [f"{hole} / {betting}", f"{hole} / {betting}r / {flop} / {flop_betting}"]
    for asked, situation in zip(agent.asked, (parse_situation(game.state(), text) for text in texts), strict=True):
        wanted = infosets_with(game, situation.state, np.array([situation.hole], np.uint8), situation.board)  # type: ignore[arg-type]
        assert torch.equal(asked.node, wanted.node)
        assert torch.equal(asked.cards, wanted.cards)


def test_the_agent_samples_from_its_policy() -> None:
    class Biased(UniformPolicy):
        def probabilities(self, infosets: Infosets) -> torch.Tensor:
            legal = self.game.encoding.legal[infosets.node]
            return torch.tensor([[0.0, 0.8, 0.2]]) if not legal[0, 0] else torch.tensor([[0.3, 0.7, 0.0]])

    _, lines = session(Biased(GAMES["kuhn"]), Script("rc" * 1000), seed=1, hands=500)
    counts = {name: lines.count(f"  Agent: {name}") for name in ("check", "bet", "fold", "call")}
    for name, other, share in (("check", "bet", 0.8), ("call", "fold", 0.7)):
        total = counts[name] + counts[other]
        assert total > 100
        assert abs(counts[name] - share * total) < 4 * (share * (1 - share) * total) ** 0.5


def test_invalid_answers_say_what_is_allowed_and_ask_again() -> None:
    # The person calls, the agent raises to 2, the person to 3, the agent to 4: now only fold and call are left.
    wrong = ["", "x", "r", "b", "fold", "[red]", "c c"]
    script = Script(["c", "r", *wrong, " F "])
    result, lines = session(Always(GAMES["fhp"], "rc"), script, hands=1)
    keys = "fold (f), call (c) or quit (q)"
    complaints = [line.strip() for line in lines if "is not possible here" in line]
    assert complaints == [f"{text!r} is not possible here: type the letter of {keys}." for text in wrong]
    assert script.prompts[2:] == [f"  {keys}? "] * (len(wrong) + 1)
    assert result == score_of([-3.0], PRESETS["fhp"])


@pytest.mark.parametrize("stop", ["q", "Q ", EOFError, KeyboardInterrupt])
def test_leaving_gives_the_summary_of_the_finished_hands(stop: str | type[BaseException]) -> None:
    # Kuhn against an agent that only checks and calls: check-check in hand 1 and 2, then leaving hand 3.
    game = GAMES["kuhn"]
    result, lines = session(Always(game, "c"), Script(["c", "c", stop, "c", "c"]), seed=3)
    assert result == score_of([replay(game.rules, hand) for hand in hands_of(lines)], game.rules)
    assert result.hands == 2
    assert "You leave the table; the unfinished hand does not count." in lines
    assert lines[-1].startswith("Session: 2 hands, ")
    assert session(UniformPolicy(game), Script([stop]))[1][-1] == "Session: no hand was finished."


def test_the_running_score_appears_after_every_hand() -> None:
    _, lines = session(Always(GAMES["fhp"], "fc"), Script("r" * 100), hands=3)
    # The agent folds its big blind of 1, then its small blind of 0.5 unasked, then the big blind again.
    assert [line for line in lines if re.match(r"\d+ hands?,", line)] == [
        "1 hand, +1 big blind, +1000 mbb/g.",
        "2 hands, +1.5 big blinds, +750 mbb/g ± 490.",
        "3 hands, +2.5 big blinds, +833 mbb/g ± 327.",
    ]


def test_cards_and_amounts_are_readable() -> None:
    rules = PRESETS["fhp"]
    markup = cards_markup(rules, np.array([0, 1, 2, 3], np.uint8))
    assert markup == "[green]2c[/green] [blue]2d[/blue] [red]2h[/red] [bold]2s[/bold]"
    assert cards_markup(PRESETS["kuhn"], np.array([2], np.uint8)) == "K"
    assert [amount(rules, units) for units in (0.5, 1, 2)] == ["0.5 big blinds", "1 big blind", "2 big blinds"]
    assert [amount(PRESETS["kuhn"], units, "+") for units in (-1, 0, 1)] == ["-1 ante", "+0 antes", "+1 ante"]


def test_bad_arguments_are_refused_before_the_first_hand() -> None:
    with pytest.raises(ConfigError, match="The number of hands is 0, but must be at least 1"):
        session(UniformPolicy(GAMES["kuhn"]), Script([]), hands=0)
    with pytest.raises(GameError, match="Only poker games can be played, but 'dice' is not one"):
        session(UniformPolicy(SimpleNamespace(name="dice")), Script([]))  # type: ignore[arg-type]


@settings(max_examples=25)
@given(
    name=st.sampled_from(["kuhn", "leduc", "fhp"]),
    answers=st.lists(st.sampled_from(["f", "c", "k", "r", "b", "C ", ""]) | st.text(max_size=5), max_size=40),
    seed=st.integers(0, 2**40),
)
def test_any_answers_end_in_a_result_that_the_replay_confirms(name: str, answers: list[str], seed: int) -> None:
    result, lines = session(UniformPolicy(GAMES[name]), Script(answers), seed=seed, hands=10)
    assert result == score_of([replay(PRESETS[name], hand) for hand in hands_of(lines)], PRESETS[name])


def test_a_mixture_plays_one_of_its_policies_from_the_first_action_of_a_hand_to_its_last() -> None:
    game = GAMES["leduc"]
    parts = bold, timid = Always(game, "rcf"), Always(game, "cf")
    asked = []
    for hands in range(1, 13):  # a session of one hand more asks the same and then for one hand more
        bold.asked, timid.asked = [], []
        session(MixturePolicy(game, parts, [1.0, 2.0]), Script("c" * 1_000), seed=3, hands=hands)
        asked.append([len(bold.asked), len(timid.asked)])
    drawn = MixturePolicy(game, parts, [1.0, 2.0]).draw_for(key(3, "play", "draw"), torch.arange(12))[1:]
    assert set(drawn.tolist()) == {0, 1}
    more = np.diff(asked, axis=0)
    assert (more > 0).argmax(1).tolist() == drawn.tolist()
    assert ((more > 0).sum(1) == 1).all()


# Games whose histories are listed


def listed_session(game: TreeGame, answer: str, seed: int = 5) -> tuple[float, list[str], list[str]]:
    """What a person wins who always answers alike against uniform play, what was shown, and the questions."""
    script = Script([answer] * 100)
    result, lines = session(TreePolicy(game, game.explicit.uniform()), script, seed, hands=6)
    return result.chips, lines, script.prompts


def test_a_class_is_played_by_the_names_of_its_actions() -> None:
    named = ClassGame(Leduc(action_names=("fold", "call", "raise")), "leduc")
    won, shown, asked = listed_session(named, "call")
    assert (won, shown, asked) == listed_session(named, "call") != listed_session(named, "call", seed=6)
    assert {"Game 1: you are player 0.", "Game 2: you are player 1."} <= set(shown)
    assert set(asked) <= {f"  {names} or quit (q)? " for names in ("call, raise", "fold, call, raise", "fold, call")}
    ends = [line.split() for line in shown if "You win" in line or "You lose" in line]
    assert sum(float(end[2]) * (1 if end[1] == "win" else -1) for end in ends) == won


def test_a_game_of_openspiel_is_played_by_its_infosets() -> None:
    _, shown, asked = listed_session(load_openspiel_game("kuhn_poker"), "0")  # 0 passes
    assert set(asked) == {"  0, 1 or quit (q)? "}
    assert any("You know: " in line for line in shown)
    ends = [line for line in shown if "You lose" in line or "You win" in line]
    assert all(" 1 point" in line for line in ends)  # who always passes plays for the ante


def test_the_command_plays_a_class(tmp_path: Path) -> None:
    assert deepcfr("solve", "class_games:Leduc", "--iterations", 2, "--out", tmp_path / "run", "--json").status == 0
    outcome = deepcfr("play", tmp_path / "run", "--seed", 1, answers="7\n1\nq\n")
    assert outcome.status == 0
    assert "'7' is not possible here: type one of 1, 2 or q." in outcome.out
    assert "the unfinished hand does not count" in outcome.out

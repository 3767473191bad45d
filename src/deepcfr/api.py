"""The library in a few calls: load or train an agent, ask it, measure it, let two agents play, solve a spot.

They wrap what the command line uses, with the same names and the same errors: every mistake that the command line names is
a `DeepCFRError` whose text says it in a sentence. Only calls that need torch load it: spots do without.
"""

from __future__ import annotations

import reprlib
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deepcfr.boards.kernels import TREMBLE, pair_weights
from deepcfr.config import (
    DEFAULT_SEARCH,
    RunConfig,
    SearchConfig,
    config_from_table,
    config_to_toml,
    unread_settings,
)
from deepcfr.core.errors import ConfigError, GameError, NoPolicy
from deepcfr.core.types import Doubles
from deepcfr.defaults import SPOT_EXPLOITABILITY, SPOT_ITERATIONS, SPOT_SIZES, default_config
from deepcfr.game.cards import cards_text, free_holes, read_board
from deepcfr.game.presets import build_game, load_source
from deepcfr.search.spot import Spot
from deepcfr.search.spot_file import read_solution
from deepcfr.search.spot_solution import Solution
from deepcfr.search.spot_solver import OnIteration, SpotSolver, check_limits, memory_for_spots

if TYPE_CHECKING:
    from deepcfr.interop.environment import GameEnv
    from deepcfr.measure.exploitability import Exploitability
    from deepcfr.measure.match import Match
    from deepcfr.policy.base import Policy
    from deepcfr.run.spot_table import SpotTable
    from deepcfr.solve.base import Record, Solver

Texts = str | Sequence[str]
"""A text, or its parts in a list: cards, or the betting of each round."""


@dataclass(frozen=True)
class Ranges:
    """Both players' ranges at a decision, with H hands and A actions."""

    hands: list[str]  # [H], such as "As Kd"
    player: int  # to act
    actions: list[str]  # [A]
    reach: Doubles  # [2, H] the probability of each player's own actions up to here
    weight: Doubles  # [H] chance of each hand of the player to act, up to a factor: its reach times what it can meet
    strategy: Doubles  # [H, A] of the player to act

    def frequencies(self) -> dict[str, float]:
        """Return the mean probability of each action over the hands of the player to act, by their `weight`."""
        mean = self.weight @ self.strategy / self.weight.sum()
        return dict(zip(self.actions, mean.tolist(), strict=True))


@dataclass(frozen=True)
class Agent:
    """A policy; in poker games it is asked in text."""

    policy: Policy

    def __post_init__(self) -> None:
        from deepcfr.policy.base import Policy

        if not isinstance(self.policy, Policy):
            raise ConfigError(f"An agent plays a policy, as load('kuhn').policy is one, but {self.policy!r} is given.")

    @property
    def game(self) -> str:
        """The name of its game."""
        return self.policy.game.name

    def act(self, hand: Texts, board: Texts = "", betting: Texts = "") -> dict[str, float]:
        """The probability of each legal action with a hand, by the action's name.

        `betting` has the actions of each round so far, with `/` between rounds, and `board` all public cards: `act("As Kd",
        "Qs 7h 2c", "rc/")` is a flop after a raise and a call. Each may be a list too: `act(["As", "Kd"])`. The notation
        is that of `policy.query`. Raises ConfigError if nobody is to act there or something cannot be read.
        """
        from deepcfr.policy.query import poker_state, query

        rules = poker_state(self.policy).rules
        board, betting = _text("board", board), _text("betting", betting, "/")
        cards, fields = read_board(rules, board), [_text("hand", hand)]
        rounds = betting.split("/")
        for new_cards in rules.board_cards:
            if not rounds and not cards:
                break
            if new_cards:
                fields.append(cards_text(rules, cards[:new_cards]))
                cards = cards[new_cards:]
            fields.append(rounds.pop(0) if rounds else "")
        if rounds or cards:
            raise ConfigError(f"{rules.name} has no round for all of the board '{board}' and the betting '{betting}'.")
        while len(fields) > 1 and not fields[-1]:
            fields.pop()
        return query(self.policy, " / ".join(fields)).probabilities

    def ranges(self, betting: Texts = "", board: Texts = "") -> Ranges:
        """Both ranges at a decision and the strategy there, with every hand that the board allows.

        The arguments are as in `act`. Raises ConfigError as it does, and GameError for more than two hole cards.
        """
        from deepcfr.policy.query import hand_strategy, poker_state, reach_after

        rules = poker_state(self.policy).rules
        if rules.hole_cards > 2:
            raise GameError(f"Ranges need one or two hole cards, but {rules.name} deals {rules.hole_cards}.")
        board, betting = _text("board", board), _text("betting", betting, "/")
        cards = read_board(rules, board)
        holes = free_holes(rules, cards)
        state, reach = reach_after(self.policy, betting, holes, cards)
        if state.over or sum(rules.board_cards[: state.round + 1]) != len(cards):
            raise ConfigError(f"Nobody is to act after the betting '{betting}' on the board '{board}'.")
        strategy = hand_strategy(self.policy, state, holes, cards)[:, state.legal()]
        hands = [cards_text(rules, hole[::-1]) for hole in holes]
        weight = pair_weights(holes, np.maximum(reach, TREMBLE), state.actor)[0]
        return Ranges(hands, state.actor, [state.name(action) for action in state.legal()], reach, weight, strategy)

    def to_openspiel(self) -> Any:
        """The agent as a policy of OpenSpiel, whose `game` is OpenSpiel's form of the agent's game.

        Raises ConfigError if OpenSpiel is not installed, and GameError for games that it does not have.
        """
        from deepcfr.interop.openspiel import to_openspiel

        return to_openspiel(self.policy)

    def to_openspiel_bot(self, player: int, seed: int = 0) -> Any:
        """The agent as a bot of OpenSpiel that plays as `player`. Raises what `to_openspiel` raises."""
        from deepcfr.interop.openspiel import to_openspiel_bot

        return to_openspiel_bot(self.policy, player, _whole("seed", seed))

    @classmethod
    def from_openspiel(cls, game: str, policy: Any) -> Agent:
        """An agent that plays a policy, or a pair of bots, of OpenSpiel, in Python or C++, in a game such as leduc_poker.

        The policy must know the turn-based form of `game`, and bots must tell their probabilities. Raises ConfigError if
        OpenSpiel is not installed, and GameError for games that cannot be listed and for what is no policy of this game.
        """
        from deepcfr.game.openspiel import load_openspiel_game
        from deepcfr.interop.openspiel import from_openspiel

        return cls(from_openspiel(load_openspiel_game(_text("game", game)), policy))


class Training(Iterator["Record"]):
    """A run of networks in memory: iterate over it for the records of the iterations, then take its `agent`."""

    def __init__(self, config: RunConfig) -> None:
        from deepcfr.run.build import build_solver, make_game
        from deepcfr.run.costs import cost_notes

        if config.runtime.minutes:
            raise ConfigError("'runtime.minutes' is for runs in folders: stop iterating when you like.")
        self.config = config
        source = load_source(config.game)
        game = cache(partial(make_game, source, config, config.runtime.device))
        cost_notes(config, source, game=game)  # refuses what does not fit
        for note in unread_settings(config):
            warnings.warn(note, stacklevel=3)
        self._solver: Solver = build_solver(game(), config)
        self._records = self._solver.iterations()

    def __next__(self) -> Record:
        return next(self._records)

    @property
    def agent(self) -> Agent:
        """The agent of the iterations so far: the average policy, or another one that `evaluation.policy` names."""
        if not self._solver.iteration:
            raise ConfigError("There is no agent before the first of the run's iterations.")
        if self._solver.average_iteration != self._solver.iteration:
            self._solver.fit_average()
        try:
            return Agent(self._solver.policy(self.config.evaluation.policy))
        except NoPolicy as error:
            raise ConfigError(f"The run {error}") from error


def load(name: str | Path, policy: str = "own", search: SearchConfig = DEFAULT_SEARCH) -> Agent:
    """An agent by name: a shipped one such as `fhp`, a run folder, or any player of `deepcfr match`, such as resolve:fhp.

    Raises what `run.players.load_players` raises.
    """
    from deepcfr.run.players import load_players

    policy = _text("policy", policy)
    if not isinstance(search, SearchConfig):
        raise ConfigError(f"Settings of search are a SearchConfig, but {reprlib.repr(search)} is given.")
    (player,) = load_players((str(name),), policy, partial(warnings.warn, stacklevel=2), search=search)
    return Agent(player)


def train(game: str, **settings: Any) -> Training:
    """Begin a run; what `settings` do not say is as in `deepcfr train GAME`.

    `train("leduc", seed=1, iterations=50)` has the keys of the configuration files (docs/cli.md). For folders,
    checkpoints and reports there is the command. Raises ConfigError with every problem, GameError for unknown games.
    """
    _text("solver", settings.get("solver", ""))
    default = default_config(game, settings.pop("solver", "deep-cfr"))
    base = tomllib.loads(config_to_toml(default))
    sampling = settings.get("sampling")
    if isinstance(sampling, dict) and "kind" in sampling:
        base["sampling"] = vars(default.sampling.of_kind(sampling["kind"]))
    for name, value in settings.items():
        base[name] = base[name] | value if isinstance(value, dict) and isinstance(base.get(name), dict) else value
    return Training(config_from_table(base))


def environment(game: str | Agent, seed: int = 0) -> GameEnv:
    """A game by its name, or the game of an agent, as an environment of PettingZoo.

    Raises ConfigError if PettingZoo is not installed, GameError for unknown games and for those that are too large to list.
    """
    try:
        from deepcfr.interop.environment import GameEnv
    except ImportError as error:
        raise ConfigError("PettingZoo is not installed: run pip install 'deepcfr[pettingzoo]'.") from error
    made = game.policy.game if isinstance(game, Agent) else build_game(load_source(game), "raw")
    return GameEnv(made, seed)


def exploitability(agent: Agent | Policy, threads: int = 1) -> Exploitability:
    """The exact exploitability of an agent or a policy, in thousandths of the game's unit.

    Raises GameError for games that are too large.
    """
    from deepcfr.measure.exploitability import exploitability as exact

    return exact(_policy_of(agent), threads=_whole("number of threads", threads))


def match(
    first: Agent,
    second: Agent,
    *,
    boards: int | Literal["all"] | None = None,
    hands: int | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Match:
    """The gain of `first` against `second` in both seats: exactly, over sampled boards, or over sampled deals.

    Raises ConfigError and GameError as `deepcfr match` does.
    """
    from deepcfr.measure.match.tournament import TournamentTerms

    return TournamentTerms(boards, hands, None, seed, threads).play(_policy_of(first), _policy_of(second))


def solve_spot(
    board: Texts,
    sizes: Texts = SPOT_SIZES,
    *,
    pot: float | None = None,
    stacks: float | None = None,
    dealer: Texts | Mapping[str, float] | None = None,
    big_blind: Texts | Mapping[str, float] | None = None,
    agent: Agent | Policy | None = None,
    line: Texts = "",
    rake: float = 0.0,
    cap: float | None = None,
    min_bet: float = 0.0,
    aggressor: str | None = None,
    exploitability: float | str = SPOT_EXPLOITABILITY,
    iterations: int = SPOT_ITERATIONS,
    locks: Sequence[dict[str, Any]] = (),
    threads: int = 2,
    on_progress: OnIteration | None = None,
) -> Solution:
    """Solve a spot of hold'em, as `deepcfr spot` does, to an exploitability or a number of iterations.

    The exploitability is in percent of the pot, the mean gain of both players' best responses in the spot.
    Pot, stacks, `cap` and `min_bet` are in any unit, such as big blinds or chips; ranges and sizes are texts, for example
    `solve_spot("Qs 7h 2c 9d 4s", pot=10, stacks=95, dealer="22+,A2s+", big_blind="55+,KQo:0.5")`. What is not given is as
    `agent` has it after the betting `line`. The house takes `rake` percent of the final pot from its winner, at most `cap`;
    the game is then not zero-sum, CFR need not converge, and the exploitability says how near the result is. No bet is
    below `min_bet`; `aggressor` is the player (dealer or big blind) who bet last on the street before, for donk bets.
    Warns of what is solved otherwise than given. Raises ConfigError for mistakes, and GameError if the spot needs more
    than three quarters of the memory that is free.
    """
    check_limits(exploitability, iterations, threads)
    if on_progress is not None and not callable(on_progress):
        raise ConfigError(f"on_progress must be a function of iterations and exploitability, but is {on_progress!r}.")
    policy = None if agent is None else _policy_of(agent)
    spot = Spot.parse(
        _text("board", board),
        _text("sizes", sizes, ", "),
        pot=pot,
        stacks=stacks,
        dealer=_range_text("dealer", dealer),
        big_blind=_range_text("big blind", big_blind),
        policy=policy,
        line=_text("line", line, "/"),
        rake=rake,
        cap=cap,
        min_bet=min_bet,
        aggressor=aggressor,
    )
    for note in spot.notes:
        warnings.warn(note, stacklevel=2)
    return SpotSolver(spot, memory_for_spots(), threads, locks).solve(exploitability, iterations, on_progress)


def load_spot(path: str | Path, threads: int = 1) -> Solution:
    """Open a solved spot that `deepcfr spot --out NAME.npz` wrote, or `write_solution` of `deepcfr.search.spot_file`.

    It has all streets; `threads` compute what is asked of later ones. Raises CheckpointError for another file.
    """
    if not isinstance(path, str | Path):
        raise ConfigError(f"A file of a solved spot must be a path, but is {path!r}.")
    return read_solution(Path(path), threads)


def solve_spots(
    spots: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    folder: str | Path | None = None,
    *,
    processes: int = 1,
    threads: int = 1,
    on_solved: Callable[[int, int], object] | None = None,
) -> SpotTable:
    """Solve many spots, as `deepcfr spots` does: those of a file, or of a dictionary with the contents of one.

    `solve_spots({"flops": 25, "pot": 6, "stacks": 97, "dealer": "22+,A2s+", "big_blind": "55+,KQo"}, "runs/flops")` solves
    25 flops that stand for all. With a `folder` the results are kept there, and what it has is not solved again.
    `processes` other than 1 need a main module that can be imported; `on_solved(done, total)` is told how many spots are
    solved. Warns of what is solved otherwise than given. Raises ConfigError for mistakes, GameError if a spot needs more
    than its share of three quarters of the free memory, and CheckpointError for files that are damaged or not writable.
    """
    from deepcfr.run.spots import SpotFolder, read_jobs, solve_jobs

    contents = Path(spots) if isinstance(spots, str) else spots
    jobs = read_jobs(contents, say=partial(warnings.warn, stacklevel=4))
    kept = SpotFolder(None if folder is None else Path(folder))
    return solve_jobs(jobs, kept, processes=processes, threads=threads, on_solved=on_solved)


def _policy_of(agent: Agent | Policy) -> Policy:
    return (agent if isinstance(agent, Agent) else Agent(agent)).policy


def _text(what: str, value: object, between: str = " ") -> str:
    """A text, or the texts of a list as one with `between` between them. Raises ConfigError for anything else."""
    parts = [value] if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
        return between.join(parts)
    raise ConfigError(f"The {what} must be a text or a list of texts, but is {reprlib.repr(value)}.")


def _range_text(player: str, value: object) -> str | None:
    """A range as a text: that of a mapping has weights by hand."""
    if isinstance(value, Mapping) and all(isinstance(weight, Real) for weight in value.values()):
        value = [f"{hand}:{float(weight)!r}" for hand, weight in value.items()]
    return None if value is None else _text(f"range of the {player}", value, ",")


def _whole(what: str, value: object) -> int:
    if not isinstance(value, Integral):
        raise ConfigError(f"The {what} must be a whole number, but is {reprlib.repr(value)}.")
    return int(value)

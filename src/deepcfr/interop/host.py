"""Matches that the `dealer` command hosts: of runs that play in this process, and of bots that connect from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from deepcfr.config import DEFAULT_SEARCH, SearchConfig
from deepcfr.core.errors import ConfigError, GameError, require_least
from deepcfr.core.rng import key
from deepcfr.core.types import OnProgress, Say
from deepcfr.game.base import Game
from deepcfr.game.poker import Poker
from deepcfr.game.presets import build_game, load_source
from deepcfr.game.rules import PokerRules, no_limit
from deepcfr.interop.acpc import Names, PlayedHand, log_line
from deepcfr.interop.client import Client, ProtocolAgent
from deepcfr.interop.dealer import Dealer, DealtResult, Terms
from deepcfr.policy.base import Policy
from deepcfr.policy.translation import real_rules
from deepcfr.run.players import load_players, runs_of

OUTSIDE = "-"  # the name of a bot that connects from outside
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class HostedTable:
    """The players of a game; None stands for a bot that connects from outside."""

    rules: PokerRules
    names: Names
    bots: tuple[ProtocolAgent | None, ProtocolAgent | None]


@dataclass(frozen=True)
class Records:
    """Files for the hands of a match; None keeps none."""

    log: Path | None = None  # a file in the dealer's own form
    phh: Path | None = None  # a folder for hand histories


def seat_players(
    players: tuple[str, str],
    game: str | None,
    which: str,
    warn: Say,
    search: SearchConfig = DEFAULT_SEARCH,
    seed: int = 0,
) -> HostedTable:
    """The table for two of: a player as `load_players` names it, or `-` for a bot from outside; `seed` is of the match.

    `game` is needed if neither name mentions a run. Raises ConfigError without it, GameError for different games and for
    games that are not poker, and what loading a run raises.
    """
    inside = [name for name in players if name != OUTSIDE]
    named = build_game(load_source(game)) if game else None
    if not named and not any(map(runs_of, inside)):
        raise ConfigError("Nothing says which game is played: name it with --game.")
    policies = dict(zip(inside, load_players(inside, which, warn, named, search), strict=True))
    shared: Game | None = policies[inside[0]].game if inside else named
    assert shared
    if not isinstance(shared, Poker):
        raise GameError(f"The dealer protocol is for poker games, and '{shared.name}' is not one.")
    first, second = (
        ProtocolAgent(policies[name], key(seed, "dealer", "agent", index), shared.rules) if name in policies else None
        for index, name in enumerate(players)
    )
    return HostedTable(shared.rules, seat_names(players), (first, second))


def seat_names(players: tuple[str, str]) -> Names:
    """Names for the log, two different ones without the characters that part its fields."""
    first, second = ("bot" if name == OUTSIDE else name.replace(":", "-").replace("|", "-") for name in players)
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def host_match(
    table: HostedTable,
    terms: Terms,
    records: Records,
    say: Say,
    host: str = LOOPBACK,
    port: int = 0,
    on_progress: OnProgress | None = None,
) -> DealtResult:
    """Play a match and return the first player's result.

    Bots from outside connect to `port`, the second of two to the next one, or to free ports if it is 0; `say` gets a line
    for each. Agents of this process connect over loopback. Raises ProtocolError for a bot that breaks protocol or rules,
    and ConfigError for ports and files that cannot be had.
    """
    rules = table.rules
    with _recorder(records, rules, table.names, terms) as record:
        played = 0

        def on_hand(hand: PlayedHand) -> None:
            nonlocal played
            record(hand)
            played += 1
            if on_progress:
                on_progress(played, terms.played)

        result = asyncio.run(_host(table, terms, say, host, port, on_hand))
        if records.log:
            with records.log.open("a", encoding="utf-8") as file:
                file.write(result.line + "\n")
    return result


async def _host(
    table: HostedTable, terms: Terms, say: Say, host: str, port: int, on_hand: Callable[[PlayedHand], None]
) -> DealtResult:
    dealer = Dealer(table.rules, table.names, terms)
    tasks: list[asyncio.Task[object]] = []
    try:
        for index, (seat, bot) in enumerate(zip(dealer.seats, table.bots, strict=True)):
            if bot is not None:
                await seat.open(LOOPBACK, 0)
                client = Client(bot, LOOPBACK, seat.port, retries=0, seconds=terms.seconds, say=say)
                tasks.append(asyncio.create_task(client.play()))
                continue
            second = index == 1 and table.bots[0] is None
            await seat.open(host, port + 1 if port and second else port)
            say(f"Waiting for {seat.name} at {host}:{seat.port}.")
        match = asyncio.create_task(dealer.play(on_hand))
        await _finish(match, tasks)
        return match.result()
    finally:
        await dealer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _finish(match: asyncio.Task[DealtResult], clients: Sequence[asyncio.Task[object]]) -> None:
    """Wait for the end of the match; an agent that fails ends it with its own error."""
    waiting: set[asyncio.Task[object]] = {match, *clients}
    try:
        while not match.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {match}:
                task.result()
    finally:
        match.cancel()
        await asyncio.gather(match, return_exceptions=True)


@contextmanager
def _recorder(
    records: Records, rules: PokerRules, names: Names, terms: Terms
) -> Iterator[Callable[[PlayedHand], None]]:
    """A function that writes every hand to open files; pokerkit checks the hand histories first."""
    writers: list[Callable[[PlayedHand], object]] = []
    written: list[Path] = []
    if records.phh:
        from deepcfr.interop.hand_history import require_history
        from deepcfr.interop.write_history import format_history

        require_history(rules)
    hands = 0

    def record(hand: PlayedHand) -> None:
        nonlocal hands
        hands += 1
        for write in writers:
            write(hand)

    def forget() -> None:
        if not hands:  # the same command may be given again
            for path in written:
                path.unlink()

    with ExitStack() as files:
        files.callback(forget)
        if records.log:
            log = files.enter_context(_create(records.log))
            written.append(records.log)
            log.write(f"# name/game/hands/seed {'|'.join(names)} {rules.name} {terms.played} {terms.seed}\n")
            writers.append(lambda hand: log.write(log_line(rules, hand) + "\n"))
        if records.phh:
            path = records.phh / "hands.phhs"
            histories = files.enter_context(_create(path))
            written.append(path)
            writers.append(lambda hand: histories.write(f"[{hand.number + 1}]\n{format_history(rules, hand)}\n\n"))
        yield record


def _create(path: Path) -> IO[str]:
    """A new text file, flushed after every line, so that a match that is cut off leaves its hands.

    Raises ConfigError if there is one already or it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("x", buffering=1, encoding="utf-8")
    except FileExistsError as error:
        raise ConfigError(f"'{path}' is there already: choose another name.") from error
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}.") from error


def join_match(
    name: str,
    policy: Policy,
    host: str,
    port: int,
    *,
    seed: int,
    retries: int,
    seconds: float,
    say: Say,
    stack: int | None = None,
) -> tuple[dict[str, object], str]:
    """Play one match as a client; returns the result as data and in words, of an agent of that name.

    In no-limit games the dealer's raises may have any size, and `stack` is the dealer's if it is not that of the policy.
    Raises ProtocolError if there is no dealer or it plays another game, and ConfigError for settings that cannot be.
    """
    if not 1 <= port <= 65_535:
        raise ConfigError(f"--port must be from 1 to 65535, but is {port}.")
    require_least(0, {"--seed": seed, "--retries": retries})
    if not seconds > 0:
        raise ConfigError(f"--seconds must be more than 0, but is {seconds:g}.")
    game, free = policy.game, None
    if isinstance(game, Poker) and game.rules.betting != "limit":  # the dealer's raises may have any size
        free = real_rules(policy) if stack is None else no_limit(real_rules(policy), stack)
    elif isinstance(game, Poker) and stack is not None:
        raise ConfigError(f"--stack is for no-limit games, and {game.name} is none.")
    bot = ProtocolAgent(policy, seed, free)
    visit = asyncio.run(Client(bot, host, port, retries, seconds, say).play())
    measured = {"slowest_answer": visit.slowest, "connections": visit.connections}
    facts = visit.score.facts() | {"player": name} | measured
    slowest = f"the slowest answer took {1000 * visit.slowest:.0f} ms"
    words = f"{name} at {visit.score.game}: {visit.score.describe()}; {slowest}."
    if free:
        facts |= bot.facts()
        words += f" {bot.describe()}"
    return facts, words

"""The commands that measure and play agents as records, in the form of `records`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from deepcfr.cli.records import Cluster
from deepcfr.config import PolicyName, SearchConfig
from deepcfr.defaults import (
    HANDS_EXPLOITABILITY,
    HANDS_ITERATIONS,
    HANDS_SIZES,
    SPOT_EXPLOITABILITY,
    SPOT_ITERATIONS,
    SPOT_SIZES,
)

Address = Annotated[str, arg(metavar="HOST")]
Boards = Annotated[int | Literal["all"] | None, arg(metavar="N|all")]
BudgetPart = Literal["tabular", "architecture", "sd-cfr", "average", "current", "panel", "deviations"]


@dataclass
class Exploit:
    """Compute the exact exploitability of a run's policy: a full-width best response of each player.

    resolve:RUN is a run with search, STYLE:RUN one in another style. See deepcfr match --help.
    """

    run: Positional[str]  # a run folder, a shipped agent, resolve:RUN, STYLE:RUN or ensemble:RULE:RUN,RUN
    #: own: the one that the run's evaluation.policy names; average: the average strategy; current: that of the newest
    #: iteration; sd-cfr: the exact average of the snapshots
    policy: PolicyName = "own"
    search: SearchConfig = field(default_factory=SearchConfig)
    threads: int = 2  # number of CPU threads
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class Budget:
    """Find the part of a Deep CFR run that limits it: exact NashConv of each part, and gains of deviations by decision."""

    run: Positional[Path]  # a run folder or a shipped agent of a poker game
    skip: tuple[BudgetPart, ...] = ()  # parts to leave out
    solve_iterations: int | None = None  # iterations of the tabular solution (default: twice the run's, at least 100)
    steps: int | None = None  # steps of the fit to the solution (default: those of the run's average network)
    examples: int | None = None  # maximum examples from the solution (default: 4,000,000 infosets or 1,000,000 hands)
    deviate: Literal["average", "sd-cfr", "current"] = "average"  # the policy whose deviations are measured
    threads: int = 2  # number of CPU threads
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class StrategyQuery:
    """Print a run's strategy in a situation, for example: deepcfr strategy fhp "As Kd / r / Qs 7h 2c".

    resolve:RUN is a run with search, STYLE:RUN one in another style; ensemble:RULE:RUN,RUN combines several runs. See
    deepcfr match --help.
    """

    run: Positional[str]  # a run folder, a shipped agent, resolve:RUN, STYLE:RUN or ensemble:RULE:RUN,RUN
    #: hole cards / betting of the first round / board cards / betting ...; betting is f, c and r, with sizes where a game
    #: has several: "AsKd / r2.5 c / Qs 7h 2c"
    situation: Positional[str]
    policy: PolicyName = "own"  # strategy of the run
    search: SearchConfig = field(default_factory=SearchConfig)
    json: bool = False  # print one JSON object


@dataclass
class SpotQuery:
    """Solve a spot of hold'em exactly, from the board to the end of the hand: ranges, pot, stacks and bet sizes as you say.

    For example: deepcfr spot --board "Qs 7h 2c 9d 4s" --pot 10 --stacks 95 --dealer "22+,A2s+,KTo+" --big-blind
    "22+,A8s+,KQo:0.5" --sizes "river 33 75 150, raise 100, allin". The big blind acts first. What is
    not given is as a run has it after some betting: --from fhp --line rc.
    """

    board: str | None = None  # three to five cards
    pot: float | None = None  # chips in the pot, in any unit, such as big blinds
    stacks: float | None = None  # chips that each player has left, in the same unit
    #: the dealer's range: 77+,A5s-A2s,KQo:0.5; a number after a colon is a weight from 0 to 1. It may be in a file NAME.txt
    dealer: str | None = None
    big_blind: str | None = None  # the range of the big blind
    from_: Annotated[str | None, arg(name="from")] = None  # a player of hold'em, as for deepcfr match
    line: str = ""  # the betting of --from before, rounds apart by /, such as rc or rc/ccrc, with sizes r2.5 c/c
    policy: PolicyName = "own"  # policy of --from
    search: SearchConfig = field(default_factory=SearchConfig)  # of --from
    #: bets by street and raises in percent of the pot (of a raise: after a call), such as "river 33 75, raise 2.5x, allin";
    #: all words are in docs/spots.md
    sizes: str = SPOT_SIZES
    rake: float = 0.0  # percent of the final pot that the house takes from its winner
    cap: float | None = None  # most of the rake, in chips
    min_bet: float = 0.0  # the smallest bet that is allowed; 0 for any
    #: who bet last on the street before, for donk bets; with --from as in --line
    aggressor: Literal["dealer", "big blind"] | None = None
    #: stop when the players' best responses gain at most so much in the mean, in percent of the pot
    exploitability: str = f"{SPOT_EXPLOITABILITY:g}%"
    iterations: int = SPOT_ITERATIONS  # stop after so many iterations in any case; Ctrl-C stops earlier
    #: a JSON file with a list of decisions in the form of --out, which are played as written: the line, and the frequencies
    #: of all hands or the probabilities of each; the rest is solved
    lock: Path | None = None
    from_file: Path | None = None  # a parameter file of TexasSolver, whose values hold for options that are not given
    #: a file for the solution: NAME.json has every decision on the board with every hand; NAME.npz has all streets, in a
    #: compact form
    out: Path | None = None
    threads: int = 2  # number of CPU threads
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class ManySpots:
    """Solve many spots of hold'em, such as all flops or a weighted subset of them, and write a table of all.

    Values, equities and frequencies of first actions of every spot, and their means over all deals, are in table.csv and
    report.html of the folder. The same command goes on where one was stopped. docs/spots.md says what is in FILE.
    """

    file: Positional[Path | None] = None  # a TOML or CSV file: ranges, pot, stacks, sizes, and boards or flops
    out: Annotated[Path | None, arg(metavar="FOLDER")] = None  # the folder of the solved spots
    #: solve the spots of FILE on so many flops, which keep the frequencies of kinds of flops: 25, 49, 95 or any number up
    #: to 1,755, all that differ by more than a renaming of suits
    flops: int | None = None
    list: bool = False  # print the boards with their weights as CSV and solve nothing; without FILE those of --flops
    solutions: bool = False  # also keep whole solutions, as deepcfr spot --out writes them, in FOLDER/solutions
    processes: int = 2  # spots that are solved at the same time on this machine
    threads: int = 1  # number of CPU threads of each
    ray: Cluster = None  # solve on the Ray cluster at HOST:PORT; without a value, on a new local one
    workers: int | None = None  # processes of the cluster (default: 2)
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass(kw_only=True)
class _Matches:
    #: Number of boards to sample; every hand is played on each. `all` plays every board, so the result is exact (default:
    #: all, but in games with bet sizes sampled deals)
    boards: Boards = None
    #: number of deals to sample, each played in both seats (default in games with bet sizes: 100,000)
    hands: int | None = None
    lines: int | None = None  # with --boards: number of betting sequences to sample in each round (default: 256)
    seed: int = 0  # seed of boards, deals and actions; equal in every match
    policy: PolicyName = "own"  # strategy of all runs
    search: SearchConfig = field(default_factory=SearchConfig)
    threads: int = 2  # number of CPU threads
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class MatchUp(_Matches):
    """Play two runs of one game against each other in both seats: exactly, over sampled boards, or over sampled hands.

    A run is a folder, a shipped agent, or a scripted style: scripted:uniform, scripted:call or scripted:raise. STYLE:RUN is
    a run in another style (aggressive, tight, random, calling-machine, tight-aggressive, deterministic, initial),
    resolve:RUN is a run with search, and ensemble:RULE:RUN,RUN combines several runs (sum, mixture, member).
    """

    first: Positional[str]  # a run
    second: Positional[str]  # another run of the same game


@dataclass
class Rivals(_Matches):
    """Play several runs of one game against each other, or the first one against all others.

    A run is a folder, a shipped agent, or a scripted style: scripted:uniform, scripted:call or scripted:raise. STYLE:RUN is
    a run in another style (aggressive, tight, random, calling-machine, tight-aggressive, deterministic, initial),
    resolve:RUN is a run with search, and ensemble:RULE:RUN,RUN combines several runs (sum, mixture, member).
    """

    runs: Positional[Annotated[tuple[str, ...], arg(help_behavior_hint="(required)")]]  # two or more runs of one game
    styles: tuple[str, ...] = ()  # play every run also in these styles; all: in all styles
    against_first: bool = False  # play only the matches of the first run, in its own style


@dataclass
class LowerBound:
    """Compute a lower bound of a run's exploitability: the gain of a local best response in both seats.

    resolve:RUN is a run with search, STYLE:RUN one in another style; ensemble:RULE:RUN,RUN combines several runs. See
    deepcfr match --help.
    """

    run: Positional[str]  # a poker run folder, a shipped agent, resolve:RUN, STYLE:RUN or ensemble:RULE:RUN,RUN
    #: Number of boards to sample; every hand is played on each. `all` plays every board (default: all where feasible, else
    #: 100; in games with bet sizes sampled deals)
    boards: Boards = None
    #: rounds, counted from 0, in which the response may bet; it calls in the others (default: all rounds)
    rounds: Annotated[tuple[int, ...] | None, arg(metavar="N [N ...]")] = None
    #: bets and raises of the response in no-limit games, in percent of the pot as in deepcfr spot, such as "100
    #: allin"; none for no bets, in all games (default: the sizes of the run)
    sizes: str | None = None
    lines: int | None = None  # with --boards N: number of betting sequences to sample in each round (default: 256)
    #: number of deals to sample, each in both seats (default in games with bet sizes: 1,000)
    hands: int | None = None
    seed: int = 0  # seed of boards, betting sequences and deals
    policy: PolicyName = "own"  # strategy of the run
    search: SearchConfig = field(default_factory=SearchConfig)
    threads: int = 2  # number of CPU threads
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class Play:
    """Play against a run's policy in the terminal, in both seats.

    resolve:RUN is a run with search, STYLE:RUN one in another style; ensemble:RULE:RUN,RUN combines several runs. See
    deepcfr match --help.
    """

    run: Positional[str]  # a run folder, a shipped agent, resolve:RUN, STYLE:RUN or ensemble:RULE:RUN,RUN
    hands: int | None = None  # number of hands (default: play until you quit)
    seed: int | None = None  # seed of the cards and of the agent's actions (default: a new one every time)
    policy: PolicyName = "own"  # strategy of the run
    search: SearchConfig = field(default_factory=SearchConfig)


@dataclass
class ReviewHands:
    """Review hands that were played elsewhere: what a run would have done at each decision, and what each choice cost.

    For example: deepcfr review hunl-200 night.phhs --hand 3. The file is a hand history in PHH, of the run's game: two
    players, its blinds in any unit, and in no-limit games its stack as the shorter one. Every player whose cards are known
    is reviewed, against another one who plays as the run does.
    """

    run: Positional[str]  # a player of hold'em, as for deepcfr match
    file: Positional[Path]  # a .phh file, or a .phhs file of several hands
    hand: int | None = None  # review only the N-th hand of the file, from 1 (default: all hands that fit the game)
    policy: PolicyName = "own"  # strategy of the run
    search: SearchConfig = field(default_factory=SearchConfig)
    json: bool = False  # print one JSON object


@dataclass
class OwnHands:
    """Review one's own hands after the flop: solve every spot with one opponent, and list what each decision cost.

    For example: deepcfr hands night.txt --out runs/night. The file is a text of PokerStars, PHH, or a log of the ACPC, of
    no-limit hold'em for two to ten players. Ranges before the flop are those of --ranges. deepcfr serve --spots
    runs/night/spots shows spots.
    """

    file: Positional[Path | None] = None  # the hands
    hero: str | None = None  # the player to review (default: the one whose cards are known most often)
    out: Path | None = None  # folder for the spots and the decisions; hands that are there are not solved again
    #: a file of ranges by position, in the form of --write-ranges (default: those that ship), or a player as for deepcfr
    #: match, whose own ranges heads-up hands get
    ranges: str | None = None
    write_ranges: Path | None = None  # write the ranges into this file, to edit them, and do nothing else
    sizes: str = HANDS_SIZES  # as for deepcfr spot; the sizes that were really bet are added to those of their street
    exploitability: str = HANDS_EXPLOITABILITY  # stop each spot there, in percent of its pot
    iterations: int = HANDS_ITERATIONS  # and after so many iterations in any case
    threads: int = 2  # number of CPU threads
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class Serve:
    """Serve web pages and a JSON interface: play agents, read their strategies, watch runs, solve spots.

    For example: deepcfr serve fhp, or deepcfr serve runs/a runs/b tight:runs/b (STYLE:RUN as in deepcfr match)
    """

    runs: Positional[tuple[str, ...]] = ()  # run folders, shipped agents, or STYLE:RUN (default: all shipped agents)
    host: Address = "127.0.0.1"  # address to listen on; other machines cannot reach a loopback address
    port: int = 8321  # 0: any free port
    policy: PolicyName = "own"  # strategy that plays and is shown
    search: SearchConfig = field(default_factory=SearchConfig)
    matches: tuple[Path, ...] = ()  # files with the --json output of tournaments and matches, for the page of matches
    #: folder of solved spots, files of deepcfr spot --out; the page of spots writes there too
    spots: Annotated[Path | None, arg(metavar="FOLDER")] = None


@dataclass
class Api:
    """Print the OpenAPI description of the JSON endpoints of `deepcfr serve`."""


@dataclass
class Acpc:
    """Play a match as a client of a dealer that speaks the ACPC protocol, version 2.0.0."""

    run: Positional[str]  # a player of the dealer's game, as for deepcfr match
    port: int  # the dealer's port for this player
    host: Address = "127.0.0.1"  # the dealer's address
    seed: int = 0  # seed of the agent's actions
    policy: PolicyName = "own"  # strategy of the run
    search: SearchConfig = field(default_factory=SearchConfig)
    stack: int | None = None  # chips of each player in the dealer's no-limit game, if not those of the run's game
    retries: int = 5  # attempts to reconnect, with pauses that double
    seconds: float = 7.0  # the dealer's time limit for an answer; slower answers are reported
    json: bool = False  # print one JSON object


@dataclass
class SlumbotMatch:
    """Play hands against Slumbot, or another server that speaks its HTTP protocol; only --address gets a request."""

    run: Positional[str]  # a player of no-limit hold'em, as for deepcfr match
    address: Annotated[
        str, arg(metavar="URL")
    ]  # address of the server's protocol, to which /new_hand and /act are added
    hands: int = 100  # number of hands
    seed: int = 0  # seed of the agent's actions
    policy: PolicyName = "own"  # strategy of the run
    seconds: float = 30.0  # time limit for every answer
    json: bool = False  # print one JSON object


@dataclass
class Host:
    """Deal a match over the ACPC protocol: players as in deepcfr match, or - for an external bot that connects."""

    first: Positional[str]  # a run, STYLE:RUN, ensemble:RULE:RUN,RUN, scripted:STYLE, or - for an external bot
    second: Positional[str]  # the second player, as above
    hands: int  # number of deals
    game: Annotated[str | None, arg(metavar="GAME")] = None  # the game, if both players are external bots
    duplicate: bool = False  # after all deals, play every deal again with exchanged seats
    seed: int = 0  # seed of the cards and of the actions of runs
    phh: Annotated[Path | None, arg(metavar="FOLDER")] = None  # folder for hand histories, each checked by pokerkit
    log: Path | None = None  # file for the dealer's log of all hands
    host: Address = "127.0.0.1"  # address for external bots
    port: int = 0  # port of the first external bot, the next one for a second; 0: any free ports
    seconds: float = 60.0  # time limit for every answer and for connecting
    policy: PolicyName = "own"  # strategy of the runs
    search: SearchConfig = field(default_factory=SearchConfig)
    json: bool = False  # print one JSON object; everything else goes to standard error

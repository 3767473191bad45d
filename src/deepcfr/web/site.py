"""The named runs of a server, whose agents are loaded on first use, and templates, which escape all values."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from deepcfr.config import DEFAULT_SEARCH, SearchConfig
from deepcfr.core.errors import ConfigError, DeepCFRError, GameError
from deepcfr.core.types import CardTuple, Doubles, Infosets, Say
from deepcfr.game.bet_size_betting import can_be_listed
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.poker import Poker, PokerGame, poker_game
from deepcfr.game.rules import PokerRules
from deepcfr.play.costs import Costs
from deepcfr.policy.base import Policy
from deepcfr.policy.network import RegretMatchingPolicy, WithFirstRound
from deepcfr.run import page as run_page
from deepcfr.run.folder import RunFolder
from deepcfr.run.listing import agent_facts
from deepcfr.run.players import check_search, made_of, runs_of
from deepcfr.run.record import shipped_agents
from deepcfr.search.spot_ranges import is_holdem
from deepcfr.search.spot_sizes import amount_text
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.web.schema import AgentFacts
from deepcfr.web.spot_shelf import SpotShelf

NAME_LENGTH = 60
HERE = Path(__file__).parent
STATIC = (HERE / "static", run_page.STATIC)  # the latter: styles that a report carries as well


@dataclass(frozen=True)
class Advantages:
    """The advantage networks of a run's newest iteration."""

    policy: RegretMatchingPolicy
    table: bool  # whether a table, not a network, has the first round's regrets

    def at(self, game: PokerGame, node: int, holes: npt.NDArray[np.uint8], board: CardTuple) -> Doubles | None:
        """The advantages at `node` with each of `holes` on `board`, [H, A] in units; None in a round of the table.

        In runs that compress targets, negative numbers are nearer to 0 than the true advantages.
        """
        if self._in_table(game, node):
            return None
        network = self.policy.networks[int(game.tree.actor[node])]
        cards = torch.from_numpy(game.visible_cards(holes, board)).to(game.device)
        with torch.no_grad():
            outputs = network(Infosets(game.infoset[[node]].expand(len(holes)), cards)) * network.scale
        if self.policy.pot_units:
            outputs = outputs * game.pot[node]
        return outputs.double().cpu().numpy()

    def meaning(self, game: PokerGame, node: int) -> str:
        """A sentence on the meaning of the numbers of `at`."""
        if self._in_table(game, node):
            return "There are no advantages here: this run keeps the regrets of the first round in a table."
        said = f"what the newest advantage network gives each action, in {game.rules.unit}."
        if self.policy.compressed:
            said += (
                " Negative ones are on a logarithmic scale (advantage.units), nearer to 0 than they are: they keep their"
                " order, and regret matching reads no more of them."
            )
        return said

    def _in_table(self, game: PokerGame, node: int) -> bool:
        return self.table and int(game.tree.round[node]) == 0


def advantages_of(policy: Policy) -> Advantages | None:
    """The advantage networks of a policy; None if it has no fitted ones."""
    table = isinstance(policy, WithFirstRound)
    matching = policy.policy if isinstance(policy, WithFirstRound) else policy
    if isinstance(matching, RegretMatchingPolicy) and not all(network.is_zero() for network in matching.networks):
        return Advantages(matching, table)
    return None


class RequestError(DeepCFRError):
    """A request that is answered with a status of 4xx or 5xx and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


@contextmanager
def answering(status: int, *kinds: type[DeepCFRError]) -> Iterator[None]:
    """Raise RequestError with a status in the place of errors of some kinds."""
    try:
        yield
    except kinds as error:
        raise RequestError(status, " ".join(error.problems)) from error


@dataclass(frozen=True)
class ServedAgent:
    """A run's policy, with the costs of actions against it and its advantages."""

    policy: Policy
    costs: Costs | None  # costs of actions against it; None in games that are no poker
    advantages: Advantages | None  # None for runs without advantage networks and for styles


@dataclass
class NamedRun:
    """A run folder and the name of its pages."""

    name: str
    folder: RunFolder
    which: str  # the policy that is played and shown
    warn: Say
    player: str | None = None  # a player's name of `run.players`, such as tight:RUN; None for the run itself
    search: SearchConfig = DEFAULT_SEARCH  # of a searching player
    _agent: ServedAgent | None = None
    _seen: int | None = None  # time of the agent's checkpoint; None without one
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def browsable(self) -> bool:
        """Whether its strategy can be shown: a game with a list of bet sizes may be too large to list."""
        source = self.folder.source
        return not isinstance(source, BetSizeRules) or can_be_listed(source)

    @property
    def note(self) -> str:
        """A sentence for pages of the run where its player is not the run itself; empty where it is."""
        return f"{self.player} plays another strategy; these figures are those of its run." if self.player else ""

    def agent(self) -> ServedAgent:
        """The agent of the newest checkpoint. Raises Refusal if the run has no such policy (yet)."""
        with self._lock:
            newest = self._newest()
            if self._agent is None or self._seen not in (None, newest):
                try:
                    self._agent = self._load()
                except DeepCFRError as error:
                    if self._agent is None:
                        raise RequestError(409, " ".join(error.problems)) from error
                    # a run in training may have replaced the checkpoint during reading; the next request tries again
                    return self._agent
                self._seen = newest
            return self._agent

    def _newest(self) -> int:
        """The time of the run's newest checkpoint, in nanoseconds; 0 if there is none."""
        try:
            return (self.path / "checkpoints" / "latest").stat().st_mtime_ns
        except OSError:
            return 0

    def _load(self) -> ServedAgent:
        plain, solver = self.folder.load_policy(self.which, self.warn)
        policy = made_of(self.player, plain, self.search) if self.player else plain
        game = policy.game
        costs = Costs(policy) if isinstance(game, Poker) else None
        newest = solver.current_policy() if isinstance(solver, DeepCFR) and policy is plain else None
        return ServedAgent(policy, costs, advantages_of(newest) if newest else None)

    def listed(self) -> tuple[Policy, PokerGame]:
        """The agent and its game with a list of nodes, which must be poker. Raises Refusal otherwise."""
        policy = self.agent().policy
        with answering(409, GameError):
            return policy, poker_game(policy.game, "Ranges need a poker game")


@dataclass
class Site:
    """The runs of a server by name, files with results of tournaments, spots, and its folder of seats."""

    runs: dict[str, NamedRun]
    matches: tuple[Path, ...] = ()
    spots: SpotShelf = field(default_factory=SpotShelf)
    seats: Path | None = None  # the folder of people's seats; None: they are lost when the server stops
    warn: Say = print

    def run(self, name: str) -> NamedRun:
        """The run with a name; names are looked up and never joined to paths. Raises Refusal if there is none."""
        if name not in self.runs:
            raise RequestError(
                404, f"There is no run named '{shorten(name)}' here: there are {', '.join(self.runs) or 'none'}."
            )
        return self.runs[name]

    def menu(self, here: str, address: Callable[[NamedRun], str], *, browsable: bool = False) -> list[dict[str, Any]]:
        """The agents of a menu, each with the address of its page; with `browsable` those that can be browsed."""
        runs = (run for run in self.runs.values() if run.browsable or not browsable)
        return [{"name": run.name, "here": run.name == here, "address": address(run)} for run in runs]

    def holdem_agents(self) -> list[str]:
        """The names of runs whose ranges are those of hold'em."""
        sources = ((run.name, run.folder.source) for run in self.runs.values())
        decks = ((name, source.deck if isinstance(source, BetSizeRules) else source) for name, source in sources)
        return [name for name, deck in decks if isinstance(deck, PokerRules) and is_holdem(deck)]


def open_site(
    players: Sequence[Path | str],
    which: str,
    warn: Say,
    matches: Sequence[Path] = (),
    search: SearchConfig = DEFAULT_SEARCH,
    spots: Path | None = None,
) -> Site:
    """The site of run folders, each as RUN or, in a style of play or with `search`, as STYLE:RUN or resolve:RUN.

    Without a name these are all shipped agents. `spots` is the folder of solved spots. Raises ConfigError for a
    repeated run and a name that does not name one run; and the errors of opening a run or a spot.
    """
    runs: dict[str, NamedRun] = {}
    seen: set[str] = set()
    check_search([*map(str, players)], search)
    for player in map(str, players or shipped_agents()):
        found = list(dict.fromkeys(runs_of(player)))
        if len(found) != 1:
            raise ConfigError(f"'{player}' does not name one run: give a run folder, a shipped agent, or STYLE:RUN.")
        path = found[0]
        run, style = RunFolder.open(Path(path)), player.removesuffix(path)
        folder = run.path.resolve()
        if f"{style}{folder}" in seen:
            raise ConfigError(f"'{player}' is given twice.")
        seen.add(f"{style}{folder}")
        name = _free_name(style + folder.name, runs)
        runs[name] = NamedRun(name, run, which, warn, player if style else None, search)
    return Site(runs, tuple(matches), SpotShelf(spots, warn), warn=warn)


def _free_name(text: str, taken: dict[str, NamedRun]) -> str:
    """A name without characters that are special in addresses, with a number if it is taken."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:NAME_LENGTH] or "run"
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name


def shorten(text: str, length: int = 60) -> str:
    """A part of a request, shortened for quoting it in an answer."""
    return text if len(text) <= length else text[:length] + "…"


@cache
def static(name: str) -> str:
    """The address of a static file; it changes with the content, so browsers may cache the file."""
    path = next(folder / name for folder in STATIC if (folder / name).is_file())
    digest = hashlib.blake2b(path.read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?{digest}"


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of `templates` filled with `values`."""
    environment = run_page.templates(HERE / "templates")
    environment.globals["static"], environment.filters["amount"] = static, amount_text
    return HTMLResponse(environment.get_template(template).render(status=status, **values), status)


def cards(site: Site) -> list[AgentFacts]:
    """Return what each agent of a site is, in the order of `deepcfr models`."""
    facts = {name: agent_facts(run.folder, name) for name, run in site.runs.items()}
    return [card(site.runs[name], facts[name]) for name in sorted(facts, key=lambda name: facts[name]["rank"])]


def choose_agent(page: str, agents: list[AgentFacts]) -> Response:
    """The page of the only one of some agents, or their list."""
    if len(agents) == 1:
        return RedirectResponse(f"/{page}/{agents[0].name}", 303)
    return render("home.html", page=page, cards=agents)


def card(run: NamedRun, facts: dict[str, Any] | None = None) -> AgentFacts:
    """Return what an agent is; `facts` are those of its run, if they are there already."""
    facts = facts or agent_facts(run.folder, run.name)
    return AgentFacts(
        name=run.name,
        game=run.folder.source.name,
        title=facts["title"],
        about=facts["about"],
        strength=run.note or facts["strength"],
        made=facts["made"],
        method=run.folder.config.method,
        browsable=run.browsable,
    )

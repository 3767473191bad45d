"""Commands that play hands: in the terminal, in the browser, and over the ACPC protocol."""

from __future__ import annotations

import secrets
from pathlib import Path

from rich.console import Console

from deepcfr.cli.output import open_console, print_json, progress_of, tell, warn
from deepcfr.cli.player_records import Acpc, Api, Host, OwnHands, Play, ReviewHands, Serve, SlumbotMatch
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import text_of


def play_command(command: Play) -> None:
    from deepcfr.play.terminal import play
    from deepcfr.run.players import load_players

    (policy,) = load_players((command.run,), command.policy, warn, search=command.search)
    console = Console(highlight=False)
    seed = secrets.randbelow(1_000_000) if command.seed is None else command.seed
    play(policy, console, seed=seed, hands=command.hands)
    console.print(f"--seed {seed} deals these hands again.")


def review_command(command: ReviewHands) -> None:
    from rich.progress import track

    from deepcfr.interop.hand_history import hands_to_review
    from deepcfr.play.costs import Costs, describe, review_seats
    from deepcfr.play.hand import Hand
    from deepcfr.run.players import load_players

    (policy,) = load_players((command.run,), command.policy, warn, search=command.search)
    table = Hand(policy, 0, 0)
    rules, costs = table.rules, Costs(policy)
    hands, refused = hands_to_review(command.file, rules, command.hand)
    for problem in refused.values():
        warn(problem)
    console, found = open_console(command.json), []
    if costs.needs_all_boards(0) and not costs.quick:
        warn(f"computing the first round of {rules.name} on all boards, which takes a minute or more.")
    costs.prepare()
    for number, hand in track(hands.items(), "hands", console=console, transient=True):
        players = review_seats(policy, costs, number, hand.holes, hand.board, hand.actions)
        found.append({"number": number, "hand": hand.number, "names": hand.names, "players": players})
        if not command.json:
            console.print(describe(found[-1], rules.unit))
    if command.json:
        problems = [{"number": number, "problem": problem} for number, problem in refused.items()]
        facts = {"agent": command.run, "game": rules.name, "unit": rules.unit}
        print_json(facts | {"hands": found, "refused": problems})


def hands_command(command: OwnHands) -> None:
    from dataclasses import asdict

    from deepcfr.core.files import write_atomically
    from deepcfr.interop.own_hand_review import SPOTS, OwnHandReview, read_ranges
    from deepcfr.interop.own_hands import find_hero, read_own_hands, reasons

    if command.write_ranges:
        if command.write_ranges.exists():
            raise ConfigError(f"'{command.write_ranges}' exists: choose another file.")
        write_atomically(command.write_ranges, _ranges_text(command.ranges).encode())
        return
    if not command.file or not command.out:
        raise ConfigError("Give a file of hands, and with --out a folder for their spots.")
    hands, refused = read_own_hands(text_of(command.file))
    review = OwnHandReview(
        command.out,
        read_ranges(_ranges_text(command.ranges)),
        command.sizes,
        command.exploitability,
        command.iterations,
        command.threads,
    )
    hero, console = find_hero(hands, refused, command.hero), open_console(command.json)
    rows, others = review.all(hands, hero, lambda text: console.print(f"solving {text}"))
    refused |= others
    if command.json:
        print_json({"hero": hero, "decisions": [asdict(row) for row in rows], "refused": refused})
        return
    for sentence in reasons(refused):
        warn(sentence)
    for row in rows:
        console.print(row.describe(), soft_wrap=True)
    lost, hands_seen = sum(row.lost for row in rows), len({row.hand for row in rows})
    console.print(
        f"{hero}: {lost:.2f} big blinds lost in {len(rows)} decisions (hands: {hands_seen}), by solutions to "
        f"{command.exploitability} of the pot. Look: deepcfr serve --spots {command.out / SPOTS}"
    )


def _ranges_text(name: str | None) -> str:
    """The ranges that ship, those of a file, or those of a player."""
    from deepcfr.interop.own_hand_review import agent_ranges, preset_ranges
    from deepcfr.run.players import load_players

    if not name or Path(name).is_file():
        return text_of(Path(name)) if name else preset_ranges()
    (policy,) = load_players((name,), "own", warn)
    return agent_ranges(policy)


def serve_command(command: Serve) -> None:
    from deepcfr.web.app import serve
    from deepcfr.web.site import open_site

    site = open_site(command.runs, command.policy, warn, command.matches, command.search, command.spots)
    serve(site, command.host, command.port, warn)


def api_command(command: Api) -> None:  # noqa: ARG001
    from deepcfr.web.app import build_app
    from deepcfr.web.site import Site

    print_json(build_app(Site({})).openapi())


def acpc_command(command: Acpc) -> None:
    from deepcfr.interop.host import join_match
    from deepcfr.run.players import load_players

    (policy,) = load_players((command.run,), command.policy, warn, search=command.search)
    facts, words = join_match(
        command.run,
        policy,
        command.host,
        command.port,
        seed=command.seed,
        retries=command.retries,
        seconds=command.seconds,
        say=warn,
        stack=command.stack,
    )
    tell(command.json, facts, words)


def slumbot_command(command: SlumbotMatch) -> None:
    from deepcfr.interop.slumbot import Slumbot
    from deepcfr.run.players import load_players

    (policy,) = load_players((command.run,), command.policy, warn)
    session = Slumbot(policy, command.address, command.seed, command.seconds)
    with progress_of("hands", open_console(command.json)) as update:
        score = session.play(command.hands, lambda done: update(done, command.hands))
    facts = score.facts() | session.agent.facts() | {"player": command.run}
    against = f"{command.run} against Slumbot at {score.game}"
    tell(command.json, facts, f"{against}: {score.describe()}. {session.agent.describe()}")


def dealer_command(command: Host) -> None:
    from deepcfr.interop.dealer import Terms
    from deepcfr.interop.host import Records, host_match, seat_players

    terms = Terms(command.hands, command.seed, command.duplicate, command.seconds)
    table = seat_players(
        (command.first, command.second), command.game, command.policy, warn, command.search, command.seed
    )
    console = open_console(command.json)
    with progress_of("hands", console) as update:
        records = Records(command.log, command.phh)
        result = host_match(table, terms, records, console.print, command.host, command.port, update)
    if command.json:
        print_json(result.facts())
    else:
        console.print(result.describe())
        print(result.line)

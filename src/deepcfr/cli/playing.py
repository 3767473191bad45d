"""Commands that play hands: in the terminal, and over the ACPC protocol."""

from __future__ import annotations

from rich.console import Console

from deepcfr.cli.output import open_console, print_json, warn
from deepcfr.cli.records import Acpc, Host, Play
from deepcfr.errors import GameError


def play_command(command: Play) -> None:
    from deepcfr.games.ladder import LadderRules
    from deepcfr.games.poker import PokerGame
    from deepcfr.play import play
    from deepcfr.runs.folder import RunFolder

    run = RunFolder.open(command.run)
    if isinstance(run.source, LadderRules):
        from deepcfr.play_ladder import play_ladder

        ladder_policy, _ = run.load_ladder_policy(command.policy, warn)
        play_ladder(ladder_policy, Console(highlight=False), seed=command.seed, hands=command.hands)
        return
    policy, _ = run.load_policy(command.policy, warn)
    if not isinstance(policy.game, PokerGame):
        raise GameError(f"Only poker games are played in the terminal, and '{policy.game.name}' is not one.")
    play(policy.game, policy, Console(highlight=False), seed=command.seed, hands=command.hands)


def acpc_command(command: Acpc) -> None:
    from deepcfr.protocols.host import join_match
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, warn)
    facts, words = join_match(
        policy,
        command.host,
        command.port,
        seed=command.seed,
        retries=command.retries,
        seconds=command.seconds,
        say=warn,
    )
    if command.json:
        print_json(facts)
    else:
        open_console(False).print(words)


def dealer_command(command: Host) -> None:
    from rich.progress import Progress

    from deepcfr.protocols.dealer import Terms
    from deepcfr.protocols.host import Records, host_match, seat_players

    terms = Terms(command.hands, command.seed, command.duplicate, command.seconds)
    table = seat_players((command.first, command.second), command.game, command.policy, warn)
    console = open_console(command.json)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("hands", total=terms.played)
        result = host_match(
            table, terms, Records(command.log, command.phh), console.print, command.host, command.port,
            lambda done, total: progress.update(task, completed=done, total=total),
        )  # fmt: skip
    if command.json:
        print_json(result.facts())
    else:
        console.print(result.describe())
        print(result.line)

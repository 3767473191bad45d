"""Players named resolve:RUN on the command line: one policy for every command, with its settings."""

from pathlib import Path

import pytest

from command_line import deepcfr
from deepcfr.config import SearchConfig
from deepcfr.interop.client import ProtocolAgent
from deepcfr.interop.host import seat_players
from deepcfr.measure.exploitability import exploitability
from deepcfr.run.folder import RunFolder
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.web.site import open_site

LEDUC = Path("models/leduc")
NAME = f"resolve:{LEDUC}"
KIND = ("--search.iterations", "40", "--search.rounds", "0", "1")


@pytest.fixture(scope="module")
def searching() -> ResolvingPolicy:
    plain, _ = RunFolder.open(LEDUC).load_policy("own", pytest.fail)
    return ResolvingPolicy(plain, SearchConfig("gadget", (0, 1), 40))


def test_exploitability_is_that_of_the_policy_with_the_settings(searching: ResolvingPolicy) -> None:
    found = deepcfr("exploitability", NAME, *KIND, "--json").json
    assert found["nash_conv"] == exploitability(searching).nash_conv
    assert found["policy"] == "average network, gadget search"
    assert found["iterations"] == 200
    plain = deepcfr("exploitability", LEDUC, "--json").json["nash_conv"]
    shown = deepcfr("exploitability", NAME).out
    assert "average network, gadget search after 200 iterations: exact NashConv" in shown
    assert deepcfr("exploitability", NAME, "--json").json["nash_conv"] < 0.8 * plain
    assert "iterations" not in deepcfr("exploitability", f"ensemble:sum:{LEDUC},{NAME}", "--json").json


def test_matches_bounds_and_styles_take_searching_players() -> None:
    game = deepcfr("match", NAME, LEDUC, *KIND, "--json").json
    again = deepcfr("match", LEDUC, NAME, *KIND, "--json").json
    assert game["exact"]
    assert game["value"] == pytest.approx(-again["value"])
    assert game["value"] != 0
    assert deepcfr("lbr", NAME, *KIND, "--json").json["mean"] != deepcfr("lbr", LEDUC, "--json").json["mean"]
    table = deepcfr("tournament", f"tight:{NAME}", NAME, "--search.iterations", 10, "--json").json
    assert table["names"] == [f"tight:{NAME}", NAME]
    assert table["mean"][0][1] < -100


def test_a_situation_has_another_strategy_with_search() -> None:
    answers = [
        deepcfr("strategy", *words, "--json").json["probabilities"]
        for words in ((NAME, "Kc / r / Qc / c r", *KIND), (LEDUC, "Kc / r / Qc / c r"))
    ]
    assert answers[0].keys() == answers[1].keys()
    assert answers[0] != answers[1]
    assert sum(answers[0].values()) == pytest.approx(1)


def test_pages_and_dealers_take_the_settings() -> None:
    search = SearchConfig("unsafe", (), 7)
    served = open_site([NAME], "own", pytest.fail, (), search)
    (run,) = served.runs.values()
    (seated, _) = seat_players((NAME, "-"), None, "own", pytest.fail, search).bots
    assert isinstance(seated, ProtocolAgent)
    for policy in (run.agent().policy, seated.player.policy):
        assert isinstance(policy, ResolvingPolicy)
        assert policy.settings == search

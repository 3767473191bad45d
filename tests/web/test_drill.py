"""A drill deals from the ranges, replies as the solution plays, and says what each action lost."""

import json
import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from deepcfr.api import solve_spot
from deepcfr.web.app import build_app
from deepcfr.web.drill import deal_hands, next_deal, reply, scored, step_of
from deepcfr.web.schema import SpotFacts
from deepcfr.web.site import RequestError, open_site

DEALER, BIG_BLIND = "AA,AQs:0.5", "KK,4s3s,4h3h"


@pytest.fixture(scope="module")
def facts() -> SpotFacts:
    found = solve_spot(
        "2c 2d 7h 9s Kc", "river 50 100", pot=10, stacks=40, dealer=DEALER, big_blind=BIG_BLIND, exploitability=0.1
    )
    return SpotFacts.model_validate(found.facts())


@pytest.fixture
def client(facts: SpotFacts, tmp_path: Path) -> TestClient:
    (tmp_path / "polar.json").write_text(json.dumps(facts.model_dump()))
    return TestClient(build_app(open_site((), "own", pytest.fail, spots=tmp_path)), base_url="http://127.0.0.1")


def test_hands_are_dealt_as_the_ranges_meet(facts: SpotFacts) -> None:
    deals = [deal_hands(facts, deal) for deal in range(800)]
    assert all(len({first[:2], first[2:], second[:2], second[2:]}) == 4 for first, second in deals)
    counts = Counter((first[0] + first[2], second[0] + second[2]) for first, second in deals)
    # 6 and 4 * 0.5 hands of the dealer; 3 of KK, without the king on the board, and 2 others, which share no card with them
    for dealer, many in (("AA", 6 / 8), ("AQ", 2 / 8)):
        for big_blind, others in (("KK", 3 / 5), ("43", 2 / 5)):
            expected = 800 * many * others
            assert abs(counts[dealer, big_blind] - expected) < 4 * expected**0.5, (dealer, big_blind)


def test_the_other_player_replies_as_often_as_the_solution_does_with_its_hand(facts: SpotFacts) -> None:
    first = facts.decisions[0]
    assert first.player == "big blind"
    place, checks, chances = list(first.frequencies).index("check"), Counter[str](), dict[str, list[float]]()
    for deal in range(400):
        here = reply(facts, deal, "dealer", "")
        assert reply(facts, deal, "dealer", "") == here
        assert not isinstance(here, str)
        assert here.player == "dealer"
        hand = deal_hands(facts, deal)[1]
        checks[hand[0]] += here.line == "check"
        chances.setdefault(hand[0], []).append(first.hands[hand][place])
    assert len(chances) == 2
    for kind, each in chances.items():
        spread = 4 * sum(chance * (1 - chance) for chance in each) ** 0.5
        assert abs(checks[kind] - sum(each)) <= spread, kind


def test_losses_are_the_best_value_less_that_of_each_action(facts: SpotFacts) -> None:
    step = step_of(facts, 3, "dealer", "", "")
    assert (step.losses, step.chosen, step.cards) == ({}, "", deal_hands(facts, 3)[0])
    (decision,) = [one for one in facts.decisions if one.line == step.line]
    values = dict(zip(decision.frequencies, decision.values[step.cards], strict=True))
    for action in step.actions:
        after = step_of(facts, 3, "dealer", step.line, action)
        assert after.losses == pytest.approx({name: max(values.values()) - x for name, x in values.items()}, abs=1e-3)
        assert after.played == dict(zip(decision.frequencies, decision.hands[step.cards], strict=True))
    with pytest.raises(RequestError, match="There is no action 'shove'"):
        step_of(facts, 3, "dealer", "", "shove")


def test_the_hand_with_which_most_was_lost_comes_again_and_begins_anew(client: TestClient) -> None:
    found = {1: 0.5, 2: 3.0, 3: 0.0}
    coming = [next_deal(found, deal) for deal in (3, 4, 5)]
    assert sorted(coming) == [2, 5, 6]
    assert scored("1_5000-2_30000", 2, 0.25) == {1: 0.5, 2: 3.25}  # a second decision of one deal
    assert scored("1_5000", 4, 0.0) == {1: 0.5, 4: 0.0}
    deal = next(deal for deal in (3, 4, 5) if next_deal(found | {deal: 0.0}, deal) == 2)
    here = {"deal": deal, "seat": "big blind", "score": "1_5000-2_30000-3_0"}
    page = client.get("/spots/polar/drill", params=here | {"action": "check", "line": "check, bet 5, fold"}).text
    assert "deal=2&amp;score=1_5000-3_0" in page


def test_ten_hands_by_links_keep_the_score(client: TestClient) -> None:
    page, hands = client.get("/spots/polar").text, 0
    lost: dict[str, float] = {}  # a hand that comes again counts as it is played then
    now = 0.0
    address = unescape(re.findall(r'href="(/spots/polar/drill[^"]*)"', page)[0])
    while hands < 10:
        page = client.get(address).text
        buttons = re.findall(r'class="button (?:fold|call|raise-\d)" href="([^"]+)"', page)
        if buttons:
            page = client.get(unescape(buttons[-1])).text
            now += float(re.findall(r'which loses <b class="number">([\d.]+)</b>', page)[0])
            lost[re.findall(r"deal=(\d+)", buttons[-1])[0]] = now
        ((address, said),) = re.findall(r'<a class="button" href="([^"]+)"[^>]*>(Next hand|Go on)', page)
        address, hands = unescape(address), hands + (said == "Next hand")
        now = 0.0 if said == "Next hand" else now
        total = float(re.findall(r'<b class="number">([\d.]+)</b> lost in', page)[0])
    assert total == pytest.approx(sum(lost.values()), abs=0.02)
    assert total > 0


def test_the_api_says_the_same(client: TestClient, facts: SpotFacts) -> None:
    asked = {"deal": 5, "seat": "big blind", "action": "check"}
    found = client.get("/api/spots/polar/drill", params=asked).json()
    assert found == step_of(facts, 5, "big blind", "", "check").model_dump()
    assert client.get("/api/spots/polar/drill", params=asked | {"deal": -1}).status_code == 422
    assert client.get("/api/spots/nobody/drill").status_code == 404
    assert client.get("/api/spots/polar/drill", params={"line": "zzz"}).status_code == 404


def test_a_file_of_an_earlier_version_has_a_drill_without_what_it_lacks(client: TestClient, facts: SpotFacts) -> None:
    old = facts.model_dump()
    old["decisions"] = [{k: v for k, v in each.items() if k not in ("pot", "values")} for each in old["decisions"]]
    assert client.put("/api/spots/old", json=old).status_code == 201
    asked = {"seat": "big blind"}
    assert client.get("/spots/old/drill", params=asked).status_code == 200
    answer = client.get("/api/spots/old/drill", params=asked | {"action": "check"})
    assert (answer.status_code, answer.json()["error"]) == (409, "This spot has no values of actions: solve it again.")

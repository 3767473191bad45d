"""The benchmark of search measures what it says; its speeds are not asserted."""

from __future__ import annotations

from experiments.bench.search import Workload, bench_search

TINY = Workload(
    agent="leduc",
    decisions=((1, 3, 1, 2), (0, 2, 2, 1)),
    gains=(10.0, 5.0),
    spots=(("Qs 7h 2c 9d 4s", "river 75"),),
    stacks=20.0,
    threads=1,
)


def test_decisions_of_both_rounds_and_spots_to_each_goal() -> None:
    said: list[str] = []
    facts = bench_search(0, said.append, TINY)
    rows = {(row["round"], row["kind"]): row for row in facts["decisions"]}
    assert set(rows) == {(1, "unsafe"), (1, "gadget"), (0, "unsafe"), (0, "gadget")}
    assert all(row["median_ms"] > 0 and row["median_wall_ms"] > 0 for row in rows.values())
    assert [rows[round_, "gadget"]["threads"] for round_ in (1, 0)] == [1, 2]
    assert (rows[1, "gadget"]["iterations"], rows[1, "gadget"]["decisions"]) == (3, 2)
    assert (rows[0, "gadget"]["iterations"], rows[0, "gadget"]["decisions"]) == (2, 1)
    (spot,) = facts["spots"]
    loose, sharp = spot["reached"]["10.0"], spot["reached"]["5.0"]
    assert loose["iterations"] <= sharp["iterations"]
    assert loose["exploitability_percent"] <= 500
    assert sharp["exploitability_percent"] <= 250
    assert len(said) == 6

"""A checkpoint gives back exactly what was saved, and neither damage nor a full disk nor a crash costs more than one."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from safetensors import SafetensorError
from safetensors.torch import load_file

from deepcfr.config import RuntimeConfig, config_to_toml
from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import json_bytes
from deepcfr.game.presets import load_rules
from deepcfr.policy.query import query
from deepcfr.run import checkpoint as checkpoints
from deepcfr.run.folder import RunFolder, export
from deepcfr.solve.deep_cfr import DeepCFR
from small_runs import Crash, crash, flip, small_config, with_sections

CONFIG = small_config(iterations=9, memory={"capacity": 40})  # full after two
MEMORIES = ("advantage-0", "advantage-1", "strategy")
COLUMNS = ("cards", "iteration", "node", "target")
NETWORKS = "networks.safetensors"
ARRAYS = tuple(f"memory-{memory}-{column}.npy" for memory in MEMORIES for column in COLUMNS)
FILES = (NETWORKS, *ARRAYS, "state.json")

State = dict[str, Any]


def state_of(solver: DeepCFR) -> State:
    """All that Algorithm 1 goes on from: networks, memories and iterates as bytes, and the counters."""
    networks = {"0": solver.advantage_networks[0], "1": solver.advantage_networks[1], "average": solver.average_network}
    memories = solver.memories.stores
    assert tuple(memories) == MEMORIES
    state: State = {
        f"{name}.{key}": tensor.numpy().tobytes()
        for name, network in networks.items()
        if network is not None
        for key, tensor in network.state_dict().items()
    }
    for name, memory in memories.items():
        state[name] = memory.seen
        state |= {f"{name}.{column}": tensor.numpy().tobytes() for column, tensor in memory.contents().items()}
    state |= {name: tensor.numpy().tobytes() for name, tensor in solver.snapshots.tensors().items()}
    counters = ("iteration", "nodes_touched", "average_iteration")
    return state | {name: getattr(solver, name) for name in counters}


def advance(solver: DeepCFR, *, average: bool = False) -> DeepCFR:
    next(solver.iterations())
    if average:
        solver.fit_average()
    return solver


def loaded(path: Path) -> tuple[State, list[str]]:
    """The state that a run goes on from, and the warnings on the way."""
    warnings: list[str] = []
    solver, _ = RunFolder.open(path).load_solver(warnings.append, memories=True)
    return state_of(solver), warnings


class Saved(NamedTuple):
    """A run with checkpoints of iterations 2 and 3, the solver at 3, and what it was at each."""

    run: RunFolder
    solver: DeepCFR
    states: dict[int, State]

    def __repr__(self) -> str:
        return f"Saved({self.path})"

    @property
    def path(self) -> Path:
        return self.run.path

    def folder(self, iteration: int) -> Path:
        return self.path / "checkpoints" / f"{iteration:07d}"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    run = RunFolder.create(tmp_path_factory.mktemp("original") / "run", CONFIG)
    solver, states = DeepCFR(run.game(), CONFIG), {}
    for iteration in (1, 2, 3):
        advance(solver, average=True)
        run.save(solver, seconds=1.5 * iteration)
        states[iteration] = state_of(solver)
    return Saved(run, solver, states)


@pytest.fixture
def saved(original: Saved, tmp_path: Path) -> Saved:
    """A copy that may be damaged."""
    shutil.copytree(original.path, tmp_path / "run")
    return original._replace(run=RunFolder.open(tmp_path / "run"))


@pytest.fixture
def fourth(original: Saved) -> DeepCFR:
    """The solver one iteration after the newest checkpoint, about to be saved."""
    solver, _ = original.run.load_solver(pytest.fail, memories=True)
    return advance(solver, average=True)


# There and back


@pytest.mark.parametrize(
    "kind, average, network", [("reservoir", True, {}), ("window", False, {"kind": "paper", "width": 4})]
)
def test_a_restored_solver_is_the_one_that_was_saved_and_goes_on_like_it(
    tmp_path: Path, kind: str, average: bool, network: dict[str, Any]
) -> None:
    config = with_sections(CONFIG, memory={"kind": kind}, network=network)
    run = RunFolder.create(tmp_path / "run", config)
    solver = DeepCFR(run.game(), config)
    for _ in range(3):
        advance(solver, average=average)
    strategies = solver.memories.stores["strategy"]
    assert strategies.seen > strategies.capacity  # what was seen is more than what is held
    run.save(solver, 12.5)
    restored, seconds = RunFolder.open(tmp_path / "run").load_solver(pytest.fail, memories=True)
    assert seconds == 12.5
    assert state_of(restored) == state_of(solver)
    assert state_of(advance(restored, average=True)) == state_of(advance(solver, average=True))


def test_a_checkpoint_has_a_safetensors_file_an_array_for_every_column_and_its_state(saved: Saved) -> None:
    assert sorted(path.name for path in saved.folder(3).iterdir()) == sorted(FILES)
    arrays = {name: np.load(saved.folder(3) / name, allow_pickle=False) for name in ARRAYS}
    assert {name: len(array) for name, array in arrays.items()} == dict.fromkeys(ARRAYS, 40)


def test_the_two_newest_checkpoints_are_kept_and_latest_names_the_newest(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", CONFIG)
    solver = DeepCFR(run.game(), run.config)
    for iteration in range(1, 5):
        run.save(advance(solver), 0.0)
        there = sorted(p.name for p in (run.path / "checkpoints").iterdir() if p.is_dir())
        assert there == [f"{i:07d}" for i in range(max(1, iteration - 1), iteration + 1)]
        assert (run.path / "checkpoints" / "latest").read_text() == f"{iteration:07d}\n"


def test_what_a_killed_process_left_is_passed_over_and_cleared_away(saved: Saved) -> None:
    folder = saved.path / "checkpoints"
    (folder / "latest.12345.tmp").write_text("00000")
    (folder / "latest").write_text("0000099\n")  # for people only
    for name in ("0000007.tmp", "0000002.old", "0000003.old"):
        shutil.copytree(saved.folder(2), folder / name)
    assert loaded(saved.path) == (saved.states[3], [])
    saved.run.save(saved.run.load_solver(pytest.fail, memories=True)[0], 1.0)  # in place of the same one
    assert loaded(saved.path) == (saved.states[3], [])
    assert {path.name for path in folder.iterdir()} == {"0000002", "0000003", "latest"}
    for name in ("0000009", "notes"):
        (folder / name).write_text("a file, not a folder")
    assert loaded(saved.path) == (saved.states[3], [])


@pytest.mark.parametrize("keep, stay", [(1, {"0000004"}), (2, {"0000003", "0000004"})])
def test_a_damaged_newer_checkpoint_takes_no_place_of_the_others(saved: Saved, keep: int, stay: set[str]) -> None:
    solver, _ = saved.run.load_solver(pytest.fail, memories=True)
    saved.folder(2).rename(saved.folder(9))
    (saved.folder(9) / NETWORKS).write_bytes(b"")
    checkpoints.save_checkpoint(saved.path, advance(solver), saved.run.fingerprint, 0.0, keep=keep)
    assert {path.name for path in (saved.path / "checkpoints").iterdir()} == {*stay, "latest"}
    assert loaded(saved.path)[0]["iteration"] == 4


def test_checkpoints_have_the_order_of_their_iterations(saved: Saved) -> None:
    saved.folder(2).rename(saved.path / "checkpoints" / "9999999")
    saved.folder(3).rename(saved.path / "checkpoints" / "10000000")
    newest = checkpoints.newest_checkpoint(saved.path, saved.run.fingerprint, pytest.fail)
    assert newest is not None
    assert newest.folder.name == "10000000"


# Damage


DAMAGE: dict[str, Callable[[Path], None]] = {
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "one byte short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda path: os.truncate(path, 0),
    "one byte longer": lambda path: path.write_bytes(path.read_bytes() + b"\x01"),
    "first bit flipped": lambda path: flip(path, 0),
    "last bit flipped": lambda path: flip(path, -1, 7),
    "missing": Path.unlink,
    "another checkpoint's": lambda path: path.write_bytes((path.parent.with_name("0000002") / path.name).read_bytes()),
}
# Without its final newline the state says the same; an earlier state in a later folder has the wrong checksums for it.
NOT_THE_STATE = {("state.json", "one byte short"), ("state.json", "another checkpoint's")}
DAMAGED = [(name, damage) for name in (NETWORKS, ARRAYS[-1], "state.json") for damage in DAMAGE]


@pytest.mark.parametrize("name, damage", [case for case in DAMAGED if case not in NOT_THE_STATE])
def test_a_damaged_file_is_named_and_the_previous_checkpoint_is_used(saved: Saved, name: str, damage: str) -> None:
    DAMAGE[damage](saved.folder(3) / name)
    state, warnings = loaded(saved.path)
    assert state == saved.states[2]
    (warning,) = warnings
    assert f"'{saved.folder(3) / name}' is damaged" in warning


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
@example(0.06, 0)
@settings(max_examples=100)
def test_one_flipped_bit_anywhere_in_the_state_is_found(saved: Saved, place: float, bit: int) -> None:
    path = saved.folder(3) / "state.json"
    position = int(place * path.stat().st_size)
    before = json.loads(path.read_bytes())
    flip(path, position, bit)
    try:
        warnings: list[str] = []
        found = saved.run.checkpoint(warnings.append)
        assert found is not None
        if found.folder == saved.folder(3):  # nothing but a space may have changed
            assert found.state == before
        else:
            assert len(warnings) == 1
            assert f"'{path}'" in warnings[0]
    finally:
        flip(path, position, bit)


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"null",
        b"{}",
        b'"x"',
        b"\xff\xfe",
        b"{" * 5000,
        b'{"format": 1, "fingerprint": "FP", "iteration": 3, "seconds": 1.0, "checksums": {}}',
    ],
)
def test_a_state_that_is_no_state_is_damage(saved: Saved, content: bytes) -> None:
    (saved.folder(3) / "state.json").write_bytes(content.replace(b"FP", saved.run.fingerprint.encode()))
    state, warnings = loaded(saved.path)
    assert state == saved.states[2]
    assert len(warnings) == 1


def test_all_damaged_is_an_error_that_names_every_damaged_file(saved: Saved) -> None:
    flip(saved.folder(3) / NETWORKS, 100)
    (saved.folder(2) / ARRAYS[5]).unlink()
    warnings: list[str] = []
    with pytest.raises(CheckpointError) as caught:
        saved.run.load_solver(warnings.append, memories=True)
    text = str(caught.value)
    assert f"'{saved.folder(3) / NETWORKS}' is damaged" in text
    assert f"'{saved.folder(2) / ARRAYS[5]}' is damaged" in text
    assert f"No checkpoint of '{saved.path}' is undamaged." in caught.value.problems
    assert len(warnings) == 2


# Other runs' checkpoints


@pytest.mark.parametrize(
    "section, change",
    [
        ("network", {"width": 9}),
        ("network", {"suits": "raw"}),
        ("memory", {"capacity": 41}),
        ("memory", {"kind": "window"}),
    ],
)
def test_a_checkpoint_of_another_network_or_memory_is_refused(
    saved: Saved, section: str, change: dict[str, Any]
) -> None:
    (saved.path / "config.toml").write_text(config_to_toml(with_sections(CONFIG, **{section: change})))
    assert_belongs_elsewhere(saved)


@pytest.mark.parametrize(("before", "after"), [("network", "table"), ("table", "network")])
def test_a_checkpoint_with_another_first_round_is_refused(tmp_path: Path, before: Any, after: Any) -> None:
    run = RunFolder.create(tmp_path / "run", with_sections(CONFIG, cfr={"first_round": before}))
    run.save(advance(DeepCFR(run.game(), run.config)), 0.0)
    (run.path / "config.toml").write_text(config_to_toml(with_sections(CONFIG, cfr={"first_round": after})))
    for memories in (True, False):
        with pytest.raises(CheckpointError, match=r"0000001': It was written with another cfr.first_round"):
            RunFolder.open(run.path).load_solver(pytest.fail, memories=memories)


def test_a_checkpoint_of_samples_with_fewer_decisions_is_refused(tmp_path: Path) -> None:
    boards = {"kind": "public-chance", "boards": 1, "samples": 3}
    run = RunFolder.create(tmp_path / "run", with_sections(CONFIG, sampling=boards))
    run.save(advance(DeepCFR(run.game(), run.config)), 0.0)
    (run.path / "config.toml").write_text(config_to_toml(with_sections(run.config, sampling={"decisions": 2})))
    with pytest.raises(CheckpointError, match=r"0000001': 'memory-advantage-0-node' is torch.int16 \[3\]"):
        RunFolder.open(run.path).load_solver(pytest.fail, memories=True)
    RunFolder.open(run.path).load_solver(pytest.fail, memories=False)


def test_a_checkpoint_that_goes_away_while_it_is_read_is_an_error(saved: Saved) -> None:
    newest = checkpoints.newest_checkpoint(saved.path, saved.run.fingerprint, pytest.fail)
    assert newest is not None
    shutil.rmtree(newest.folder)
    for memories in (True, False):
        with pytest.raises(CheckpointError, match="was removed while it was read"):
            checkpoints.restore(DeepCFR(saved.run.game(), CONFIG), newest, memories=memories)


@pytest.mark.parametrize(
    "rules", [load_rules("leduc"), replace(load_rules("kuhn"), raise_size=(2,))], ids=["leduc", "other bets"]
)
def test_a_checkpoint_of_another_game_is_refused(saved: Saved, rules: Any) -> None:
    (saved.path / "game.json").write_bytes(json_bytes(vars(rules)))
    assert_belongs_elsewhere(saved)


def assert_belongs_elsewhere(saved: Saved) -> None:
    there = sorted(saved.path.rglob("*"))
    for memories in (True, False):
        with pytest.raises(CheckpointError) as caught:
            RunFolder.open(saved.path).load_solver(pytest.fail, memories=memories)
        (sentence,) = caught.value.problems
        assert str(saved.folder(3)) in sentence
        assert "another game or solver" in sentence
    assert sorted(saved.path.rglob("*")) == there


def test_settings_that_a_checkpoint_does_not_depend_on_may_change(saved: Saved) -> None:
    other = with_sections(CONFIG, iterations=20, sampling={"traversals": 5}, runtime=RuntimeConfig(threads=3))
    (saved.path / "config.toml").write_text(config_to_toml(other))
    assert loaded(saved.path) == (saved.states[3], [])


def test_another_format_is_named(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "FORMAT", 2)  # as if a later version read it
    with pytest.raises(CheckpointError, match="has format 1, and this version reads format 2"):
        saved.run.load_solver(pytest.fail, memories=True)


# Disks that refuse, and crashes


class Fails:
    """A function whose call number `at`, from 0, raises `error` after `half` has had a go; `made` counts the calls."""

    def __init__(
        self, real: Callable[..., Any], at: int, error: BaseException, half: Callable[..., Any] | None = None
    ) -> None:
        self.real, self.at, self.error, self.half, self.made = real, at, error, half, 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.made += 1
        if self.made != self.at + 1:
            return self.real(*arguments, **named)
        if self.half:
            self.half(*arguments, **named)
        raise self.error


def half_an_array(path: Path, array: np.ndarray, **_: Any) -> None:
    path.write_bytes(array.tobytes()[: array.nbytes // 2])


def half_the_networks(tensors: dict[str, torch.Tensor], path: Path) -> None:
    Path(path).write_bytes(b"\x00" * len(tensors))


# What is called for every checkpoint, in the place where it is looked up, and how often.
STEPS: dict[str, tuple[Any, str, int, Callable[..., Any] | None]] = {
    "mkdir": (os, "mkdir", 1, None),
    "networks": (checkpoints, "save_file", 1, half_the_networks),
    "memory": (np, "save", len(ARRAYS), half_an_array),
    "sync": (os, "fsync", len(FILES) + 2, None),  # every file, the folder and `latest`
    "rename": (os, "replace", 3, None),  # the state, the folder and `latest`
}
# The first and the last of each kind of step, and every one from the state on.
EVERY_STEP = [
    ("mkdir", 0), ("networks", 0), ("memory", 0), ("memory", len(ARRAYS) - 1), ("sync", 0),
    *(("sync", at) for at in range(len(FILES) - 1, len(FILES) + 2)), *(("rename", at) for at in range(3)),
]  # fmt: skip
# Once the folder has its name the new checkpoint counts.
AFTER_THE_RENAME = {("sync", len(FILES)), ("sync", len(FILES) + 1), ("rename", 2)}


def break_step(monkeypatch: pytest.MonkeyPatch, step: str, at: int, error: BaseException) -> Fails:
    owner, name, _, half = STEPS[step]
    fails = Fails(getattr(owner, name), at, error, half)
    monkeypatch.setattr(owner, name, fails)
    return fails


def temporary_files(path: Path) -> list[Path]:
    return [p for p in path.rglob("*") if ".tmp" in p.name]


def assert_one_or_the_other(saved: Saved, state: State, after_the_rename: bool) -> None:
    """The run goes on from the checkpoint that was being written, whole, or from the one before."""
    found, warnings = loaded(saved.path)
    assert warnings == []
    assert found == (state if after_the_rename else saved.states[3])


def test_the_steps_of_a_save_are_the_ones_that_are_broken_below(
    saved: Saved, fourth: DeepCFR, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = {step: break_step(monkeypatch, step, 10**6, RuntimeError()) for step in STEPS}
    saved.run.save(fourth, 0.0)
    made = {step: counter.made for step, counter in counters.items() if step != "mkdir"}  # later ones find the folder
    assert made == {step: count for step, (_, _, count, _) in STEPS.items() if step != "mkdir"}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Crash()], ids=["full", "crash"])
@pytest.mark.parametrize("step, at", EVERY_STEP)
def test_a_full_disk_or_a_crash_at_any_step_costs_no_earlier_checkpoint_and_the_next_save_clears_up(
    saved: Saved, fourth: DeepCFR, monkeypatch: pytest.MonkeyPatch, step: str, at: int, error: BaseException
) -> None:
    full = isinstance(error, OSError)
    if full and step == "networks":
        error = SafetensorError("I/O error: No space left on device (os error 28)")
    with monkeypatch.context() as patch:
        break_step(patch, step, at, error)
        with pytest.raises(CheckpointError if full else Crash) as caught:
            saved.run.save(fourth, 0.0)
    if full:
        (sentence,) = caught.value.problems  # type: ignore[union-attr]
        assert "cannot be written" in sentence
        assert "No space left on device" in sentence
        assert str(saved.path / "checkpoints") in sentence
        assert temporary_files(saved.path) == []
    assert_one_or_the_other(saved, state_of(fourth), (step, at) in AFTER_THE_RENAME)
    saved.run.save(fourth, 0.0)
    assert loaded(saved.path) == (state_of(fourth), [])
    assert temporary_files(saved.path) == []


def test_too_little_room_is_refused_with_the_figures_before_anything_is_written(
    saved: Saved, fourth: DeepCFR, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(saved.path)._replace(free=10)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        patch.setattr(np, "save", pytest.fail)
        with pytest.raises(CheckpointError) as caught:
            saved.run.save(fourth, 0.0)
    assert "it needs 0 MB and 0 MB are free" in str(caught.value)
    assert_one_or_the_other(saved, {}, after_the_rename=False)
    assert temporary_files(saved.path) == []


def test_a_file_where_the_folder_should_be_is_an_error(saved: Saved, fourth: DeepCFR) -> None:
    shutil.rmtree(saved.path / "checkpoints")
    (saved.path / "checkpoints").write_text("in the way")
    with pytest.raises(CheckpointError, match=r"checkpoints/0000004' cannot be written: (Not a directory|File exists)"):
        saved.run.save(fourth, 0.0)
    assert (saved.path / "checkpoints").read_text() == "in the way"


def test_a_run_with_a_damaged_newest_checkpoint_keeps_the_memories_of_the_one_before(saved: Saved) -> None:
    (saved.folder(3) / checkpoints.STATE).write_text("{")
    assert saved.run.keeps_memories()
    (saved.folder(2) / checkpoints.STATE).write_text("{")
    with pytest.raises(CheckpointError, match="0000003"):
        saved.run.keeps_memories()


# Without memories


def test_an_export_plays_the_same_and_cannot_be_resumed(saved: Saved, tmp_path: Path) -> None:
    export(saved.run, tmp_path / "small", pytest.fail)
    assert not list((tmp_path / "small").rglob("memory-*"))
    (networks,) = (tmp_path / "small").rglob(NETWORKS)
    weights = load_file(networks)
    assert {
        tensor.dtype for name, tensor in weights.items() if name.endswith(".weight") and not name.startswith("iterates")
    } == {torch.float16}
    small = RunFolder.open(tmp_path / "small")
    for which in ("average", "current"):
        ours, solver = saved.run.load_policy(which, pytest.fail)
        theirs, copy = small.load_policy(which, pytest.fail)
        assert (copy.iteration, copy.nodes_touched) == (3, solver.nodes_touched)
        for text in ("J", "Q", "K", "J / c", "Q / r", "K / cr"):
            same = query(ours, text).probabilities
            assert query(theirs, text).probabilities == pytest.approx(same, abs=5e-3)  # weights have 16 bits
    with pytest.raises(CheckpointError) as caught:
        small.load_solver(pytest.fail, memories=True)
    (sentence,) = caught.value.problems
    assert "without its memories, so training cannot go on" in sentence
    assert str(tmp_path / "small") in sentence


def test_an_export_of_a_damaged_run_takes_the_previous_checkpoint_and_says_so(saved: Saved, tmp_path: Path) -> None:
    flip(saved.folder(3) / NETWORKS, 100)
    warnings: list[str] = []
    export(saved.run, tmp_path / "small", warnings.append)
    assert len(warnings) == 1
    assert [p.name for p in (tmp_path / "small" / "checkpoints").iterdir() if p.is_dir()] == ["0000002"]


def test_an_export_has_the_metrics_of_its_checkpoint(saved: Saved, tmp_path: Path) -> None:
    lines = [json.dumps({"iteration": iteration}) for iteration in range(1, 6)]
    saved.run.metrics_path.write_text("\n".join(lines) + "\n")
    export(saved.run, tmp_path / "small", pytest.fail)
    assert (tmp_path / "small" / "metrics.jsonl").read_text().splitlines() == lines[:3]


def test_an_export_needs_a_checkpoint_a_policy_and_an_empty_folder(saved: Saved, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="is not empty"):
        export(saved.run, tmp_path / "full", pytest.fail)
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["file"]
    new = RunFolder.create(tmp_path / "new", CONFIG)
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        export(new, tmp_path / "small", pytest.fail)
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        new.load_policy("average", pytest.fail)
    new.save(advance(DeepCFR(new.game(), CONFIG)), 0.0)
    with pytest.raises(CheckpointError, match=r"no average-strategy network yet.*--policy current"):
        new.load_policy("average", pytest.fail)
    policy, _ = new.load_policy("current", pytest.fail)
    assert sum(query(policy, "K / r").probabilities.values()) == pytest.approx(1)
    with pytest.raises(CheckpointError, match=r"has no average-strategy network yet: 'deepcfr resume .*new' fits one"):
        export(new, tmp_path / "small", pytest.fail, keep_networks=0)
    assert not (tmp_path / "small").exists()
    export(new, tmp_path / "small", pytest.fail)  # whose snapshots can be played
    RunFolder.open(tmp_path / "small").load_policy("sd-cfr", pytest.fail)


def test_an_export_that_is_cut_off_is_no_run_and_can_be_made_again(
    saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "export"
    saved.run.metrics_path.write_text('{"iteration": 1}\n')
    for place in ("save_checkpoint", "truncate_metrics", "write_atomically"):
        with monkeypatch.context() as patch:
            patch.setattr(f"deepcfr.run.folder.{place}", lambda *_, **__: crash())
            patch.setattr("deepcfr.run.folder.shutil.rmtree", lambda *_, **__: None)  # nothing is tidied up
            with pytest.raises(Crash):
                export(saved.run, target, pytest.fail)
        assert not target.exists()
        assert list(tmp_path.glob("export*/config.toml")) == []
    export(saved.run, target, pytest.fail)
    assert RunFolder.open(target).load_policy("own", pytest.fail)

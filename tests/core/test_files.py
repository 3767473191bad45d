"""Files that several processes write."""

from __future__ import annotations

from codecs import BOM_UTF8
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from deepcfr.config import RunConfig, config_to_toml, load_config
from deepcfr.core.files import read_json, write_atomically
from deepcfr.game.presets import load_rules
from deepcfr.game.rules import PRESETS
from definitions import format_game_definition


def write_often(path: Path, content: bytes) -> int:
    for _ in range(100):
        write_atomically(path, content)
        assert path.read_bytes() in (b"a" * 1000, b"b" * 2000)
    return 100


def test_two_processes_may_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "match.json"
    contents = [b"a" * 1000, b"b" * 2000]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(write_often, [path, path], contents)) == [100, 100]
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_a_byte_order_mark_before_a_text_is_no_part_of_it(tmp_path: Path) -> None:
    config, leduc = RunConfig(game="leduc", seed=3), PRESETS["leduc"]
    texts = {"a.toml": config_to_toml(config), "a.json": '{"a": 1}', "leduc.game": format_game_definition(leduc)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(BOM_UTF8 + text.encode())
    assert load_config(tmp_path / "a.toml") == config
    assert read_json(tmp_path / "a.json") == {"a": 1}
    assert load_rules(str(tmp_path / "leduc.game")).board_cards == leduc.board_cards

"""The table of backbones: each is a row, and names, lists and defaults follow from the rows."""

import subprocess
import sys
from importlib import import_module

import pytest

from echelon.extras import _EXTRAS
from echelon.networks.table import (
    BACKBONES,
    DEFAULTS,
    PARTS,
    backbone_row,
    choose_backbones,
    options_by_part,
    part_of,
)


@pytest.mark.parametrize("row", BACKBONES.values(), ids=BACKBONES)
def test_every_row_names_what_is_there(row) -> None:
    module, _, name = row.builder.partition(":")
    assert callable(getattr(import_module(module), name))
    assert row.kind in PARTS
    assert row.extra is None or row.extra in _EXTRAS.values()
    assert part_of(row.shown) == row.kind
    assert (row.pace.epochs is None) == (row.kind == "table")


def test_every_default_reads_its_part() -> None:
    assert {part: part_of(name) for part, name in DEFAULTS.items()} == {p: p for p in PARTS}


def test_an_unknown_name_is_told_all_that_there_are() -> None:
    with pytest.raises(ValueError, match="'rnn'") as caught:
        backbone_row("rnn")
    assert all(row.shown in str(caught.value) for row in BACKBONES.values())


def test_the_table_is_read_without_torch() -> None:
    code = "import sys, echelon.networks.table; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("asked", "parts", "chosen"),
    [
        ("mlp", ("table", "text"), {"table": "mlp", "text": "lstm"}),
        ("lstm", ("table", "text"), {"table": "mlp", "text": "lstm"}),
        ("timm:vgg16", ("image",), {"image": "timm:vgg16"}),
        (None, ("text", "image"), {"text": "lstm", "image": "resnet"}),
        (None, ("table", "text"), {"table": "mlp", "text": "lstm"}),
        ({"text": "hf:x"}, ("text", "image"), {"text": "hf:x", "image": "resnet"}),
    ],
)
def test_each_part_has_a_backbone(asked, parts, chosen) -> None:
    assert choose_backbones(asked, parts) == chosen


@pytest.mark.parametrize(
    ("asked", "parts", "message"),
    [
        ("lstm", ("table",), "'lstm' needs a column of texts, and none was named: say text="),
        ("resnet", ("text",), "needs a column of images"),
        ("gru", ("text",), "backbone must be one of .* lstm, hf:NAME"),
        ({"text": "mlp"}, ("text",), "'mlp' reads tables, not texts"),
        ({"sound": "mlp"}, ("text",), "has the parts table, text, image; got 'sound'"),
        ({"table": "mlp"}, ("text",), "needs numbers or categories"),
        ("mlp", ("text",), "needs numbers or categories"),
    ],
)
def test_what_is_refused(asked, parts, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_backbones(asked, parts)


def test_options_belong_to_a_part() -> None:
    parts = ("table", "text")
    assert options_by_part({"hidden": 8}, "lstm", parts) == {"table": {}, "text": {"hidden": 8}}
    by_part = options_by_part({"text": {"hidden": 8}}, {"text": "lstm"}, parts)
    assert by_part == {"table": {}, "text": {"hidden": 8}}
    with pytest.raises(ValueError, match="must say which part"):
        options_by_part({"hidden": 8}, {"text": "lstm"}, parts)

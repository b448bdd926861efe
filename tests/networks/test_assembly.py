"""From raw rows to a network: decided on training rows, and the same again from a description."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import echelon
from echelon.data.inputs import Inputs
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.schema import TableSchema
from echelon.networks import assembly
from echelon.networks.assembly import Readers, encode, make_network, read_schema, text_network
from echelon.networks.spec import NetworkSpec
from tests.media import mixed_table

METHOD = echelon.method("corn", 4)
SPEC = NetworkSpec(
    "corn",
    {"table": "mlp", "text": "lstm"},
    {"table": {"hidden": (8,)}, "text": {"embedding": 4, "hidden": 4}},
    {},
    {"text": {"max_tokens": 5}},
    "standard",
)


@pytest.fixture(scope="module")
def mixed():
    frame = mixed_table(30)[0].drop(columns="photo")
    schema = TableSchema.of(frame, text="review")
    table = schema.read(frame)
    return table, TableEncoder.of(table, schema, scaling="standard")


def test_rows_are_encoded_the_same_in_any_chunks(mixed, monkeypatch) -> None:
    table, encoder = mixed
    whole = encode(encoder, table)
    assert whole.shape == (30, encoder.num_features)
    monkeypatch.setattr(assembly, "CHUNK", 7)
    assert torch.equal(encode(encoder, table), whole)


def test_a_table_alone_is_a_tensor_and_other_kinds_come_on_demand(mixed) -> None:
    table, encoder = mixed
    plain = Readers().inputs(table.plain(), encoder)
    assert torch.equal(plain, encode(encoder, table))
    inputs = Readers.of(table, SPEC).inputs(table, encoder)
    assert isinstance(inputs, Inputs)
    assert set(inputs.parts) == {"table", "text"}
    assert inputs.lengths.max() <= 5  # as the options of the inputs say


def test_readers_come_back_from_json_and_read_alike(mixed) -> None:
    table, encoder = mixed
    readers = Readers.of(table, SPEC)
    network = make_network(encoder, readers, SPEC, METHOD)
    again = Readers.rebuild(json.loads(json.dumps(readers.describe(network))))
    assert again.saved
    assert not readers.saved
    one, two = (each.inputs(table, encoder).take(np.arange(30)) for each in (readers, again))
    assert all(torch.equal(one[part], two[part]) for part in ("table", "text"))
    for wrong in (["text"], {"sound": {}}):
        with pytest.raises(ValueError, match="encodings of a network must be of text, image"):
            Readers.rebuild({"encodings": wrong, "config": None})


def test_a_network_has_a_backbone_for_each_part(mixed) -> None:
    table, encoder = mixed
    readers = Readers.of(table, SPEC)
    network = make_network(encoder, readers, SPEC, METHOD)
    assert set(network.backbone.parts) == {"table", "text"}
    assert text_network(network) is network.backbone.parts["text"]
    assert network(readers.inputs(table, encoder).take(np.arange(3))).shape == (3, 3)
    own = nn.Linear(encoder.num_features, 6)
    spec = NetworkSpec("corn", {"table": "module"})
    plain = make_network(encoder, Readers(), spec, METHOD, own)
    assert plain.head.in_features == 6
    assert plain.backbone is not own  # a copy, so that the user's stays untrained
    assert text_network(plain) is None


def test_a_single_column_is_what_the_backbone_reads() -> None:
    frame = pd.DataFrame({"said": ["good", "bad", "good"]})
    assert [c.kind for c in read_schema(frame, "lstm", {}).columns] == ["text"]
    assert [c.kind for c in read_schema(frame, None, {}).columns] == ["category"]
    assert [c.kind for c in read_schema(list(frame["said"]), "lstm", {}).columns] == ["text"]
    two = frame.assign(more=["a", "b", "c"])
    with pytest.raises(ValueError, match="'lstm' needs a column of texts, and none was named"):
        read_schema(two, "lstm", {})
    named = read_schema(two, None, {"text": "more"})
    assert {c.name: c.kind for c in named.columns} == {"said": "category", "more": "text"}

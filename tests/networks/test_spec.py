"""What a network is rebuilt from, which may come from anywhere."""

import json

import pytest

from echelon.networks.spec import NetworkSpec

SPEC = NetworkSpec(
    "corn",
    {"table": "mlp", "text": "lstm"},
    {"table": {"hidden": (8, 8)}, "text": {}},
    {"normaliser": "rows"},
    {"text": {"max_tokens": 9}},
    "standard",
    3,
)


def test_it_comes_back_from_json_as_it_was() -> None:
    assert NetworkSpec.rebuild(json.loads(json.dumps(SPEC.describe()))) == SPEC


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"backbones": ["mlp"]}, "backbones of a network must be a mapping"),
        ({"backbones": {"table": 3}}, "must name its method and its backbones"),
        ({"backbones": {"table": "module"}}, "must name its method and its backbones"),
        ({"method": None}, "must name its method"),
        ({"backbone_options": {"table": [8]}}, "a mapping for each part"),
        ({"method_options": None}, "method_options of a network must be a mapping"),
        ({"scaling": "log"}, "scaling must be one of 'quantile'"),
        ({"networks": 0}, "networks must be a whole number from 1 to 100, such as 3; got 0"),
        ({"networks": True}, "networks must be a whole number .* got True"),
        ({"networks": 10**9}, "networks must be a whole number .* got 1000000000"),
        ({"learning_rate": 1}, "no description of a network"),
    ],
)
def test_what_is_no_spec_is_refused(changed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NetworkSpec.rebuild({**SPEC.describe(), **changed})


def test_parts_must_be_those_of_the_rows() -> None:
    SPEC.check_parts(("table", "text"))
    with pytest.raises(ValueError, match="no such column"):
        SPEC.check_parts(("table",))
    with pytest.raises(ValueError, match="a network for each of table, image"):
        SPEC.check_parts(("table", "image"))

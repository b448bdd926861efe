"""The OpenAPI document: rows that are right fulfil it, and wrong ones do not."""

import json

import jsonschema
import pytest

from echelon.serving.description import info_of, openapi_of
from echelon.serving.refusal import Limits
from echelon.serving.served import ServedModel


@pytest.fixture(scope="module")
def document(fitted) -> dict:
    return openapi_of(ServedModel(fitted), Limits(), has_token=False)


def validator(document: dict, name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **document})


def test_rows_of_the_model_fulfil_the_schema(document, table, client) -> None:
    text = table.drop(columns="grade").to_json(orient="records", date_format="iso")
    rows = json.loads(text)
    check = validator(document, "Row")
    for row in rows[:50]:
        check.validate(row)
    assert not check.is_valid({**rows[0], "more": 1})
    assert not check.is_valid({name: cell for name, cell in rows[0].items() if name != "a"})
    assert not check.is_valid({**rows[0], "a": [1]})
    answer = client.ask("/predict", rows[:3]).json()
    validator(document, "Predictions").validate(answer)
    answer["predictions"][0]["prediction"] = "else"
    assert not validator(document, "Predictions").is_valid(answer)


def test_columns_have_their_kinds_ranges_and_categories(document, table) -> None:
    columns = document["components"]["schemas"]["Row"]["properties"]
    lowest, highest = columns["a"]["x-echelon-range"]
    assert lowest == pytest.approx(table["a"][:300].min(), rel=1e-4)
    assert highest == pytest.approx(table["a"][:300].max(), rel=1e-4)
    assert "% were missing" in columns["b"]["description"]
    assert columns["kind"]["x-echelon-categories"] == ["big", "small"]
    assert columns["day"]["x-echelon-kind"] == "date"
    assert columns["day"]["x-echelon-range"][0].startswith("197")


def test_info_is_json_with_the_limits(fitted) -> None:
    said = json.loads(json.dumps(info_of(ServedModel(fitted), Limits(rows=7)), allow_nan=False))
    assert said["limits"]["rows"] == 7
    assert said["classes"] == ["low", "mid", "high"]
    assert len(said["model"]) == 64

"""Formulas: the terms that formulaic finds, and what is refused."""

import pytest

from echelon.models.formula import read_formula


def names(text: str, columns=()) -> list[str]:
    return [":".join(f.text for f in term) for term in read_formula(text, columns).terms]


def test_operators_are_those_of_formulas() -> None:
    assert names("y ~ a * b - a") == ["b", "a:b"]
    assert sorted(names("(a + b) ** 2")) == ["a", "a:b", "b"]
    assert names("y ~ 0 + a") == ["a"]
    assert names("y ~ .", ["y", "a", "b"]) == ["a", "b"]


def test_categories_may_name_their_reference_in_three_ways() -> None:
    for text in ("Treatment('m')", "Treatment(reference='m')", "contr.treatment('m')"):
        ((factor,),) = read_formula(f"C(sex, {text})").terms
        assert (factor.column, factor.reference, factor.is_category) == ("sex", "m", True)
    formula = read_formula("`my pain` ~ C(`the sex`) + `body mass`")
    assert formula.target == "my pain"
    assert formula.columns == ["the sex", "body mass"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y ~ a +", "cannot be read"),
        ("y ~ a | b", "cannot be read"),
        ("y + z ~ a", "one target"),
        ("y ~ 1", "no column after ~"),
        ("y ~ 2:a", "multiplies a term by a number"),
        ("y ~ C(a, Sum)", "write C"),
        ("y ~ C(a, Treatment(open('x')))", "write C"),
        ("y ~ open(a)", "a formula cannot hold"),
        ("y ~ log(2)", "names no column"),
        (3, "must be a text"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_formula(text)

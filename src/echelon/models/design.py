"""The design matrix of a linear model: from raw numbers and codes to features in their own units.

Numbers stay in their units, categories are compared with a reference (treatment coding), a gap
counts as the median and is marked by a feature of its own, and a formula may multiply columns and
take their logarithms. A date is its days: beside them, the year and the month that other models
read would say the same again, and no coefficient of them could be told. All of it is float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from echelon.data.schema import RawTable, TableSchema
from echelon.models.expressions import Expression
from echelon.models.features import Matrix, column_ranges
from echelon.models.formula import Factor, Formula

ATOMS = ("number", "missing", "category", "expression")
_MOST_FEATURES = 100_000
_MOST_ORDER = 20


class Atom(NamedTuple):
    """One factor of a feature: a number, whether a cell is missing, a category, or arithmetic.

    `column` is the name of a column ("" for arithmetic), `value` that of a category or the text of
    the arithmetic.
    """

    kind: str
    column: str
    value: str = ""


@dataclass(frozen=True)
class Feature:
    """A column of the design matrix: the product of its atoms, and the term that it belongs to."""

    name: str
    term: str
    atoms: tuple[Atom, ...]


class Design(nn.Module):
    """From raw numbers (n, p) and codes (n, q) to features (n, d).

    Parameters
    ----------
    schema : TableSchema
    features : sequence of Feature
        Without any there is one that is always 1.
    references : mapping from column to category
        What the categories of each column are compared with.
    """

    unbounded = ("reach",)  # infinite where nothing lies far away

    centre: Tensor
    reach: Tensor

    def __init__(
        self, schema: TableSchema, features: Sequence[Feature], references: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.features = tuple(features) or (Feature("nothing varies", "", ()),)
        self.references = dict(references)
        self.names = [column.name for column in schema.measured]
        codes = {
            column.name: (i, {c: k for k, c in enumerate(column.categories, 1)})
            for i, column in enumerate(schema.categorical)
        }
        self.register_buffer("centre", torch.zeros(len(self.names), dtype=torch.float64))
        self.register_buffer("reach", torch.full((len(self.names),), torch.inf).double())
        atoms = list(dict.fromkeys(atom for feature in self.features for atom in feature.atoms))
        kinds: dict[str, list[Any]] = {kind: [] for kind in (*ATOMS, "gap")}
        for atom in atoms:
            kinds["gap" if atom.kind == "missing" and atom.column in codes else atom.kind] += [atom]
        place = {name: i for i, name in enumerate(self.names)}
        self.numbers = [place[atom.column] for atom in kinds["number"]]
        self.gaps = [place[atom.column] for atom in kinds["missing"]]
        cells = [(codes[a.column][0], codes[a.column][1][a.value]) for a in kinds["category"]]
        cells += [(codes[atom.column][0], 0) for atom in kinds["gap"]]
        self.of_codes = [column for column, _ in cells]
        self.register_buffer(
            "known", torch.tensor([code for _, code in cells]).long(), persistent=False
        )
        self.expressions = [Expression(atom.value) for atom in kinds["expression"]]
        for expression in self.expressions:
            if unknown := sorted(expression.columns - set(self.names)):
                raise ValueError(
                    f"{expression.text} in a formula needs the column {unknown[0]!r}, which holds "
                    f"no numbers; write C({unknown[0]}) for categories"
                )
        order = [a for kind in ("number", "missing", "category", "gap") for a in kinds[kind]]
        order += kinds["expression"]
        index = {atom: i for i, atom in enumerate(order)}
        most = max(1, *(len(feature.atoms) for feature in self.features))
        if most > _MOST_ORDER or len(self.features) > _MOST_FEATURES:
            raise ValueError("a design has too many features, or products of too many columns")
        # The last of the base columns is 1, which stands for "nothing more".
        self.products = [
            [*(index[a] for a in feature.atoms), *[len(order)] * (most - len(feature.atoms))]
            for feature in self.features
        ]

    @property
    def num_features(self) -> int:
        """d."""
        return len(self.features)

    @property
    def terms(self) -> dict[str, list[int]]:
        """The places of the features of each term."""
        places: dict[str, list[int]] = {}
        for place, feature in enumerate(self.features):
            places.setdefault(feature.term, []).append(place)
        return places

    def feature_names(self, schema: TableSchema | None = None) -> list[str]:
        """What each feature is, (d,)."""
        return [feature.name for feature in self.features]

    def feature_columns(self) -> list[tuple[str, ...]]:
        """The columns that each feature is computed from, each of them once."""
        of_expression = {each.text: sorted(each.columns) for each in self.expressions}
        return [
            tuple(
                dict.fromkeys(
                    name
                    for atom in feature.atoms
                    for name in ([atom.column] if atom.column else of_expression[atom.value])
                )
            )
            for feature in self.features
        ]

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Features (n, d) in float64."""
        raw = numbers[:, : len(self.names)].double()
        missing = torch.isnan(raw)
        filled = torch.where(missing, self.centre, raw)
        filled = filled.clamp(self.centre - self.reach, self.centre + self.reach)
        base = [filled[:, self.numbers], missing[:, self.gaps].double()]
        if self.of_codes:
            base.append((codes[:, self.of_codes] == self.get_buffer("known")).double())
        if self.expressions:
            values = {name: filled[:, i] for i, name in enumerate(self.names)}
            base += [expression.of(values).unsqueeze(1) for expression in self.expressions]
        base.append(raw.new_ones(raw.shape[0], 1))
        columns = torch.cat(base, 1)
        features = columns[:, [places[0] for places in self.products]]
        for i in range(1, len(self.products[0])):
            features = features * columns[:, [places[i] for places in self.products]]
        return features

    @torch.no_grad()
    def matrix(self, table: RawTable) -> Matrix:
        """The features of rows, (n, d)."""
        features = self(torch.from_numpy(table.numbers).double(), torch.from_numpy(table.codes))
        matrix: Matrix = features.numpy()
        return matrix

    def document(self) -> dict[str, Any]:
        """What :func:`read_design` takes, beside the tensors."""
        return {
            "features": [
                [feature.name, feature.term, [list(atom) for atom in feature.atoms]]
                for feature in self.features
            ],
            "references": self.references,
        }


# ---- making one ----------------------------------------------------------------------------------


def make_design(
    table: RawTable,
    schema: TableSchema,
    *,
    formula: Formula | None = None,
    reference: Mapping[str, str] | None = None,
    all_categories: bool = False,
    mark_gaps: bool = True,
) -> Design:
    """Decide on training rows what the features are.

    Parameters
    ----------
    table, schema
        The rows and what their columns are.
    formula : Formula, optional
        The terms; without it every column is one.
    reference : mapping from column to category, optional
        Without one it is the first category that occurs.
    all_categories : bool
        Whether every category has a feature, also the reference, as a penalty wants it.
    mark_gaps : bool
        Whether columns with missing cells have a feature that says so.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40, None], "sex": ["m", "f", "m"]})
    >>> schema = TableSchema.of(frame)
    >>> design = make_design(schema.read(frame), schema, reference={"sex": "m"})
    >>> design.feature_names()
    ['age', 'age is missing', 'sex = f']
    >>> design.matrix(schema.read(frame)).tolist()
    [[30.0, 0.0, 0.0], [40.0, 0.0, 1.0], [35.0, 1.0, 0.0]]
    """
    maker = _Maker(table, schema, reference or {}, all_categories, mark_gaps)
    if formula is None:
        features = [each for column in schema.columns for each in maker.of_column(column.name)]
    else:
        features = maker.of_formula(formula)
    design = Design(schema, features, {} if all_categories else maker.references)
    _fit_numbers(design, table, schema)
    return design


def _fit_numbers(design: Design, table: RawTable, schema: TableSchema) -> None:
    """The median of each column, and how far from it numbers are believed."""
    ranges = column_ranges(table, schema)[: len(design.names)]
    for place, (centre, reach) in enumerate(ranges):
        design.centre[place], design.reach[place] = centre, reach


class _Maker:
    """The features of terms, from the training rows."""

    def __init__(
        self,
        table: RawTable,
        schema: TableSchema,
        reference: Mapping[str, str],
        all_categories: bool,
        mark_gaps: bool,
    ) -> None:
        self.all_categories = all_categories
        numbers, codes = table.numbers, table.codes
        self.kinds = {column.name: column.kind for column in schema.columns}
        self.with_gaps, self.varying = set(), set()
        self.levels: dict[str, list[str]] = {}
        for i, column in enumerate(schema.measured):
            missing = np.isnan(numbers[:, i])
            present = numbers[~missing, i]
            if len(present) and present.min() < present.max():
                self.varying.add(column.name)
            if mark_gaps and 0 < missing.sum() < len(missing):
                self.with_gaps.add(column.name)
        for i, column in enumerate(schema.categorical):
            there = set(np.unique(codes[:, i]).tolist())
            self.levels[column.name] = [
                name for k, name in enumerate(column.categories, 1) if k in there
            ]
            if mark_gaps and 0 in there and len(there) > 1:
                self.with_gaps.add(column.name)
        self.given = dict(reference)
        for name in self.given:
            if name not in self.levels:
                known = ", ".join(self.levels) or "none"
                raise ValueError(
                    f"reference names the column {name!r}, which holds no categories; those that "
                    f"do are: {known}"
                )
        self.references: dict[str, str] = {}

    def of_column(self, name: str) -> list[Feature]:
        """The features of a column that is a term of its own."""
        features = []
        if self.kinds[name] == "category":
            skipped = None if self.all_categories else self.reference(name)
            features = [
                Feature(f"{name} = {level}", name, (Atom("category", name, level),))
                for level in self.levels[name]
                if level != skipped
            ]
        elif name in self.varying:
            features = [Feature(name, name, (Atom("number", name),))]
        if name in self.with_gaps:
            features.append(Feature(f"{name} is missing", name, (Atom("missing", name),)))
        return features

    def reference(self, name: str, asked: str | None = None) -> str | None:
        """The category that the others of a column are compared with."""
        levels = self.levels[name]
        wanted = asked if asked is not None else self.given.get(name)
        if wanted is not None and str(wanted) not in levels:
            raise ValueError(
                f"the reference of {name!r} must be one of its categories, "
                f"{', '.join(map(repr, levels[:20]))}; got {str(wanted)!r}"
            )
        chosen = str(wanted) if wanted is not None else (levels[0] if levels else None)
        if chosen is not None:
            self.references[name] = chosen
        return chosen

    def of_formula(self, formula: Formula) -> list[Feature]:
        """The features of all terms.

        A category of a product leaves its reference out where the product without it is a term
        too, as elsewhere in statistics; the constant always is one.
        """
        terms: set[frozenset[str]] = {
            frozenset(factor.text for factor in term) for term in formula.terms
        } | {frozenset()}
        features: list[Feature] = []
        for term in formula.terms:
            whole = frozenset(factor.text for factor in term)
            options = [self._options(factor, whole - {factor.text} in terms) for factor in term]
            for chosen in product(*options):
                names, atoms = zip(*chosen, strict=True)
                label = ":".join(factor.text for factor in term)
                features.append(Feature(" x ".join(names), label, atoms))
        for name in formula.columns:
            if name in self.with_gaps:
                features.append(Feature(f"{name} is missing", name, (Atom("missing", name),)))
        return features

    def _options(self, factor: Factor, is_reduced: bool) -> list[tuple[str, Atom]]:
        name = factor.column
        if name is None:
            return [(factor.text, Atom("expression", "", factor.text))]
        if self.kinds[name] != "category":
            return [(name, Atom("number", name))]
        skipped = self.reference(name, factor.reference)
        return [
            (f"{name} = {level}", Atom("category", name, level))
            for level in self.levels[name]
            if self.all_categories or not is_reduced or level != skipped
        ]


def read_design(
    document: Mapping[str, Any], tensors: Mapping[str, Tensor], schema: TableSchema
) -> Design:
    """A design from the description in a file, which is not trusted."""
    numeric = {column.name for column in schema.measured}
    categories = {column.name: set(column.categories) for column in schema.categorical}
    features = []
    if not isinstance(document["features"], list) or len(document["features"]) > _MOST_FEATURES:
        raise ValueError("its features must be a list")
    for name, term, atoms in document["features"]:
        read = []
        for kind, column, value in atoms:
            if not all(isinstance(text, str) for text in (name, term, kind, column, value)):
                raise ValueError("its features must be described by texts")
            sound = {
                "number": column in numeric,
                "missing": column in numeric or column in categories,
                "category": value in categories.get(column, ()),
                "expression": column == "",
            }
            if not sound.get(kind, False):
                raise ValueError(f"its feature {name!r} is of no column that it has")
            read.append(Atom(kind, column, value))
        features.append(Feature(name, term, tuple(read)))
    references = document["references"]
    if not isinstance(references, dict) or any(
        value not in categories.get(name, ()) for name, value in references.items()
    ):
        raise ValueError("its references are no categories that it has")
    design = Design(schema, features, references)
    for name in ("centre", "reach"):
        tensor = tensors[name]
        buffer = design.get_buffer(name)
        is_sound = not bool(tensor.isnan().any()) if name == "reach" else bool(
            tensor.isfinite().all()
        )  # fmt: skip
        if tensor.dtype != torch.float64 or tensor.shape != buffer.shape or not is_sound:
            raise ValueError(f"its {name} must be a number for each of {len(buffer)} columns")
        buffer.copy_(tensor)
    return design

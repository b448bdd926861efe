"""What a table holds, what will be done with each of its columns, and what should be looked at.

Nothing here changes a table. A finding says what was seen, what it would do, and what settles it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.columns import (
    DECIMAL,
    Column,
    Remarks,
    decide_column,
    gathered_remarks,
    numbers_of,
)
from echelon.data.identifiers import identifier_reason
from echelon.data.kinds.categories import CATEGORY, names_of
from echelon.data.labels import Labels, typed_labels
from echelon.data.matching import fold, variants
from echelon.data.missing_codes import MISSING_CODES, emptied
from echelon.data.numerals import COMMA, IN_WORDS, POINT, currencies_of, decimal_sign

# What surveys write for "don't know" and "no answer" among answers on a small scale.
NO_ANSWER = (-99, -98, -9, -8, -1, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 9998, 9999)
FEW_ROWS = 10  # of a class

_SMALL_SCALE = 20  # different values beside those codes
_TELLS = 0.995  # share of the rows whose label a copy of the target gives away
_MOST_VALUES = 200
_EPOCH = np.datetime64("1970-01-01", "D")
_SAMPLE = 4000  # rows that show whether classes are in an order
_SHUFFLES = 200


@dataclass(frozen=True)
class ColumnCheck:
    """A column: what it is, what it holds, how much is missing, and what becomes of it."""

    name: str
    kind: str
    holds: str
    missing: float
    use: str


@dataclass(frozen=True)
class TableCheck:
    """All columns of a table, the rows of each class of its target, and findings in sentences."""

    rows: int
    columns: list[ColumnCheck]
    classes: dict[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    findings: list[str] = field(default_factory=list)

    def counts(self) -> str:
        """How many columns of each kind are used, in words."""
        used = [column.kind for column in self.columns if column.use == "used"]
        plural = {"category": "categories"}
        return ", ".join(
            f"{used.count(kind):,} {plural.get(kind, kind + 's') if used.count(kind) > 1 else kind}"
            for kind in dict.fromkeys(used)
        )


def check_table(
    frame: pd.DataFrame,
    *,
    target: str | None = None,
    classes: Sequence[str] = (),
    apart: Mapping[str, str] | None = None,
    keep_ids: bool = False,
    named: Mapping[str, str] | None = None,
) -> TableCheck:
    """Look at a table as a fit would read it.

    Parameters
    ----------
    frame : DataFrame
        Cells as they stand in the file.
    target : str, optional
        The column that holds the labels.
    classes : sequence of str
        All labels, the lowest first, where they were named.
    apart : mapping from str to str
        Columns that are no features, and what they are instead.
    keep_ids : bool
        Whether columns that look like ids are kept.
    named : mapping from str to str
        Columns that were named as texts or images, and which of these they are.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": ["1,5", "2,5"] * 20, "one": "x", "grade": [1, 2] * 20})
    >>> found = check_table(frame, target="grade")
    >>> [(column.name, column.kind, column.use) for column in found.columns]
    [('size', 'number', 'used'), ('one', 'category', 'says nothing: all cells are alike'),
     ('grade', 'label', 'the target')]
    >>> print(found.findings[0])
    column 'size' gives the label away: is it known before the label is? Otherwise --drop size
    """
    apart, named = dict(apart or {}), dict(named or {})
    findings: list[str] = []
    ranks: NDArray[np.int64] | None = None
    counted: dict[str, int] = {}
    unlabelled = 0
    if target is not None:
        apart[target] = "the target"
        of_target, counted, unlabelled, ranks = _check_target(frame[target], list(classes))
        findings += of_target
    decimal = frame.attrs.get(DECIMAL) or decimal_sign(
        frame.drop(columns=[*apart], errors="ignore")
    )
    columns: list[ColumnCheck] = []
    codes: dict[str, tuple[float, int]] = {}
    said = frame.attrs.get(MISSING_CODES, {})
    others: set[float] = set()  # such codes in columns where they may well be values
    seen: list[NDArray[np.float64]] = []
    with gathered_remarks() as remarks:
        for name in frame:
            cells = emptied(frame[name], said.get(name, ()))
            if name in apart or name in named:
                columns.append(_set_apart(name, cells, apart.get(name), named.get(name), target))
                continue
            reason = None if keep_ids else identifier_reason(str(name), cells)
            decided = decide_column(str(name), cells, remarks, decimal)
            values = _values(cells, decided)
            columns.append(_check_column(decided, values, reason))
            if reason is None:
                findings += _of_categories(decided)
                if decided.kind == "number":
                    findings += _of_currencies(decided, cells)
                    code = _no_answer(values)
                    if code is not None:
                        codes[decided.name] = code
                    else:
                        others |= set(np.array(NO_ANSWER)[np.isin(NO_ANSWER, values)].tolist())
                if ranks is not None:
                    findings += _gives_away(str(name), values, ranks)
                    seen.append(_numbers(values))
    findings += _codes_in_words(codes, others)
    findings += [Remarks(unread={key: remark}).sentence() for key, remark in remarks.unread.items()]
    findings += [Remarks(codes={key: remark}).sentence() for key, remark in remarks.codes.items()]
    if ranks is not None and seen:
        findings += _unordered(np.stack(seen, 1), ranks)
    return TableCheck(len(frame), columns, counted, unlabelled, findings)


# ---- columns -------------------------------------------------------------------------------------


def _values(cells: "pd.Series[Any]", decided: Column) -> NDArray[Any]:
    """The cells of a column as numbers, or as names of categories."""
    if decided.kind == CATEGORY:
        return names_of(cells)
    try:
        return numbers_of(cells, decided, Remarks())
    except ValueError:  # an infinity, which the fit refuses
        return np.full(len(cells), np.nan)


def _set_apart(
    name: str, cells: "pd.Series[Any]", use: str | None, kind: str | None, target: str | None
) -> ColumnCheck:
    counts = cells.map(str).where(cells.notna(), "").value_counts()
    missing = sum(int(rows) for cell, rows in counts.items() if not str(cell).strip()) / len(cells)
    what = "label" if name == target else kind or "apart"
    different = sum(bool(str(cell).strip()) for cell in counts.index)
    return ColumnCheck(str(name), what, f"{different:,} different", missing, use or "used")


def _check_column(decided: Column, values: NDArray[Any], reason: str | None) -> ColumnCheck:
    present = values[~pd.isna(values)]
    different = len(pd.unique(present))
    missing = 1 - len(present) / max(len(values), 1)
    if decided.kind == CATEGORY:
        counts = pd.Series(present, dtype=object).value_counts()
        holds = f"{different:,} different: {', '.join(map(_short, counts.index[:3]))}"
    elif len(present) and decided.kind == "date":
        low, high = ((_EPOCH + int(np.floor(day))) for day in (present.min(), present.max()))
        holds = f"{low} to {high}"
    else:
        holds = f"{present.min():.6g} to {present.max():.6g}" if len(present) else ""
    is_plain = decided.kind == "number" and decided.writing in ".," and _are_whole(present)
    if decided.writing in IN_WORDS and not is_plain:
        holds += f", {IN_WORDS[decided.writing]}"
    use = "used"
    if reason is not None:
        use = f"left out: {reason}"
    elif different == 0:
        use = "says nothing: all cells are empty"
    elif different == 1 and missing == 0:
        use = "says nothing: all cells are alike"
    return ColumnCheck(decided.name, decided.kind, holds, round(missing, 4), use)


def _are_whole(values: NDArray[Any]) -> bool:
    return bool((values == np.floor(values)).all())


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}..."


def _of_categories(decided: Column) -> Iterator[str]:
    groups = variants(list(decided.categories))
    if groups:
        example = next(iter(groups.values()))
        yield (
            f"column {decided.name!r} has categories that differ only by case or spaces, such as "
            f"{' and '.join(map(repr, example[:3]))}: they count as different"
        )


def _of_currencies(decided: Column, cells: "pd.Series[Any]") -> Iterator[str]:
    if decided.writing not in (POINT, COMMA):
        return
    signs = sorted(currencies_of(pd.unique(cells.to_numpy(dtype=object))))
    if len(signs) > 1:
        yield (
            f"column {decided.name!r} holds amounts in {', '.join(signs[:-1])} and {signs[-1]}, "
            f"whose numbers are taken as they stand: convert them to one currency"
        )


def _no_answer(values: NDArray[Any]) -> tuple[float, int] | None:
    """The code for no answer, and its rows, that stands far from values on a small scale."""
    present = values[~np.isnan(values)]
    different = np.unique(present) if len(present) else present
    if len(different) > _SMALL_SCALE + len(NO_ANSWER):
        return None
    others = different[~np.isin(different, NO_ANSWER)]
    if not 2 <= len(others) <= _SMALL_SCALE or not _are_whole(others):
        return None
    low, high = float(others.min()), float(others.max())
    for code in different[np.isin(different, NO_ANSWER)][::-1]:
        if code > high + max(2 * (high - low), 5) or code < low >= 0:
            return float(code), int((present == code).sum())
    return None


def _codes_in_words(codes: Mapping[str, tuple[float, int]], others: set[float]) -> Iterator[str]:
    """One sentence for each code, however many columns hold it.

    `others` are codes that other columns hold as values, so that each column must be named.
    """
    for code in sorted({value for value, _ in codes.values()}):
        names = [name for name, (value, _) in codes.items() if value == code]
        rows = sum(count for value, count in codes.values() if value == code)
        where = f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns"
        listed = "" if len(names) == 1 else f" ({', '.join(names[:6])}{', ..' * (len(names) > 6)})"
        by_column = ",".join(f"{name}={code:g}" for name in names)
        option = by_column if code in others and "," not in "".join(names) else f"{code:g}"
        yield (
            f"{where}{listed} hold{'s' * (len(names) == 1)} {code:g} in {rows:,} cells, far from "
            f"the other values: it looks like a code for no answer, and counts as a number; if it "
            f"is one, --missing-codes {option}"
        )


# ---- the target ----------------------------------------------------------------------------------


def _check_target(
    column: "pd.Series[Any]", classes: list[str]
) -> tuple[list[str], dict[str, int], int, NDArray[np.int64] | None]:
    """Findings, rows of each class, rows without a label, and ranks (n,) where these are known."""
    name = str(column.name)
    labels, named = typed_labels(column, classes or None)
    missing = labels.isna().to_numpy()
    present = labels[~missing]
    findings = []
    if missing.any():
        findings.append(
            f"{int(missing.sum()):,} rows have no label in {name!r} and are left out "
            f"(--missing-target error refuses them)"
        )
    if not len(present):
        return findings, {}, int(missing.sum()), None
    counts = present.value_counts()
    values = [*counts.index]
    twice = variants(values)
    if twice:
        members = next(iter(twice.values()))
        more = f" (and so do those of {len(twice) - 1} other classes)" if len(twice) > 1 else ""
        findings.append(
            f"the labels {' and '.join(map(repr, members))} differ only by case or spaces{more}: "
            f"--classes makes them one"
        )
    order = named
    if named is None:
        try:
            order = Labels.of(present).classes.tolist()
        except ValueError as error:
            suggestion = sorted({fold(str(value)) for value in values})
            is_text = all(isinstance(value, str) for value in values)
            with_commas = any("," in str(value) for value in values)
            shown = "@FILE, one a line" if with_commas else ",".join(suggestion[:8])
            findings.append(
                f"the labels are words, whose order is not known: name it with --classes, the "
                f"lowest first ({shown}, in the right order)"
                if is_text
                else str(error)
            )
    else:
        unknown = [value for value in values if value not in named]
        if unknown:
            rows = int(counts[unknown].sum())
            findings.append(
                f"{rows:,} rows have a label that is not among --classes, such as {unknown[0]!r}: "
                f"a fit refuses them; add it, or empty these labels"
            )
    listed = order if order is not None else values
    counted = {str(value): int(counts.get(value, 0)) for value in listed}
    few = {label: rows for label, rows in counted.items() if rows < FEW_ROWS}
    if few and (order is not None or not twice):
        shown = ", ".join(f"{label!r} ({rows})" for label, rows in list(few.items())[:5])
        findings.append(f"classes with few rows, which can hardly be learnt: {shown}")
    for code in NO_ANSWER:
        if order is not None and len(listed) > 2 and code in values:
            near = [
                value for value in values if not isinstance(value, str) and value not in NO_ANSWER
            ]
            if near and code > max(near) + 1:
                findings.append(
                    f"the label {code} in {int(counts[code]):,} rows looks like a code for no "
                    f"answer, and would be the highest class: if it is one, --missing-codes "
                    f"{code if ',' in name else f'{name}={code}'}"
                )
    if order is None:
        return findings, counted, int(missing.sum()), None
    ranks = pd.Index(order).get_indexer(
        pd.Index(labels.where(~missing, None).tolist(), dtype=object)
    )
    return findings, counted, int(missing.sum()), np.asarray(ranks, dtype=np.int64)


def _gives_away(name: str, values: NDArray[Any], ranks: NDArray[np.int64]) -> Iterator[str]:
    """A column from which the label can be read off: a copy of it, or what it was cut from."""
    known = ~pd.isna(values) & (ranks >= 0)
    if known.sum() < 20 or known.sum() < 0.5 * len(values):
        return
    codes, different = pd.factorize(values[known])
    kept = ranks[known]
    most = int(kept.max()) + 1
    common = np.bincount(kept).max() / len(kept)
    if common >= _TELLS:
        return
    if 2 <= len(different) <= min(_MOST_VALUES, len(kept) / 5):
        table = np.bincount(codes * most + kept, minlength=len(different) * most)
        told = table.reshape(len(different), most).max(1).sum() / len(kept)
        tells = told >= _TELLS
    elif values.dtype.kind == "f":
        order = np.argsort(values[known], kind="stable")
        changes = int((np.diff(kept[order]) != 0).sum())
        tells = changes <= 1.02 * (len(np.unique(kept)) - 1) + 1
    else:
        tells = False
    if tells:
        yield (
            f"column {name!r} gives the label away: is it known before the label is? Otherwise "
            f"--drop {name}"
        )


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind == "f":
        return values
    return pd.factorize(values)[0].astype(np.float64)


def _unordered(columns: NDArray[np.float64], ranks: NDArray[np.int64]) -> Iterator[str]:
    """Whether classes that are neighbours are no more alike than others, though they do differ.

    The centres of the classes are as far apart as the columns say. Along an order, the distance of
    two centres grows with the distance of their ranks; whether it does is seen beside shuffles.
    """
    rows = np.flatnonzero(ranks >= 0)
    generator = np.random.default_rng(0)
    if len(rows) > _SAMPLE:
        rows = generator.choice(rows, _SAMPLE, replace=False)
    kept = ranks[rows]
    classes = [value for value in np.unique(kept) if (kept == value).sum() >= FEW_ROWS]
    if len(classes) < 5:
        return
    values = columns[rows]
    spread = np.nanstd(values, 0)
    values = values[:, spread > 0]
    if not values.shape[1]:
        return
    values = (values - np.nanmean(values, 0)) / np.nanstd(values, 0)
    values = np.nan_to_num(values).clip(-4, 4)
    centres = np.stack([values[kept == value].mean(0) for value in classes])
    noise = np.sqrt([1 / (kept == value).sum() for value in classes])
    clear = (np.abs(centres) > 4 * noise[:, None]).any(0)
    if clear.sum() < 1 or np.abs(centres).max() < 0.3:
        return  # nothing tells the classes apart, so nothing tells their order
    apart = np.linalg.norm(centres[:, None, clear] - centres[None, :, clear], axis=-1)
    upper = np.triu_indices(len(classes), 1)

    def along(order: NDArray[Any]) -> float:
        steps = np.abs(order[:, None] - order[None, :])[upper]
        return float(np.corrcoef(apart[upper], steps)[0, 1])

    given = along(np.arange(len(classes)))
    shuffled = [along(generator.permutation(len(classes))) for _ in range(_SHUFFLES)]
    if np.mean([share >= given for share in shuffled]) > 0.3:
        yield (
            "the target looks unordered: neighbouring classes are no more alike than others, by "
            "what the columns say; is their order right, and do they have one?"
        )

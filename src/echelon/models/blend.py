"""Models that are mixtures of others: a blend of those that are named, and one that names them.

Every member is fitted once for each fold, without the rows of the fold, and judged on those. The
weights of the mixture minimise the ranked probability score of these curves, which no member has
seen the truth of; the curve of a new row is the mixture of the curves of all fits. So nothing is
fitted twice, and the members are means over the folds, which steadies them.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from echelon.curve import RankCurve
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.splits import folds as assign_folds
from echelon.data.splits import hold_out
from echelon.data.tables import RawTable, TableSchema
from echelon.evaluation import metrics
from echelon.models.base import CurveClassifier, Decision, tune_cutpoints
from echelon.models.document import (
    Described,
    describe_parameters,
    read_parameters,
    restore_member,
    typed,
)
from echelon.models.mixing import Score, mixture_weights
from echelon.models.table import MODELS, model_class

_MANY_ROWS = 12_000  # above which one subset is held out instead of folds
_HELD_OUT = 0.2
_MOST_HELD_OUT = 20_000  # rows
_LEAST = 1e-3  # weight, below which a member is left out
_FEW_ROWS = 8  # below which nothing can be held out
_PATIENT = 240.0  # seconds, from which on an ensemble of networks is tried on many rows, too
_TINY = np.log(np.finfo(np.float64).tiny)

Probabilities = NDArray[np.float64]


@dataclass
class Member:
    """A model of a blend: its fits, one for each fold, and what it counts for."""

    name: str
    fits: list[CurveClassifier] = field(default_factory=list)
    weight: float = 0.0
    seconds: float = 0.0

    @property
    def tables_only(self) -> bool:
        """Whether it reads numbers, dates and categories alone."""
        return MODELS[self.fits[0].kind].tables_only


class OrdinalBlend(CurveClassifier):
    """A mixture of models, whose weights minimise the ranked probability score of unseen rows.

    Parameters
    ----------
    models : sequence of models, or mapping from name to model, optional
        Any models of echelon; cloned, not fitted themselves.
    folds : int
        Into how many subsets rows are divided, each of which is predicted by fits without it.
        Above 12,000 rows one subset is held out instead.
    score : {"rps", "log"}
        What the weights minimise: the ranked probability score, or the log score.
    n_models : int
        How many fits of each model, with seeds of their own, there are in a fold.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
    random_state : int, RandomState or None
    verbose : int
        0 is silent, 1 says what is fitted.

    Attributes
    ----------
    members_ : list of Member
        Those that have a weight.
    leaderboard_ : DataFrame
        Every model that was tried: its score on rows it had not seen, its weight, its seconds.

    Examples
    --------
    >>> from echelon import CumulativeLinkModel, OrdinalBoosting
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(300, num_classes=3)
    >>> blend = OrdinalBlend([CumulativeLinkModel(), OrdinalBoosting()], folds=2, random_state=0)
    >>> blend.fit(data.features, data.ranks).leaderboard_["weight"].sum().round(6)
    np.float64(1.0)
    """

    kind: ClassVar[str] = "blend"
    of_the_machine: ClassVar[tuple[str, ...]] = ("models", "random_state", "verbose", "time_limit")
    validation_fraction = 0.0  # folds are what it holds out
    time_limit: float | None = None

    def __init__(
        self,
        models: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        folds: int = 5,
        score: Score = "rps",
        n_models: int = 1,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.models = models
        self.folds = folds
        self.score = score
        self.n_models = n_models
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------------------

    def candidates(self, rows: Rows, num_classes: int) -> dict[str, CurveClassifier]:
        """The unfitted members by name, the quickest first."""
        if not self.models:
            raise ValueError(
                "a blend needs models: OrdinalBlend([OrdinalBoosting(), CumulativeLinkModel()])"
            )
        if isinstance(self.models, Mapping):
            return dict(self.models)
        named: dict[str, CurveClassifier] = {}
        for model in self.models:
            name, number = model.kind, 2
            while name in named:
                name, number = f"{model.kind} {number}", number + 1
            named[name] = model
        return named

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit every member in every fold, and weigh them by their curves of unseen rows."""
        started = time.monotonic()
        candidates = self.candidates(rows, labels.num_classes)
        schedule = _Schedule(started, self.time_limit, self.verbose)
        inside = self._divisions(rows, validation, seed)
        outside: dict[str, list[Probabilities]] = {name: [] for name in candidates}
        members = {name: Member(name) for name in candidates}
        places: list[Any] = []
        try:
            for fold, (training, held) in enumerate(inside):
                if fold and not schedule.allows(fold, len(inside)):
                    break
                made: dict[str, tuple[list[CurveClassifier], Probabilities, float]] = {}
                for name, model in candidates.items():
                    if fold and not members[name].fits:
                        continue
                    limit = schedule.share(name, fold, len(inside), list(candidates))
                    if limit is not None and limit <= 0:
                        continue
                    begun = time.monotonic()
                    fits = self._fit_member(model, training, labels, seed + fold, limit)
                    if fits is None:
                        continue
                    curves = _mixture([_curve(fit, held) for fit in fits])
                    made[name] = fits, _probabilities(curves), time.monotonic() - begun
                    schedule.note(name, made[name][2])
                if fold and set(made) != {name for name in members if members[name].fits}:
                    break  # a fold counts for all members or for none
                for name, (fits, probabilities, seconds) in made.items():
                    members[name].fits += fits
                    members[name].seconds += seconds
                    outside[name].append(probabilities)
                places.append(held)
        except KeyboardInterrupt:
            if not places:
                raise
            schedule.interrupted = True
        self.out_of_time_ = schedule.was_short or schedule.interrupted
        fitted = [member for member in members.values() if member.fits]
        if not fitted:
            raise ValueError(
                "no model could be fitted within the time limit; give more time, or name a model"
            )
        ranks = np.concatenate([held.ranks for held in places])
        weight = None
        if rows.weight is not None:
            weight = np.concatenate(
                [np.ones(len(held)) if held.weight is None else held.weight for held in places]
            )
        stacked = np.stack([np.concatenate(outside[member.name]) for member in fitted])
        if weight is not None and not weight.any():
            weight = None
        shares = mixture_weights(stacked, ranks, weight=weight, score=self.score)
        for member, share in zip(fitted, shares, strict=True):
            member.weight = float(share)
        self.leaderboard_ = _leaderboard(fitted, stacked, shares, ranks, weight)
        kept = [member for member in fitted if member.weight >= _LEAST]
        total = sum(member.weight for member in kept)
        for member in kept:
            member.weight /= total
        self.members_ = kept
        if validation is None and len(places) == 1 and len(rows) > _MANY_ROWS:
            self._fit_again(candidates, rows, labels, seed, schedule)
        mixed = np.einsum("m,mnk->nk", shares, stacked)
        self._unseen = ranks, mixed, weight
        if self.verbose:
            print(self.leaderboard_.to_string(index=False), file=sys.stderr)

    def _fit_again(
        self,
        candidates: Mapping[str, CurveClassifier],
        rows: Rows,
        labels: Labels,
        seed: int,
        schedule: "_Schedule",
    ) -> None:
        """Fit the members to all rows, where one subset was held out and there is time left."""
        for member in self.members_:
            took = schedule.took[member.name]
            if schedule.limit is not None and 1.3 * took > schedule.left:
                self.out_of_time_ = True
                continue
            try:
                fits = self._fit_member(candidates[member.name], rows, labels, seed, None)
            except KeyboardInterrupt:
                self.out_of_time_ = True
                return
            assert fits is not None
            member.fits = fits

    def cutpoints_of(self, validation: Rows | None) -> NDArray[np.float64] | None:
        """Tuned on the curves of unseen rows."""
        ranks, mixed, weight = self.__dict__.pop("_unseen")
        if len(ranks) < _FEW_ROWS:
            return None
        return tune_cutpoints(ranks, mixed, weight)

    def _divisions(self, rows: Rows, validation: Rows | None, seed: int) -> list[tuple[Rows, Rows]]:
        """Pairs of rows to fit and rows to judge by."""
        if validation is not None:
            return [(rows, validation)]
        if len(rows) < _FEW_ROWS:
            return [(rows, rows)]  # nothing can be held out, and equal weights are what comes out
        generator = np.random.default_rng(seed)
        if len(rows) > _MANY_ROWS:
            share = min(_HELD_OUT, _MOST_HELD_OUT / len(rows))
            held = hold_out(rows.table, rows.ranks, share, groups=rows.groups, generator=generator)
            return [(rows.select(~held), rows.select(held))]
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2; got {self.folds}")
        count = min(self.folds, max(2, len(rows) // 4))
        while True:
            try:
                number = assign_folds(rows.table, count, groups=rows.groups, generator=generator)
                break
            except ValueError:  # fewer groups or different rows than folds
                if count == 2:
                    return [(rows, rows)]
                count -= 1
        return [(rows.select(number != fold), rows.select(number == fold)) for fold in range(count)]

    def _fit_member(
        self,
        model: CurveClassifier,
        rows: Rows,
        labels: Labels,
        seed: int,
        limit: float | None,
    ) -> list[CurveClassifier] | None:
        """Fits of one model, or None where the rows hold nothing that it reads."""
        seen = _seen_rows(rows, model)
        if seen is None:
            return None
        fits = []
        for number in range(self.n_models):
            fit = clone(model).set_params(classes=labels.classes.tolist())
            if limit is not None and "time_limit" in fit.get_params(deep=False):
                fit.set_params(time_limit=limit / self.n_models)
            fits.append(fit.fit_read(seen, None, labels, seed + 1000 * number))
        return fits

    # ---- predicting --------------------------------------------------------------------------

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The mixture of the curves of all members."""
        logs = []
        for member in self.members_:
            each = [_curve_of_table(fit, table) for fit in member.fits]
            share = np.log(member.weight / len(each))
            logs += [curve.log_probabilities.double().cpu() + share for curve in each]
        mixed = torch.logsumexp(torch.stack(logs), 0).clamp(min=_TINY)
        yield RankCurve(torch.log_softmax(mixed, -1))

    def outcome(self) -> dict[str, Any]:
        """The members with their weights and scores."""
        return {
            "leaderboard": self.leaderboard_.to_dict(orient="records"),
            "out_of_time": self.out_of_time_,
        }

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """The members, each with what its own kind needs."""
        tensors, described = {}, []
        for place, member in enumerate(self.members_):
            fits = []
            for number, fit in enumerate(member.fits):
                own = fit.describe_model()
                fits.append({"parameters": describe_parameters(fit), "model": own.document})
                for name, tensor in own.tensors.items():
                    tensors[f"{place}.{number}.{name}"] = tensor
            described.append(
                {
                    "name": member.name,
                    "kind": member.fits[0].kind,
                    "weight": member.weight,
                    "seconds": member.seconds,
                    "fits": fits,
                }
            )
        document = {
            "members": described,
            "leaderboard": self.leaderboard_.to_dict(orient="records"),
            "out_of_time": self.out_of_time_,
        }
        return Described(document, tensors)

    def rebuild_model(self, described: Described) -> None:
        """The members that a file describes, none of which is trusted."""
        document = described.document
        members = []
        taken = 0
        for place, said in enumerate(typed(document["members"], list, "members")):
            kind = typed(typed(said, dict, "member")["kind"], str, "kind of a member")
            if (
                kind not in MODELS
                or not MODELS[kind].saves
                or issubclass(model_class(kind), OrdinalBlend)
            ):
                raise ValueError(f"a member cannot be of the kind {kind!r}")
            weight = said["weight"]
            if type(weight) not in (int, float) or not 0 < weight <= 1:
                raise ValueError("the weight of a member must be above 0 and at most 1")
            member = Member(typed(said["name"], str, "name"), weight=float(weight))
            for number, own in enumerate(typed(said["fits"], list, "fits")):
                prefix = f"{place}.{number}."
                tensors = {
                    name.removeprefix(prefix): tensor
                    for name, tensor in described.tensors.items()
                    if name.startswith(prefix)
                }
                taken += len(tensors)
                fit = model_class(kind)(**read_parameters(own["parameters"], model_class(kind)))
                schema = _seen_schema(self.schema_, fit)
                if schema is None:
                    raise ValueError("a member reads columns that the model does not have")
                restore_member(fit, self.labels_, schema, Described(own["model"], tensors))
                member.fits.append(fit)
            if not member.fits:
                raise ValueError("a member has no fits")
            members.append(member)
        if not members or taken != len(described.tensors):
            raise ValueError("its members and its tensors do not belong together")
        if abs(sum(member.weight for member in members) - 1) > 1e-6:
            raise ValueError("the weights of its members must sum to 1")
        self.members_ = members
        board = typed(document["leaderboard"], list, "leaderboard")
        self.leaderboard_ = pd.DataFrame([typed(row, dict, "member") for row in board])
        self.out_of_time_ = typed(document["out_of_time"], bool, "out_of_time")


class AutoOrdinal(OrdinalBlend):
    """What to take when nothing is known: several models, fitted within a time limit and blended.

    The members are chosen by what the rows hold and how many they are: the exact linear model,
    boosted trees, and an ensemble of networks on tables; networks where there are texts or images.

    Parameters
    ----------
    time_limit : float
        Seconds that the fit may take. Where it decides what is fitted, `out_of_time_` says so;
        otherwise the same rows and seed give the same model.
    folds, score, classes, decision, class_weight, random_state, verbose
        As for :class:`OrdinalBlend`.
    text, image : str, optional
        The column that holds texts, and the one that holds images.
    device : str
        Where networks are trained, as in :class:`echelon.OrdinalClassifier`.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(200, num_classes=3)
    >>> model = AutoOrdinal(time_limit=5, random_state=0).fit(data.features, data.ranks)
    >>> model.predict_proba(data.features[:2]).shape
    (2, 3)
    """

    kind: ClassVar[str] = "auto"
    of_the_machine: ClassVar[tuple[str, ...]] = ("device", "random_state", "time_limit", "verbose")

    def __init__(
        self,
        time_limit: float | None = 60.0,
        *,
        folds: int = 5,
        score: Score = "rps",
        text: str | None = None,
        image: str | None = None,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.time_limit = time_limit
        self.folds = folds
        self.score = score
        self.text = text
        self.image = image
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    models: None = None
    n_models = 1

    def read_schema(self, X: Any) -> TableSchema:  # noqa: N803
        """What the columns of training rows are."""
        return TableSchema.of(X, text=self.text, image=self.image)

    def candidates(self, rows: Rows, num_classes: int) -> dict[str, CurveClassifier]:
        """Models for such rows, the quickest first."""
        named: dict[str, CurveClassifier] = {}
        if "table" in rows.schema.parts:
            named["cumulative_link"] = model_class("cumulative_link")(ridge=1.0)
            named["boosting"] = model_class("boosting")()
        network = model_class("network")
        # Every fold is a fit without some rows already, so that none is fitted twice.
        once = {"refit": False}
        if rows.table.is_plain:
            is_patient = self.time_limit is None or self.time_limit >= _PATIENT
            if len(rows) > _MANY_ROWS:
                named["corn"] = network("corn", device=self.device, settings=once)
            if len(rows) <= _MANY_ROWS or is_patient:
                named["corn/tabm"] = network("corn", "tabm", device=self.device, settings=once)
        else:
            named["corn"] = network("corn", text=self.text, image=self.image, device=self.device)
        return named


@dataclass
class _Schedule:
    """Who may take how long."""

    started: float
    limit: float | None
    verbose: int
    took: dict[str, float] = field(default_factory=dict)
    was_short: bool = False
    interrupted: bool = False

    @property
    def left(self) -> float:
        assert self.limit is not None
        return self.limit - (time.monotonic() - self.started)

    def allows(self, fold: int, folds: int) -> bool:
        """Whether another fold of all members can be fitted in what is left."""
        if self.limit is None or sum(self.took.values()) <= self.left:
            return True
        self.was_short = True
        return False

    def share(self, name: str, fold: int, folds: int, names: list[str]) -> float | None:
        """The seconds that a fit may take, None for any; 0 for none."""
        if self.limit is None:
            return None
        if fold:  # what it took the first time, and a little more
            return max(1.5 * self.took.get(name, 0.0), 1.0)
        # The last, slowest member gets what the others leave of this fold's share.
        left = max(self.left, 0.0)
        later = len(names) - names.index(name) - 1
        spent = sum(self.took.values())
        budget = (left + spent) / folds - spent
        if later:
            return max(budget / 2, 0.5)
        if budget < 1.0 and self.took:
            self.was_short = True
            return 0.0
        return max(budget, 1.0)

    def note(self, name: str, seconds: float) -> None:
        """Remember what a fit took."""
        self.took[name] = seconds
        if self.verbose:
            print(f"{name}: {seconds:.1f} s", file=sys.stderr)


# ---- rows and curves of members ------------------------------------------------------------------


def _seen_schema(schema: TableSchema, model: CurveClassifier) -> TableSchema | None:
    """The columns that a model reads; None where there are none."""
    if not MODELS[model.kind].tables_only or schema.parts == ("table",):
        return schema
    if "table" not in schema.parts:
        return None
    names = {column.name for column in (*schema.numeric, *schema.categorical)}
    kept = tuple(column for column in schema.columns if column.name in names)
    return TableSchema(kept, schema.named)


def _seen_rows(rows: Rows, model: CurveClassifier) -> Rows | None:
    schema = _seen_schema(rows.schema, model)
    if schema is None or schema is rows.schema:
        return None if schema is None else rows
    return Rows(schema, rows.table.plain(), rows.ranks, rows.weight, rows.groups)


def _curve(fit: CurveClassifier, rows: Rows) -> RankCurve:
    return _curve_of_table(fit, rows.table)


def _curve_of_table(fit: CurveClassifier, table: RawTable) -> RankCurve:
    seen = table.plain() if MODELS[fit.kind].tables_only else table
    return RankCurve.concatenate(list(fit.curves_of_rows(seen)))


def _mixture(curves: list[RankCurve]) -> RankCurve:
    """The mean of curves of the same rows."""
    if len(curves) == 1:
        return curves[0]
    logs = torch.stack([curve.log_probabilities.double().cpu() for curve in curves], -2)
    return RankCurve(logs).mixture()


def _probabilities(curve: RankCurve) -> Probabilities:
    probabilities: Probabilities = curve.probabilities.double().cpu().numpy()
    return probabilities


def _leaderboard(
    members: list[Member],
    stacked: Probabilities,
    shares: NDArray[np.float64],
    ranks: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
) -> pd.DataFrame:
    """The scores of every member, and of the blend, on rows that they had not seen."""
    rows = []
    for member, probabilities in zip(members, stacked, strict=True):
        rows.append([member.name, member.weight, member.seconds, len(member.fits), probabilities])
    board = pd.DataFrame(
        {
            "member": [row[0] for row in rows],
            "weight": [row[1] for row in rows],
            "rps": [_rps(ranks, row[4], weight) for row in rows],
            "mae": [_mae(ranks, row[4], weight) for row in rows],
            "fits": [row[3] for row in rows],
            "seconds": [round(row[2], 2) for row in rows],
        }
    )
    ordered: pd.DataFrame = board.sort_values("rps", ignore_index=True)
    return ordered


def _rps(ranks: Any, probabilities: Probabilities, weight: Any) -> float:
    return metrics.ranked_probability_score(ranks, probabilities, sample_weight=weight)


def _mae(ranks: Any, probabilities: Probabilities, weight: Any) -> float:
    median = RankCurve(torch.from_numpy(probabilities).log()).median().numpy()
    return metrics.mae(ranks, median, sample_weight=weight)

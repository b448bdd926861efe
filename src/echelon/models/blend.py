"""Models that are mixtures of others: a blend of those that are named, and one that names them.

Every member is fitted once for each fold, without the rows of the fold, and judged on those. The
weights of the mixture minimise the ranked probability score of these curves, which no member has
seen the truth of; the curve of a new row is the mixture of the curves of all fits. So nothing is
fitted twice, and the members are means over the folds, which steadies them.

Where rows are many, one subset is held out instead, and the members are fitted again, to all rows,
as far as there is time.
"""

import copy
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from echelon.curve import RankCurve
from echelon.data.kinds.base import Encoding
from echelon.data.labels import Labels
from echelon.data.rows import Rows, divide, hold_validation
from echelon.data.schema import RawTable, TableSchema
from echelon.data.splits import count_units
from echelon.data.splits import folds as assign_folds
from echelon.evaluation import metrics
from echelon.models.base import CurveClassifier
from echelon.models.document import (
    Described,
    describe_parameters,
    read_parameters,
    restore_member,
    typed,
)
from echelon.models.graph import Graph
from echelon.models.mixing import Score, mixture_weights
from echelon.models.predicting import Decision, Unseen
from echelon.models.schedule import Schedule
from echelon.models.table import MODELS, model_class
from echelon.networks.table import FEW_ROWS
from echelon.processes import world_size
from echelon.spaces import OneOf, Space

_MANY_ROWS = 12_000  # above which one subset is held out instead of folds
_HELD_OUT = 0.2
_MOST_HELD_OUT = 20_000  # rows
_FITS_OF_ALL = 2  # of each member, where one subset is held out: without it, and with all rows
_LEAST = 1e-3  # weight, below which a member is left out
_FEW_ROWS = 8  # below which nothing can be held out
_PATIENT = 240.0  # seconds, from which on an ensemble of networks is tried on many rows, too
# Rows that a model can be fitted to for each second of a limit, with something to spare; more of
# them are not read. (A network ends when its time does, whatever the number of rows.)
_ROWS_A_SECOND = {"cumulative_link": 5000, "boosting": 2500}
_TINY = np.log(np.finfo(np.float64).tiny)

Probabilities = NDArray[np.float64]


@dataclass
class Member:
    """A model of a blend: its fits, one for each fold, and what it counts for.

    While it is fitted, `curves` are the probabilities of the unseen rows of each fold.
    """

    name: str
    model: CurveClassifier
    fits: list[CurveClassifier] = field(default_factory=list)
    weight: float = 0.0
    seconds: float = 0.0
    curves: list[Probabilities] = field(default_factory=list, repr=False)


class _Said(NamedTuple):
    """What all members said of rows that they had not seen, (members, n, K), and the truth."""

    names: list[str]
    curves: Probabilities
    ranks: NDArray[np.int64]
    weight: NDArray[np.float64] | None

    @classmethod
    def of(cls, folds: list[Rows], members: list[Member]) -> "_Said":
        weights = [np.ones(len(rows)) if rows.weight is None else rows.weight for rows in folds]
        weight = np.concatenate(weights)
        return cls(
            [member.name for member in members],
            np.stack([np.concatenate(member.curves) for member in members]),
            np.concatenate([rows.ranks for rows in folds]),
            None if all(rows.weight is None for rows in folds) or not weight.any() else weight,
        )


class OrdinalBlend(CurveClassifier):
    """A mixture of models, whose weights minimise the ranked probability score of unseen rows.

    Parameters
    ----------
    models : sequence of models, or mapping from name to model, optional
        Any models of echelon; cloned, not fitted themselves, unless they are `prefitted`.
    folds : int
        Into how many subsets rows are divided, each of which is predicted by fits without it.
        Above 12,000 rows one subset is held out instead.
    criterion : {"rps", "log"}
        What the weights minimise: the ranked probability score, or the log score.
    n_models : int
        How many fits of each model, with seeds of their own, there are in a fold.
    prefitted : bool
        Whether the models were fitted before, on rows with the same columns. They are then kept as
        they are, and all rows of a fit, which they must not have seen, only decide the weights.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        What the rows of each class count for; "balanced" lets every class count alike.
    random_state : int, RandomState or None
        The seed of everything random in the fit; None draws another one every time.
    verbose : int
        0 is silent, 1 says what is fitted.

    Attributes
    ----------
    members_ : list of Member
        The fitted models that have a weight in the blend.
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
        criterion: Score = "rps",
        n_models: int = 1,
        prefitted: bool = False,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.models = models
        self.folds = folds
        self.criterion = criterion
        self.n_models = n_models
        self.prefitted = prefitted
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------------------

    def candidates(self, rows: Rows, num_classes: int) -> dict[str, CurveClassifier]:
        """The unfitted members by name, the quickest first."""
        return self._named_models()

    def _named_models(self) -> dict[str, CurveClassifier]:
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

    def most_rows(self, name: str) -> int | None:
        """How many rows a member is fitted to; None for all."""
        return None

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit every member in every fold, and weigh them by their curves of unseen rows."""
        from echelon.training.progress import fit_bar

        if world_size() > 1:
            raise ValueError(
                f"{type(self).__name__} is fitted in one process, and this is one of "
                f"{world_size()}: start it alone, or fit a network"
            )
        candidates = self.candidates(rows, labels.num_classes)
        if self.prefitted:
            self._weigh_fitted(candidates, rows, labels)
            return
        divisions = self._divisions(rows, validation, seed)
        # Of a single division the members are fitted again later, and until then not to all rows.
        is_single = validation is None and len(divisions) == 1 and divisions[0][1] is not None
        schedule = Schedule(self.time_limit, _FITS_OF_ALL if is_single else len(divisions))
        members = [Member(name, model) for name, model in candidates.items()]
        unseen: list[Rows] = []
        self.out_of_time_ = False
        with fit_bar(len(divisions) * len(members), shown=bool(self.verbose)) as report:

            def announce(member: Member) -> None:
                if report is not None:
                    done = sum(len(each.curves) for each in members)
                    left = schedule.expected(len(divisions) - done / len(members))
                    report(done, f"{member.name}, fold {len(member.curves) + 1}", left)

            try:
                for fold, (training, held) in enumerate(divisions):
                    if fold and not schedule.allows_fold():
                        break
                    if held is not None:
                        unseen.append(held)
                    self._fit_fold(
                        members, training, held, labels, seed + fold, schedule, announce,
                        once=is_single,
                    )  # fmt: skip
                    members = [member for member in members if len(member.curves) > fold]
            except KeyboardInterrupt:
                if not any(member.curves for member in members):
                    raise
                self.out_of_time_ = True
        # An interruption may have come between two members, and a fold counts for all or for none.
        done = min((len(member.curves) for member in members if member.curves), default=0)
        members = [member for member in members if len(member.curves) >= done > 0]
        if not members:
            raise ValueError(
                "no model could be fitted within the time limit; give more time, or name a model"
            )
        for member in members:
            del member.fits[done * self.n_models :], member.curves[done:]
        self._said = _Said.of(unseen[:done], members) if unseen else None
        self._weigh(members)
        if is_single:
            self._fit_all_rows(rows, labels, seed, schedule)
        self.out_of_time_ = self.out_of_time_ or schedule.was_short
        for member in members:  # of the curves nothing but the mixture is needed from here on
            member.curves.clear()

    def read_schema(self, X: Any) -> TableSchema:  # noqa: N803
        """What the columns of training rows are: of fitted models, what those take them for."""
        if not self.prefitted:
            return super().read_schema(X)
        fitted = list(self._named_models().values())
        for model in fitted:
            if not hasattr(model, "labels_"):
                raise ValueError(
                    f"prefitted=True needs fitted models; this {type(model).__name__} is not: fit "
                    f"it first (a clone of a blend has lost its fits), or leave prefitted out"
                )
        schema: TableSchema = max((model.schema_ for model in fitted), key=lambda s: len(s.columns))
        for model in fitted:
            seen = _seen_schema(schema, model)
            if seen is None or seen.columns != model.schema_.columns:
                raise ValueError(
                    f"fitted models of a blend must read the same columns in the same way; "
                    f"{type(model).__name__} reads others, or knows other categories: fit them on "
                    f"the same rows"
                )
        return schema

    def _weigh_fitted(
        self, candidates: Mapping[str, CurveClassifier], rows: Rows, labels: Labels
    ) -> None:
        """Weigh members that were fitted before by their curves of rows that they have not seen."""
        members = []
        for name, model in candidates.items():
            if model.labels_.classes.tolist() != labels.classes.tolist():
                raise ValueError(
                    f"{name} knows the classes {model.labels_.classes.tolist()}, and the rows have "
                    f"{labels.classes.tolist()}; pass classes= as the models have them"
                )
            if model.calibration_ is not None:
                raise ValueError(
                    f"{name} was calibrated, which a member of a blend must not be; fit it without "
                    f"and calibrate the blend"
                )
            curves = [_probabilities(model, rows.table)]
            members.append(Member(name, model, fits=[model], curves=curves))
        self._said = _Said.of([rows], members)
        self._weigh(members)
        self.out_of_time_ = False
        for member in members:
            member.curves.clear()

    def _fit_fold(
        self,
        members: list[Member],
        training: Rows,
        held: Rows | None,
        labels: Labels,
        seed: int,
        schedule: Schedule,
        announce: Callable[[Member], None],
        *,
        once: bool,
    ) -> None:
        """Fit the members that there is time for, and let them predict what they did not see."""
        judged = training if held is None else held
        for member in members:
            announce(member)
            limit = schedule.seconds(member.name, is_last=member is members[-1])
            begun = time.monotonic()
            fits = None
            if limit != 0:
                some = _sample(training, self.most_rows(member.name), seed)
                fits = self._fits(member.model, some, labels, seed, limit, once=once)
            if fits is None:
                continue
            curves = _mixed([_probabilities(fit, judged.table) for fit in fits])
            schedule.took[member.name] = time.monotonic() - begun
            member.fits += fits
            member.curves.append(curves)
            member.seconds += schedule.took[member.name]

    def _weigh(self, members: list[Member]) -> None:
        """Give each member its weight, and keep those that have one."""
        shares = np.full(len(members), 1 / len(members))
        if self._said is not None:
            shares = mixture_weights(
                self._said.curves,
                self._said.ranks,
                weight=self._said.weight,
                score=self.criterion,
            )
        for member, share in zip(members, shares, strict=True):
            member.weight = float(share)
        self.leaderboard_ = _leaderboard(members, self._said)
        self.members_ = [member for member in members if member.weight >= _LEAST]
        total = sum(member.weight for member in self.members_)
        for member in self.members_:
            member.weight /= total
        if self.verbose:
            print(self.leaderboard_.to_string(index=False), file=sys.stderr)

    def _fit_all_rows(self, rows: Rows, labels: Labels, seed: int, schedule: Schedule) -> None:
        """Fit the members to all rows, where one subset was held out and there is time left."""
        try:
            for member in self.members_:
                most = self.most_rows(member.name)
                is_whole = most is None or most >= len(rows)
                seen = _seen_rows(rows, member.model) if is_whole else None
                if seen is not None and schedule.allows(member.name):
                    again = [copy.copy(fit) for fit in member.fits]
                    for fit in again:
                        fit.fit_again(seen, labels, seed)
                    member.fits = again
        except KeyboardInterrupt:
            self.out_of_time_ = True

    def unseen_predictions(self, validation: Rows | None) -> Unseen | None:
        """The mixture of what the members said of rows that they had not seen."""
        said = self.__dict__.pop("_said")  # which nobody needs after this
        if said is None:
            return None
        by_name = {member.name: member.weight for member in self.members_}
        shares = np.array([by_name.get(name, 0.0) for name in said.names])
        return Unseen(said.ranks, np.einsum("m,mnk->nk", shares, said.curves), said.weight)

    def _divisions(
        self, rows: Rows, validation: Rows | None, seed: int
    ) -> list[tuple[Rows, Rows | None]]:
        """Pairs of rows to fit and rows to judge by; None where nothing can be held out."""
        if validation is not None:
            return [(rows, validation)]
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2; got {self.folds}")
        most = count_units(rows.table, rows.groups)
        count = min(self.folds, max(2, len(rows) // 4), most)
        if len(rows) < _FEW_ROWS or count < 2:
            return [(rows, None)]
        # Texts and images take long, and one network of them is mostly all there is to weigh.
        if len(rows) > _MANY_ROWS or not rows.table.is_plain:
            share = min(_HELD_OUT, _MOST_HELD_OUT / len(rows))
            held, rest = divide(rows, [share], seed)
            return [(rows.select(rest), rows.select(held))]
        generator = np.random.default_rng(seed)
        number = assign_folds(rows.table, count, groups=rows.groups, generator=generator)
        return [(rows.select(number != fold), rows.select(number == fold)) for fold in range(count)]

    def _fits(
        self,
        model: CurveClassifier,
        rows: Rows,
        labels: Labels,
        seed: int,
        limit: float | None,
        *,
        once: bool,
    ) -> list[CurveClassifier] | None:
        """Fits of one model, or None where the rows hold nothing that it reads.

        With `once` they do not learn from the rows that they hold out themselves.
        """
        seen = _seen_rows(rows, model)
        if seen is None:
            return None
        can_be_divided = len(seen) > _MANY_ROWS or count_units(seen.table, seen.groups) > 1
        fits = []
        for number in range(self.n_models):
            fit = clone(model).set_params(classes=labels.classes.tolist())
            if not can_be_divided:
                fit.set_params(validation_fraction=0.0)
            if limit is not None and "time_limit" in fit.get_params(deep=False):
                fit.set_params(time_limit=limit / self.n_models)
            training, held = seen, None
            if once and fit.validation_fraction:
                training, held = hold_validation(
                    seen, fit.validation_fraction, seed + 1000 * number
                )
            fits.append(fit.fit_read(training, held, labels, seed + 1000 * number))
        return fits

    # ---- predicting --------------------------------------------------------------------------

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The mixture of the curves of all members."""
        logs = []
        for member in self.members_:
            share = np.log(member.weight / len(member.fits))
            for fit in member.fits:
                curves = list(fit.curves_of_rows(_seen_table(table, fit)))
                logs.append(RankCurve.concatenate(curves).log_probabilities.double().cpu() + share)
        mixed = torch.logsumexp(torch.stack(logs), 0).clamp(min=_TINY)
        yield RankCurve(torch.log_softmax(mixed, -1))

    def add_to_graph(self, graph: Graph) -> str:
        """The graphs of all members, and the logarithm of the mean of what they give."""
        lowest, first = graph.constant(np.float64(_TINY)), graph.constant(np.array([0]))
        logs = []
        for member in self.members_:
            share = graph.constant(np.log(member.weight / len(member.fits)))
            for fit in member.fits:
                of_fit = graph.node("Max", graph.as_double(fit.add_to_graph(graph)), lowest)
                logs.append(graph.node("Unsqueeze", graph.node("Add", of_fit, share), first))
        stacked = graph.node("Concat", *logs, axis=0)
        mixed = graph.node("ReduceLogSumExp", stacked, first, keepdims=0)
        return graph.node("LogSoftmax", mixed, axis=-1)

    @property
    def encodings(self) -> Mapping[str, Encoding]:
        """How texts and images are encoded, which must be the same for all members."""
        encodings: dict[str, Encoding] = {}
        for member in self.members_:
            for fit in member.fits:
                for kind, encoding in fit.encodings.items():
                    first = encodings.setdefault(kind, encoding)
                    if first.describe() != encoding.describe():
                        raise ValueError(
                            f"the members of the blend read {kind}s in ways of their own, so that "
                            f"no one input of a graph can serve them all; export a single "
                            f"OrdinalClassifier instead"
                        )
        return encodings

    def outcome(self) -> dict[str, Any]:
        """The members with their weights and scores."""
        return {
            "leaderboard": self._board(),
            "out_of_time": self.out_of_time_,
        }

    def _board(self) -> list[dict[str, Any]]:
        """The leaderboard as values of JSON: None for scores of rows that there were not."""
        board = self.leaderboard_.to_dict(orient="records")
        return [{str(k): None if v != v else v for k, v in row.items()} for row in board]

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """The members, each with what its own kind needs."""
        tensors, described = {}, []
        for place, member in enumerate(self.members_):
            fits = []
            for number, fit in enumerate(member.fits):
                of_fit = fit.describe_model()
                fits.append({"parameters": describe_parameters(fit), "model": of_fit.document})
                for name, tensor in of_fit.tensors.items():
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
            "leaderboard": self._board(),
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
            member = Member(
                typed(said["name"], str, "name"), model_class(kind)(), weight=float(weight)
            )
            for number, of_fit in enumerate(typed(said["fits"], list, "fits")):
                prefix = f"{place}.{number}."
                tensors = {
                    name.removeprefix(prefix): tensor
                    for name, tensor in described.tensors.items()
                    if name.startswith(prefix)
                }
                taken += len(tensors)
                fit = model_class(kind)(**read_parameters(of_fit["parameters"], model_class(kind)))
                schema = _seen_schema(self.schema_, fit)
                if schema is None:
                    raise ValueError("a member reads columns that the model does not have")
                restore_member(fit, self.labels_, schema, Described(of_fit["model"], tensors))
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
        rows = [typed(row, dict, "member") for row in board]
        self.leaderboard_ = pd.DataFrame(
            [{k: np.nan if v is None else v for k, v in row.items()} for row in rows]
        )
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
    folds, criterion, classes, decision, class_weight, random_state, verbose
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
    space: ClassVar[Space] = {"folds": OneOf((3, 5, 8)), "criterion": OneOf(("rps", "log"))}
    of_the_machine: ClassVar[tuple[str, ...]] = ("device", "random_state", "time_limit", "verbose")

    def __init__(
        self,
        time_limit: float | None = 60.0,
        *,
        folds: int = 5,
        criterion: Score = "rps",
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
        self.criterion = criterion
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
    prefitted = False

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
        if not rows.table.is_plain:
            named["corn"] = network("corn", text=self.text, image=self.image, device=self.device)
            return named
        # Every fold is a fit without some rows already, so that none is fitted twice.
        settings = {"refit": False} if len(rows) <= _MANY_ROWS else None
        backbones = ["tabm"]
        if len(rows) > FEW_ROWS:  # too many for an ensemble, if there is little time
            is_patient = self.time_limit is None or self.time_limit >= _PATIENT
            backbones = ["mlp", "tabm"] if is_patient else ["mlp"]
        for backbone in backbones:
            name = "corn" if backbone == "mlp" else f"corn/{backbone}"
            named[name] = network("corn", backbone, device=self.device, settings=settings)
        return named

    def most_rows(self, name: str) -> int | None:
        """As many as can be fitted within the limit."""
        if self.time_limit is None or name not in _ROWS_A_SECOND:
            return None
        return int(_ROWS_A_SECOND[name] * max(self.time_limit, 1.0))


# ---- rows and curves of members ------------------------------------------------------------------


def _sample(rows: Rows, most: int | None, seed: int) -> Rows:
    """All rows, or as many as that, drawn at random."""
    if most is None or len(rows) <= most:
        return rows
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[np.random.default_rng(seed).choice(len(rows), most, replace=False)] = True
    return rows.select(chosen)


def _seen_schema(schema: TableSchema, model: CurveClassifier) -> TableSchema | None:
    """The columns that a model reads; None where there are none."""
    if not MODELS[model.kind].tables_only or schema.parts == ("table",):
        return schema
    if "table" not in schema.parts:
        return None
    names = {column.name for column in (*schema.measured, *schema.categorical)}
    kept = tuple(column for column in schema.columns if column.name in names)
    return TableSchema(kept, schema.named)


def _seen_rows(rows: Rows, model: CurveClassifier) -> Rows | None:
    schema = _seen_schema(rows.schema, model)
    if schema is None or schema is rows.schema:
        return None if schema is None else rows
    return Rows(schema, _seen_table(rows.table, model), rows.ranks, rows.weight, rows.groups)


def _seen_table(table: RawTable, model: CurveClassifier) -> RawTable:
    return table.plain() if MODELS[model.kind].tables_only else table


def _probabilities(fit: CurveClassifier, table: RawTable) -> Probabilities:
    return fit.raw_probabilities(_seen_table(table, fit))


def _mixed(curves: list[Probabilities]) -> Probabilities:
    """The mean of curves of the same rows."""
    mean: Probabilities = np.mean(curves, axis=0)
    return mean


def _leaderboard(members: list[Member], unseen: _Said | None) -> pd.DataFrame:
    """Every member with its weight and its scores on rows that it had not seen, the best first."""
    rows = []
    for place, member in enumerate(members):
        rps = mae = float("nan")
        if unseen is not None:
            curves, truth = unseen.curves[place], unseen.ranks
            median = RankCurve(torch.from_numpy(curves).log()).median().numpy()
            rps = metrics.ranked_probability_score(truth, curves, sample_weight=unseen.weight)
            mae = metrics.mae(truth, median, sample_weight=unseen.weight)
        rows.append(
            {
                "member": member.name,
                "weight": member.weight,
                "rps": rps,
                "mae": mae,
                "fits": len(member.fits),
                "seconds": round(member.seconds, 2),
            }
        )
    board: pd.DataFrame = pd.DataFrame(rows).sort_values("rps", ignore_index=True)
    return board

"""The scikit-learn estimator: a table and an ordered target in, a rank-consistent model out."""

import copy
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from echelon.backbones.tabular import make_backbone, output_size
from echelon.curve import DECISIONS, RankCurve
from echelon.data.labels import Labels
from echelon.data.splits import hold_out
from echelon.data.tables import RawTable, TableEncoder, TableSchema
from echelon.evaluation import metrics
from echelon.evaluation._arguments import as_weight
from echelon.methods import method as make_method
from echelon.prediction import (
    CurvePredictor,
    Decision,
    check_decision,
    require_same_length,
    tune_cutpoints,
)
from echelon.training.checkpoints import CheckpointFolder
from echelon.training.devices import make_fabric
from echelon.training.loop import Rows, predict_curve, train
from echelon.training.network import OrdinalNetwork
from echelon.training.progress import epoch_bar
from echelon.training.recipes import Settings, make_settings

_CHUNK = 16_384  # rows that are encoded or predicted at once

_EXACT_ROWS = 4096  # up to which predictions are computed in float64

_Part = tuple[RawTable, NDArray[np.int64], NDArray[np.float32]]  # rows, their ranks and weights


class OrdinalClassifier(CurvePredictor, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ordinal regression on tables with a neural network.

    Parameters
    ----------
    method : str
        One of ``echelon.METHODS``.
    backbone : str or nn.Module
        ``"mlp"``, ``"tabm"`` (an ensemble: slower and better), ``"linear"``, or a module of your
        own from features (n, d) to (n, out).
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    recipe : {"default", "paper"}
        A named set of training choices; the parameters below override single ones.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label: the median minimises the absolute error, the mean the
        squared one, the mode the number of errors, a matrix of costs (true by predicted rank) the
        expected cost; "kappa" cuts the expected rank where the quadratic weighted kappa of the
        validation part is the largest. It can be changed after fitting. Without it the recipe
        decides, which is the median by default.
    max_epochs, batch_size, learning_rate, weight_decay, patience : optional
    metric : str, optional
        What chooses the best epoch on the validation part.
    validation_fraction : float
        Share of the rows that are held out for choosing the epoch; 0 for none.
    class_weight : mapping from label to weight, or "balanced", optional
    checkpoint_dir : path, optional
        Where to keep checkpoints; a fit that was interrupted goes on from there.
    random_state : int, RandomState or None
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"`` or another accelerator of lightning-fabric.
    precision : str, optional
        As in lightning-fabric, such as ``"bf16-mixed"``.
    method_options, backbone_options : mapping, optional
    verbose : int
        0 is silent, 1 shows progress.

    Attributes
    ----------
    classes_ : array, shape (K,)
        The labels in rank order.
    history_ : list of dict
        Loss and validation metric of each epoch.
    best_epoch_ : int or None
    cutpoints_ : array, shape (K-1,), or None
        Where the decision "kappa" cuts the expected rank.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(300, num_classes=3)
    >>> model = OrdinalClassifier(max_epochs=2, random_state=0).fit(data.features, data.ranks)
    >>> model.predict_proba(data.features[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        method: str = "corn",
        backbone: str | nn.Module = "mlp",
        *,
        classes: Sequence[Any] | None = None,
        recipe: str = "default",
        decision: Decision = None,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        patience: int | None = None,
        metric: str | None = None,
        validation_fraction: float = 0.1,
        class_weight: Mapping[Any, float] | str | None = None,
        checkpoint_dir: str | Path | None = None,
        random_state: Any = None,
        device: str = "auto",
        precision: str | None = None,
        method_options: Mapping[str, Any] | None = None,
        backbone_options: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.backbone = backbone
        self.classes = classes
        self.recipe = recipe
        self.decision = decision
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.metric = metric
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.checkpoint_dir = checkpoint_dir
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.method_options = method_options
        self.backbone_options = backbone_options
        self.settings = settings
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        X_val: Any = None,  # noqa: N803
        y_val: Any = None,
    ) -> "OrdinalClassifier":
        """Fit the network.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Numbers, booleans, strings and categories; missing values are fine.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
        groups : array-like, shape (n,), optional
            Rows of one group stay on one side of the validation split.
        X_val, y_val : optional
            A validation part of your own.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        generator = check_random_state(self.random_state)
        seed = int(generator.randint(2**31 - 1))
        schema = TableSchema.of(X)
        table = schema.read(X)
        labels = Labels.of(y, self.classes)
        ranks = labels.to_ranks(y)
        require_same_length(len(table), len(ranks), "y")
        weight = self._weights(sample_weight, ranks, labels)
        training, validation = self._split(
            schema, table, ranks, weight, labels, groups, X_val, y_val, seed
        )
        if not training[2].any():
            raise ValueError("all training rows have a weight of 0: there is nothing to learn from")

        settings = self.training_settings(len(training[1]))
        check_decision(
            settings.decision if self.decision is None else self.decision, labels.num_classes
        )
        encoder = TableEncoder.of(training[0], schema, scaling=settings.scaling)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = self._make_network(encoder, settings, labels.num_classes)
            weighted = weight is not None
            rows = _encode(encoder, training, weighted)
            validation_rows = None if validation is None else _encode(encoder, validation, weighted)
            if self.verbose:
                print(_memory_line(table, rows, network), file=sys.stderr)
            progress = self._train(network, rows, validation_rows, settings, seed)
            cutpoints = None
            if validation_rows is not None:
                held_out = predict_curve(network, validation_rows.features)
                probabilities = held_out.probabilities.double().cpu().numpy()
                assert validation is not None
                cutpoints = tune_cutpoints(
                    validation[1], probabilities, validation[2] if weighted else None
                )
            if settings.refit and X_val is None and progress.best_epoch is not None:
                network = self._refit(
                    schema, labels, (table, ranks, weight), settings, seed, progress.best_epoch
                )

        self.schema_, self.labels_, self.network_, self.settings_ = (
            schema, labels, network, settings,
        )  # fmt: skip
        self.cutpoints_, self.conformal_, self.calibration_summary_ = cutpoints, None, None
        self.classes_ = labels.classes
        self.history_ = progress.history
        self.best_epoch_ = progress.best_epoch
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.array([c.name for c in schema.columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _weights(
        self, sample_weight: ArrayLike | None, ranks: NDArray[np.int64], labels: Labels
    ) -> NDArray[np.float32] | None:
        weight = None
        if sample_weight is not None:
            given = as_weight(sample_weight, length=len(ranks))
            weight = given.astype(np.float32)
        if self.class_weight is None:
            return weight
        per_class = np.ones(labels.num_classes)
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight must be 'balanced' or a mapping; got {self.class_weight!r}"
                )
            counts = np.bincount(ranks, weights=weight, minlength=labels.num_classes)
            present = counts > 0
            per_class[present] = counts.sum() / (present.sum() * counts[present])
        else:
            for label, value in self.class_weight.items():
                per_class[labels.to_ranks([label])[0]] = value
        by_rank = per_class[ranks].astype(np.float32)
        return by_rank if weight is None else weight * by_rank

    def _split(
        self,
        schema: TableSchema,
        table: RawTable,
        ranks: NDArray[np.int64],
        weight: NDArray[np.float32] | None,
        labels: Labels,
        groups: Any,
        X_val: Any,  # noqa: N803
        y_val: Any,
        seed: int,
    ) -> tuple[_Part, _Part | None]:
        every = np.ones(len(ranks), dtype=np.float32) if weight is None else weight
        if X_val is not None:
            if y_val is None:
                raise ValueError("X_val needs y_val")
            held = schema.read(X_val)
            held_ranks = labels.to_ranks(y_val)
            require_same_length(len(held), len(held_ranks), "y_val")
            ones = np.ones(len(held_ranks), dtype=np.float32)
            return (table, ranks, every), (held, held_ranks, ones)
        if self.validation_fraction == 0:
            return (table, ranks, every), None
        marked = hold_out(
            table, ranks, self.validation_fraction, groups=groups,
            generator=np.random.default_rng(seed),
        )  # fmt: skip
        validation = (table.rows(marked), ranks[marked], every[marked])
        if not validation[2].any():
            validation = (validation[0], validation[1], np.ones_like(validation[2]))
        return (table.rows(~marked), ranks[~marked], every[~marked]), validation

    def training_settings(self, num_rows: int) -> Settings:
        """Every choice that a fit on so many rows would make."""
        name = self.backbone if isinstance(self.backbone, str) else "module"
        overrides = {
            "max_epochs": self.max_epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "patience": self.patience,
            "metric": self.metric,
            "precision": self.precision,
            "backbone_options": self.backbone_options,
            "method_options": self.method_options,
            # Costs and cut-points apply to the finished model; the recipe's rule serves until then.
            "decision": self.decision if str(self.decision) in DECISIONS else None,
            **(self.settings or {}),
        }
        known = sorted(metrics.OF_LABELS | metrics.OF_PROBABILITIES)
        if self.metric is not None and self.metric not in known:
            raise ValueError(f"metric must be one of {', '.join(known)}; got {self.metric!r}")
        return make_settings(self.recipe, self.method, name, num_rows, overrides)

    def _make_network(
        self, encoder: TableEncoder, settings: Settings, num_classes: int
    ) -> OrdinalNetwork:
        chosen = make_method(self.method, num_classes, **settings.method_options)
        if isinstance(self.backbone, nn.Module):
            backbone: nn.Module = copy.deepcopy(self.backbone)
            size = output_size(backbone, encoder.num_features)
        else:
            backbone = make_backbone(
                settings.backbone,
                encoder.num_features,
                encoder.num_scaled,
                settings.backbone_options,
            )
            size = cast(int, backbone.out_features)
        return OrdinalNetwork(encoder, backbone, chosen, size)

    def _refit(
        self,
        schema: TableSchema,
        labels: Labels,
        everything: tuple[RawTable, NDArray[np.int64], NDArray[np.float32] | None],
        settings: Settings,
        seed: int,
        epochs: int,
    ) -> OrdinalNetwork:
        """Train anew on all rows for the number of epochs that the held-out rows chose."""
        table, ranks, weight = everything
        encoder = TableEncoder.of(table, schema, scaling=settings.scaling)
        torch.manual_seed(seed)
        network = self._make_network(encoder, settings, labels.num_classes)
        every = np.ones(len(ranks), dtype=np.float32) if weight is None else weight
        rows = _encode(encoder, (table, ranks, every), weight is not None)
        self._train(network, rows, None, replace(settings, max_epochs=epochs), seed, "refit")
        return network

    def _train(
        self,
        network: OrdinalNetwork,
        rows: Rows,
        validation: Rows | None,
        settings: Settings,
        seed: int,
        stage: str = "",
    ) -> Any:
        fabric = make_fabric(self.device, settings.precision)
        folder = None
        if self.checkpoint_dir is not None:
            fingerprint = _fingerprint(self.method, settings, rows, seed)
            folder = CheckpointFolder(Path(self.checkpoint_dir) / stage, fingerprint)
        title = stage or "fit"
        with epoch_bar(title, settings.max_epochs, shown=bool(self.verbose)) as report:
            return train(
                network,
                rows,
                validation,
                settings,
                seed=seed,
                fabric=fabric,
                folder=folder,
                on_epoch=report,
            )

    # ---- predicting --------------------------------------------------------------------------

    @torch.no_grad()
    def _curves(self, X: Any) -> Iterator[RankCurve]:  # noqa: N803
        check_is_fitted(self, "network_")
        table = self.schema_.read(X)
        network = self.network_.eval()
        if len(table) <= _EXACT_ROWS:
            # In float32 the rounding of a row depends on how many are multiplied with it.
            network = copy.deepcopy(network).double()
        like = next(network.head.parameters())
        for numbers, codes in table.chunks(_CHUNK):
            features = network.encoder(numbers.to(like.device), codes.to(like.device))
            yield network.curve(network(features.to(like.dtype)))

    def coefficients(self) -> dict[str, float]:
        """What each feature adds to the score of a linear cumulative model (`clm`, `linear`).

        The features are as the encoder gives them, scaled; a larger score means a higher rank.
        """
        check_is_fitted(self, "network_")
        if (self.method, self.settings_.backbone) != ("clm", "linear"):
            raise ValueError(
                f"coefficients belong to method='clm' with backbone='linear'; this is "
                f"{self.method!r} with {self.settings_.backbone!r}"
            )
        names = cast(TableEncoder, self.network_.encoder).feature_names(self.schema_)
        score = cast(nn.Linear, self.network_.head.score)
        weight = score.weight.detach().cpu().double().reshape(-1)
        return dict(zip(names, weight.tolist(), strict=True))

    def save(self, path: str | Path) -> None:
        """Write the model to a file that can be opened safely anywhere, with :func:`echelon.load`.

        One safetensors file with everything from the raw columns to the labels in it.
        """
        check_is_fitted(self, "network_")
        from echelon.bundle import save  # which imports this module

        save(self, path)


def _encode(encoder: TableEncoder, part: _Part, weighted: bool) -> Rows:
    table, ranks, weight = part
    features = torch.empty(len(table), encoder.num_features)
    start = 0
    for numbers, codes in table.chunks(_CHUNK):
        features[start : start + len(numbers)] = encoder(numbers, codes)
        start += len(numbers)
    return Rows(features, torch.from_numpy(ranks), torch.from_numpy(weight) if weighted else None)


def _memory_line(table: RawTable, rows: Rows, network: nn.Module) -> str:
    """What a fit holds at once: the table, its features, and the network with its optimiser."""
    raw = table.numbers.nbytes + table.codes.nbytes
    features = sum(t.nbytes for t in (rows.features, rows.ranks, rows.weight) if t is not None)
    # parameters, gradients, two moments, and the best epoch
    parameters = 5 * sum(parameter.nbytes for parameter in network.parameters())
    total = (2 * raw + features + parameters) / 2**20  # the split copies the table once
    return f"{len(table):,} rows, {rows.features.shape[1]} features: about {total:,.0f} MiB"


def _fingerprint(method: str, settings: Settings, rows: Rows, seed: int) -> str:
    """Of everything that decides how a run goes."""
    document = json.dumps([method, asdict(settings), seed], default=str, sort_keys=True)
    digest = hashlib.sha256(document.encode())
    digest.update(rows.features.numpy().tobytes())
    digest.update(rows.ranks.numpy().tobytes())
    if rows.weight is not None:
        digest.update(rows.weight.numpy().tobytes())
    return digest.hexdigest()

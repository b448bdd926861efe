"""The scikit-learn estimator: a table and an ordered target in, a rank-consistent model out."""

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from echelon.backbones.parts import options_by_part
from echelon.curve import DECISIONS, RankCurve
from echelon.data.columns import gathered_remarks
from echelon.data.images import OnBroken
from echelon.data.inputs import Inputs
from echelon.data.labels import Labels
from echelon.data.tables import RawTable, TableEncoder, TableSchema
from echelon.evaluation import metrics
from echelon.evaluation._arguments import as_weight
from echelon.fitting import (
    Part,
    class_weights,
    fingerprint,
    given_part,
    memory_line,
    row_weights,
    split_rows,
    without_broken,
)
from echelon.methods import method as make_method
from echelon.prediction import (
    CurvePredictor,
    Decision,
    check_decision,
    require_same_length,
    tune_cutpoints,
)
from echelon.training.batches import Rows, worker_count
from echelon.training.checkpoints import CheckpointFolder
from echelon.training.devices import make_fabric
from echelon.training.loop import predict_curve, train
from echelon.training.network import OrdinalNetwork
from echelon.training.preparation import (
    Readers,
    make_network,
    precomputed,
    read_schema,
    resolve_backbone,
)
from echelon.training.progress import epoch_bar
from echelon.training.randomness import RandomStream
from echelon.training.recipes import Settings, make_settings

_PREDICT_ROWS = 2048  # of a table at once: what the layers give in float64 then stays in the cache


class OrdinalClassifier(CurvePredictor, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ordinal regression with a neural network on tables, texts and images.

    Parameters
    ----------
    method : str
        One of ``echelon.METHODS``.
    backbone : str, mapping from part to str, or nn.Module, optional
        For tables ``"mlp"``, ``"tabm"`` (an ensemble: slower and better) or ``"linear"``, or a
        module of your own from features (n, d) to (n, out); for texts ``"lstm"`` or
        ``"hf:NAME-OR-FOLDER"``, a pretrained encoder; for images ``"resnet"``, for small ones, or
        ``"timm:NAME"``. Rows of several parts have one each, whose features stand side by side:
        ``{"table": "mlp", "text": "lstm", "image": "resnet"}``, which are also the defaults of
        recipe "default"; recipe "paper" has the paper's MLP for tables, unless one is named.
    text, image : str, optional
        The column that holds texts, and the one that holds images: paths, arrays or PIL images.
        Where X is nothing but texts or images, the backbone's name says enough.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    recipe : {"default", "paper"}
        A named set of training choices; the parameters below override single ones.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label: the median minimises the absolute error, the mean the
        squared one, the mode the number of errors, a matrix of costs (true by predicted rank) the
        expected cost; "kappa" cuts the expected rank at K-1 points. Those are the ones with the
        largest quadratic weighted kappa if the truth were a straight line in the expected rank,
        the line being that of the validation rows: points that are free to follow every row fit
        their noise. It can be changed after fitting. Without it the recipe decides, which is the
        median by default.
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
        Those of several backbones by part, as ``{"text": {"hidden": 64}}``.
    text_options : mapping, optional
        `max_tokens` and, for ``"lstm"``, `max_words` and `min_count`; see `echelon.data.texts`.
    image_options : mapping, optional
        `preprocessing` (``"own"``, ``"paper"``, ``"timm"``), `size` and every field of
        :class:`echelon.data.images.PictureSettings`.
    on_broken : {"raise", "skip"}
        What a fit does about an image that cannot be read; `skipped_` has those that were skipped.
    workers : int, optional
        Threads that read images ahead of the network; as many as there are processors, up to 4.
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
    skipped_ : dict from row to reason
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
        backbone: str | Mapping[str, str] | nn.Module | None = None,
        *,
        text: str | None = None,
        image: str | None = None,
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
        text_options: Mapping[str, Any] | None = None,
        image_options: Mapping[str, Any] | None = None,
        on_broken: OnBroken = "raise",
        workers: int | None = None,
        settings: Mapping[str, Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.backbone = backbone
        self.text = text
        self.image = image
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
        self.text_options = text_options
        self.image_options = image_options
        self.on_broken = on_broken
        self.workers = workers
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
            Numbers, booleans, dates, strings and categories; missing values are fine. What a cell
            means is told in :mod:`echelon.data.cells`.
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
        if y_val is not None and X_val is None:
            raise ValueError("y_val holds the labels of X_val, which is None; pass both or neither")
        schema = read_schema(X, self.backbone, self.text, self.image)
        with gathered_remarks():  # the schema has said what became of odd cells
            table = schema.read(X)
        labels = Labels.of(y, self.classes)
        ranks = labels.to_ranks(y)
        require_same_length(len(table), len(ranks), "y")
        own_weight = None
        if sample_weight is not None:
            own_weight = as_weight(sample_weight, length=len(ranks))
        per_class = class_weights(self.class_weight, own_weight, ranks, labels)
        weight = row_weights(own_weight, per_class, ranks)
        weighted = weight is not None
        every = np.ones(len(ranks)) if weight is None else weight
        groups = None if groups is None else np.asarray(groups)
        whole, groups, skipped = without_broken(Part(table, ranks, every), groups, self.on_broken)
        held = None
        if X_val is not None:
            held = given_part(schema, labels, X_val, y_val, per_class, self.on_broken)
        training, validation = split_rows(whole, held, self.validation_fraction, groups, seed)
        if not training.weight.any():
            raise ValueError("all training rows have a weight of 0: there is nothing to learn from")

        settings = self._make_settings(schema, len(training.ranks))
        check_decision(
            settings.decision if self.decision is None else self.decision, labels.num_classes
        )
        network, readers = self._build(training.table, schema, settings, labels, seed)
        rows = _rows(readers, network, training, weighted)
        validation_rows = (
            None if validation is None else _rows(readers, network, validation, weighted)
        )
        if self.verbose:
            print(memory_line(whole.table, rows, network), file=sys.stderr)
        progress = self._train(network, rows, validation_rows, settings, seed)
        cutpoints = None
        if validation_rows is not None:
            held_out = self._predicted(network, validation_rows.features)
            probabilities = held_out.probabilities.double().cpu().numpy()
            assert validation is not None
            cutpoints = tune_cutpoints(
                validation.ranks, probabilities, validation.weight if weighted else None
            )
        if settings.refit and X_val is None and progress.best_epoch is not None:
            # Train anew on all rows for the number of epochs that the held-out rows chose.
            network, readers = self._build(whole.table, schema, settings, labels, seed)
            rows = _rows(readers, network, whole, weighted)
            fixed = replace(settings, max_epochs=progress.best_epoch)
            self._train(network, rows, None, fixed, seed, "refit")

        self.schema_, self.labels_, self.network_, self.settings_ = (
            schema, labels, network, settings,
        )  # fmt: skip
        self.readers_, self.skipped_ = readers, skipped
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

    def training_settings(self, X: Any, num_rows: int | None = None) -> Settings:  # noqa: N803
        """Every choice that a fit would make on such rows, or on so many of them."""
        schema = read_schema(X, self.backbone, self.text, self.image)
        return self._make_settings(schema, len(X) if num_rows is None else num_rows)

    def _make_settings(self, schema: TableSchema, num_rows: int) -> Settings:
        backbone = resolve_backbone(self.backbone, schema.parts)
        options = self.backbone_options
        if isinstance(backbone, Mapping):
            options = options_by_part(options or {}, cast(Any, self.backbone), schema.parts)
        overrides = {
            "max_epochs": self.max_epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "patience": self.patience,
            "metric": self.metric,
            "precision": self.precision,
            "backbone_options": options,
            "text_options": self.text_options,
            "image_options": self.image_options,
            "method_options": self.method_options,
            # Costs and cut-points apply to the finished model; the recipe's rule serves until then.
            "decision": self.decision if str(self.decision) in DECISIONS else None,
            **(self.settings or {}),
        }
        known = sorted(metrics.OF_LABELS | metrics.OF_PROBABILITIES)
        if self.metric is not None and self.metric not in known:
            raise ValueError(f"metric must be one of {', '.join(known)}; got {self.metric!r}")
        return make_settings(self.recipe, self.method, backbone, num_rows, overrides)

    def _build(
        self, table: RawTable, schema: TableSchema, settings: Settings, labels: Labels, seed: int
    ) -> tuple[OrdinalNetwork, Readers]:
        """A fresh network, and the readers of its texts and images, for training rows."""
        readers = Readers.of(table, settings)
        encoder = TableEncoder.of(table, schema, scaling=settings.scaling)
        chosen = make_method(self.method, labels.num_classes, **settings.method_options)
        with RandomStream(seed).drawn():
            return make_network(encoder, readers, settings, chosen, self.backbone), readers

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
            mark = fingerprint(self.method, settings, rows, seed)
            folder = CheckpointFolder(Path(self.checkpoint_dir) / stage, mark)
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
                workers=worker_count(rows.features, self.workers),
            )

    # ---- predicting --------------------------------------------------------------------------

    def _predicted(self, network: OrdinalNetwork, features: torch.Tensor | Inputs) -> RankCurve:
        return predict_curve(network, features, worker_count(features, self.workers))

    @torch.no_grad()
    def _curves(self, X: Any) -> Iterator[RankCurve]:  # noqa: N803
        check_is_fitted(self, "network_")
        table = self.schema_.read(X)
        network = self.network_.eval()
        if self.schema_.parts != ("table",):
            inputs = self.readers_.inputs(table, cast(TableEncoder, network.encoder))
            yield self._predicted(network, inputs)
            return
        # In float32 the rounding of a row depends on how many are multiplied with it, and moves
        # probabilities by more than 1e-6.
        network = copy.deepcopy(network).double()
        like = next(network.head.parameters())
        for numbers, codes in table.chunks(_PREDICT_ROWS):
            features = network.encoder(numbers.to(like.device), codes.to(like.device))
            yield network.curve(network(features.to(like.dtype)))

    def save(self, path: str | Path) -> None:
        """Write the model to a file that can be opened safely anywhere, with :func:`echelon.load`.

        One safetensors file with everything from the raw columns to the labels in it.
        """
        check_is_fitted(self, "network_")
        from echelon.bundle import save  # which imports this module

        save(self, path)


def _rows(readers: Readers, network: OrdinalNetwork, part: Part, weighted: bool) -> Rows:
    """What the loop trains on."""
    features = readers.inputs(part.table, cast(TableEncoder, network.encoder))
    return Rows(
        precomputed(network, features),
        torch.from_numpy(part.ranks),
        torch.from_numpy(part.weight) if weighted else None,
    )

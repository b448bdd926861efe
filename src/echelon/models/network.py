"""The model that is a neural network: on tables, texts and images, trained by any method."""

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.curve import DECISIONS, RankCurve
from echelon.data.inputs import Inputs
from echelon.data.kinds.base import CELL_KINDS, TABLE, Encoding, input_options
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import RawTable, TableSchema
from echelon.methods import METHODS
from echelon.methods import method as make_method
from echelon.models.base import CurveClassifier
from echelon.models.document import Described, require_scores, typed
from echelon.models.features import read_places
from echelon.models.graph import Graph
from echelon.models.predicting import Decision, check_decision
from echelon.networks.assembly import Readers, make_network, read_schema
from echelon.networks.network import Cells, OrdinalNetwork
from echelon.networks.prediction import precomputed, predict_curve, table_curves, worker_count
from echelon.networks.randomness import RandomStream
from echelon.networks.rebuilding import rebuild
from echelon.networks.spec import NetworkSpec
from echelon.networks.table import option_space
from echelon.spaces import Between, Dimension, OneOf, Space

if TYPE_CHECKING:  # a model is loaded, predicts and is exported without the training room
    from echelon.data.survey import Survey
    from echelon.training.batches import EncodedRows, TrainingRows
    from echelon.training.loop import Progress
    from echelon.training.recipes import Settings

_SEEDS_APART = 1000  # of networks side by side; the processes of a training take the next ones
_LEAST_DECAY = 0.003  # around which one is searched where the recipe has none


class OrdinalClassifier(CurveClassifier):
    """Ordinal regression with a neural network on tables, texts and images.

    Parameters
    ----------
    method : str
        One of ``echelon.METHODS``.
    backbone : str, mapping from part to str, or nn.Module, optional
        For tables ``"mlp"``, ``"tabm"`` (an ensemble: slower and better) or ``"linear"``; for
        texts ``"lstm"`` or ``"hf:NAME-OR-FOLDER"``, a pretrained encoder; for images ``"resnet"``,
        for small ones, or ``"timm:NAME"``. A module of your own, for rows of one kind, takes
        features (n, d) of a table, scaled pixels (n, 3, h, w), or ids of words (n, longest), -1
        behind the end of a text, and gives (n, out). Rows of several parts have one each, whose
        features stand side by side: ``{"table": "mlp", "text": "lstm", "image": "resnet"}``, which
        are also the defaults of recipe "default". A table alone of up to 5,000 rows has ``"tabm"``
        as its default, three of them with two hidden layers, whose curves are averaged, unless
        options of backbones are given or the method compares the rows of a batch; recipe "paper"
        has the paper's MLP.
    text, image : str, optional
        The column that holds texts, and the one that holds images: paths, arrays or PIL images.
        Where X is nothing but texts or images, the backbone's name says enough.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    recipe : {"default", "paper"}
        A named set of training choices; `settings` overrides single ones.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label: the median minimises the absolute error, the mean the
        squared one, the mode the number of errors, a matrix of costs (true by predicted rank) the
        expected cost; "kappa" cuts the expected rank at K-1 points. Those are the ones with the
        largest quadratic weighted kappa if the truth were a straight line in the expected rank,
        the line being that of the validation rows: points that are free to follow every row fit
        their noise. It can be changed after fitting. Without it the recipe decides, which is the
        median by default.
    validation_fraction : float
        Share of the rows that are held out for choosing the epoch; 0 for none.
    class_weight : mapping from label to weight, or "balanced", optional
        What the rows of each class count for; "balanced" lets every class count alike.
    checkpoint_dir : path, optional
        Where to keep checkpoints; a fit that was interrupted goes on from there.
    random_state : int, RandomState or None
        The seed of everything random in the fit; None draws another one every time.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"`` or another accelerator of lightning-fabric.
    method_options : mapping, optional
        The options of the method; ``echelon.METHODS[method].options`` has their defaults.
    backbone_options : mapping, optional
        The options of the backbone; of several by part, as ``{"text": {"hidden": 64}}``. With
        ``{"frozen": True}`` a pretrained encoder of texts or images, or a module of your own that
        reads such, is left as it is, and every row is encoded once.
    inputs : mapping from kind to mapping, optional
        How texts and images are read, as ``{"text": {"max_tokens": 64}}``. Of texts: `max_tokens`
        (256), the most that is read of one, and for ``"lstm"`` `max_words` (20,000), the most
        words that are known, and `min_count` (2), how many texts must have a word. Of images:
        `preprocessing` (``"own"``, ``"paper"``, ``"timm"``), `size`, the pixels a side that the
        network sees, and every field of :class:`echelon.data.kinds.image.ImageSettings`;
        `on_broken`, what a fit does about one that cannot be read: ``"raise"``, or ``"skip"``,
        and `skipped_` then has them; `workers`, the threads that read them ahead of the network,
        as many as there are processors, up to 4.
    settings : mapping, optional
        Choices of training that override single ones of the recipe, as ``{"max_epochs": 10}``:
        `max_epochs`, `batch_size`, `learning_rate`, `weight_decay`, `patience`, `metric` (which
        chooses the best epoch on the validation rows), `precision`, `schedule`, `warm_up`,
        `clip_norm`, `batches`, `drop_last`, `refit`, `average`, `decay_thresholds`, `even_start`,
        `scaling` and `networks`. :class:`echelon.training.recipes.Settings` says what each of them
        is.
    time_limit : float, optional
        Seconds after which the training ends with the epoch it is in; several networks share them.
    verbose : int
        0 is silent, 1 shows progress.

    Attributes
    ----------
    classes_ : array, shape (K,)
        The labels in rank order.
    history_ : list of dict
        Loss and validation metric of each epoch; of the first network, where there are several.
    best_epoch_ : int or None
        The epoch whose weights were kept, of the first network where there are several.
    cutpoints_ : array, shape (K-1,), or None
        Where the decision "kappa" cuts the expected rank.
    skipped_ : dict from row to reason
        The training rows whose images could not be read, and why.
    fitted_parameters_ : dict
        The parameters that the model was fitted with. They, and not those that were set since, are
        saved with it; only the decision can be changed after fitting.
    n_features_in_, feature_names_in_
        How many columns there are and what they are called, as in scikit-learn.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(300, num_classes=3)
    >>> model = OrdinalClassifier(settings={"max_epochs": 2}, random_state=0)
    >>> model = model.fit(data.features, data.ranks)
    >>> model.predict_proba(data.features[:2]).shape
    (2, 3)
    """

    kind: ClassVar[str] = "network"
    nested = ("settings", "inputs", "backbone_options", "method_options")
    of_the_machine: ClassVar[tuple[str, ...]] = (
        *CurveClassifier.of_the_machine,
        *(f"inputs.{kind}.workers" for kind in CELL_KINDS),
    )

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
        validation_fraction: float = 0.1,
        class_weight: Mapping[Any, float] | str | None = None,
        checkpoint_dir: str | Path | None = None,
        random_state: Any = None,
        device: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        backbone_options: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.backbone = backbone
        self.text = text
        self.image = image
        self.classes = classes
        self.recipe = recipe
        self.decision = decision
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.checkpoint_dir = checkpoint_dir
        self.random_state = random_state
        self.device = device
        self.method_options = method_options
        self.backbone_options = backbone_options
        self.inputs = inputs
        self.settings = settings
        self.time_limit = time_limit
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------------------

    def read_schema(self, X: Any) -> TableSchema:  # noqa: N803
        """What the columns of training rows are; a single one is what the backbone says it is."""
        columns = {kind: getattr(self, kind) for kind in CELL_KINDS}
        return read_schema(X, self.backbone, columns)

    def on_broken(self) -> Mapping[str, Any]:
        """What a fit does about cells that cannot be read, by kind, as `inputs` says."""
        reading = input_options(self.inputs).reading
        return {
            kind: options["on_broken"]
            for kind, options in reading.items()
            if "on_broken" in options
        }

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Train a network; the validation rows choose the epoch."""
        spec, settings = copy.deepcopy(self._choose(rows.schema, len(rows)))
        check_decision(
            settings.decision if self.decision is None else self.decision, labels.num_classes
        )
        everyone = [settings] * spec.networks
        seen = self._train_all(rows, validation, spec, everyone, labels, seed)
        self._keep(spec, settings, seen)

    def fit_stream(self, known: "Survey", seed: int) -> None:
        """Train a network on rows that are read while it learns; those held out choose the epoch.

        They are few beside the others, and the network is not trained anew with them.
        """
        from echelon.training.streams import EncodedStream

        labels = known.stream.labels
        spec, settings = copy.deepcopy(self._choose(known.stream.schema, known.num_rows))
        spec, settings = replace(spec, networks=1), replace(settings, refit=False)
        decision = settings.decision if self.decision is None else self.decision
        check_decision(decision, labels.num_classes)
        network, readers = self._build(known.rows_of_table(), spec, labels, seed)
        encoded = EncodedStream.of(known, cast(TableEncoder, network.encoder))
        held = None if known.held is None else self._encoded(readers, network, known.held)
        progress = self._train(network, encoded, held, spec, settings, seed)
        self.network_, self.readers_ = network, readers
        self._keep(spec, settings, [progress])

    def stream_bytes(self, known: "Survey") -> int:
        """The buffers, and the rows that are held out as they are and as features."""
        from echelon.training.streams import buffer_rows

        encoder = TableEncoder.of(known.table, known.stream.schema, scaling="standard")
        width, held = encoder.num_features, 0 if known.held is None else len(known.held)
        return 4 * width * (3 * held + 4 * buffer_rows(width))  # one is shuffled, two are waiting

    def _keep(self, spec: NetworkSpec, settings: "Settings", seen: "Sequence[Progress]") -> None:
        """Take over how the networks were trained."""
        self.spec_, self.training_ = spec, asdict(settings)
        self.history_, self.best_epoch_ = seen[0].history, seen[0].best_epoch
        self._best_epochs = [progress.best_epoch for progress in seen]

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Train anew on all rows for the number of epochs that the held-out rows chose."""
        settings = self.settings_
        epochs = [chosen for chosen in self._best_epochs if chosen is not None]
        if not settings.refit or not epochs:
            return
        everyone = [replace(settings, max_epochs=chosen) for chosen in epochs]
        self._train_all(rows, None, self.spec_, everyone, labels, seed, "refit")

    def _train_all(
        self,
        rows: Rows,
        validation: Rows | None,
        spec: NetworkSpec,
        everyone: "Sequence[Settings]",
        labels: Labels,
        seed: int,
        stage: str = "",
    ) -> "list[Progress]":
        """Train a network with each of the settings, and put them side by side."""
        networks: list[OrdinalNetwork] = []
        seen: list[Progress] = []
        for number, settings in enumerate(everyone):
            network, readers = self._build(
                rows, replace(spec, networks=1), labels, seed + number * _SEEDS_APART
            )
            if not networks:  # all of them see the same features
                encoded = self._encoded(readers, network, rows)
                held = None if validation is None else self._encoded(readers, network, validation)
                if self.verbose and not stage:
                    parts = [rows] if validation is None else [rows, validation]
                    print(_memory_line(parts, encoded, network), file=sys.stderr)
            name = "-".join(filter(None, (stage, f"network-{number + 1}" if number else "")))
            seen.append(
                self._train(
                    network, encoded, held, spec, settings, seed + number * _SEEDS_APART, name
                )
            )
            networks.append(network)
        self.network_, self.readers_ = OrdinalNetwork.side_by_side(networks), readers
        return seen

    @property
    def settings_(self) -> "Settings":
        """The settings that the network was trained with."""
        from echelon.training.recipes import Settings

        return Settings(**self.training_)

    def training_settings(self, X: Any, num_rows: int | None = None) -> "Settings":  # noqa: N803
        """Every choice of training that a fit would make on such rows, or on so many of them.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        num_rows : int, optional
            How many rows the fit would have, instead of as many as there are here.
        """
        return self._choose(self.read_schema(X), len(X) if num_rows is None else num_rows)[1]

    def network_spec(self, X: Any) -> NetworkSpec:  # noqa: N803
        """The architecture of the network that a fit would train on such rows."""
        return self._choose(self.read_schema(X), len(X))[0]

    def search_space(self, X: Any, num_rows: int | None = None) -> Space:  # noqa: N803
        """What is worth searching for rows such as these: around what the recipe would choose.

        Rows that are a table alone, where no backbone was named, have a choice among those that a
        recipe would take; options are those of the backbones that are there.
        """
        schema = self.read_schema(X)
        spec, settings = self._choose(schema, len(X) if num_rows is None else num_rows)
        rate, decay = settings.learning_rate, max(settings.weight_decay, _LEAST_DECAY)
        space: dict[str, Dimension] = {
            "settings.learning_rate": Between(rate / 8, 3 * rate, log=True),
            "settings.weight_decay": Between(decay / 30, 3 * decay, log=True),
            "settings.batch_size": OneOf(
                (max(2, settings.batch_size // 2), settings.batch_size, 2 * settings.batch_size)
            ),
        }
        if (
            self.backbone is None
            and schema.parts == (TABLE,)
            and not METHODS[self.method].couples_rows
        ):
            space["backbone"] = OneOf(("mlp", "tabm"))
        for part, name in spec.backbones.items():
            for option, dimension in option_space(name).items():
                space[f"backbone_options.{part}.{option}"] = dimension
        return space

    def frozen_features(self, X: Any, *others: Any) -> list[NDArray[np.float32]]:  # noqa: N803
        """What the frozen encoders give for rows of each table, (n, d), without any fit.

        How cells are read is decided on the first of the tables.
        """
        schema = self.read_schema(X)
        spec, _ = self._choose(schema, len(X))
        ranks = np.zeros(len(X), dtype=np.int64)
        rows = Rows(schema, schema.read(X), ranks)
        network, readers = self._build(rows, spec, Labels(np.arange(2)), 0)
        features = []
        for frame in (X, *others):
            inputs = readers.inputs(schema.read(frame), cast(TableEncoder, network.encoder))
            inputs = precomputed(network, inputs, self._workers(inputs))
            parts = [*inputs.parts.values()] if isinstance(inputs, Inputs) else [inputs]
            if not all(isinstance(part, Tensor) for part in parts):
                raise ValueError(
                    "features are computed once only where encoders are frozen; give "
                    "backbone_options={'frozen': True}"
                )
            features.append(torch.cat(cast(list[Tensor], parts), 1).numpy())
        return features

    def _choose(self, schema: TableSchema, num_rows: int) -> "tuple[NetworkSpec, Settings]":
        """The network, and the settings of its training, for so many rows."""
        from echelon.training.recipes import make_settings, make_spec, require_settings

        overrides = require_settings(self.settings, self.get_params(deep=False))
        of_network = {
            "backbone_options": self.backbone_options,
            "method_options": self.method_options,
            "inputs": input_options(self.inputs).encoding,
            "scaling": overrides.pop("scaling", None),
            "networks": overrides.pop("networks", None),
        }
        # Costs and cut-points apply to the finished model; the recipe's rule serves until then.
        overrides["decision"] = self.decision if str(self.decision) in DECISIONS else None
        spec = make_spec(
            self.recipe, self.method, self.backbone, schema.parts, of_network, num_rows
        )
        return spec, make_settings(self.recipe, spec, num_rows, overrides)

    def _build(
        self, rows: Rows, spec: NetworkSpec, labels: Labels, seed: int
    ) -> tuple[OrdinalNetwork, Readers]:
        """A fresh network, and the readers of its texts and images, for training rows."""
        readers = Readers.of(rows.table, spec)
        encoder = TableEncoder.of(rows.table, rows.schema, scaling=spec.scaling)
        chosen = make_method(spec.method, labels.num_classes, **spec.method_options)
        with RandomStream(seed).drawn():
            return make_network(encoder, readers, spec, chosen, self.backbone), readers

    def _encoded(self, readers: Readers, network: OrdinalNetwork, rows: Rows) -> "EncodedRows":
        """What the loop trains on."""
        from echelon.training.batches import EncodedRows

        features = readers.inputs(rows.table, cast(TableEncoder, network.encoder))
        return EncodedRows(
            precomputed(network, features, self._workers(features)),
            torch.from_numpy(rows.ranks),
            None if rows.weight is None else torch.from_numpy(rows.weight),
        )

    def _train(
        self,
        network: OrdinalNetwork,
        rows: "TrainingRows",
        validation: "EncodedRows | None",
        spec: NetworkSpec,
        settings: "Settings",
        seed: int,
        stage: str = "",
    ) -> "Progress":
        from echelon.training.checkpoints import CheckpointFolder
        from echelon.training.devices import make_fabric
        from echelon.training.loop import train
        from echelon.training.progress import epoch_bar, validation_loss

        if settings.even_start:
            network.method.start_evenly(network.head)
        fabric = make_fabric(self.device, settings.precision)
        folder = None
        if self.checkpoint_dir is not None:
            mark = rows.fingerprint(spec, settings, seed)
            folder = CheckpointFolder(Path(self.checkpoint_dir) / stage, mark)
        title = stage or "fit"
        with epoch_bar(title, settings.max_epochs, shown=bool(self.verbose)) as report:

            def on_epoch(row: dict[str, float]) -> bool | None:
                if report is not None:
                    report(row)
                if self.on_step is None or (loss := validation_loss(row)) is None:
                    return None
                return self.on_step(int(row["epoch"]), loss)

            return train(
                network,
                rows,
                validation,
                settings,
                seed=seed,
                fabric=fabric,
                folder=folder,
                on_epoch=on_epoch,
                time_limit=None if self.time_limit is None else self.time_limit / spec.networks,
                workers=self._workers(rows.features),
            )

    # ---- predicting --------------------------------------------------------------------------

    def default_decision(self) -> str:
        """That of the recipe."""
        decision: str = self.training_["decision"]
        return decision

    @torch.no_grad()
    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows; those of a table in float64."""
        network = self.network_
        if _is_training(network):
            network.eval()
        inputs = None if table.is_plain else self.readers_.inputs(table, self._encoder)
        if isinstance(inputs, Inputs):
            inputs = precomputed(network, inputs, self._workers(inputs))
            yield predict_curve(network, inputs, self._workers(inputs))
        else:
            yield from table_curves(network, table)

    def _workers(self, features: Tensor | Inputs) -> int:
        """The threads that read cells ahead of the network."""
        asked = [
            options["workers"]
            for options in input_options(self.inputs).reading.values()
            if "workers" in options
        ]
        return worker_count(features, asked[0] if asked else None)

    def add_to_graph(self, graph: Graph) -> str:
        """The network, from raw cells on."""
        return graph.module_of_cells(_LogProbabilities(self.network_), self.schema_.parts)

    @property
    def encodings(self) -> Mapping[str, Encoding]:
        """How texts and images are encoded."""
        return self.readers_.encodings

    @property
    def _encoder(self) -> TableEncoder:
        return cast(TableEncoder, self.network_.encoder)

    def farthest_column(self, table: RawTable, row: int) -> str | None:
        """The column in which a row is farthest from the rows that were trained on."""
        encoder = self._encoder
        numbers = table.numbers[row, encoder.kept.cpu().numpy()]
        if not len(numbers):
            return None
        with np.errstate(over="ignore"):
            away = np.abs(numbers - encoder.centre.cpu().numpy()) / encoder.scale.cpu().numpy()
        place = int(np.nan_to_num(away, posinf=np.inf).argmax())
        name = self.schema_.numeric[int(encoder.kept[place])].name
        return f"{name!r}, which holds {numbers[place]:g}"

    def outcome(self) -> dict[str, Any]:
        """The epoch that was chosen."""
        return {"best_epoch": self.best_epoch_}

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """The network's weights, and what its layers and its readers are."""
        if not isinstance(self.fitted_parameters_["backbone"], (str, Mapping, NoneType)):
            raise ValueError(
                "a model with a backbone of your own cannot be saved, as reading it back would "
                "have to run your code; save `model.network_.state_dict()` yourself, or use a "
                "named backbone"
            )
        document = {
            "readers": self.readers_.describe(self.network_),
            "network": self.spec_.describe(),
            "training": self.training_,  # for the record: nothing is rebuilt from it
            "history": self.history_,
            "best_epoch": self.best_epoch_,
        }
        return Described(document, dict(self.network_.state_dict()))

    def rebuild_model(self, described: Described) -> None:
        """The network that a document and tensors describe, neither of which is trusted."""
        document, tensors = described
        self.spec_ = NetworkSpec.rebuild(typed(document["network"], dict, "network"))
        self.training_ = typed(document["training"], dict, "training")
        check_decision(self.training_["decision"], self.labels_.num_classes)
        numeric, categorical = self.schema_.numeric, self.schema_.categorical
        kept, indicators = (
            read_places(tensors[f"encoder.{name}"], len(numeric)) for name in ("kept", "indicators")
        )
        readers = Readers.rebuild(typed(document["readers"], dict, "readers"))
        spec = self.spec_
        chosen = make_method(self.method, self.labels_.num_classes, **spec.method_options)
        _check_parts(self, readers)

        def make() -> OrdinalNetwork:
            encoder = TableEncoder(
                len(numeric),
                tuple(len(column.categories) for column in categorical),
                scaling=spec.scaling,
                kept=kept,
                indicators=indicators,
            )
            return make_network(encoder, readers, spec, chosen)

        with RandomStream(0).drawn():  # its first weights are random, and then those of the file
            self.network_ = cast(OrdinalNetwork, rebuild(make, tensors))
        self.network_.eval()
        self.readers_ = readers
        for scores in typed(document["history"], list, "history"):
            require_scores(scores)
        self.history_ = document["history"]
        self.best_epoch_ = document["best_epoch"]
        if self.best_epoch_ is not None:
            typed(self.best_epoch_, int, "best epoch")
        _try_out(self)


def _is_training(module: nn.Module) -> bool:
    """Whether a module, or one within it, is in training mode; quicker than through `modules`."""
    return module.training or any(
        _is_training(part) for part in module._modules.values() if part is not None
    )


class _LogProbabilities(nn.Module):
    """From raw cells by kind, as a network takes them, to log-probabilities."""

    def __init__(self, network: OrdinalNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, cells: Cells) -> Tensor:
        return self.network.curve(self.network(cells)).log_probabilities


def _memory_line(parts: Sequence[Rows], rows: "EncodedRows", network: nn.Module) -> str:
    """What a fit holds at once: all rows, their features, and the network with its optimiser."""
    tables = [part.table for part in parts]
    raw = sum(table.numbers.nbytes + table.codes.nbytes for table in tables)
    taken = rows.features.parts.get(TABLE) if isinstance(rows.features, Inputs) else rows.features
    features = taken if isinstance(taken, Tensor) else None
    held = sum(t.nbytes for t in (features, rows.ranks, rows.weight) if t is not None)
    held = held * sum(map(len, tables)) // len(rows.ranks)  # validation rows are encoded as well
    # parameters, gradients, two moments, and the best epoch
    parameters = 5 * sum(parameter.nbytes for parameter in network.parameters())
    total = (2 * raw + held + parameters) / 2**20  # the split copies the table once
    what = [f"{sum(map(len, tables)):,} rows"]
    if features is not None:
        what.append(f"{features.shape[1]} features")
    what += [f"{kind}s" for kind in tables[0].cells]
    return f"{', '.join(what)}: about {total:,.0f} MiB"


# ---- what a file says ----------------------------------------------------------------------------


def _try_out(model: OrdinalClassifier) -> None:
    """Predict one empty row of texts and images, to find here what does not fit together."""
    if model.schema_.parts == (TABLE,):
        return
    readers, encoder = model.readers_, cast(TableEncoder, model.network_.encoder)
    row: dict[str, Tensor] = {}
    if TABLE in model.schema_.parts:
        row[TABLE] = torch.zeros(1, encoder.num_features)
    row |= {kind: encoding.example(1) for kind, encoding in readers.encodings.items()}
    with torch.no_grad():
        model.network_.curve(model.network_(row))


def _check_parts(model: OrdinalClassifier, readers: Readers) -> None:
    """Raise where columns, networks and readers are not of the same parts of a row."""
    parts = model.schema_.parts
    model.spec_.check_parts(parts)
    if model.spec_.method != model.method:
        raise ValueError(f"its network is of {model.spec_.method!r}, not of {model.method!r}")
    for kind in CELL_KINDS:
        if (kind in parts) != (kind in readers.encodings):
            raise ValueError(f"its column of {kind}s and what reads it do not belong together")
        if len(model.schema_.of_kind(kind)) > 1:
            raise ValueError(f"it has several columns of {kind}s")

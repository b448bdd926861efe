"""The one training loop, for one device and for several.

Invariant: given the settings, the data and the seed, everything that happens is decided: an
interrupted run goes on from its checkpoint to the same weights, bit by bit.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.curve import RankCurve
from echelon.evaluation import metrics
from echelon.functional import LossParts
from echelon.networks.network import OrdinalNetwork
from echelon.networks.prediction import predict_curve
from echelon.networks.randomness import RandomStream
from echelon.training.batches import EncodedRows, Fed, TrainingRows
from echelon.training.checkpoints import CheckpointFolder
from echelon.training.recipes import Settings

_CHECK_EVERY = 50  # steps between looks at the loss, each of which waits for the device


@dataclass
class Progress:
    """Where a run is, and what it has seen: all of it goes into a checkpoint."""

    epoch: int = 0
    step: int = 0  # within the epoch
    loss_sum: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None


def train(
    network: OrdinalNetwork,
    rows: TrainingRows,
    validation: EncodedRows | None,
    settings: Settings,
    *,
    seed: int,
    fabric: Any,
    folder: CheckpointFolder | None = None,
    checkpoint_seconds: float = 30.0,
    on_epoch: Callable[[dict[str, float]], bool | None] | None = None,
    workers: int = 0,
    time_limit: float | None = None,
) -> Progress:
    """Train a network in place and leave it with the weights of its best epoch.

    Parameters
    ----------
    network : OrdinalNetwork
    rows : TrainingRows
        In memory or from a source.
    validation : EncodedRows, optional
    settings : Settings
    seed : int
        Decides the batches and the dropout; the caller decides the first weights.
    fabric : lightning_fabric.Fabric
    folder : CheckpointFolder, optional
        Where to keep the newest checkpoint, and to go on from one that is there.
    checkpoint_seconds : float
        Least time between two checkpoints.
    on_epoch : callable, optional
        Called with each row of the history; True ends the training with that epoch.
    workers : int
        Threads that prepare batches of texts and images; they decide nothing.
    time_limit : float, optional
        Seconds after which no further epoch begins.
    """
    reason = network.method.needs_one_device
    if reason is not None and fabric.world_size > 1:
        raise ValueError(
            f"{network.method.name} {reason}, and there are {fabric.world_size}; train on one "
            f"device or choose another method"
        )
    run = _Run(network, rows, validation, settings, seed, fabric, workers)
    if folder is not None and (checkpoint := folder.load()) is not None:
        if (misfit := run.misfit(*checkpoint)) is None:
            run.restore(*checkpoint)
        else:
            folder.set_aside(f"the checkpoint {folder.path} does not fit its own run: {misfit}")
    saved = time.monotonic()
    is_told = False

    def save_if_due() -> None:
        nonlocal saved, is_told
        if folder is None or time.monotonic() - saved < checkpoint_seconds:
            return
        try:
            if fabric.is_global_zero:
                folder.save(*run.state())
        except OSError as error:  # a checkpoint is for bad times, and no reason to end a fit
            if not is_told:
                is_told = True
                warnings.warn(f"{error}. The fit goes on without a checkpoint", stacklevel=3)
        saved = time.monotonic()

    end = math.inf if time_limit is None else time.monotonic() + time_limit
    while run.progress.epoch < settings.max_epochs and not run.is_stalled():
        for _ in run.steps():
            save_if_due()
        row = run.end_epoch()
        save_if_due()
        is_enough = on_epoch is not None and on_epoch(row) is True
        if is_enough or time.monotonic() > end:
            break
    run.keep_best()
    return run.progress


class _Run:
    """The moving parts of one training run."""

    def __init__(
        self,
        network: OrdinalNetwork,
        rows: TrainingRows,
        validation: EncodedRows | None,
        settings: Settings,
        seed: int,
        fabric: Any,
        workers: int = 0,
    ) -> None:
        self.network = network
        self.workers = workers
        self.settings = settings
        self.fabric = fabric
        self.feed = rows.feed(settings, seed, fabric, workers)
        self.steps_per_epoch = self.feed.steps_per_epoch
        self.validation = None if validation is None else validation.to(fabric.device)
        self.progress = Progress()
        self.best: dict[str, Tensor] | None = None
        # dropout differs between processes
        self.random = RandomStream(seed + fabric.global_rank, fabric.device)
        parameters = [p for p in network.parameters() if p.requires_grad]
        optimiser = torch.optim.AdamW(
            _parameter_groups(network, settings),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=fabric.device.type in ("cpu", "cuda"),
        )
        self.module, self.optimiser = fabric.setup(network, optimiser)
        self.parameters = parameters
        self.average = [p.detach().clone() for p in parameters] if settings.average else []

    # ---- one epoch ---------------------------------------------------------------------------

    def steps(self) -> Any:
        """Train the rest of the epoch, yielding after every step."""
        progress = self.progress
        self.module.train()
        losses: list[Tensor] = []
        for batch in self.feed.batches(progress.epoch, progress.step):
            with self.random.drawn():
                losses.append(self._step(batch))
            progress.step += 1
            if len(losses) == _CHECK_EVERY or progress.step == self.steps_per_epoch:
                self._look_at(losses)
                losses = []
                yield

    def _step(self, batch: Fed) -> Tensor:
        fabric, rate = self.fabric, self._learning_rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["share"]
        logits = self.module(batch.features)
        loss_of = self._loss if fabric.world_size == 1 else self._global_loss
        loss = loss_of(logits, batch.ranks, batch.weight)
        fabric.backward(loss)
        if self.settings.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self._add_to_average()
        return loss.detach()

    @torch.no_grad()
    def _add_to_average(self) -> None:
        if not self.average:
            return
        step = self.progress.epoch * self.steps_per_epoch + self.progress.step
        # the first steps are soon forgotten
        kept = min(self.settings.average, (1 + step) / (10 + step))
        for mean, parameter in zip(self.average, self.parameters, strict=True):
            mean.lerp_(parameter, 1 - kept)

    @torch.no_grad()
    def _swap_average(self) -> None:
        """Put the averaged weights in the network and keep the others, or the reverse."""
        for mean, parameter in zip(self.average, self.parameters, strict=False):
            kept = parameter.clone()
            parameter.copy_(mean)
            mean.copy_(kept)

    def _loss(self, logits: Tensor, ranks: Tensor, weight: Tensor | None) -> Tensor:
        """Mean loss over rows and members."""
        if weight is None:
            return self.network.loss(logits, ranks)
        return self._loss_parts(logits, ranks, weight).mean()

    def _loss_parts(self, logits: Tensor, ranks: Tensor, weight: Tensor | None) -> LossParts:
        """Sum of the loss over rows and members, and the count that an average batch has.

        `weight` (n,) has a mean of 1 over all rows that are trained on. The count does not know it:
        a heavy row makes its batch heavy, and not all rows of its batch light.
        """
        return self.network.loss_parts(logits, ranks, weight, weigh_count=False)

    def _global_loss(self, logits: Tensor, ranks: Tensor, weight: Tensor | None) -> Tensor:
        """The loss of the whole global batch; DDP then averages gradients over the processes."""
        parts = self._loss_parts(logits, ranks, weight)
        count = self.fabric.all_reduce(parts.count.clone(), reduce_op="sum")
        safe = count.masked_fill(count == 0, 1)
        loss: Tensor = (parts.total * self.fabric.world_size / safe).sum()
        return loss

    def _learning_rate(self) -> float:
        settings, progress = self.settings, self.progress
        if settings.schedule == "constant":
            return settings.learning_rate
        total = self.steps_per_epoch * settings.max_epochs
        step = progress.epoch * self.steps_per_epoch + progress.step
        warm = min(1.0, (step + 1) / max(1.0, settings.warm_up * total))
        return settings.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / total))

    def _look_at(self, losses: list[Tensor]) -> None:
        values = torch.stack(losses).tolist()
        for i, value in enumerate(values):
            if not math.isfinite(value):
                step = self.progress.step - len(values) + i + 1
                raise ValueError(
                    f"the loss became {value} in epoch {self.progress.epoch + 1}, step {step}, at "
                    f"a learning rate of {self._learning_rate():.3g}; try a smaller learning_rate, "
                    f"or look for extreme values among the features and weights"
                )
            self.progress.loss_sum += value

    def end_epoch(self) -> dict[str, float]:
        """Validate, and note what the epoch brought."""
        progress, settings = self.progress, self.settings
        row: dict[str, float] = {
            "epoch": progress.epoch + 1,
            "loss": progress.loss_sum / max(1, progress.step),
        }
        self._swap_average()
        if self.validation is not None:
            curve = predict_curve(self.network, self.validation.features, self.workers)
            row[f"validation_{settings.metric}"] = score(
                curve, self.validation, settings.metric, settings.decision
            )
        progress.history.append(row)
        if self._is_best(row):
            progress.best_epoch = progress.epoch + 1
            state = self.network.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in state.items()}
        self._swap_average()
        progress.epoch, progress.step, progress.loss_sum = progress.epoch + 1, 0, 0.0
        return row

    def _is_best(self, row: dict[str, float]) -> bool:
        if self.validation is None:
            return False
        name = f"validation_{self.settings.metric}"
        sign = -1.0 if metrics.METRICS[self.settings.metric].higher_is_better else 1.0
        before = [sign * earlier[name] for earlier in self.progress.history[:-1]]
        return not before or sign * row[name] < min(before)

    def is_stalled(self) -> bool:
        """Whether patience has run out."""
        patience, best = self.settings.patience, self.progress.best_epoch
        return patience is not None and best is not None and self.progress.epoch - best >= patience

    def keep_best(self) -> None:
        """Leave the network with the weights of its best epoch."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        else:
            self._swap_average()
        self.network.eval()

    # ---- checkpoints -------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that decides how the run goes on."""
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        for name, value in (self.best or {}).items():
            tensors[f"best.{name}"] = value
        tensors |= {f"average.{i}": mean for i, mean in enumerate(self.average)}
        for i, state in enumerate(self._optimiser_states()):
            for name, value in state.items():
                tensors[f"optimiser.{i}.{name}"] = value
        for name, value in self.feed.state(self.progress.step).items():
            tensors[f"random.{name}"] = value
        tensors["random.torch"] = self.random.state
        if self.random.device_state is not None:
            tensors["random.device"] = self.random.device_state
        document = {
            "epoch": self.progress.epoch,
            "step": self.progress.step,
            "loss_sum": self.progress.loss_sum,
            "history": self.progress.history,
            "best_epoch": self.progress.best_epoch,
        }
        return tensors, document

    def _optimiser_states(self) -> list[dict[str, Tensor]]:
        inner = self.optimiser.optimizer
        return [inner.state[p] for group in inner.param_groups for p in group["params"]]

    def misfit(self, tensors: dict[str, Tensor], document: dict[str, Any]) -> str | None:
        """What keeps a run from going on from a checkpoint; None if nothing does."""
        if not _is_progress(document):
            return "it does not say where the run was"
        network = {name: _outline(value) for name, value in self.network.state_dict().items()}
        inner = self.optimiser.optimizer
        parameters = [p for group in inner.param_groups for p in group["params"]]
        expected: dict[str, Any] = {f"network.{name}": outline for name, outline in network.items()}
        expected |= {f"average.{i}": _outline(mean) for i, mean in enumerate(self.average)}
        generators = {f"random.{name}": value for name, value in self.feed.state(0).items()}
        expected |= {name: _outline(value) for name, value in generators.items()}
        expected["random.torch"] = _outline(self.random.state)
        outlines = {name: _outline(value) for name, value in tensors.items()}
        if "random.device" in outlines:  # a run may go on elsewhere
            expected["random.device"] = (outlines["random.device"][0], torch.uint8)
        if any(name.startswith("best.") for name in outlines):
            expected |= {f"best.{name}": outline for name, outline in network.items()}
        stepped = {name.rpartition(".")[0] for name in outlines if name.startswith("optimiser.")}
        for i, parameter in enumerate(parameters):
            if (prefix := f"optimiser.{i}") in stepped:
                expected[f"{prefix}.step"] = ((), torch.float32)
                expected[f"{prefix}.exp_avg"] = expected[f"{prefix}.exp_avg_sq"] = _outline(
                    parameter
                )
        for name in sorted(expected.keys() | outlines.keys()):
            if expected.get(name) != outlines.get(name):
                return f"its {name} is not as it must be"
        try:
            for name in (*generators, "random.torch"):
                torch.Generator().set_state(tensors[name])
        except RuntimeError:
            return "its random numbers have no state"
        return None

    def restore(self, tensors: dict[str, Tensor], document: dict[str, Any]) -> None:
        """Go on from a checkpoint that has no :meth:`misfit`."""
        self.network.load_state_dict(_part(tensors, "network."))
        self.best = _part(tensors, "best.") or None
        for i, mean in enumerate(self.average):
            mean.copy_(tensors[f"average.{i}"])
        inner = self.optimiser.optimizer
        parameters = [p for group in inner.param_groups for p in group["params"]]
        for i, parameter in enumerate(parameters):
            if state := _part(tensors, f"optimiser.{i}."):
                inner.state[parameter] = {
                    name: value if name == "step" else value.to(parameter.device)
                    for name, value in state.items()
                }
        self.feed.restore(_part(tensors, "random."))
        self.random.state = tensors["random.torch"]
        self.random.device_state = tensors.get("random.device")
        self.progress = Progress(**document)


def _outline(tensor: Tensor) -> tuple[tuple[int, ...], torch.dtype]:
    return tuple(tensor.shape), tensor.dtype


def _is_progress(document: dict[str, Any]) -> bool:
    """Whether a document holds the fields of :class:`Progress`, of their types."""
    history, best = document.get("history"), document.get("best_epoch")
    return (
        set(document) == {field_.name for field_ in fields(Progress)}
        and all(type(document[name]) is int and document[name] >= 0 for name in ("epoch", "step"))
        and type(document["loss_sum"]) in (int, float)
        and (best is None or (type(best) is int and 1 <= best <= document["epoch"]))
        and isinstance(history, list)
        and len(history) == document["epoch"]
        and all(
            isinstance(row, dict) and all(type(value) in (int, float) for value in row.values())
            for row in history
        )
    )


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _parameter_groups(network: OrdinalNetwork, settings: Settings) -> list[dict[str, Any]]:
    """Parameters that learn at the same share of the learning rate, and decay alike, together."""
    shares = network.learning_rates()
    free = () if settings.decay_thresholds else getattr(network.head, "thresholds", ())
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            decay = 0.0 if name.removeprefix("head.") in free else settings.weight_decay
            groups.setdefault((shares.get(name, 1.0), decay), []).append(parameter)
    return [
        {"params": members, "share": share, "weight_decay": decay}
        for (share, decay), members in groups.items()
    ]


def score(curve: RankCurve, rows: EncodedRows, metric: str, decision: str) -> float:
    """A metric of :mod:`echelon.evaluation.metrics` on validation rows."""
    truth: NDArray[Any] = rows.ranks.cpu().numpy()
    weight = None if rows.weight is None else rows.weight.cpu().numpy()
    row = metrics.metric(metric)
    if not row.of_labels:
        prediction = curve.probabilities.cpu().numpy()
    else:
        prediction = curve.label(decision).cpu().numpy()
    return float(
        row.function(truth, prediction, num_classes=curve.num_classes, sample_weight=weight)
    )

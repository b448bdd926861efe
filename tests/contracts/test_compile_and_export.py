"""Every method in compiled code, in torch.export and in ONNX."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from tests.cases import CASES, CURVE_CASES, THOROUGH, Case, make_batch

# Options share most of a compiled graph with their method.
every_method = pytest.mark.parametrize(
    "case", [case for case in CASES if THOROUGH or not case.options], ids=str
)
every_curve = pytest.mark.parametrize("case", CURVE_CASES, ids=str)
# One of each formula: the others are exported with ECHELON_THOROUGH, and as models in tests/slow.
_FORMULAS = ("ce", "ornn", "corn", "clm", "regression")
some_curves = pytest.mark.parametrize(
    "case", [case for case in CURVE_CASES if THOROUGH or str(case) in _FORMULAS], ids=str
)


@every_method
def test_compiled_loss_and_gradient_are_the_same(case: Case) -> None:
    check_compiled(case, backend="aot_eager")


# The default compiler, with every method, is in tests/slow.


def check_compiled(case: Case, backend: str) -> None:
    torch._dynamo.reset()  # it gives up after compiling one function for many cases
    batch = make_batch(case)
    weight = torch.rand(12)

    def step(features: Tensor, ranks: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        logits = batch.head(features)
        loss = batch.method.loss(logits, ranks, sample_weight=weight, ignore_index=-1)
        return loss, batch.method.curve(logits).probabilities

    compiled = torch.compile(step, fullgraph=True, backend=backend)
    ranks = batch.ranks.clone()
    ranks[0] = -1
    expected = step(batch.features, ranks, weight)
    found = compiled(batch.features, ranks, weight)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(loss, batch.features)[0] for loss, _ in (expected, found)]
    torch.testing.assert_close(gradients[1], gradients[0])
    ranks[5] = 77
    with pytest.raises(ValueError, match=r"rank 77 is outside 0\.\.4"):
        compiled(batch.features, ranks, weight)


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.is_flat and not case.options], ids=str
)
def test_compiled_soft_labels(case: Case) -> None:
    torch._dynamo.reset()
    batch = make_batch(case)
    logits, soft = batch.logits.detach(), torch.rand(12, 5).softmax(-1)
    compiled = torch.compile(batch.method.loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, soft), batch.method.loss(logits, soft))
    with pytest.raises(ValueError, match="sum to 1"):
        compiled(logits, soft * 2)


class Probabilities(nn.Module):
    """From logits to probabilities, exceedance and label, as an exported model has them."""

    def __init__(self, case: Case, num_classes: int) -> None:
        super().__init__()
        self.method = case.method(num_classes)

    def forward(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        curve = self.method.curve(logits)
        return curve.probabilities, curve.exceedance, curve.median()


@every_curve
@pytest.mark.parametrize("num_classes", [2, 5] if THOROUGH else [5])
def test_torch_export(case: Case, num_classes: int) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=20.0)
    logits = batch.logits.detach()
    module = Probabilities(case, num_classes)
    rows = torch.export.Dim("rows")
    program = torch.export.export(module, (logits,), dynamic_shapes={"logits": {0: rows}})
    torch.testing.assert_close(program.module()(logits[:7]), module(logits[:7]))


@some_curves  # `make test-slow` exports every method
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx(case: Case, tmp_path: Path) -> None:
    module = Probabilities(case, num_classes=5).eval()
    batches = [make_batch(case, magnitude=size).logits.detach() for size in (1.0, 20.0, 1e3, 1e4)]
    path = tmp_path / "probabilities.onnx"
    torch.onnx.export(
        module,
        (batches[0],),
        path,
        dynamo=True,
        verbose=False,
        dynamic_shapes={"logits": {0: torch.export.Dim("rows")}},
    )
    session = onnxruntime.InferenceSession(path)
    for logits in (*batches, batches[1][:3]):
        found = session.run(None, {session.get_inputs()[0].name: logits.numpy()})
        expected = [tensor.numpy() for tensor in module(logits)]
        for name, one, other in zip(("p", "above", "label"), found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5, err_msg=name)

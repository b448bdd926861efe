"""The table of methods and what it refuses."""

import inspect
import pickle

import numpy as np
import pytest
import torch

import echelon
from echelon.methods import METHODS

LATER = ["margin", "ranking", "diffsort", "oll", "unimodal", "forest"]
PAPER = ["ce", "ornn", "coral", "corn", "corn_without_subsets", "sord", "cnnpor"]


def test_the_table_holds_the_paper_and_the_baselines() -> None:
    assert [*PAPER, "clm", "regression", "rps", *LATER] == list(METHODS)
    assert all(spec.summary for spec in METHODS.values())


def test_options_are_read_off_the_loss() -> None:
    assert METHODS["sord"].options == {
        "distance": "absolute",
        "temperature": 1.0,
        "density": "exponential",
        "positions": None,
    }
    assert METHODS["unimodal"].options == {"form": "slopes"}
    assert METHODS["corn_without_subsets"].options == {"mask": "all", "normaliser": "pairs"}
    assert METHODS["ce"].options == {}


def test_unknown_method_lists_the_known_and_guesses() -> None:
    with pytest.raises(ValueError, match=r"one of ce, ornn.*got 'conr' \(did you mean 'corn'\?\)"):
        echelon.method("conr", 5)


def test_unknown_option_lists_the_known() -> None:
    with pytest.raises(ValueError, match="clm has no option 'temperature'; its options are: link"):
        echelon.method("clm", 5, temperature=2)
    with pytest.raises(ValueError, match="ce has no option 'link'; its options are: none"):
        echelon.method("ce", 5, link="logit")


@pytest.mark.parametrize("wrong", [1, 0, -3])
def test_too_few_classes(wrong: int) -> None:
    with pytest.raises(ValueError, match=f"num_classes must be at least 2; got {wrong}"):
        echelon.method("corn", wrong)


@pytest.mark.parametrize("wrong", [5.0, "5", None])
def test_classes_that_are_no_integer(wrong: object) -> None:
    with pytest.raises(ValueError, match="num_classes must be an integer"):
        echelon.method("corn", wrong)


def test_any_integer_will_do() -> None:
    assert echelon.method("corn", np.int64(5)).num_classes == 5


def test_can_be_made_where_tensors_are_not_real() -> None:
    with torch.device("meta"):
        assert echelon.method("corn", 5).head(3).weight.is_meta


def test_logits_that_are_no_tensor() -> None:
    with pytest.raises(ValueError, match="logits must be a tensor; got ndarray"):
        echelon.method("corn", 5).loss(np.zeros((3, 4)), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("name", METHODS)
def test_functions_refuse_shapes_without_classes(name: str) -> None:
    loss, ranks = METHODS[name].loss, torch.zeros(3, dtype=torch.long)
    more = {"num_classes": 5} if "num_classes" in inspect.signature(loss).parameters else {}
    with pytest.raises(ValueError, match="last dimension"):
        loss(torch.tensor(1.0), ranks, **more)
    with pytest.raises(ValueError, match=r"at least 2 classes|needs logits"):
        loss(torch.zeros(3, 0), ranks, **more)


def test_equal_when_made_alike() -> None:
    one = echelon.method("clm", 5, link="probit")
    assert one == echelon.method("clm", 5, link="probit")
    assert one != echelon.method("clm", 5)
    assert repr(one) == "method('clm', num_classes=5, link='probit')"
    assert len({one, echelon.method("clm", 5, link="probit")}) == 1


def test_survives_pickling_to_a_worker() -> None:
    one = echelon.method("sord", 5, temperature=0.5)
    other = pickle.loads(pickle.dumps(one))
    logits, ranks = torch.randn(4, 5), torch.tensor([0, 1, 2, 3])
    assert torch.equal(one.loss(logits, ranks), other.loss(logits, ranks))


def test_options_reach_the_loss_and_the_curve() -> None:
    logits, ranks = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 4, 0])
    probit, logit = echelon.method("clm", 5, link="probit"), echelon.method("clm", 5)
    assert probit.loss(logits, ranks) != logit.loss(logits, ranks)
    likelihood = probit.curve(logits).log_probabilities.gather(1, ranks.unsqueeze(1))
    torch.testing.assert_close(probit.loss(logits, ranks), -likelihood.mean())


def test_tasks_of_ranks_that_are_none() -> None:
    corn = echelon.method("corn", 4)
    with pytest.raises(ValueError, match=r"ranks must lie in 0\.\.3; got 0 to 4"):
        corn.tasks(torch.tensor([0, 4]))
    with pytest.raises(ValueError, match=r"ranks must be a tensor of integers; got torch\.float32"):
        corn.tasks(torch.tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match="ranks must be a tensor of integers; got list"):
        corn.tasks([0, 1])
    targets, active = corn.tasks(torch.zeros(0, dtype=torch.long))
    assert targets.shape == active.shape == (0, 3)


@pytest.mark.parametrize("name", echelon.METHODS)
@pytest.mark.parametrize("num_classes", [2, 5, 40])
def test_an_even_start_makes_all_ranks_equally_likely(name: str, num_classes: int) -> None:
    chosen = echelon.method(name, num_classes)
    head = chosen.head(64)
    before = [parameter.detach().clone() for parameter in head.parameters()]
    chosen.start_evenly(head)
    curve = chosen.curve(head(torch.zeros(1, 64)))
    if chosen.spec.even_bias is None:  # it starts near there, or with cutpoints that do
        assert all(map(torch.equal, before, head.parameters()))
        return
    torch.testing.assert_close(
        curve.probabilities, torch.full((1, num_classes), 1 / num_classes), rtol=1e-5, atol=0
    )


def test_an_even_start_reaches_every_head_of_several() -> None:
    corn = echelon.method("corn", 4)
    heads = torch.nn.ModuleList([corn.head(3), corn.head(3)])
    corn.start_evenly(heads)
    for head in heads:
        torch.testing.assert_close(head.bias, torch.tensor([3.0, 2.0, 1.0]).log())

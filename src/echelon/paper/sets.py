"""The data sets that can be reproduced: a row says all that the rest must know of one.

A published set says what its protocol is to the letter: the network, how its images are read, and,
through the published logs, the learning rate and the batch size of each method.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echelon.experiments.tasks import Task
from echelon.paper.data import Partition, read_coursera, read_tripadvisor
from echelon.paper.figures import published_settings
from echelon.paper.images import (
    read_aes,
    read_afad,
    read_faces,
    read_knees,
    read_morph2,
    read_retina,
)
from echelon.paper.tasks import (
    digits_task,
    fireman_task,
    generated_discs,
    generated_reviews,
    generated_task,
    partition_task,
)

WITHOUT_SUBSETS, PUBLISHED_MASK = "corn_without_subsets", "corn_without_subsets:mask=published"
MAIN_METHODS = ("ce", "ornn", "coral", "corn")
ALL_METHODS = (*MAIN_METHODS, WITHOUT_SUBSETS, PUBLISHED_MASK)
SIX_METHODS = (*MAIN_METHODS, "sord", "cnnpor")

# Methods without a published run are trained as the one that is most like them.
_LIKE = {WITHOUT_SUBSETS: "corn", "sord": "ce", "cnnpor": "ce"}


@dataclass(frozen=True)
class Request:
    """What is asked of a data set.

    Parameters
    ----------
    data : Path, optional
        The file or folder of the data.
    images : Path, optional
        The folder of its images, where that is another.
    category : str, optional
        Of AES.
    seed : int
        Of the division, where the set has one for each seed.
    persons : bool
        Whether the images of a person stay in one subset, of MORPH-2.
    """

    data: Path
    images: Path
    category: str | None = None
    seed: int = 0
    persons: bool = False


@dataclass(frozen=True)
class SetRow:
    """A data set.

    Parameters
    ----------
    name : str
    kind : {"table", "text", "image"}
        What its rows hold.
    backbone : str, optional
        The network that reads it; None for the recipe's own.
    read : callable, optional
        From a request to a partition, or to a task that is ready.
    make : callable, optional
        The task without any file, of data that are generated or embedded.
    stands_in : str, optional
        The set that stands in where no data are given.
    methods : tuple of str
        What is compared unless someone says otherwise.
    recipe : {"paper", "default"}
        How it is trained unless someone says otherwise.
    log : str
        Its name in the published logs; empty where it is not in them.
    inputs : mapping
        How recipe "paper" reads its texts or images.
    is_swapped : bool
        Whether the published runs swap validation and test.
    has_persons : bool
        Whether the persons of its images are known.
    has_categories : bool
        Whether it comes in categories.
    """

    name: str
    kind: str
    backbone: str | None = None
    read: Callable[[Request], Partition | Task] | None = None
    make: Callable[[], Task] | None = None
    stands_in: str | None = None
    methods: tuple[str, ...] = MAIN_METHODS
    recipe: str = "default"
    log: str = ""
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_swapped: bool = False
    has_persons: bool = False
    has_categories: bool = False

    def task(self, request: Request | None, *, swap: bool = False) -> Task:
        """Its data, divided; of the set itself where no data are given, if it needs none."""
        if request is None:
            if self.make is None:
                raise ValueError(f"{self.name} needs its data: give --data PATH")
            return self.make()
        assert self.read is not None
        data = self.read(request)
        if isinstance(data, Task):
            return data
        return partition_task(data.swapped() if swap else data, split=request.seed)

    def settings(self, method: str, category: str | None = None) -> dict[str, Any]:
        """The learning rate and batch size of a method in the published runs; empty without any.

        Examples
        --------
        >>> SETS["aes"].settings("coral", "urban")
        {'learning_rate': 0.001, 'batch_size': 16}
        >>> SETS["tripadvisor"].settings("ornn")
        {'learning_rate': 0.005, 'batch_size': 64}
        """
        name = method.partition(":")[0].partition("/")[0]
        if not self.log or self.kind == "table":  # the recipe itself knows that one
            return {}
        # AES without a category was not published, and is trained as the first of them.
        wanted = (category or "nature") if self.has_categories else ""
        for like in (name, _LIKE.get(name, "corn")):
            settings = published_settings(self.log, like, wanted)
            if settings is not None:
                return {"learning_rate": float(settings[0]), "batch_size": int(settings[1])}
        return {}


def _faces(name: str, read: Callable[..., Partition], **more: Any) -> SetRow:
    return SetRow(
        name, "image", "timm:resnet34", stands_in="discs", log=name, is_swapped=True,
        inputs={"image": {"preprocessing": "paper_faces"}}, **more,
        read=lambda r: read(
            r.data, r.images, seed=r.seed, **({"persons": True} if r.persons else {})
        ),
    )  # fmt: skip


def _aes(name: str, backbone: str, methods: tuple[str, ...], **more: Any) -> SetRow:
    balanced = more.pop("balanced", False)
    return SetRow(
        name, "image", backbone, stands_in="discs", methods=methods,
        inputs={"image": {"preprocessing": "paper"}}, **more,
        read=lambda r: read_aes(
            r.data, r.images, category=r.category, seed=r.seed, balanced=balanced
        ),
    )  # fmt: skip


SETS: Mapping[str, SetRow] = {
    row.name: row
    for row in (
        SetRow(
            "fireman", "table", read=lambda r: fireman_task(r.data), make=generated_task,
            methods=ALL_METHODS, recipe="paper", log="fireman",
        ),
        SetRow(
            "coursera", "text", "lstm", read=lambda r: read_coursera(r.data, seed=r.seed),
            stands_in="reviews", log="coursera",
        ),
        SetRow(
            "tripadvisor", "text", "lstm", read=lambda r: read_tripadvisor(r.data, seed=r.seed),
            stands_in="reviews", log="tripadvisor",
        ),
        _faces("morph2", read_morph2, has_persons=True),
        _faces("afad", read_afad),
        # torchvision's VGG16 with batch normalisation, as published; the paper's words name the
        # plain one, which is --backbone timm:vgg16
        _aes("aes", "timm:vgg16_bn", SIX_METHODS, log="aes", has_categories=True),
        # The ablation: of its CORN there is no log. The paper's table of image sets gives the rest.
        _aes("aes-resnet34", "timm:resnet34", ("corn", PUBLISHED_MASK), log="morph2"),
        _aes(
            "aes-balanced", "timm:resnet34", ("corn", PUBLISHED_MASK), log="morph2", balanced=True
        ),
        SetRow(
            "retina", "image", "resnet", read=lambda r: read_retina(r.data), methods=SIX_METHODS
        ),
        SetRow("knees", "image", "resnet", read=lambda r: read_knees(r.data)),
        SetRow(
            "faces", "image", "resnet", read=lambda r: read_faces(r.data, r.images, seed=r.seed)
        ),
        SetRow("reviews", "text", "lstm", make=generated_reviews),
        SetRow("discs", "image", "resnet", make=generated_discs),
        SetRow("digits", "image", "resnet", make=digits_task),
    )
}  # fmt: skip

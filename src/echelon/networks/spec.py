"""What a network is built from, and a saved one rebuilt from: its architecture, not its training.

Invariant: the spec, the columns and the tensors of a file are all that a network takes to be
rebuilt; how it was trained is no part of it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from echelon.data.kinds.tabular import SCALINGS, Scaling
from echelon.networks.table import OWN, choose_backbones

MOST_NETWORKS = 100


@dataclass(frozen=True)
class NetworkSpec:
    """The architecture of a network.

    Parameters
    ----------
    method : str
        One of ``echelon.METHODS``.
    backbones : mapping from part to str
        The name of the backbone of each part of a row; "module" for one of the user's own.
    backbone_options : mapping from part to mapping
    method_options : mapping
    input_options : mapping from part to mapping
        How texts become token ids, and images pixels.
    scaling : {"quantile", "standard", "none"}
        Of numbers.
    networks : int
        How many of them, each trained by itself, have their curves averaged.

    Examples
    --------
    >>> spec = NetworkSpec("corn", {"table": "mlp"}, {"table": {"hidden": (64,)}})
    >>> spec.parts, NetworkSpec.rebuild(spec.describe()) == spec
    (('table',), True)
    """

    method: str
    backbones: Mapping[str, str]
    backbone_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    method_options: Mapping[str, Any] = field(default_factory=dict)
    input_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scaling: Scaling = "quantile"
    networks: int = 1

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise ValueError(
                f"scaling must be one of {', '.join(map(repr, SCALINGS))}; got {self.scaling!r}"
            )
        if type(self.networks) is not int or not 1 <= self.networks <= MOST_NETWORKS:
            raise ValueError(
                f"networks must be a whole number from 1 to {MOST_NETWORKS}, such as 3; got "
                f"{self.networks!r}"
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a row that it reads, in their order."""
        return tuple(self.backbones)

    def options_of(self, part: str) -> Mapping[str, Any]:
        """The options of a part's backbone."""
        return self.backbone_options.get(part) or {}

    def describe(self) -> dict[str, Any]:
        """What a saved model stores."""
        return asdict(self)

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> "NetworkSpec":
        """A spec from what :meth:`describe` gave; it may come from anywhere, and is not trusted."""
        given = {**described, "backbone_options": _with_tuples(described.get("backbone_options"))}
        for name in ("backbones", "backbone_options", "method_options", "input_options"):
            if not isinstance(given.get(name), dict):
                raise ValueError(
                    f"the {name} of a network must be a mapping; got {given.get(name)!r}"
                )
        for name in ("backbone_options", "input_options"):
            if not all(isinstance(options, dict) for options in given[name].values()):
                raise ValueError(f"the {name} of a network must be a mapping for each part")
        names = [given.get("method"), *given["backbones"].values()]
        if not all(isinstance(name, str) and name != OWN for name in names):
            raise ValueError(f"a network must name its method and its backbones; got {names}")
        try:
            return cls(**given)
        except TypeError as error:
            raise ValueError(f"this is no description of a network: {error}") from None

    def check_parts(self, parts: tuple[str, ...]) -> None:
        """Raise where the rows of a model have other parts than the network reads."""
        if set(self.backbones) != set(parts):
            if parts == ("table",):
                raise ValueError("it has networks for texts or images, and no such column")
            raise ValueError(f"it must have a network for each of {', '.join(parts)}")
        choose_backbones(self.backbones, parts)


def _with_tuples(value: Any) -> Any:
    """Options as they were before JSON, which has no tuples."""
    if isinstance(value, dict):
        return {name: _with_tuples(inner) for name, inner in value.items()}
    return tuple(value) if isinstance(value, list) else value

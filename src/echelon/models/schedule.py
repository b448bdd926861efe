"""Who of several models may take how long, so that all of them are done within a time limit."""

import time
from dataclasses import dataclass, field

_MARGIN = 1.5  # times what a fit took before, that it may take the next time
_LEAST = 1.0  # seconds that are worth beginning a slow fit for
_QUICK = 0.5  # seconds that a quick model always gets


@dataclass
class Schedule:
    """The seconds of models that are fitted one after the other, in one fold after the other.

    The models come in the order of their cost. In the first fold each but the last may take half
    of what is left of the fold's share, and the last one the rest; in the folds that follow, each
    may take about what it took before.

    Parameters
    ----------
    limit : float, optional
        Seconds for everything, from now on; None for no limit.
    folds : int

    Attributes
    ----------
    took : dict from name to seconds
        What the last fit of each model took.
    was_short : bool
        Whether the limit has decided anything.

    Examples
    --------
    >>> schedule = Schedule(limit=None, folds=5)
    >>> schedule.seconds("boosting", is_last=False) is None, schedule.allows_fold()
    (True, True)
    """

    limit: float | None
    folds: int
    took: dict[str, float] = field(default_factory=dict)
    was_short: bool = False
    started: float = field(default_factory=lambda: time.monotonic())

    @property
    def left(self) -> float:
        """The seconds that are left; infinitely many without a limit."""
        if self.limit is None:
            return float("inf")
        return self.limit - (time.monotonic() - self.started)

    def expected(self, folds_left: float) -> float:
        """The seconds that the folds that are left will probably take."""
        whole = sum(self.took.values()) * folds_left if self.took else float("inf")
        return min(whole, max(self.left, 0.0))

    def allows_fold(self) -> bool:
        """Whether another fold of all models can be fitted in what is left."""
        return self._noted(sum(self.took.values()) <= self.left)

    def allows(self, name: str) -> bool:
        """Whether a model can be fitted once more in what is left, with something to spare."""
        return self._noted(_MARGIN * self.took.get(name, 0.0) <= self.left)

    def seconds(self, name: str, *, is_last: bool) -> float | None:
        """The seconds that a fit may take: None for any number, 0 where it is better left out."""
        if self.limit is None:
            return None
        if name in self.took:
            return max(_MARGIN * self.took[name], _LEAST)
        spent = sum(self.took.values())
        share = (max(self.left, 0.0) + spent) / self.folds - spent
        if not is_last:
            return max(share / 2, _QUICK)
        if self.took and not self._noted(share >= _LEAST):
            return 0.0
        return max(share, _LEAST)

    def _noted(self, is_enough: bool) -> bool:
        self.was_short = self.was_short or not is_enough
        return is_enough

"""What a request may ask for at most, and the answer to one that asks for more or for nonsense.

Invariant: whatever a request says, its answer is a status and one sentence; what is wrong with the
request itself has a status from 400 to 499, and only what the server lacks has one from 500 on.
"""

from dataclasses import dataclass

BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, NOT_ALLOWED = 400, 401, 404, 405
TOO_SLOW, TOO_LARGE, WRONG_TYPE, WRONG_ROWS = 408, 413, 415, 422
FAULT, BUSY = 500, 503

_MEBIBYTE = 1 << 20


class Refusal(Exception):  # noqa: N818 (an answer more than an error)
    """A request that gets no prediction: the status and the sentence of the answer.

    Parameters
    ----------
    status : int
    sentence : str
        What was required, what came, and what to try.
    retry_after : int, optional
        The seconds after which it may be tried again.
    """

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after


@dataclass(frozen=True)
class Limits:
    """What one request, and all that wait, may take.

    Parameters
    ----------
    body : int
        The bytes of a body. All bodies that are held at once may have eight times as many.
    rows : int
        The rows of a body.
    explained : int
        The rows of a body that asks for reasons.
    seconds : float
        How long a request may take, from its first byte to its answer.
    waiting : int
        How many requests may wait.

    Examples
    --------
    >>> Limits(rows=0)
    Traceback (most recent call last):
    ...
    ValueError: the limit of rows must be at least 1; got 0
    """

    body: int = 16 * _MEBIBYTE
    rows: int = 10_000
    explained: int = 20
    seconds: float = 30.0
    waiting: int = 256

    def __post_init__(self) -> None:
        for name in ("body", "rows", "explained", "waiting"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"the limit of {name} must be at least 1; got {getattr(self, name)}"
                )
        if not 0 < self.seconds <= 3600:
            raise ValueError(
                f"the limit of seconds must lie above 0 and be at most 3,600; got {self.seconds:g}"
            )

    @property
    def held(self) -> int:
        """The bytes of all bodies that are held at once."""
        return 8 * self.body

    def require_body(self, size: int) -> None:
        """Refuse a body of too many bytes."""
        if size > self.body:
            raise Refusal(
                TOO_LARGE,
                f"a body may have at most {self.body:,} bytes, and this one has {size:,} or more; "
                f"send fewer rows at a time",
            )

    def require_rows(self, count: int, *, explained: bool = False) -> None:
        """Refuse a body of too many rows, or of none."""
        most = self.explained if explained else self.rows
        if count > most:
            what = "rows to explain" if explained else "rows"
            raise Refusal(
                TOO_LARGE,
                f"a body may have at most {most:,} {what}, and this one has {count:,} or more; "
                f"send fewer at a time",
            )
        if count == 0:
            raise Refusal(WRONG_ROWS, "a body must have at least 1 row, and this one has none")

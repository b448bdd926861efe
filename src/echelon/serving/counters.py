"""What the server counts, as the text that Prometheus reads."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counters:
    """Requests by endpoint and status, their bytes and seconds, and what was predicted.

    Examples
    --------
    >>> counters = Counters()
    >>> counters.add_request("/predict", 200, received=31, sent=120, seconds=0.002)
    >>> [line for line in counters.lines() if line.startswith("echelon_requests_total")]
    ['echelon_requests_total{endpoint="/predict",status="200"} 1']
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._received: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        self._within: dict[str, list[int]] = {}
        self._predicted: Counter[str] = Counter()
        self._outside = 0

    def add_request(
        self, endpoint: str, status: int, *, received: int, sent: int, seconds: float
    ) -> None:
        """Count a request that was answered."""
        self._requests[endpoint, status] += 1
        self._received[endpoint] += received
        self._sent[endpoint] += sent
        self._seconds[endpoint] = self._seconds.get(endpoint, 0.0) + seconds
        within = self._within.setdefault(endpoint, [0] * (len(_BOUNDS) + 1))
        within[bisect_left(_BOUNDS, seconds)] += 1

    def add_predictions(self, labels: Iterable[Any], outside: int) -> None:
        """Count labels that were predicted, and how many rows lay outside the training rows."""
        self._predicted.update(map(str, labels))
        self._outside += outside

    def lines(self) -> list[str]:
        """All counters, a line each, with what they are."""
        lines = _counter(
            "echelon_requests_total",
            "Requests that were answered.",
            {(("endpoint", place), ("status", str(status))): count
             for (place, status), count in self._requests.items()},
        )  # fmt: skip
        for name, words, counts in (
            ("echelon_received_bytes_total", "Bytes of bodies that came.", self._received),
            ("echelon_sent_bytes_total", "Bytes of answers.", self._sent),
        ):
            lines += _counter(
                name, words, {(("endpoint", place),): n for place, n in counts.items()}
            )
        lines += _counter(
            "echelon_predicted_rows_total",
            "Rows by the class that was predicted.",
            {(("class", label),): count for label, count in self._predicted.items()},
        )
        lines += _counter(
            "echelon_outside_rows_total",
            "Rows that lay outside what the model was trained on.",
            {(): self._outside},
        )
        name = "echelon_request_seconds"
        lines += [
            f"# HELP {name} Seconds from a request to its answer.",
            f"# TYPE {name} histogram",
        ]
        for place, within in self._within.items():
            total = 0
            for bound, count in zip((*_BOUNDS, "+Inf"), within, strict=True):
                total += count
                labels = _labels((("endpoint", place), ("le", str(bound))))
                lines.append(f"{name}_bucket{labels} {total}")
            labels = _labels((("endpoint", place),))
            lines.append(f"{name}_sum{labels} {self._seconds[place]:.6f}")
            lines.append(f"{name}_count{labels} {total}")
        return lines


def gauge(name: str, words: str, value: float, **labels: str) -> list[str]:
    """A value that may go up and down, as lines.

    Examples
    --------
    >>> gauge("echelon_waiting", "Requests that wait.", 3)[-1]
    'echelon_waiting 3'
    """
    said = f"{value:g}" if abs(value) < 1e6 else f"{value:.3f}"
    return [
        f"# HELP {name} {words}", f"# TYPE {name} gauge", f"{name}{_labels(labels.items())} {said}",
    ]  # fmt: skip


def counter(name: str, words: str, value: int) -> list[str]:
    """A count that only grows, as lines."""
    return _counter(name, words, {(): value})


def _counter(name: str, words: str, counts: Mapping[tuple[tuple[str, str], ...], int]) -> list[str]:
    head = [f"# HELP {name} {words}", f"# TYPE {name} counter"]
    return [*head, *(f"{name}{_labels(labels)} {count}" for labels, count in counts.items())]


def _labels(pairs: Iterable[tuple[str, str]]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

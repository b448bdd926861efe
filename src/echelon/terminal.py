"""What reaches a terminal: text alone, never a code that moves its cursor or renames its window.

Headers, labels and names of files come from anywhere and stand in messages. Streams that are
wrapped here show the characters that a terminal would obey.
"""

import re
import sys
import warnings
from typing import Any, TextIO

# Controls but for tabs and ends of lines, marks that turn the direction of writing, separators of
# lines that only some obey, and halves of characters, which cannot be encoded.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with the characters that a terminal obeys as visible escapes.

    Examples
    --------
    >>> print(visible("low\x1b[2J\thigh"))
    low\x1b[2J	high
    """
    return _OBEYED.sub(_escape, text)


def _escape(match: "re.Match[str]") -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


class PlainStream:
    """A text stream that shows what a terminal would obey; everything else is the stream's own.

    Bytes that are written to its `buffer` go through as they are: they are data.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text as it can be seen, in the encoding of the stream."""
        encoding = self.stream.encoding or "utf-8"
        shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
        self.stream.write(shown)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of some texts."""
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def speak_plainly() -> None:
    """Let this process print text alone, and each warning as one line."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, PlainStream):
            setattr(sys, name, PlainStream(stream))
    warnings.showwarning = _show_warning


def drawing_stream() -> Any:
    """Standard error for what draws, such as a progress bar: with its codes."""
    return sys.stderr.stream if isinstance(sys.stderr, PlainStream) else sys.stderr


def one_line(message: Any) -> str:
    r"""A message without its line ends.

    Examples
    --------
    >>> one_line("two\n  lines")
    'two lines'
    """
    return " ".join(str(message).split())


def quoted(value: Any) -> str:
    """A value in a list of several: in quotes where a comma in it could be read as the list's.

    Examples
    --------
    >>> print(quoted("no"), quoted("yes, a little"), quoted("'in quotes, already'"))
    no 'yes, a little' 'in quotes, already'
    """
    text = str(value)
    return repr(text) if "," in text and text[0] not in "'\"" else text


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"echelon: warning: {one_line(message)}", file=sys.stderr)

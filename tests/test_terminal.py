"""What reaches a terminal."""

import io
import sys
import warnings

import pytest

from echelon.terminal import PlainStream, drawing_stream, speak_plainly, visible


def test_what_a_terminal_obeys_is_shown() -> None:
    assert visible("a\x1b]0;owned\x07b\r\x9b2J\x7f") == r"a\x1b]0;owned\x07b\x0d\x9b2J\x7f"
    assert visible("\u202eevil\u2066\ud800") == r"\u202eevil\u2066\ud800"
    assert visible("tab\tline\nümläut ± 漢字 [bold]") == "tab\tline\nümläut ± 漢字 [bold]"


def test_a_stream_shows_what_it_cannot_encode() -> None:
    below = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    stream = PlainStream(below)
    stream.writelines(["± \ud800", "\x1b"])
    stream.flush()
    stream.buffer.write(b"\x1b data")
    assert below.buffer.getvalue() == rb"\xb1 \ud800\x1b" + b"\x1b data"


def test_a_process_speaks_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", heard)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    speak_plainly()
    speak_plainly()  # once is enough
    assert drawing_stream() is heard
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        speak_plainly()
        warnings.warn("two\nlines \x1b[2J", stacklevel=1)
    heard.flush()
    assert heard.buffer.getvalue() == b"echelon: warning: two lines \\x1b[2J\n"

"""Drawings as SVG: a few marks, and colours that can be read on a light and on a dark page.

Every drawing brings its own ground, so that it can be read wherever it stands, and follows the
reader's choice of light or dark where the browser tells. Every drawing has two halves, side by side
on a wide screen and one below the other on a narrow one.
"""

from html import escape

_LIGHT = {
    "ground": "#ffffff", "ink": "#1f2328", "muted": "#57606a", "rule": "#d8dee4",
    "first": "#0b62a4", "second": "#b3500b", "pale": "#cfe3f5", "faint": "#eef1f4",
}  # fmt: skip
_DARK = {
    "ground": "#1a1d24", "ink": "#e6e8eb", "muted": "#a3abb5", "rule": "#454c58",
    "first": "#6cb6ff", "second": "#f0a35e", "pale": "#23496e", "faint": "#262b34",
}  # fmt: skip


def _rules(colours: dict[str, str]) -> str:
    return "".join(
        f".{name}{{fill:{colour}}}.{name}-line{{stroke:{colour};fill:none}}"
        for name, colour in colours.items()
    )


class Drawing:
    """A drawing of marks; `alt` says in words what it shows, for those who cannot see it.

    No mark crosses `middle`, where the right half begins.

    >>> drawing = Drawing(100, 50, 60, "A dot.")
    >>> drawing.dot(10, 10, 3, "first")
    >>> drawing.text().count("<circle")
    1
    >>> 'viewBox="0 0 60 100"' in drawing.narrow()
    True
    """

    def __init__(self, width: int, height: int, middle: int, alt: str) -> None:
        self.width, self.height, self.middle, self.alt = width, height, middle, alt
        self._marks: list[str] = []

    def word(
        self, x: float, y: float, text: str, colour: str = "ink", size: int = 14,
        anchor: str = "start", weight: str = "normal",
    ) -> None:  # fmt: skip
        """A line of text; `anchor` is start, middle or end."""
        self._marks.append(
            f'<text class="{colour}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, colour: str, outline: str = ""
    ) -> None:
        """A filled box, with an outline in another colour or without."""
        classes = f"{colour} {outline}-line" if outline else colour
        style = f' style="fill:var(--{colour})"' if outline else ""
        self._marks.append(
            f'<rect class="{classes}"{style} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="2"/>'
        )

    def line(
        self, points: list[tuple[float, float]], colour: str, width: float = 1.5, dashes: str = ""
    ) -> None:
        """A line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._marks.append(
            f'<polyline class="{colour}-line" stroke-width="{width}"{dashed} points="{path}"/>'
        )

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        """A filled circle."""
        self._marks.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>')

    def text(self) -> str:
        """The drawing as an SVG document, its halves side by side."""
        return self._document(self.width, self.height, "\n".join(self._marks))

    def narrow(self) -> str:
        """The drawing as an SVG document, its right half below the left one."""
        width = max(self.middle, self.width - self.middle)
        halves = "".join(
            f'<svg y="{top}" width="{across}" height="{self.height}" '
            f'viewBox="{left} 0 {across} {self.height}"><use href="#marks"/></svg>\n'
            for top, left, across in (
                (0, 0, self.middle),
                (self.height, self.middle, self.width - self.middle),
            )
        )
        marks = "\n".join(self._marks)
        marks = f'<defs><g id="marks">\n{marks}\n</g></defs>\n{halves.rstrip()}'
        return self._document(width, 2 * self.height, marks)

    def _document(self, width: int, height: int, marks: str) -> str:
        names = "".join(f"--{name}:{colour};" for name, colour in _LIGHT.items())
        dark = "".join(f"--{name}:{colour};" for name, colour in _DARK.items())
        style = (
            f":root{{{names}}}{_rules(_LIGHT)}text{{font-family:system-ui,sans-serif}}"
            f"@media (prefers-color-scheme:dark){{:root{{{dark}}}{_rules(_DARK)}}}"
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">\n'
            f"<title>{escape(self.alt)}</title>\n<style>{style}</style>\n"
            f'<rect class="ground" width="{width}" height="{height}" rx="6"/>\n'
            f"{marks}\n</svg>\n"
        )

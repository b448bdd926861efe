"""Charts and the HTML page (extra `report`)."""

from echelon.report.content import Comparison
from echelon.report.page import page_text, write_charts, write_page

__all__ = ["Comparison", "page_text", "write_charts", "write_page"]

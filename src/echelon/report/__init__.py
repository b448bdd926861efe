"""Charts and the HTML page (extra `report`)."""

from echelon.report.content import Comparison
from echelon.report.page import write_charts, write_page

__all__ = ["Comparison", "write_charts", "write_page"]

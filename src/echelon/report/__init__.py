"""Charts and the HTML page (extra `report`)."""

from echelon.report.page import page_text, write_charts, write_page

__all__ = ["page_text", "write_charts", "write_page"]

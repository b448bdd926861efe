"""The page about integrations: its code runs, one block after the other, as someone reads it."""

import re
from pathlib import Path

from echelon.extras import require

PAGE = Path(__file__).parent.parent.parent / "docs" / "integrations.md"


def test_the_blocks_of_the_page_run_in_their_order() -> None:
    require("torchmetrics", "the page's own import of it")  # which a torchvision may need healed
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 4
    names: dict = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)

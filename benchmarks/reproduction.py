"""Write the tables of docs/reproduction.md from the results in `experiments/results`."""

import argparse
from pathlib import Path

from echelon.paper.results import Result
from echelon.paper.tables import paper_tables
from page import write_section

RESULTS = Path(__file__).parent.parent / "experiments" / "results"


def main() -> None:
    """Print the tables, and put each into its section of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="the page, such as docs/reproduction.md")
    options = parser.parse_args()
    results = [Result.read(path) for path in sorted(RESULTS.glob("*.json"))]
    for table in paper_tables(results).values():
        text = table.markdown()
        print(f"\n## {table.title}\n\n{text}")
        if options.markdown is not None:
            write_section(options.markdown, table.title, text)


if __name__ == "__main__":
    main()

"""The command ``methods``: what can be fitted and compared, by name."""

import json

from echelon.cli.options import AsJson


def methods(as_json: AsJson = False) -> None:
    """List the methods and their options.

    Example: echelon methods
    """
    from echelon.methods import METHODS

    if as_json:
        rows = [
            {"name": spec.name, "summary": spec.summary, "options": spec.options}
            for spec in METHODS.values()
        ]
        print(json.dumps(rows))
        return
    for spec in METHODS.values():
        options = ", ".join(f"{name}={value!r}" for name, value in spec.options.items())
        print(f"{spec.name:<22}{spec.summary}" + (f" [{options}]" if options else ""))

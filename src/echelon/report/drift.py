"""The section of the page on what changed since the fit."""

import html
from collections.abc import Mapping
from typing import Any

from echelon.terminal import visible

_MOST = 30  # tests in the table


def drift_contents(document: Mapping[str, Any] | None) -> list[str]:
    """What stands in the section; nothing where no comparison was made."""
    if document is None:
        return []
    alarms = sum(test["alarm"] for test in document["tests"])
    count = len(document["tests"])
    outcome = (
        f"{alarms} of {count} comparisons with the training rows found a change."
        if alarms
        else f"None of {count} comparisons with the training rows found a change."
    )
    lacking = "".join(f"<li>{_text(sentence)}</li>" for sentence in document["not_compared"])
    return [
        f"<p><strong>{outcome}</strong> Rows of the same distribution raise an alarm, in any of "
        f"them, in {100 * document['level']:g} of 100 tables; the noise is what 95 of 100 stay "
        "below.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="What changed since the fit">'
        f"{_table(document['tests'])}</div>"
        + (f"<p>Not compared:</p><ul>{lacking}</ul>" if lacking else "")
    ]


def _table(tests: list[Mapping[str, Any]]) -> str:
    ordered = sorted(tests, key=lambda test: (not test["alarm"], test["adjusted_p_value"]))
    rows = "".join(
        f'<tr><th scope="row">{_text(test["name"])}</th><td>{_text(test["what"])}</td>'
        f"<td>{_number(test, 'distance')}</td><td>{_number(test, 'noise')}</td>"
        f"<td>{test['adjusted_p_value']:.3g}</td>"
        f'<td class="words">{_text(test["sentence"]) if test["alarm"] else "no change"}</td></tr>'
        for test in ordered[:_MOST]
    )
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in ("what", "compared", "distance", "noise", "chance of it")
    )
    return (
        f'<table><thead><tr>{heads}<th scope="col" class="words">in words</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _number(test: Mapping[str, Any], name: str) -> str:
    return f"{test[name]:.3f}" if name in test else ""


def _text(value: Any) -> str:
    return html.escape(visible(str(value)))

"""The sections of the page, as HTML; those that do not apply to the runs are not there."""

import html
import json
from typing import Any, NamedTuple

from echelon.evaluation.metrics import METRICS, Metric, constant_scores, shown_metrics
from echelon.report.charts import Titled
from echelon.report.drift import drift_contents
from echelon.report.explanation import ExplainedSection
from echelon.report.glossary import Glossary
from echelon.report.palette import colours
from echelon.report.rows import has_lines, printed_rows
from echelon.report.statistics import statistics_section
from echelon.runs import Comparison
from echelon.terminal import quoted, visible

_COEFFICIENTS = 20
_CLASSES = 12  # that are named at the top


class Section(NamedTuple):
    """A section: its anchor, its word among the links, its heading, and what stands in it."""

    name: str
    short: str
    title: str
    content: str


def page_sections(
    comparison: Comparison, made: dict[str, Titled], explained: ExplainedSection
) -> list[Section]:
    """The sections that apply, in their order."""
    best = comparison.best
    several = len(comparison.methods) > 1
    of_best = f" of {best}" if several else ""
    glossary = Glossary(list(comparison.runs))
    statistics = statistics_section(comparison, _figures(made, "statistics"))
    return [
        Section("answer", "Answer", "The answer", _answer(comparison)),
        Section(
            "methods",
            "Methods" if several else "Scores",
            "Methods" if several else "Scores",
            _methods(comparison, made, glossary)
            + (_coefficients(comparison) if statistics is None else ""),
        ),
        *([] if statistics is None else [Section("statistics", "Statistics", *statistics)]),
        Section("rows", "Rows", "Single rows", _rows(comparison, glossary)),
        *(
            Section("explanation", "What matters", f"What matters to {best}", content)
            for content in explained.contents(lambda *names: _figures(made, *names))
        ),
        *(
            Section("drift", "Drift", "What changed since the fit", content)
            for content in drift_contents(comparison.main_run.drift)
        ),
        Section(
            "errors",
            "Errors",
            f"Errors{of_best}",
            f"<p>{glossary.link('confusion matrix', 'Confusion matrix')}: what was predicted for "
            f"each true class.</p>{_figures(made, 'confusion', 'class_errors')}",
        ),
        Section(
            "probabilities",
            "Probabilities",
            f"Probabilities{of_best}",
            f"<p>Whether probabilities can be believed: their "
            f"{glossary.link('reliability')}, and the {glossary.link('coverage')} of "
            f"intervals.</p>{_figures(made, 'reliability', 'coverage')}",
        ),
        _training(made, glossary),
        Section(
            "diagnostics",
            "Diagnostics",
            f"Diagnostics{of_best}",
            f'<ul class="findings">{_findings(comparison, glossary)}</ul>',
        ),
        Section("glossary", "Glossary", "Glossary", f'<dl class="terms">{glossary.list()}</dl>'),
        Section("repeat", "Repeat", "To repeat this", _repeat(comparison)),
    ]


def title_of(comparison: Comparison) -> str:
    """What the page is called."""
    what = "Comparison of methods" if len(comparison.methods) > 1 else "Evaluation"
    return visible(f"{what} on {comparison.main_run.config.data}")


def facts(comparison: Comparison) -> str:
    """Date, model, data and version, as the inside of a list of definitions."""
    run = comparison.main_run
    config, classes = run.config, comparison.classes
    model = run.config.details.get("model")
    name = f"{comparison.best} ({model})" if model else ", ".join(comparison.methods)
    counts = ", ".join(f"{number:,} {subset}" for subset, number in config.rows.items())
    few = classes if len(classes) <= _CLASSES else [*classes[:3], "…", classes[-1]]
    said = {
        "Date": str(run.environment.get("date", "not written down")).replace("T", " ")
        .replace("+00:00", " UTC"),
        "Model" if len(comparison.methods) == 1 else "Methods": name,
        "Data": f"{config.data} ({counts} rows)",
        "Target": config.details.get("target"),
        "Classes": f"{len(classes)}: {', '.join(map(quoted, few))}",
        "Version": f"echelon {run.environment.get('echelon', 'unknown')}",
    }  # fmt: skip
    return "".join(
        f"<div><dt>{_text(what)}</dt><dd>{_text(value)}</dd></div>"
        for what, value in said.items()
        if value
    )


def _text(value: Any) -> str:
    return html.escape(visible(str(value)))


# ---- the answer and the methods ------------------------------------------------------------------


def _answer(comparison: Comparison) -> str:
    lead, *more = comparison.answer()
    listed = "".join(f"<li>{_text(sentence)}</li>" for sentence in more)
    return f'<p class="lead">{_text(lead)}</p><ul class="answer">{listed}</ul>'


def _methods(comparison: Comparison, made: dict[str, Titled], glossary: Glossary) -> str:
    several_runs = any(len(runs) > 1 for runs in comparison.runs.values())
    spread = (
        f" Mean over the {glossary.link('run', 'runs')} of each method, ± their standard deviation."
        if several_runs
        else ""
    )
    parts = [
        f"<p>On {glossary.link('test rows')}: ↓ less is better, ↑ more is better; the best of each "
        f"column is bold.{spread}</p>",
        _methods_table(comparison, glossary, several_runs),
        _figures(made, "methods"),
    ]
    if comparison.differences:
        verdicts = "".join(f"<li>{_text(sentence)}</li>" for sentence in comparison.sentences())
        parts.append(
            "<h3>Are the differences real?</h3>"
            f"<p>Differences of the {glossary.link('MAE')}, with their "
            f"{glossary.link('standard error')} over seeds and test rows and their "
            f"{glossary.link('p')}; some are {glossary.link('within noise')}.</p>"
            f"<ul>{verdicts}</ul>"
        )
    return "".join([*parts, _leaderboard(comparison)])


def _methods_table(comparison: Comparison, glossary: Glossary, several_runs: bool) -> str:
    shown = [row for row in shown_metrics(wide=True) if row.name in comparison.main_run.metrics]
    of = colours(comparison.methods)
    head = "".join(f'<th scope="col">{_heading(metric, glossary)}</th>' for metric in shown)
    best = {metric.name: comparison.best_in(metric.name) for metric in shown}
    body = []
    for name in comparison.ordered:
        role = comparison.role(name)
        tags = [] if role == "method" else [role]
        if name == comparison.best and len(comparison.runs) > 1:
            tags.append("best method" if len(comparison.methods) > 1 else "this model")
        dot = f'<span class="dot" style="background:{of[name]}"></span>' if name in of else ""
        cells = "".join(
            _cell(metric.title, comparison.cell(name, metric.name), best[metric.name] == name)
            for metric in shown
        )
        count = len(comparison.runs[name])
        runs = f'<td data-label="runs">{count}</td>' if several_runs else ""
        body.append(_table_row(role, f"{dot}{glossary.link(name)}", tags, runs + cells))
    if len(comparison.runs) == 1:
        body.append(_constant_row(comparison, shown, glossary))
    runs = f'<th scope="col">{glossary.link("run", "runs")}</th>' if several_runs else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of methods">'
        f'<table class="cards"><thead><tr><th scope="col">method</th>{runs}{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _table_row(role: str, name: str, tags: list[str], cells: str) -> str:
    shown = "".join(f' <span class="tag">{_text(tag)}</span>' for tag in tags)
    return f'<tr class="{role}"><th scope="row">{name}{shown}</th>{cells}</tr>'


def _constant_row(comparison: Comparison, shown: list[Metric], glossary: Glossary) -> str:
    """A single model has no baselines beside it but the constant of its own rows."""
    scores = constant_scores(comparison.truth, len(comparison.classes))
    cells = "".join(
        _cell(metric.title, _number(scores[metric.name], ".3f") or "-", False) for metric in shown
    )
    return _table_row("baseline", glossary.link("constant"), ["baseline"], cells)


def _heading(metric: Metric, glossary: Glossary) -> str:
    arrow = "↑" if metric.higher_is_better else "↓"
    return (
        f'{glossary.link(metric.title)} <span aria-hidden="true">{arrow}</span>'
        f'<span class="unseen">{metric.direction}</span>'
    )


def _cell(title: str, value: str, is_best: bool) -> str:
    mean, plus_minus, spread = value.partition(" ± ")
    shown = f"{mean} <small>±&nbsp;{spread}</small>" if plus_minus else mean
    kind = ' class="best"' if is_best else ""
    return f'<td data-label="{_text(title)}"{kind}>{shown}</td>'


def _coefficients(comparison: Comparison) -> str:
    for runs in comparison.runs.values():
        values = runs[0].outcome.get("coefficients")
        if values:
            break
    else:
        return ""
    known = {name: value for name, value in values.items() if value is not None}
    largest = sorted(known.items(), key=lambda item: -abs(item[1]))[:_COEFFICIENTS]
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{value:+.3f}</td></tr>'
        for name, value in largest
    )
    return (
        "<h3>Coefficients of the linear model</h3><p>What one standard "
        "deviation of a feature adds to the score; a larger score means a higher class. "
        f"The {len(largest)} largest of {len(values)}.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Coefficients">'
        '<table class="narrow"><thead><tr><th scope="col">feature</th>'
        f'<th scope="col">coefficient</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _leaderboard(comparison: Comparison) -> str:
    """What a blend tried and what it took of each, of the first run that is one."""
    blends = [name for name, runs in comparison.runs.items() if runs[0].outcome.get("leaderboard")]
    if not blends:
        return ""
    name, outcome = blends[0], comparison.runs[blends[0]][0].outcome
    board = outcome["leaderboard"]
    numbers = {
        "weight": ("weight", ".2f"),
        "rps": (METRICS["ranked_probability_score"].title, ".4f"),
        "mae": (METRICS["mae"].title, ".4f"),
        "fits": ("fits", ".0f"),
        "seconds": ("seconds", ".1f"),
    }
    shown = {key: look for key, look in numbers.items() if key in board[0]}
    head = "".join(f'<th scope="col">{_text(title)}</th>' for title, _ in shown.values())
    rows = "".join(
        f'<tr><th scope="row">{_text(row["member"])}</th>'
        + "".join(
            f'<td data-label="{_text(title)}">{_number(row.get(key), style)}</td>'
            for key, (title, style) in shown.items()
        )
        + "</tr>"
        for row in board
    )
    short = " The time limit decided what was fitted." if outcome.get("out_of_time") else ""
    return (
        f"<h3>What {_text(name)} is a mixture of</h3><p>Every model that was "
        "tried, its weight in the mixture, and its errors on rows that it had not seen."
        f'{short}</p><div class="scroll" tabindex="0" role="region" aria-label="Members">'
        f'<table class="cards"><thead><tr><th scope="col">member</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _number(value: float | None, style: str) -> str:
    return "" if value is None or value != value else f"{value:{style}}"


# ---- the rest ------------------------------------------------------------------------------------


def _figures(made: dict[str, Titled], *names: str) -> str:
    figures = [_figure(name, made[name]) for name in names if name in made]
    wide = " one" if len(figures) == 1 else ""
    return f'<div class="charts{wide}">{"".join(figures)}</div>' if figures else ""


def _figure(name: str, titled: Titled) -> str:
    if titled.chart is None:
        return f"<div><h3>{_text(titled.title)}</h3><p>{_text(titled.description)}</p></div>"
    return (
        f'<figure><h3>{_text(titled.title)}</h3><div class="chart" data-chart="{name}"></div>'
        f"<figcaption>{_text(titled.description)}</figcaption></figure>"
    )


def _training(made: dict[str, Titled], glossary: Glossary) -> Section:
    """How models were trained, where that was written down, and whether curves cross."""
    crossings = f"whether curves contradict themselves ({glossary.link('rank inconsistency')})"
    if made["training"].chart is None:
        words = f"<p>This is {crossings}.</p>{_figures(made, 'crossings')}"
        return Section("training", "Consistency", "Consistency", words)
    words = (
        f"<p>How each {glossary.link('epoch')} changed the error on {glossary.link('validation')} "
        f"rows, and {crossings}.</p>{_figures(made, 'training', 'crossings')}"
    )
    return Section("training", "Training", "Training and consistency", words)


def _rows(comparison: Comparison, glossary: Glossary) -> str:
    lines = (
        " In a spreadsheet, where the header is line 1, its line is two more."
        if has_lines(comparison.main_run.config.data)
        else ""
    )
    return (
        f"<p>What <strong>{_text(comparison.best)}</strong> predicts for a test row, next to the "
        f'truth. <span class="on-screen">Choose a row with the mouse or with the arrow keys. '
        f"</span>Its number is that in the data, counted from 0 without the header.{lines}</p>"
        '<div class="explorer"><div><label for="row-order">Sort by</label>'
        '<select id="row-order"><option value="error">error</option>'
        '<option value="surprise">surprise: the truth seemed unlikely</option>'
        '<option value="uncertainty">uncertainty: many classes seemed likely</option></select>'
        '<label for="row-list">Row</label><select id="row-list" size="10"></select></div>'
        '<div><p id="row-words" aria-live="polite"></p><div id="row-image" hidden></div>'
        '<blockquote id="row-text" hidden></blockquote><div id="row-chart"></div>'
        '<div id="row-reasons" hidden></div></div>'
        '<div id="row-columns" hidden><h3>Its columns</h3><dl id="row-cells"></dl></div></div>'
        f"{printed_rows(comparison)}"
    )


def _findings(comparison: Comparison, glossary: Glossary) -> str:
    return "".join(
        f'<li class="{finding.state}" data-code="{finding.code}">'
        f'<span class="state">{finding.state}</span>'
        f"<strong>{glossary.link(finding.title.lower(), finding.title)}</strong> "
        f"{_text(finding.message)}</li>"
        for finding in comparison.findings
    )


def _repeat(comparison: Comparison) -> str:
    run = comparison.main_run
    document = {"config": run.config.document(), "environment": run.environment}
    shown = html.escape(json.dumps(document, indent=2))
    return (
        "<p>The configuration of the run that is shown closely, and what it ran on.</p>"
        f'<pre tabindex="0" role="region" aria-label="Configuration">{shown}</pre>'
    )

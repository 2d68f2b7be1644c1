"""A verdict as one page that needs nothing else: no script, no network, no file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from graphmend_lint.verify.report import environment_in_words, quartiles, seconds, timing_rows
from graphmend_lint.verify.verdict import Arm, Break, ChangedFile, Verdict

_CONTEXT = 2

_STYLE = """
:root { --ink: #1c2733; --dim: #66727f; --line: #dfe4e9; --back: #f6f8fa; --good: #12734a; --bad: #b3261e;
  --warn: #8a5a00;  --before: #8fa3b8; --after: #2563a8; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 1rem 0 .25rem; font-weight: 600; overflow-wrap: anywhere; }
section + section { border-top: 3px double var(--line); margin-top: 3rem; padding-top: 2rem; }
.verdict { border-left: .4rem solid; padding: .6rem 1rem; background: var(--back); margin: .75rem 0;
  overflow-wrap: anywhere; }
.verdict b { text-transform: uppercase; letter-spacing: .04em; margin-right: .5rem; }
.proven { border-color: var(--good); } .proven b, td.ok { color: var(--good); }
.not-proven { border-color: var(--bad); } .not-proven b, td.fails { color: var(--bad); }
.could-not-run { border-color: var(--warn); } .could-not-run b { color: var(--warn); }
.dim { color: var(--dim); font-size: .87rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--dim); }
pre { margin: 0; padding: .5rem .75rem; background: var(--back); border: 1px solid var(--line); border-radius: 4px;
  overflow-x: auto; font: 12.5px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre span { display: block; min-height: 1.45em; }
.add { background: #e2f5ea; } .remove { background: #fde7e5; } .place { color: var(--dim); }
.here { background: #fff3d0; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 1.25rem; } .columns > div { min-width: 0; }
@media (max-width: 50rem) { .columns { grid-template-columns: 1fr; } }
.site { margin-bottom: .75rem; }
.bars { display: grid; grid-template-columns: 11rem 1fr; gap: .3rem .75rem; align-items: center; font-size: .87rem; }
.bars .name { grid-column: 1 / -1; font-weight: 600; margin-top: .6rem; }
.track { position: relative; background: var(--back); height: 1.15rem; }
.bar { height: 100%; min-width: 2px; }
.bar.before { background: var(--before); } .bar.after { background: var(--after); }
.spread { position: absolute; top: 35%; height: 30%; background: var(--ink); opacity: .55; min-width: 1px; }
"""


def page(verdicts: Sequence[Verdict]) -> str:
    """The page for one or more verdicts."""
    title = ", ".join(verdict.target for verdict in verdicts)
    sections = "\n".join(f"<section>\n{''.join(_section(verdict))}</section>" for verdict in verdicts)
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>graphmend verify: {escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{sections}\n</body>\n</html>\n"
    )


def _section(verdict: Verdict) -> Iterator[str]:
    kind = verdict.status.replace(" ", "-")
    yield f"<h1>{escape(verdict.target)}</h1>\n"
    if verdict.environment:
        yield f'<p class="dim">{escape(", ".join(environment_in_words(verdict.environment)))}</p>\n'
    yield f'<p class="verdict {kind}"><b>{verdict.status}</b>{escape(verdict.reason)}</p>\n'
    yield from _causes(verdict)
    yield from _checks(verdict)
    yield from _predicates(verdict)
    yield from _times(verdict)
    yield from _breaks(verdict)
    for file in verdict.files:
        yield from _file(file)
    if verdict.notes:
        yield f"<h2>Notes</h2>\n<ul>{''.join(f'<li>{escape(note)}</li>' for note in verdict.notes)}</ul>\n"


def _causes(verdict: Verdict) -> Iterator[str]:
    if verdict.causes:
        yield "<h2>Fixes that the difference comes from</h2>\n"
        yield _table(
            ("rule", "place", "finding"),
            ((cause.code or "all", f"{cause.path}:{cause.line}", cause.message) for cause in verdict.causes),
        )


def _checks(verdict: Verdict) -> Iterator[str]:
    if not verdict.checks:
        return
    yield "<h2>Checks</h2>\n<table><tr><th>what</th><th>original</th><th>fixed</th><th></th></tr>\n"
    for check in verdict.checks:
        word = "ok" if check.passed else "fails"
        detail = f'<br><span class="dim">{escape(check.detail)}</span>' if check.detail else ""
        cells = f"<td>{escape(check.name)}{detail}</td><td>{escape(check.original)}</td><td>{escape(check.fixed)}</td>"
        yield f'<tr>{cells}<td class="{word}">{word}</td></tr>\n'
    yield "</table>\n"


def _predicates(verdict: Verdict) -> Iterator[str]:
    if not verdict.predicates:
        return
    yield "<h2>Both sides of what was rewritten</h2>\n"
    yield _table(
        ("place", "test", "in the run: true, false", "in replays: true, false", "not exercised"),
        (
            (
                f"{Path(one.path).name}:{one.line}",
                one.code,
                f"{one.run[0]}, {one.run[1]}",
                f"{one.replay[0]}, {one.replay[1]}",
                " and ".join(one.missing) + (f" ({one.note})" if one.note else ""),
            )
            for one in verdict.predicates
        ),
    )


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>\n"


def _times(verdict: Verdict) -> Iterator[str]:
    before, after = (arm.timing if arm else None for arm in (verdict.original, verdict.fixed))
    if before is None or after is None:
        return
    yield '<h2>Times</h2>\n<div class="bars">\n'
    yield from _bars("cold start: the first pass, with compilation", [(before.cold,), (after.cold,)])
    yield from _bars("steady state: one pass, median and quartiles", [before.steady, after.steady])
    yield from _bars("uncompiled: one pass, median and quartiles", [before.eager, after.eager])
    yield "</div>\n"
    _, was, now = timing_rows(verdict)[-1]
    yield f'<p class="dim">Peak memory: original {escape(was)}, fixed {escape(now)}.</p>\n'


def _bars(name: str, times: Sequence[Sequence[float]]) -> Iterator[str]:
    yield f'<div class="name">{escape(name)}</div>\n'
    longest = max((quartiles(some)[2] for some in times), default=0.0) or 1.0
    for arm, kind, some in zip(("original", "fixed"), ("before", "after"), times, strict=True):
        low, middle, high = (100 * time / longest for time in quartiles(some))
        whisker = f'<div class="spread" style="left:{low:.2f}%;width:{high - low:.2f}%"></div>' if high > low else ""
        yield f"<div>{arm} {escape(seconds(quartiles(some)[1]))}</div>"
        yield f'<div class="track"><div class="bar {kind}" style="width:{middle:.2f}%"></div>{whisker}</div>\n'


def _breaks(verdict: Verdict) -> Iterator[str]:
    if verdict.original is None:
        return
    fixed = {Path(file.path): file for file in verdict.files}
    yield '<h2>Graph breaks</h2>\n<div class="columns">\n'
    yield from _break_list("original", verdict.original, {})
    if verdict.fixed is not None:
        yield from _break_list("fixed", verdict.fixed, fixed)
    yield "</div>\n"


def _break_list(name: str, arm: Arm, changed: dict[Path, ChangedFile]) -> Iterator[str]:
    total = arm.capture.total
    yield f"<div><h3>{name}: {total} break{'' if total == 1 else 's'}</h3>\n"
    for site in arm.capture.sites:
        skipped = ", the frame is given up" if site.skipped else ""
        place = f"{site.file}:{site.line}"
        what = f"{site.gb or 'no number'} {site.type}{skipped} ({site.rule or 'no rule'})"
        lines = _excerpt(site) if Path(site.file) not in changed else _line(site.line, site.code, "here")
        words = f'<div>{escape(what)}</div><div class="dim">{escape(place)}</div>'
        yield f'<div class="site">{words}<pre>{lines}</pre></div>\n'
    yield "</div>\n"


def _excerpt(site: Break) -> str:
    """The line of a break with those around it; what torch said of it where the file cannot be read."""
    try:
        lines = Path(site.file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    if site.line > len(lines):
        return _line(site.line, site.code, "here")
    shown = range(max(1, site.line - _CONTEXT), min(len(lines), site.line + _CONTEXT) + 1)
    return "".join(_line(number, lines[number - 1], "here" if number == site.line else "") for number in shown)


def _line(number: int, text: str, kind: str) -> str:
    return f'<span class="{kind}">{number:>5}  {escape(text)}</span>'


def _file(file: ChangedFile) -> Iterator[str]:
    rules = f" ({', '.join(file.rules)})" if file.rules else ""
    fixes = f"{file.fixes} fix{'' if file.fixes == 1 else 'es'}{rules}"
    yield f"<h2>Fixed in the overlay</h2>\n<h3>{escape(file.path)}</h3>\n"
    yield f'<p class="dim">{escape(fixes)}; the file itself was not changed</p>\n'
    if file.diff:
        yield f"<pre>{''.join(_diff_line(line) for line in file.diff.splitlines())}</pre>\n"


def _diff_line(line: str) -> str:
    kind = "place" if line.startswith(("@@", "---", "+++")) else {"+": "add", "-": "remove"}.get(line[:1], "")
    return f'<span class="{kind}">{escape(line)}</span>'

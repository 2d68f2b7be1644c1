"""From what two arms measured to a verdict: one check for each thing that must hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from graphmend_lint.verify.options import Options
from graphmend_lint.verify.verdict import (
    Arm,
    Capture,
    Cause,
    ChangedFile,
    Check,
    Message,
    Predicate,
    Raised,
    Run,
    Status,
    Verdict,
)

BREAKS = "graph breaks"
_LONGEST = 60
_MOST_CAUSES = 5
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")
# A compiled program's tensors have another history; printing one shows it.
_HISTORY = re.compile(r",?\s*grad_fn=<[^>]*>")


def nothing_fixed(target: str, original: Arm, files: int, environment: dict[str, Any]) -> Verdict:
    """The verdict where no file was changed, so that there is nothing to compare."""
    breaks = _plural(original.capture.total, "graph break")
    reason = f"no fix applies to the {_plural(files, 'executed file')}; the original has {breaks}"
    return Verdict(target, "not proven", reason, original=original, environment=environment)


def built_differently(
    target: str, original: Arm, difference: str, files: tuple[ChangedFile, ...], environment: dict[str, Any]
) -> Verdict:
    """The verdict where the fixed code makes a model or inputs that the original's do not fit into."""
    reason = f"the fixed arm builds something else: {difference}"
    check = Check("model and inputs", False, "saved", "not the same", difference)
    return Verdict(target, "not proven", reason, (check,), original, files=files, environment=environment)


def verdict(
    target: str,
    original: Arm,
    fixed: Arm,
    compared: dict[str, Any],
    files: tuple[ChangedFile, ...],
    options: Options,
    environment: dict[str, Any],
) -> Verdict:
    """Proven if every check passes; the reason is the first one that does not."""
    notes: list[str] = list(compared["eager"].get("remarks", ()))
    values, exceptions, messages = eager_checks(original.eager, fixed.eager, compared["eager"])
    checks = (
        values,
        _values("compiled values", compared["compiled"], closeness_in_words(options)),
        _compiled_like_eager(compared, notes),
        exceptions,
        _compiled_exceptions(original, fixed, notes),
        messages,
        _compiled_messages(original, fixed, notes),
        _breaks(original.capture, fixed.capture),
        _recompiles(original.compiled, fixed.compiled),
        _fullgraph(original.capture, fixed.capture),
    )
    status: Status = "proven" if all(check.passed for check in checks) else "not proven"
    reason = _reason(checks, original, fixed)
    return Verdict(target, status, reason, checks, original, fixed, files, tuple(notes), environment)


def eager_checks(original: Run, fixed: Run, compared: dict[str, Any]) -> tuple[Check, Check, Check]:
    """What must hold of the uncompiled runs."""
    return (
        _values("eager values", compared, "bit for bit"),
        _exceptions("eager exceptions", original, fixed),
        _messages("eager messages", original, fixed),
    )


def differences(checks: Iterable[Check]) -> list[Check]:
    """The checks that found a difference; to have removed no break is none."""
    return [check for check in checks if not check.passed and check.name != BREAKS]


def _reason(checks: tuple[Check, ...], original: Arm, fixed: Arm) -> str:
    failed = [check for check in checks if not check.passed]
    if not failed:
        return f"graph breaks {original.capture.total} -> {fixed.capture.total}, nothing else changed"
    if not differences(checks):
        return f"{failed[0].name}: {failed[0].detail}; nothing else changed, so the fixes are of no use here"
    more = f" (and {_plural(len(failed) - 1, 'more difference')})" if len(failed) > 1 else ""
    return f"{failed[0].name}: {failed[0].detail}{more}"


def with_sides(
    found: Verdict, predicates: tuple[Predicate, ...], differing: Sequence[dict[str, Any]], required: bool
) -> Verdict:
    """The verdict with what was seen of the rewritten predicates. `differing` are replays in which the two
    versions disagree.
    """
    sides = 2 * len(predicates)
    missing = [side for predicate in predicates for side in _missing(predicate)]
    taken = sum(map(bool, (times for predicate in predicates for times in predicate.run)))
    detail = next((f"{_place(entry)}: {entry['text']}" for entry in differing), "")
    if not detail and required and missing:
        detail = f"not exercised: {', '.join(missing)}"
    words = f"{taken} of {sides} taken", f"{sides - len(missing)} of {sides} with replays"
    check = Check("both sides", not detail, *words, detail)
    reason, status = found.reason, found.status
    if detail and status == "proven":
        reason, status = f"both sides: {detail}", "not proven"
    elif missing and status == "proven":
        reason = f"{reason}; not exercised: {', '.join(missing)}"
    return replace(found, checks=(*found.checks, check), predicates=predicates, reason=reason, status=status)


def _missing(predicate: Predicate) -> list[str]:
    place = _place({"path": predicate.path, "line": predicate.line})
    return [f"{place} `{_short(predicate.code)}` being {side}" for side in predicate.missing]


def _place(entry: dict[str, Any]) -> str:
    return f"{PurePath(entry['path']).name}:{entry['line']}"


def _short(code: str) -> str:
    return code if len(code) <= _LONGEST else f"{code[: _LONGEST - 3]}..."


def with_causes(found: Verdict, causes: tuple[Cause, ...]) -> Verdict:
    """The verdict with the fixes that the difference comes from."""
    return replace(found, causes=causes, reason=f"{found.reason}; {causes_in_words(causes)}") if causes else found


def causes_in_words(causes: Sequence[Cause]) -> str:
    """The fixes to blame, in one line."""
    names = [_cause_in_words(cause) for cause in causes]
    if len(names) == 1:
        return f"caused by {names[0]}"
    shown = ", ".join(names[:_MOST_CAUSES])
    more = f" and {len(names) - _MOST_CAUSES} more" if len(names) > _MOST_CAUSES else ""
    return f"caused by {len(names)} fixes together: {shown}{more}"


def _cause_in_words(cause: Cause) -> str:
    return f"{cause.code} at {cause.path}:{cause.line}" if cause.code else f"the fixes in {cause.path}"


def closeness_in_words(options: Options) -> str:
    if options.exact:
        return "bit for bit"
    return "within tolerance by dtype" if options.tolerance is None else f"within {options.tolerance:g}"


def _values(name: str, result: dict[str, Any], how: str) -> Check:
    return Check(name, result["equal"], "", how if result["equal"] else "differ", _first(result))


def _first(result: dict[str, Any]) -> str:
    return str(result["differences"][0]) if result["differences"] else ""


def _compiled_like_eager(compared: dict[str, Any], notes: list[str]) -> Check:
    """Compiled as eager; where torch.compile already changes the original in the same way, that is a note."""
    before, after = compared["original_compiled_to_eager"], compared["fixed_compiled_to_eager"]
    words = ["equal" if result["equal"] else "differ" for result in (before, after)]
    inherited = not before["equal"] and compared["compiled"]["equal"]
    if inherited:
        notes.append(f"torch.compile changes values of the original too: {_first(before)}")
    return Check("compiled against eager", after["equal"] or inherited, words[0], words[1], _first(after))


def _exceptions(name: str, one: Run, two: Run) -> Check:
    difference = _raised_differently(one.raised, two.raised)
    return Check(name, not difference, _count_raised(one), _count_raised(two), difference)


def _compiled_exceptions(original: Arm, fixed: Arm, notes: list[str]) -> Check:
    difference = _raised_differently(original.eager.raised, fixed.compiled.raised)
    if difference and not _raised_differently(original.compiled.raised, fixed.compiled.raised):
        notes.append(f"torch.compile changes exceptions of the original too: {difference}")
        difference = ""
    counts = _count_raised(original.eager), _count_raised(fixed.compiled)
    return Check("compiled exceptions", not difference, *counts, difference)


def _raised_differently(one: tuple[Raised | None, ...], two: tuple[Raised | None, ...]) -> str:
    for number, (mine, other) in enumerate(zip(one, two, strict=True), 1):
        if _raised_in_words(mine) != _raised_in_words(other):
            return f"call {number}: {_raised_in_words(mine)}, and {_raised_in_words(other)}"
    return ""


def _raised_in_words(raised: Raised | None) -> str:
    if raised is None:
        return "no exception"
    return f"{raised.type.removeprefix('builtins.')}({plain(raised.text)!r})"


def _count_raised(run: Run) -> str:
    count = sum(raised is not None for raised in run.raised)
    return f"{count} raised" if count else "none"


def _messages(name: str, one: Run, two: Run) -> Check:
    difference = _heard_differently(one, two)
    return Check(name, not difference, _count_heard(one), _count_heard(two), difference)


def _compiled_messages(original: Arm, fixed: Arm, notes: list[str]) -> Check:
    difference = _heard_differently(original.eager, fixed.compiled)
    if difference and not _heard_differently(original.compiled, fixed.compiled):
        notes.append(f"torch.compile changes messages of the original too: {difference}")
        difference = ""
    counts = _count_heard(original.eager), _count_heard(fixed.compiled)
    return Check("compiled messages", not difference, *counts, difference)


def _heard_differently(one: Run, two: Run) -> str:
    for number, (mine, other) in enumerate(zip(one.messages, two.messages, strict=True), 1):
        if difference := next(_odd_messages(mine, other), ""):
            return f"call {number}: {difference}"
    return ""


def _odd_messages(one: tuple[Message, ...], two: tuple[Message, ...]) -> Iterator[str]:
    mine, other = [_said(message) for message in one], [_said(message) for message in two]
    if mine == other:
        return
    for text in dict.fromkeys((*mine, *other)):
        before, after = mine.count(text), other.count(text)
        if before != after:
            verb = "lost" if not after else "new" if not before else f"heard {after} times, not {before}"
            yield f"{verb}: {text}"
    yield f"other order: {next(text for text, odd in zip(mine, other, strict=True) if text != odd)}"


def _said(message: Message) -> str:
    where = f"{message.channel} {message.category}".strip()
    return f"{where} {plain(message.text)!r}"


def plain(text: str) -> str:
    """A text without what may differ from process to process: addresses, and the history of tensors."""
    return _HISTORY.sub("", _ADDRESS.sub("0x...", text))


def _count_heard(run: Run) -> str:
    return f"{sum(map(len, run.messages))} heard"


def _breaks(original: Capture, fixed: Capture) -> Check:
    """Fewer breaks, by the count of graphs and by the places in the break log.

    A frame that Dynamo gives up runs uncompiled and hides the breaks inside it, so fewer such frames is
    better whatever the counts say.
    """
    before, after = _measure(original), _measure(fixed)
    fewer_skipped = after[0] < before[0]
    better = fewer_skipped or (after != before and all(new <= old for old, new in zip(before, after, strict=True)))
    detail = "" if better else f"no fewer than before ({breaks_in_words(original)}, and {breaks_in_words(fixed)})"
    return Check(BREAKS, better, breaks_in_words(original), breaks_in_words(fixed), detail)


def _measure(capture: Capture) -> tuple[int, int, int]:
    return capture.skipped, capture.total, len(capture.sites)


def breaks_in_words(capture: Capture) -> str:
    """The count, with its parts where there are several input sets, and the frames that were given up."""
    parts = f" ({' + '.join(map(str, capture.breaks))})" if len(capture.breaks) > 1 else ""
    skipped = f", {_plural(capture.skipped, 'frame')} given up" if capture.skipped else ""
    return f"{capture.total}{parts}{skipped}"


def _recompiles(original: Run, fixed: Run) -> Check:
    before, after = len(original.recompiles), len(fixed.recompiles)
    reason = " ".join(fixed.recompiles[-1].split()) if fixed.recompiles else ""
    detail = f"{after}, were {before}: {reason}" if after > before else ""
    return Check("recompiles", after <= before, str(before), str(after), detail)


def _fullgraph(original: Capture, fixed: Capture) -> Check:
    lost = original.whole and not fixed.whole
    detail = f"no longer captured: {_refusal(fixed)}" if lost else ""
    words = ["yes" if capture.whole else f"no: {_refusal(capture)}" for capture in (original, fixed)]
    return Check("fullgraph=True", not lost, words[0], words[1], detail)


def _refusal(capture: Capture) -> str:
    return next((reason for reason in capture.fullgraph if reason), "")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

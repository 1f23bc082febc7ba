"""The table of results, and the details of failures."""

from . import walk

_COUNTS = ("tools", "prompts", "resources + templates")
HEAD = ["server", "package", "SDK", "2026-07-28", *_COUNTS, "result", "what differs"]


def row(result):
    """Returns the row of one server."""
    server = result.server
    start = [server.name, f"`{server.package}`", result.sdk]
    if result.failed:
        return [*start, "", "", "", "", "**failed**", "could not be compared"]
    counts = [_count(result, "tools"), _count(result, "prompts")]
    counts.append(f"{_count(result, 'resources')} + {_count(result, 'templates')}")
    return [*start, "yes" if result.is_modern else "no", *counts, *_outcome(result)]


def _count(result, kind):
    return str(len(walk.items(result.direct, kind)))


def _outcome(result):
    if result.wrong:
        return "**failed**", "; ".join(result.wrong)
    if result.unexplained:
        views = sorted({one.view for one in result.unexplained})
        return "**failed**", f"{len(result.unexplained)} unexplained ({', '.join(views)})"
    reasons = dict.fromkeys(one.reason for one in result.differences)
    if not reasons:
        return "same", ""
    return "explained", "; ".join(reasons)


def table(results):
    """Lays out the table in Markdown."""
    rows = [HEAD, *map(row, results)]
    rule = ["---:" if name in _COUNTS else "---" for name in HEAD]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [rows[0], rule, *rows[1:]])


def details(results, limit=12):
    """Describes the failures of each server that did not pass."""
    lines = []
    for result in results:
        if result.passing:
            lines.append(f"{result.server.name}: {len(result.passing)} differences occurred once and not again, the first:")
            lines.append(_indented(result.passing[0]))
        if result.is_good:
            continue
        lines.append(f"{result.server.name}: FAILED {result.failed or ''}".rstrip())
        lines += [f"  {wrong}" for wrong in result.wrong]
        lines += [_indented(one) for one in result.unexplained[:limit]]
        if (n_more := len(result.unexplained) - limit) > 0:
            lines.append(f"  and {n_more} more")
    return "\n".join(lines)


def everything(results):
    """Lists all differences, including the explained ones."""
    lines = []
    for result in results:
        for one in result.differences:
            lines.append(f"{result.server.name}: {one.reason or 'UNEXPLAINED'}\n{_indented(one)}")
    return "\n".join(lines) + "\n"


def _indented(text):
    return "\n".join(f"  {line}" for line in str(text).splitlines())

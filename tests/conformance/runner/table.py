"""Tables in Markdown."""


def table(head, rows):
    """Lays out a table with its first column left-aligned and the others right-aligned."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(_padded(line, widths)) + " |" for line in lines)


def _padded(line, widths):
    first, *others = zip(line, widths, strict=True)
    return [first[0].ljust(first[1])] + [cell.rjust(width) for cell, width in others]

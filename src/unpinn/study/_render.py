"""A table as Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from unpinn.study._tables import Sheet, Value

# With more columns than this, methods become the rows.
_WIDEST = 8
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "²": r"$^2$", "¹": r"$^1$",
}  # fmt: skip


def number(value: float) -> str:
    """Three digits, without an exponent where that can be avoided.

    >>> [number(v) for v in (0.08042, 0.000643, 49_200.0, 0.0, 1.0)]
    ['0.0804', '0.000643', '49200', '0', '1.00']
    """
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e5:
        return f"{value:#.3g}".rstrip(".") if abs(value) < 1000 else f"{float(f'{value:.3g}'):.0f}"
    mantissa, _, power = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(power)}"


def spread(value: Value) -> str:
    """Mean and deviation; what stands in for them where there is none."""
    if value.mean is None:
        return "failed" if value.failed else "–"
    mean = number(value.mean)
    return mean if value.deviation is None else f"{mean} ± {_two_digits(value.deviation)}"


def printed(value: Value) -> str:
    """The paper's number, and ours over it."""
    if value.printed is None:
        return ""
    mean, deviation = value.printed
    text = number(mean) if deviation is None else f"{number(mean)} ± {_two_digits(deviation)}"
    return text if value.ratio is None else f"{text} (×{times(value.ratio)})"


def times(ratio: float) -> str:
    """A ratio in two digits.

    >>> times(0.0331), times(1.0), times(123.4)
    ('0.033', '1.0', '123')
    """
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:#.2g}".rstrip(".")


def grid(sheet: Sheet) -> tuple[str, list[str], list[tuple[str, list[Value]]]]:
    """The corner, the heads of the columns, and the rows: methods become rows where too many."""
    heads = [column.label for column in sheet.columns]
    names = [problem.label for problem in sheet.problems]
    rows = [list(row) for row in sheet.values]
    if len(heads) <= _WIDEST or len(names) >= len(heads):
        return "problem", heads, list(zip(names, rows, strict=True))
    turned = [list(column) for column in zip(*rows, strict=True)]
    return "method", names, list(zip(heads, turned, strict=True))


def markdown(sheet: Sheet) -> str:
    """A Markdown table with its caption and notes."""
    corner, heads, rows = grid(sheet)
    lines = [
        f"**{sheet.title}**", "",
        _row([corner, *heads]), _row(["---", *["---:"] * len(heads)]),
    ]  # fmt: skip
    lines += [_row([name, *(_markdown_cell(value) for value in values)]) for name, values in rows]
    if sheet.notes:
        lines.append("")
        lines += [f"{k}. {note}." for k, note in enumerate(sheet.notes, 1)]
    return "\n".join(lines) + "\n"


def latex(sheet: Sheet) -> str:
    """A LaTeX table (packages booktabs and graphicx), the paper's numbers in rows of their own."""
    corner, heads, rows = grid(sheet)
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escape(sheet.title)}}}",
        rf"\label{{tab:{sheet.name}}}", r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * len(heads)}}}", r"\toprule",
        _latex_row([corner, *map(escape, heads)]), r"\midrule",
    ]  # fmt: skip
    for name, values in rows:
        lines.append(_latex_row([escape(name), *map(_latex_cell, values)]))
        if any(value.printed for value in values):
            theirs = [_math(printed(value)) for value in values]
            lines.append(_latex_row([r"\quad\emph{paper}", *theirs]))
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if sheet.notes:
        told = (rf"$^{{{k}}}$ {escape(note)}" for k, note in enumerate(sheet.notes, 1))
        lines += [r"\par\smallskip\footnotesize", r"; \ ".join(told) + "."]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape(text: str) -> str:
    r"""A text that LaTeX shows as it is.

    >>> escape("50 % of a_b")
    '50 \\% of a\\_b'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def _markdown_cell(value: Value) -> str:
    text = spread(value)
    if value.best:
        text = f"**{text}**"
    elif value.limit and value.mean is not None:
        text = f"*{text}*"
    parts = [text + "".join(f"<sup>{k}</sup>" for k in value.notes)]
    parts += [value.remark] if value.remark else []
    parts += [f"paper {printed(value)}"] if value.printed else []
    return "<br>".join(part.replace("|", "\\|") for part in parts)


def _latex_cell(value: Value) -> str:
    text = _math(spread(value))
    if value.best:
        text = rf"\textbf{{{text}}}"
    elif value.limit and value.mean is not None:
        text = rf"\emph{{{text}}}"
    if value.notes:
        text += rf"$^{{{','.join(map(str, value.notes))}}}$"
    return f"{text} ({escape(value.remark)})" if value.remark else text


def _math(text: str) -> str:
    return text.replace("±", r"$\pm$").replace("×", r"$\times$").replace("–", "--")


def _two_digits(value: float) -> str:
    if value == 0:
        return "0"
    if 1e-5 <= value < 1e5:
        return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):.0f}"
    mantissa, _, power = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(power)}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"

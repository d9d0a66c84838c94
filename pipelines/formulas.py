"""Formulas: the parts of an expression, read from left to right from a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, nan

from pipelines.errors import Refused, unknown
from pipelines.operations import OPERATIONS, Operation

LONGEST, MOST_WORDS, DEEPEST = 4_000, 200, 25
LONGEST_NUMBER = 400
FUNCTIONS: Mapping[str, Operation] = {
    n: o for n, o in OPERATIONS.items() if n.isalpha() and n != "negative"
}
SAME = {"=": "==", "<>": "!="}
COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
FORM = "it has numbers, names, + - * / **, comparisons, brackets and"
TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<name>[^\W\d]\w*|`[^`]+`)
    | (?P<sign>\*\*|<=|>=|<>|!=|==|[-+*/(),=<>])
    | (?P<other>\S)
    | (?P<end>\Z))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:.17g}"


@dataclass(frozen=True, slots=True)
class Name:
    """What is looked up: a variable of an array, a column of a table."""

    name: str

    def __str__(self) -> str:
        return self.name if self.name.isidentifier() else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function by its name, what that does, and what it is applied to."""

    name: str
    operation: Operation
    operands: tuple[Part, ...]

    def __str__(self) -> str:
        words = [str(o) for o in self.operands]
        if self.name == "negative":
            return f"(-{words[0]})"
        if self.name in OPERATIONS and self.name not in FUNCTIONS:
            return f"({words[0]} {self.name} {words[1]})"
        return f"{self.name}({', '.join(words)})"


Part = Number | Name | Call


def read(text: str, others: Mapping[str, Operation]) -> Part:
    """What a text says, where functions are ours or `others`; all but a formula is refused.

    >>> str(read("2 * (a - b) ** 2 > 1", {}))
    '((2 * ((a - b) ** 2)) > 1)'
    """
    if len(text) > LONGEST:
        raise Refused(f"an expression has {len(text):,} characters, over the limit of {LONGEST:,}")
    return _Parser(text, {**others, **FUNCTIONS}).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Parser:
    """Reads an expression from left to right; each method reads one thing and steps past it."""

    def __init__(self, text: str, functions: Mapping[str, Operation]) -> None:
        self.text = text
        self.functions = functions
        self.at = 0
        found = [(m.lastgroup or "end", m) for m in TOKEN.finditer(text)]
        self.tokens = [_Token(kind, m[kind], m.start(kind)) for kind, m in found]
        if len(found) > MOST_WORDS + 1:
            raise Refused(
                f'expression "{text:.60}…" has over {MOST_WORDS} numbers, names and signs; '
                "make it in several boxes"
            )

    def whole(self) -> Part:
        found = self.compared(0)
        if self.next.kind != "end":
            raise self.cannot_use()
        return found

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def took(self, *signs: str) -> str:
        """The next sign if it is one of these, which is then behind us."""
        sign = SAME.get(self.next.text, self.next.text)
        if self.next.kind != "sign" or sign not in signs:
            return ""
        self.at += 1
        return sign

    def must_take(self, sign: str) -> None:
        if not self.took(sign):
            raise self.cannot_use()

    def compared(self, depth: int) -> Part:
        if depth > DEEPEST:
            raise Refused(f'expression "{self.text:.60}" nests deeper than {DEEPEST} levels')
        found = self.added(depth)
        sign = self.took(*COMPARISONS)
        return _signed(sign, found, self.added(depth)) if sign else found

    def added(self, depth: int) -> Part:
        return self.joined(("+", "-"), self.multiplied, depth)

    def multiplied(self, depth: int) -> Part:
        return self.joined(("*", "/"), self.signed, depth)

    def joined(self, signs: tuple[str, str], part: Callable[[int], Part], depth: int) -> Part:
        found = part(depth)
        while sign := self.took(*signs):
            found = _signed(sign, found, part(depth))
        return found

    def signed(self, depth: int) -> Part:
        """A power, and the signs before it, which come after it as in -x ** 2."""
        signs = 0
        while sign := self.took("-", "+"):
            signs += sign == "-"
        found = self.raised(depth)
        if not signs % 2:
            return found
        return Number(-found.value) if isinstance(found, Number) else _signed("negative", found)

    def raised(self, depth: int) -> Part:
        found = self.single(depth)
        if not self.took("**"):
            return found
        if depth > DEEPEST:
            raise Refused(f'expression "{self.text:.60}" nests deeper than {DEEPEST} levels')
        return _signed("**", found, self.signed(depth + 1))

    def single(self, depth: int) -> Part:
        if self.took("("):
            found = self.compared(depth + 1)
            self.must_take(")")
            return found
        token = self.next
        if token.kind not in ("number", "name") or len(token.text) > LONGEST_NUMBER:
            raise self.cannot_use()
        self.at += 1
        if token.kind == "number":
            return Number(self.number(token))
        if self.took("("):
            return self.called(token.text, depth)
        return Number(nan) if token.text == "nan" else Name(token.text.strip("`"))

    def number(self, token: _Token) -> float:
        if abs(float(token.text)) == inf:
            raise Refused(f'expression "{self.text:.60}": {token.text:.60} is too large a number')
        return float(token.text)

    def called(self, name: str, depth: int) -> Part:
        if name not in self.functions:
            absent = unknown("function", name, self.functions, f'for expression "{self.text:.60}"')
            raise Refused(f"{absent}; name the module of one of your own with --boxes MODULE")
        operands = [self.compared(depth + 1)]
        while self.took(","):
            operands.append(self.compared(depth + 1))
        self.must_take(")")
        does = self.functions[name]
        least, most = does.least, does.most
        if not least <= len(operands) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise Refused(
                f'expression "{self.text:.60}": {name} takes {count} values, found {len(operands)}'
            )
        return Call(name, does, tuple(operands))

    def cannot_use(self) -> Refused:
        """The refusal of what was written from the next token on."""
        rest = self.text[self.next.start :].strip()
        what = f'cannot use "{rest:.40}"' if rest else "it ends too early"
        known = ", ".join(sorted(self.functions))
        return Refused(f'expression "{self.text:.60}": {what}; {FORM} {known}')


def _signed(sign: str, *operands: Part) -> Call:
    return Call(sign, OPERATIONS[sign], operands)

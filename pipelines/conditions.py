"""Conditions: what the text of a predicate says, read from left to right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pipelines.errors import Refused

LONGEST = 100_000
LONGEST_NUMBER = 400
DEEPEST = 50
FORM = (
    "a predicate compares columns with constants (=, <>, <, <=, >, >=, between, in, is null) "
    "by and, or, not"
)
TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
SAME = {"==": "=", "!=": "<>"}
RESERVED = {"and", "or", "not", "between", "in", "is", "null", "true", "false"}
TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<text>'[^']*(?:''[^']*)*')
    | (?P<quoted>"[^"]*(?:""[^"]*)*")
    | (?P<name>[^\W\d]\w*|`[^`]+`)
    | (?P<sign><=|>=|<>|!=|==|[=<>])
    | (?P<other>\S)
    | (?P<end>\Z))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with constants: `=`, `<`, `in`, `between`, `is null`."""

    column: str
    sign: str
    constants: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions of which all (`and`) or any (`or`) must hold."""

    word: str
    parts: tuple[tuple[str, Condition], ...]


Condition = Comparison | Not | Joined


def read(text: str, asked: str = "--where") -> Condition:
    """What a predicate's text says; anything but comparisons with constants is refused.

    What is refused is called by how it was `asked` for.

    >>> read("lat between -20 and 20")
    Comparison(column='lat', sign='between', constants=(-20, 20))
    >>> read("name <> 'it''s'")
    Not(condition=Comparison(column='name', sign='=', constants=("it's",)))
    """
    if len(text) > LONGEST:
        raise Refused(f"{asked} has {len(text):,} characters, over the limit of {LONGEST:,}")
    return _Parser(text, asked).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    stop: int

    @property
    def word(self) -> str:
        """What the grammar compares: a word in small letters, a sign as it is; else nothing."""
        if self.kind == "name":
            return self.text.lower()
        return self.text if self.kind in ("sign", "other") else ""


class _Parser:
    """Reads a predicate from left to right; each method reads one thing and steps past it."""

    def __init__(self, text: str, asked: str) -> None:
        self.text = text
        self.asked = asked
        self.tokens = [
            _Token(m.lastgroup or "", m[m.lastgroup or 0], m.start(m.lastgroup or 0), m.end())
            for m in TOKEN.finditer(text)
        ]
        self.at = 0

    def whole(self) -> Condition:
        found = self.joined("or", 0)
        if self.next.kind != "end":
            raise self.cannot_use()
        return found

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def took(self, *words: str) -> str:
        """The next word if it is one of these, which are then behind us."""
        word = SAME.get(self.next.word, self.next.word)
        if word not in words:
            return ""
        self.at += 1
        return word

    def must_take(self, word: str) -> None:
        if not self.took(word):
            raise self.cannot_use()

    def joined(self, word: str, depth: int) -> Condition:
        """Conditions joined by `or`, or those joined by `and` within them."""
        parts = [self.part(word, depth)]
        while self.took(word):
            parts.append(self.part(word, depth))
        return parts[0][1] if len(parts) == 1 else Joined(word, tuple(parts))

    def part(self, word: str, depth: int) -> tuple[str, Condition]:
        start = self.next.start
        found = self.joined("and", depth) if word == "or" else self.single(depth)
        return self.text[start : self.tokens[self.at - 1].stop].strip(), found

    def single(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise Refused(f"{self.asked} nests deeper than {DEEPEST} brackets and nots")
        if self.took("not"):
            return Not(self.single(depth + 1))
        if self.took("("):
            found = self.joined("or", depth + 1)
            self.must_take(")")
            return found
        return self.comparison()

    def comparison(self) -> Condition:
        first = self.next
        if self.is_constant():
            return self.turned()
        name = self.column()
        if self.took("is"):
            return self.is_null(name)
        if sign := self.took(*TURNED):
            return _compared(name, sign, self.constant())
        negated = self.took("not")
        if self.took("between"):
            low = self.constant()
            self.must_take("and")
            found = Comparison(name, "between", (low, self.constant()))
        elif self.took("in"):
            found = Comparison(name, "in", self.constants())
        else:
            raise self.cannot_use(first if self.next.kind == "end" else self.next)
        return Not(found) if negated else found

    def turned(self) -> Condition:
        """A comparison whose constant comes first."""
        constant = self.constant()
        sign = self.took(*TURNED)
        if not sign:
            raise self.cannot_use()
        return _compared(self.column(), TURNED[sign], constant)

    def is_null(self, name: str) -> Condition:
        negated = self.took("not")
        self.must_take("null")
        found = Comparison(name, "is null")
        return Not(found) if negated else found

    def column(self) -> str:
        token = self.next
        called = self.tokens[min(self.at + 1, len(self.tokens) - 1)].text in ("(", ".", "[", ":")
        if token.kind not in ("name", "quoted") or token.word in RESERVED or called:
            raise self.cannot_use()
        self.at += 1
        return _unquoted(token.text)

    def constants(self) -> tuple[Any, ...]:
        self.must_take("(")
        found = [self.constant()]
        while self.took(","):
            found.append(self.constant())
        self.must_take(")")
        return tuple(found)

    def is_constant(self) -> bool:
        if self.next.kind in ("number", "text") or self.next.word in ("true", "false", "-", "+"):
            return True
        after = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        return self.next.word in ("date", "timestamp") and after.kind == "text"

    def constant(self) -> Any:
        first = self.next
        if word := self.took("true", "false"):
            return word == "true"
        if sign := self.took("-", "+"):
            return self.number(first) * (-1 if sign == "-" else 1)
        if self.next.kind == "number":
            return self.number(first)
        if self.is_constant() and first.kind != "text":
            self.at += 1
        if self.next.kind not in ("text", "quoted"):
            raise self.cannot_use()
        self.at += 1
        return _unquoted(self.tokens[self.at - 1].text)

    def number(self, first: _Token) -> Any:
        text = self.next.text
        if self.next.kind != "number" or len(text) > LONGEST_NUMBER:
            raise self.cannot_use(first)
        self.at += 1
        return int(text) if text.isdecimal() else float(text)

    def cannot_use(self, first: _Token | None = None) -> Refused:
        """The refusal of what was written from a token on."""
        first = first or self.next
        text = f'{self.asked} "{shortened(self.text)}"'
        if first.kind == "end":
            return Refused(f"{text} is not a predicate, like: time = '2000-01-14'")
        quoted = "; a time is written in quotes, like '2000-01-16'" if first.text == "-" else ""
        return Refused(f"{text}: cannot use {shortened(self.written(first))}; {FORM}{quoted}")

    def written(self, first: _Token) -> str:
        """A token, and what stands in the brackets after it."""
        after = self.tokens[self.tokens.index(first) :]
        if first.text != "(" and after[1].text != "(":
            return first.text
        open_ = 0
        for token in after:
            open_ += (token.text == "(") - (token.text == ")")
            if token.text == ")" and open_ == 0:
                break
        return self.text[first.start : token.stop].strip()


def _compared(column: str, sign: str, constant: Any) -> Condition:
    if sign == "<>":
        return Not(Comparison(column, "=", (constant,)))
    return Comparison(column, sign, (constant,))


def _unquoted(text: str) -> str:
    mark = text[0]
    return text[1:-1].replace(mark * 2, mark) if mark in "'\"`" else text


def shortened(text: str) -> str:
    """A text as a message can quote it."""
    return text if len(text) <= 200 else f"{text[:200]}…"

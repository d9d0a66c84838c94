"""What a box is: what it takes, what it makes, its parameters, and how it runs."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import date
from functools import cache
from math import isinf
from types import MappingProxyType, ModuleType, new_class
from typing import Any, ClassVar, Self, TypeGuard, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from pipelines.arrays import Ranges
from pipelines.datasets import Attribute, Dataset, Table, Type
from pipelines.errors import Refused, unknown
from pipelines.expressions import Expression, expression
from pipelines.functions import Function, Functions, functions_in
from pipelines.sharing import rows_of_chunks, rows_together
from pipelines.tables import table_of

MOST = 2**1000  # of what a float may be given as a whole number


@dataclass(frozen=True, slots=True)
class Port:
    """A place where a dataset goes in: which kind, and which types of attributes it must have."""

    name: str
    kind: str
    needs: tuple[Type, ...] = ()


def param(
    default: Any, help: str, *, unit: str = "", low: float | None = None, high: float | None = None
) -> Any:
    """A parameter of a box: its default, what it means, its unit and its bounds."""
    return field(default=default, metadata={"help": help, "unit": unit, "low": low, "high": high})


CHANGE, REMOVAL, INSTEAD, STATED = "change", "removal", "instead", "stated"
ITSELF, OUT = "", "out"


@dataclass(frozen=True, slots=True)
class Besides:
    """What a box makes besides: by which box, and what is at each of that one's ports.

    That is a port of the first box, what the first one makes (`ITSELF`), or another of these.
    """

    box: Box
    inputs: Mapping[str, str]


class Box(ABC):
    """One step of a pipeline. A subclass is a frozen dataclass whose fields are its parameters.

    `influence` says how its sentence of what `contributed` can be tested: a cell or row did if some
    other value there would change the datum (`CHANGE`), or if the datum would change without it
    (`REMOVAL`), or without it and others that would do instead of it (`INSTEAD`); else only by the
    author's word (`STATED`), so that nothing can test whether an answer is pure. `lost` names the
    attributes behind which is all that can make a row go; unless said, these are all. A `monotone`
    box, without some of its input, makes nothing that it has not made with all of it. The inverses
    of a `flat` box find cells at once rather than level by level. `examples` are parameters to
    test it with. `formulas` names the parameters that are formulas, which may call `functions`.

    A box makes one dataset, and may have others made `besides`, each by a box that has inverses of
    its own: so a trace goes through any of them as through boxes that were wired by hand.

    An attribute of rows that has a coordinate and its index (`lat` and `lat_index`) tells where
    in an array they were found; a box from rows to rows that makes either anew keeps them apart.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    version: ClassVar[str] = "1"
    takes: ClassVar[tuple[Port, ...]] = ()
    makes: ClassVar[tuple[Attribute, ...]] = ()
    asks: ClassVar[tuple[str, ...]] = ()
    contributed: ClassVar[str]
    deterministic: ClassVar[bool] = True
    influence: ClassVar[str] = CHANGE
    lost: ClassVar[tuple[str, ...] | None] = None
    monotone: ClassVar[bool] = False
    flat: ClassVar[bool] = False
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    formulas: ClassVar[tuple[str, ...]] = ()
    functions: ClassVar[Functions] = MappingProxyType({})

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        """The attributes of what this box makes of inputs that have these; fixed for most."""
        return self.makes

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        """The attributes at a port that an attribute is made of; none where that is not said."""
        return ()

    def identity(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Of a row's columns, those by which it is still the same one if others change."""
        return tuple(columns)

    def besides(self) -> Mapping[str, Besides]:
        """The other datasets that it makes, by name; which there are is the same for all params."""
        return {}

    def expression(self, text: str) -> Expression:
        """A formula, in which the functions are known that authors have registered."""
        return expression(text, {n: f.operation for n, f in self.functions.items()})

    @property
    def code(self) -> str:
        """The version of its rule, and of each function of an author that its formulas call."""
        texts = [getattr(self, name) for name in self.formulas]
        called = {f for text in texts if text for f in self.expression(text).functions}
        mine = sorted(called & set(self.functions))
        return "+".join([self.version, *(f"{n}.{self.functions[n].version}" for n in mine)])

    def alone(self, attributes: Set[str]) -> Box:
        """The box to run on what is behind these attributes of a datum, and nothing else."""
        return self

    @classmethod
    def from_params(cls, given: Mapping[str, Any]) -> Self:
        """The box with these parameters, each checked for name, type and bounds."""
        known = {f.name: f for f in cls.parameters()}
        hints = hints_of(cls)
        for name in given:
            if name not in known:
                raise unknown("parameter", str(name), known, f'of box "{cls.name}"')
        return cls(**{n: _checked(cls.name, known[n], hints[n], v) for n, v in given.items()})

    @classmethod
    def parameters(cls) -> tuple[Field[Any], ...]:
        """The parameters this box declares."""
        return fields(cls)  # type: ignore[arg-type]  # every concrete box is a dataclass

    def params(self) -> dict[str, Any]:
        """The parameters this box has."""
        return {f.name: getattr(self, f.name) for f in self.parameters()}


@cache
def hints_of(box: type[Box]) -> dict[str, Any]:
    """The types of what a box declares, which takes long to find out."""
    return get_type_hints(box)


def made_besides(kind: type[Box]) -> dict[str, type[Box]]:
    """By which boxes a kind of box makes other datasets, by the names of these."""
    if kind.besides is Box.besides:
        return {}
    made = kind.from_params(kind.examples[0]).besides()
    return {name: type(each.box) for name, each in made.items()}


class TableBox(Box):
    """A box that makes a table, as a Spark data frame."""

    kind = "table"

    @abstractmethod
    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        """The rows this box makes of its inputs."""

    def schema(self, inputs: Mapping[str, Dataset]) -> pa.Schema:
        """The columns this box makes, said before it runs: for running it in part."""
        raise Refused(f'box "{self.name}" cannot run in part: it does not say its columns before')

    def described(self, name: str, inputs: Mapping[str, Dataset]) -> Table:
        """The table this box makes, said before there is any of it."""
        made = self.attributes_of({port: each.attributes for port, each in inputs.items()})
        return table_of(name, self.schema(inputs), made)


class RowBox(TableBox):
    """A box from tables to a table: a pure function of rows, spread over Spark by keys.

    `rows` may not depend on the order of its rows, nor on how whole groups are parted.
    """

    def together(self, port: str) -> tuple[str, ...] | None:
        """The columns whose equal values must be seen together; none: all; None: each row alone."""
        return None

    @abstractmethod
    def schema(self, inputs: Mapping[str, Dataset]) -> pa.Schema:
        """The columns this box makes."""

    @abstractmethod
    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        """The rows it makes of whole groups; runs on a worker."""

    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        keys = {port: self.together(port) for port in inputs}
        return rows_together(spark, inputs, keys, self.rows, self.schema(inputs))


class CellBox(TableBox):
    """A box from an array, at its first port, to a table: a pure function of chunks.

    Rows of a box `of_places` tell of one cell each, by its index along every dimension (like
    `lat_index`); those are all that its inverses go by, of a single cell or of a region.
    """

    of_places: ClassVar[bool] = False

    @abstractmethod
    def schema(self, inputs: Mapping[str, Dataset]) -> pa.Schema:
        """The columns this box makes."""

    @abstractmethod
    def rows_in(self, inputs: Mapping[str, Any], ranges: Ranges) -> pa.Table:
        """The rows that lie in index ranges, last excluded; runs on a worker."""

    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        return rows_of_chunks(spark, inputs, self.takes[0].name, self.rows_in, self.schema(inputs))


@dataclass(frozen=True, slots=True)
class Grid:
    """The shape of an array to be made: coordinates, chunks, and attributes of its variables.

    >>> Grid({"x": np.arange(3)}, (2,), {}, dtype=np.int32)
    Traceback (most recent call last):
    ...
    pipelines.errors.Refused: an array holds floats, so that cells may be missing, and no int32
    """

    coordinates: Mapping[str, NDArray[Any]]
    chunks: tuple[int, ...]
    metadata: Mapping[str, Mapping[str, Any]]
    circular: tuple[str, ...] = ()
    dtype: Any = np.float32
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kind = np.dtype(self.dtype)
        if kind.kind != "f":
            raise Refused(f"an array holds floats, so that cells may be missing, and no {kind}")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(c) for c in self.coordinates.values())


class ArrayBox(Box):
    """A box that makes an array, chunk by chunk."""

    kind = "array"

    @abstractmethod
    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        """The array this box will fill."""

    @abstractmethod
    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        """The values of each variable in index ranges, last excluded; runs on a worker."""


def _checked(box: str, declared: Field[Any], hint: Any, value: Any) -> Any:
    """A parameter's value if it has the declared type and lies within its bounds."""
    if hint is str and isinstance(value, date):
        value = value.isoformat()  # YAML takes a day without quotes for more than its text.
    whole = float(value) if hint is float and type(value) is int and abs(value) < MOST else value
    if type(whole) is not hint or (hint is float and isinf(whole)):
        raise Refused(f'box "{box}": {declared.name} is {value!r:.60}, not a {hint.__name__}')
    low, high = declared.metadata.get("low"), declared.metadata.get("high")
    below = low is not None and not whole >= low
    if below or (high is not None and not whole <= high):
        limits = " and ".join(
            f"{word} {end}"
            for word, end in (("at least", low), ("at most", high))
            if end is not None
        )
        raise Refused(f'box "{box}": {declared.name} is {value!r}; it may be {limits}')
    return whole


def default_of(declared: Field[Any]) -> Any:
    """What a parameter is when nobody says."""
    return None if declared.default is MISSING else declared.default


def boxes_in(found: Iterable[ModuleType]) -> dict[str, type[Box]]:
    """The boxes that modules define, by name; their formulas may call the functions there."""
    held = list(found)
    kinds = [c for m in held for c in vars(m).values() if inspect.isclass(c)]
    boxes = dict.fromkeys(c for c in kinds if _is_box(c))
    for name, times in Counter(_name_of(c) for c in boxes).items():
        if times > 1:
            raise Refused(f'two boxes are called "{name}"; rename one')
    functions = tuple(functions_in(held).values())
    return {c.name: _knowing(c, functions) if c.formulas and functions else c for c in boxes}


@cache
def _knowing(kind: type[Box], functions: tuple[Function, ...]) -> type[Box]:
    """A kind of box whose formulas may call these functions; wherever it goes, they go with it.

    It is a subclass that is nowhere imported from, so that Spark hands it on whole, and the
    functions by the names of their modules.
    """
    known = {"functions": MappingProxyType({f.name: f for f in functions})}
    same = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    return new_class(kind.__name__, (kind,), {}, lambda body: body.update(known, **same))


def _name_of(kind: type[Box]) -> str:
    if hasattr(kind, "name"):
        return kind.name
    raise Refused(
        f'class "{kind.__name__}" of module "{kind.__module__}" is a box without a name; say '
        f'name = "...", or leave a method abstract if it is only a base of boxes'
    )


def _is_box(kind: type) -> TypeGuard[type[Box]]:
    return issubclass(kind, Box) and kind is not Box and not inspect.isabstract(kind)

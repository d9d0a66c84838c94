"""Plans and answers in words, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from inverses.answer import Answer, Found
from inverses.as_one import able, sweeping, very_many
from inverses.counting import many as many
from inverses.evidence import weakest
from inverses.guarantees import Guarantee, names, sign
from inverses.limits import estimated_seconds
from inverses.outline import Price
from inverses.plans import Hop, Inversion, Level, Plan
from inverses.registry import Registration
from pipelines.datasets import Array


@dataclass(frozen=True, slots=True)
class StepOfPlan:
    """One line of a plan: what is done, by which functions, and what holds afterwards."""

    hop: str
    level: str
    does: str
    functions: str
    guarantee: str
    reads: str = ""


def steps(prices: Iterable[Price]) -> list[StepOfPlan]:
    """A plan step by step, in the order it will be carried out."""
    return [s for price in prices for s in _steps(price)]


def _steps(price: Price) -> Iterator[StepOfPlan]:
    hop, level = price.hop, price.level
    each = level.inversions
    attributes = ", ".join(f"{hop.image.name}.{i.attribute}" for i in each)
    place = (f"{hop.image.name} → {hop.source.name}", level.name)
    if len(each) > 1:
        verb = "invert and verify" if any(i.verify for i in each) else "invert"
        yield StepOfPlan(*place, f"{verb} {attributes}", _functions(each), "", _reads(price))
        yield StepOfPlan(*place, f"{level.combination} them", "", _words(level.guarantee))
    elif each[0].verify:
        weak = each[0].weak[0].promises
        yield StepOfPlan(*place, f"weakly invert {attributes}", _named(each[0].weak), _words(weak))
        verified = _named(each[0].verify)
        yield StepOfPlan(
            *place, f"verify {attributes}", verified, _words(level.guarantee), _reads(price)
        )
    else:
        found = _named(each[0].weak)
        yield StepOfPlan(
            *place, f"invert {attributes}", found, _words(level.guarantee), _reads(price)
        )


def _named(functions: Iterable[Registration]) -> str:
    return ", ".join(f.name for f in functions)


def _functions(inversions: Iterable[Inversion]) -> str:
    return "; ".join(_named([*i.weak, *i.verify]) for i in inversions)


def _words(guarantee: Guarantee) -> str:
    return f"{sign(guarantee)} {', '.join(names(guarantee)) or 'no guarantee'}"


def _reads(price: Price) -> str:
    if not price.chunks:
        return "nothing but coordinates"
    return f"{many(price.chunks, 'chunk')}, {size(price.bytes)}"


def size(count: float) -> str:
    """A number of bytes as people say it.

    >>> size(1_009_152)
    '1.0 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def price_in_words(prices: list[Price]) -> str:
    """What a plan costs in all."""
    chunks, total = sum(p.chunks for p in prices), sum(p.bytes for p in prices)
    about = estimated_seconds(prices)
    return f"at most {many(chunks, 'chunk')}, {size(total)}; about {about:.0f} s once Spark is up"


def restrictions(plan: Plan, prices: list[Price]) -> list[str]:
    """What was asked for, and what the weak inverses make of it: where each hop looks."""
    asked = plan.selection.where or "everything"
    looked = [p for p in prices if p.level is p.hop.levels[-1]]
    hops = [f"  {p.hop.image.name} → {p.hop.source.name}: {p.within.text()}" for p in looked]
    return [f"{plan.selection.dataset.name} where {asked}, so looked for within:", *hops]


def selected(plan: Plan) -> str:
    """What was asked, in a sentence."""
    dataset, selected = plan.selection.dataset, f"{len(plan.selection):,}"
    if isinstance(dataset, Array):  # A place is selected with the cells of all variables there.
        count = f"{selected} of {many(prod(dataset.shape), 'place')} of {dataset.name}"
    else:
        count = f"{selected} of {many(dataset.rows, 'row')} of {dataset.name}"
    return f"{count} ({', '.join(plan.attributes)})" if plan.attributes else count


def inferred(plan: Plan) -> list[str]:
    """What a plan goes by where boxes have no inverses, and how often that was seen."""
    levels = [(hop.box.name, level) for hop in plan.hops for level in hop.levels]
    said = (f"{b}: {w.name}: {first_line(w)}" for b, level in levels for w in level.inferred)
    return list(dict.fromkeys(said))


def asked_as_one(plan: Plan) -> list[str]:
    """What is said of a selection so large that nobody looks at what is behind each of its data."""
    selection = plan.selection
    first = [hop for hop in plan.hops if hop.image.key == selection.dataset.key]
    told = [hop for hop in first if able(hop) and very_many(hop, selection.at)]
    swept = [hop.source.name for hop in told if sweeping(hop)]
    how = f", by one more pass over {', '.join(dict.fromkeys(swept))}" if swept else ""
    said = f"asked about as one{how}: what is behind all {len(selection):,}, not behind each"
    return [said] if told else []


def newcomers(plan: Plan) -> list[str]:
    """Where a complete answer is so only of what was there, and might not be of what was not."""
    pairs = dict.fromkeys((hop.source.name, hop.image.name) for hop in plan.open_to_newcomers)
    could = " and ".join(f"what newly came up in {a} could change {b}" for a, b in pairs)
    return [f"complete for what was there: if something else were absent, {could}"] if could else []


def to_infer(boxes: Iterable[str]) -> list[str]:
    """What could be asked for where boxes have no inverses; nothing if all have some."""
    bare = ", ".join(boxes)
    told = f"nobody wrote inverses of {bare}, so all it takes may be behind a datum"
    return [f"{told}; --infer looks for less, with no guarantee"] if bare else []


def wished(plan: Plan) -> str:
    """What a plan was made for, in a word or two."""
    return f"wished {' and '.join(names(plan.wish))}"


def unmet(plan: Plan, own: Iterable[str] = ()) -> str:
    """What the plan cannot promise, and why; nothing if it meets the wish.

    If it is for datasets that have a wish of their `own`, those it fails are named.
    """
    if not plan.unmet:
        return ""
    first = next(h for h in plan.hops if plan.unmet - h.guarantee)
    failed = ", ".join(name for name in own if plan.unmet_of(name))
    what = " and ".join(names(plan.unmet)) + (f" for {failed}" if failed else "")
    return f"not {what}: {_culprits(first, plan.unmet, plan.wish)}"


def _culprits(hop: Hop, missing: Guarantee, wish: Guarantee) -> str:
    """Why a hop cannot have what is missing."""
    if not hop.box.deterministic:
        return f"{hop.box.name} is not deterministic"
    lacking = [
        f"{hop.image.name}.{i.attribute} into the {level.name} level of {hop.source.name}"
        for level in hop.levels
        for i in level.inversions
        if missing - i.promises
    ]
    together = f"{' and '.join(names(wish))} together" if len(wish) > 1 else "it"
    return f"no inverse of {hop.box.name} promises {together} for {', '.join(lacking)}"


def told(answer: Answer) -> list[str]:
    """An answer, line by line; what it could not meet comes first."""
    plans = [each.plan for each in answer.parts]
    own_plans = {name: each.plan for name, each in answer.own.items()}
    lines = [unmet(p, [n for n, own in own_plans.items() if own is p]) for p in plans if p.unmet]
    lines.append(f"{selected(answer.plan)} came from:")
    for name, found in answer.lineage.items():
        own = f" ({wished(answer.own[name].plan)})" if name in answer.own else ""
        lines.append(_found(f"{name}{own}", found, answer.guarantee(name)))
    hops = [hop for each in plans for hop in each.hops]
    lines += dict.fromkeys(_because(hop, level) for hop in hops for level in hop.levels)
    links = [each for found in answer.lineage.values() for each in found.links.items()]
    together = dict.fromkeys(image for (image, _), known in links if known is None)
    lines += [f"asked about as one: {', '.join(together)}"] if together else []
    lines += dict.fromkeys(said for each in plans for said in newcomers(each))
    chunks = sum(f.chunks_read for f in answer.lineage.values())
    total = sum(f.bytes_read for f in answer.lineage.values())
    jobs = many(int(answer.spark["jobs"]), "Spark job")
    seconds = answer.seconds.get("total", 0.0)
    lines.append(f"read {many(chunks, 'chunk')}, {size(total)}, in {jobs} and {seconds:.1f} s")
    if answer.proof is not None:
        lines.append(answer.proof.text())
    return lines


def _found(name: str, found: Found, guarantee: Guarantee) -> str:
    if isinstance(found.dataset, Array):
        kinds = ", ".join(dict.fromkeys(found.table()["variable"].to_pylist()))
        count = f"{many(found.cells or 0, 'cell')} of {kinds} in {many(found.tuples, 'step')}"
        count += f", of {found.dataset.cells:,}"
    else:
        whole = f"of {found.dataset.rows:,}" if found.dataset.kept else "made again"
        count = f"{many(found.tuples, 'row')} {whole}"
    return f"  {_words(guarantee)}: {name}, {count}; within {found.text()}"


def _because(hop: Hop, level: Level) -> str:
    used = [r for i in level.inversions for r in (*i.weak, *i.verify)]
    said = dict.fromkeys(f"{r.name}: {first_line(r)}" for r in used)
    shown = f"{' '.join(said)} {tested(used)}".rstrip()
    return f"  {hop.image.name} → {hop.source.name}, {level.name}: {shown}"


def tested(used: Iterable[Registration]) -> str:
    """What testing has shown of some inverses: the weakest of it, if all of them were tested."""
    found = [registration.evidence for registration in used]
    shown = [each for each in found if each is not None]
    least = weakest(shown)
    if least is None or (len(shown) < len(found) and least.held):
        return ""
    return f"({least.text()})"


def first_line(registration: Registration) -> str:
    """What an inverse finds, in the words of its author."""
    return (registration.function.__doc__ or "").strip().split("\n")[0]

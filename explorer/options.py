"""Options that commands share, and the commands that ask the history."""

from __future__ import annotations

import argparse
from typing import Any

from inverses.guarantees import WISHES


def command(commands: Any, name: str, help: str, module: str = "explorer.commands") -> Any:
    """The parser of one command, which a module carries out that is only then loaded."""
    parser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(command=name, module=module)
    return parser


def workspace_option(parser: Any, default: str = ".") -> None:
    """Where the datasets are."""
    where = "this directory" if default == "." else default
    parser.add_argument(
        "-w", "--workspace", default=default, metavar="DIR", help=f"the workspace; {where} if none"
    )


def spark_option(parser: Any) -> None:
    """On what to run."""
    parser.add_argument("--master", metavar="URL", help="Spark to use, if not this machine's own")


def boxes_option(parser: Any) -> None:
    """Where else boxes come from."""
    parser.add_argument(
        "--boxes", action="append", default=[], metavar="MODULE", help="a module with your boxes"
    )


def wish_option(parser: Any) -> None:
    """What is wished for, of all that is found."""
    told = "what the answer is to be, or else as near to it as can be; exact unless given"
    parser.add_argument("--want", default="exact", choices=list(WISHES), help=told)


def wishes_option(parser: Any) -> None:
    """What is wished for, of all that is found and of some datasets."""
    parser.add_argument(
        "--want",
        action=_Wishes,
        type=_wish,
        default={},
        metavar="[DATASET=]WISH",
        help=f"{', '.join(WISHES)}: for that dataset, or for all others; once for each",
    )


class _Wishes(argparse.Action):
    """Wishes by the dataset that they are for, of which none may have two."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        name, word = values
        known = getattr(namespace, self.dest)
        if name in known:
            which = f'"{name}"' if name else "all that is not named"
            told = f"two wishes for {which}, {known[name]} and {word}; say one"
            raise argparse.ArgumentError(self, told)
        setattr(namespace, self.dest, {**known, name: word})


def _wish(text: str) -> tuple[str, str]:
    """The dataset that a wish is for, none for all, and the wish."""
    name, equals, word = text.rpartition("=")
    if word not in WISHES or bool(name) != bool(equals):
        words = ", ".join(map(repr, WISHES))
        raise argparse.ArgumentTypeError(f"{text!r} is no wish (choose from {words}, or agcm=pure)")
    return name, word


def catalog_option(parser: Any) -> None:
    """Where the history is."""
    parser.add_argument(
        "--catalog",
        metavar="URL",
        help="the database with the history, like postgresql+psycopg://USER@HOST/DATABASE; "
        "one in the workspace unless given here or in WHENCE_CATALOG",
    )


def count_of(text: str, least: int = 0) -> int:
    """How many of something."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} up")
    return int(text)


def limit_option(parser: Any) -> None:
    """How many rows to print."""
    parser.add_argument(
        "--limit", type=count_of, default=20, metavar="N", help="how many to print; 20 unless given"
    )


def json_option(parser: Any) -> None:
    """For other programs."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_history(commands: Any) -> None:
    """The commands that ask the history, and those that bring it in and out."""
    _add_relatives(commands)
    _add_made_with(commands)
    _add_runs(commands)
    _add_files(commands)


def _asking(commands: Any, name: str, help: str) -> Any:
    parser = command(commands, name, help, "explorer.history_commands")
    workspace_option(parser)
    catalog_option(parser)
    return parser


def _add_relatives(commands: Any) -> None:
    parser = _asking(commands, "ancestors", "list all that a dataset was made from")
    parser.add_argument("name", metavar="NAME", help="like tracks (the newest) or tracks@v2")
    parser.add_argument("--is", dest="other", metavar="NAME", help="say whether this is one")
    _wanted_options(parser)
    parser = _asking(commands, "descendants", "list all that was made from a dataset")
    parser.add_argument("name", metavar="NAME", help="like agcm (the newest) or agcm@v1")
    _wanted_options(parser)
    parser = _asking(commands, "affected-by", "list all that datasets which are bad have spoiled")
    parser.add_argument("names", metavar="NAME", nargs="+", help="agcm (any version) or agcm@v1")
    _wanted_options(parser)


def _add_made_with(commands: Any) -> None:
    parser = _asking(commands, "made-with", "list all in whose making a box took part")
    parser.add_argument("name", metavar="BOX", help="like extract_minima or extract_minima@1")
    parser.add_argument(
        "--param", type=_value, action="append", default=[], metavar="NAME=VALUE", help="and so set"
    )
    parser.add_argument("--directly", action="store_true", help="only what the box itself made")
    _wanted_options(parser)


def _wanted_options(parser: Any) -> None:
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--kind", choices=("dataset", "task", "all"), default="dataset")
    kinds.add_argument("--tasks", action="store_true", help="list the tasks in between, too")
    parser.add_argument(
        "--name", dest="only", metavar="NAME", help="only what is called so; * stands for any"
    )
    parser.add_argument("--count", action="store_true", help="only say how many")
    json_option(parser)


def _value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not like margin=1000")
    return name, value


def _add_runs(commands: Any) -> None:
    parser = _asking(commands, "runs", "list what was run, newest first")
    parser.add_argument("--search", default="", metavar="TEXT", help="only runs that mention it")
    limit_option(parser)
    json_option(parser)
    parser = _asking(commands, "compare", "say what is different between two runs")
    parser.add_argument("first", metavar="RUN", help="as whence runs names it, or how that begins")
    parser.add_argument("second", metavar="RUN")
    json_option(parser)


def _add_files(commands: Any) -> None:
    parser = _asking(commands, "import", "add what was run elsewhere to the history")
    parser.add_argument(
        "file", metavar="FILE", help="OpenLineage events, PROV-JSON, or CSV with source,target"
    )
    json_option(parser)
    parser = _asking(commands, "export", "write the history for other programs")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--as", dest="form", choices=("openlineage", "prov"), help="else by name: .jsonl or .json"
    )

"""The README's table of boxes says what the registry says."""

from pathlib import Path

from inverses.promises import table
from inverses.registry import Registry

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- boxes -->\n", "<!-- end of boxes -->"


def test_the_table_of_boxes_is_that_of_the_registry() -> None:
    shown = README.read_text().partition(START)[2].partition(END)[0]
    assert shown.strip() == table(Registry.of()), (
        "write it anew: python -m tests.test_table_of_boxes"
    )


def rewrite() -> None:
    """Put the table into the README."""
    before, _, rest = README.read_text().partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{table(Registry.of())}\n\n{END}{after}")


if __name__ == "__main__":
    rewrite()

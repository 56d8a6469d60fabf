"""The documents: their examples run, and what they name exists."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import stride_tricks

import dualad as ad
from dualad import arrays, errors
from dualad.dispatch import CREATORS
from dualad.rules import RULES

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
every_document = pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.name)


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return the blocks of Python in a page, each with the line it starts at."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text[: m.start(1)].count("\n"), m[1]) for m in found]


def section(page: Path, heading: str) -> str:
    """Return what stands below a heading, up to the next one."""
    _, _, rest = page.read_text().partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


def words(text: str) -> list[str]:
    """Return what is set as code."""
    return re.findall(r"`([^`\n]+)`", text)


@every_page
def test_examples_run(page):
    """A page is one session: each block sees the names of those before it."""
    names = {"__name__": "page"}
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for line, block in blocks(page):
        if ">>>" not in block:
            exec(compile(block, str(page), "exec"), names)  # noqa: S102 -- our own pages
            continue
        example = doctest.DocTestParser().get_doctest(
            block, names, page.name, str(page), line
        )
        runner.run(example, out=report.append, clear_globs=False)
        names |= example.globs
    assert runner.failures == 0, "".join(report)


def test_there_are_examples():
    assert {page.name for page in PAGES if blocks(page)} == {
        "README.md",
        "conventions.md",
        "errors.md",
        "how_it_works.md",
        "limits.md",
    }


@every_document
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
        anchors = {
            re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings
        }
        assert not anchor or anchor in anchors, link


# --- errors -------------------------------------------------------------------------

CLASSES = {
    name: thing
    for name, thing in vars(errors).items()
    if isinstance(thing, type) and issubclass(thing, Exception)
}
ERRORS = ROOT / "docs" / "errors.md"


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_has_its_section(name):
    text = section(ERRORS, name)
    assert text
    if name != "DualadError":  # a base, never raised itself
        assert f"\ndualad.errors.{name}: " in text


@pytest.mark.parametrize("name", sorted(set(CLASSES) - {"DualadError"}))
def test_the_table_of_errors_names_the_builtin_class(name):
    (row,) = re.findall(
        rf"^\| \[`{name}`\]\S* \| `(\w+)` \|", ERRORS.read_text(), re.MULTILINE
    )
    bases = [base.__name__ for base in CLASSES[name].__bases__]
    assert row in bases


def test_no_section_is_about_a_class_that_is_gone():
    headings = re.findall(
        r"^## (\w+(?:Error|Warning))$", ERRORS.read_text(), re.MULTILINE
    )
    assert set(headings) == set(CLASSES)


# --- names --------------------------------------------------------------------------


def attribute(home, path):
    """Return ``home.a.b`` or None."""
    for name in path.split("."):
        home = getattr(home, name, None)
    return home


def test_the_interface_names_what_exists():
    calls = words(section(README, "The interface"))
    named = {n for call in calls for n in re.findall(r"[A-Za-z_.]+(?=\()", call)}
    named |= {"Forward", "Reverse"}
    assert {name for name in named if attribute(ad, name) is None} == set()
    absent = {
        name
        for name in ad.__all__
        if name not in CLASSES and name not in named | {"testing"}
    }
    assert absent == set()


HOMES = (np, np.ufunc, stride_tricks, arrays.ActiveArray)


def test_what_differentiates_has_a_rule():
    table = section(README, "What differentiates").partition("\nAny other")[0]
    named = [w for w in words(table) if re.fullmatch(r"[a-z_.]*[a-z][a-z_.0-9]*", w)]
    assert len(named) > 40
    for name in named:
        found = [attribute(home, name) for home in HOMES]
        assert any(thing is not None for thing in found), name
        for thing in found[:1] + found[2:3]:
            known = thing is None or thing in RULES or thing in CREATORS
            assert known or not callable(thing), name


def test_functions_without_a_rule_have_none():
    """The list in the limits does not outlive its truth."""
    text = (ROOT / "docs" / "limits.md").read_text()
    _, _, rest = text.partition("\n### Functions without a rule\n")
    rest = rest.partition("Write such")[0]
    inside = re.search(r"`np.linalg` \((.*?)\)", rest, re.DOTALL)
    assert inside is not None
    for name in words(inside[1]):
        assert attribute(np.linalg, name) not in RULES, name
    for name in words(rest[inside.end() :]):
        function = attribute(np, name.removeprefix("np."))
        assert function is not None, name
        assert function not in RULES, name
    assert np.fft.fft not in RULES
    assert np.linalg.cross not in RULES  # the example of CONTRIBUTING


@every_document
def test_make_targets_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

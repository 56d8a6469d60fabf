"""The laws of the house: who imports whom, which words are used, what is public."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dualad

PACKAGE = Path(dualad.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, at its top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def named(path: Path) -> str:
    """Return a file's place in the package."""
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_import_law(path: Path) -> None:
    """Rules know mathematics only; forward and reverse never meet; NumPy is enough."""
    ours = {name for name in imports(path) if name.split(".")[0] == "dualad"}
    home = path.relative_to(PACKAGE).parts[0]
    if home == "rules":
        allowed = ("dualad.rules", "dualad.errors")
        assert {n for n in ours if n != "dualad" and not n.startswith(allowed)} == set()
    if home == "forward":
        assert {n for n in ours if n.startswith("dualad.reverse")} == set()
    if home == "reverse":
        assert {n for n in ours if n.startswith("dualad.forward")} == set()


def test_import_needs_numpy_alone() -> None:
    """``import dualad`` loads nothing but NumPy and the standard library."""
    program = (
        "import sys; import numpy; before = set(sys.modules); import dualad; "
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    out = subprocess.run(  # noqa: S603 -- our own interpreter and program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    foreign = {"scipy", "numba", "llvmlite", "cupy", "sklearn", "matplotlib", "torch"}
    assert foreign & set(out) == set()


@pytest.mark.parametrize("path", FILES, ids=named)
def test_mathematics_lives_in_rules(path: Path) -> None:
    """No interpreter names an elementary function."""
    home = path.relative_to(PACKAGE).parts[0]
    if home in ("rules", "demo.py", "testing.py"):
        return
    code = "\n".join(
        line
        for line in path.read_text().splitlines()
        if not line.strip().startswith(">>>")
    )
    tree = ast.parse(path.read_text())
    docs = {
        ast.get_docstring(n)
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef | ast.Module | ast.ClassDef)
    }
    for doc in docs - {None}:
        code = code.replace(str(doc), "")
    calls = re.findall(r"np\.(?:exp|log|sin|cos|tan|tanh|sqrt)\(", code)
    assert calls == []


BANNED = re.compile(r"\b(adjoint_buf|grad_buf|local_grad|sensitivity|requires_grad)\b")


@pytest.mark.parametrize("path", FILES, ids=named)
def test_vocabulary(path: Path) -> None:
    """One word, one meaning: other libraries' words for ours do not appear."""
    assert BANNED.findall(path.read_text()) == []


def test_no_second_hand_names() -> None:
    """No module is called utils, misc or helpers; no name ends in a number."""
    assert {p.stem for p in FILES} & {"utils", "misc", "helpers", "common"} == set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert not re.search(r"[a-z]2$|[a-z]3$|_v\d$", node.name), node.name


def test_public_names_exist_and_have_docstrings() -> None:
    """Each public name is there, once, and says what it does."""
    assert len(set(dualad.__all__)) == len(dualad.__all__)
    for name in dualad.__all__:
        assert (getattr(dualad, name).__doc__ or "").strip() or name in (
            "Forward",
            "Reverse",
        ), name


def test_only_shadows_add_into_derivative_memory() -> None:
    """The reverse sweep adds through the functions of ``shadow.py`` alone."""
    for path in (PACKAGE / "reverse").glob("*.py"):
        if path.name == "shadow.py":
            continue
        text = path.read_text()
        assert "np.add.at" not in text.replace("``np.add.at", "").replace(
            "lambda: np.add.at(x.primal", ""
        ), path
        assert not re.search(r"memory\s*\+=|shadow\.memory\s*\+", text), path
        assert not re.search(r"levels\.add_(into|at)\b", text), path

"""The repository as files and as Python: what its own tests ask of it."""

import ast
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRODUCT = ("reader", "spark_ext", "offloader")
ROOTS = (*PRODUCT, "testbed", "tests", "demo", "benchmarks")
_SOURCES = (".py", ".java", ".js", ".css", ".html")
_BUILT = {"__pycache__", "target", "results"}

_LISTED = re.compile(r"^(?: {4})?(\w+(?:, \w+)*) {2,}\S", re.MULTILINE)
_IMPORTS = re.compile(r"\bImports (.+?)(?:\.\s|\.$|;|$)", re.DOTALL)
_NAME = re.compile(r"`+([a-z_][\w.]*)`+|\b(reader|spark_ext|offloader)\b")


@cache
def sources() -> tuple[Path, ...]:
    """Every source file that is not a build's result, below the roots."""
    files = (file for root in ROOTS for file in sorted((ROOT / root).rglob("*")))
    return tuple(
        file
        for file in files
        if file.suffix in _SOURCES and not _BUILT & set(file.relative_to(ROOT).parts)
    )


def python_files(*roots: str) -> Iterator[Path]:
    """The Python files below some roots, each of ROOTS without any."""
    return (
        file
        for file in sources()
        if file.suffix == ".py" and (not roots or file.relative_to(ROOT).parts[0] in roots)
    )


@cache
def packages() -> tuple[Path, ...]:
    """The folder of each package."""
    return tuple(file.parent for file in python_files() if file.name == "__init__.py")


def package_name(folder: Path) -> str:
    """``reader.model`` for its folder."""
    return ".".join(folder.relative_to(ROOT).parts)


def modules_of(folder: Path) -> set[str]:
    """Names of the modules and packages in a package."""
    files = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    return files | {child.name for child in folder.iterdir() if (child / "__init__.py").exists()}


@dataclass(frozen=True, slots=True)
class Function:
    """The size of a function or method."""

    name: str
    """With its classes and outer functions: ``Outer.method``."""
    parameters: int
    """Parameters that a caller gives, so without ``self`` and ``cls``."""
    lines: int
    is_kernel: bool
    """Whether numba compiles it: it has a decorator of ``reader.kernels.compiling``."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What these tests need of a Python file: its tree of 1,000 nodes is not kept."""

    docstring: str
    imports: tuple[str, ...]
    """Modules of ``import a.b``."""
    imports_from: tuple[tuple[str, str], ...]
    """(module, name) of ``from a.b import c``."""
    patched: tuple[str, ...]
    """Strings that ``setattr``, ``delattr`` and ``object`` are called with."""
    strings: tuple[str, ...]
    """Strings that may name what is patched: those with a dot before an underscore."""
    sleeps: tuple[int, ...]
    """Lines that call ``sleep``."""
    functions: tuple[Function, ...]


@cache
def contents_of(file: Path) -> Contents:
    """Parse a file, without a garbage collector that would look at each node of its tree."""
    gc.disable()
    try:
        return _contents(ast.parse(file.read_text(), str(file)))
    finally:
        gc.enable()


def _contents(tree: ast.Module) -> Contents:
    imports: list[str] = []
    imports_from: list[tuple[str, str]] = []
    patched: list[str] = []
    strings: list[str] = []
    sleeps: list[int] = []
    for node in _nodes(tree):
        match node:
            case ast.Import():
                imports += [alias.name for alias in node.names]
            case ast.ImportFrom() if node.module and not node.level:
                imports_from += [(node.module, alias.name) for alias in node.names]
            case ast.Constant(value=str(text)) if "._" in text:
                strings.append(text)
            case ast.Call():
                called = _called(node)
                if called == "sleep":
                    sleeps.append(node.lineno)
                elif called in ("setattr", "delattr", "object"):
                    values = [a.value for a in node.args if isinstance(a, ast.Constant)]
                    patched += [value for value in values if isinstance(value, str)]
    return Contents(
        ast.get_docstring(tree, clean=False) or "",
        tuple(imports),
        tuple(imports_from),
        tuple(patched),
        tuple(strings),
        tuple(sleeps),
        tuple(_functions(tree, "")),
    )


def _functions(node: ast.AST, outer: str) -> Iterator[Function]:
    for child in _statements(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{outer}{child.name}"
            yield Function(name, _parameters(child.args), _lines(child), _is_kernel(child))
            yield from _functions(child, f"{name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{outer}{child.name}.")
        else:
            yield from _functions(child, outer)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        statements = getattr(node, block, [])
        yield from statements if isinstance(statements, list) else ()


def _parameters(arguments: ast.arguments) -> int:
    named = [*arguments.posonlyargs, *arguments.args]
    is_method = bool(named) and named[0].arg in ("self", "cls")
    rest = (arguments.vararg, arguments.kwarg)
    return len(named) - is_method + len(arguments.kwonlyargs) + sum(map(bool, rest))


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(getattr(name, "id", "") in ("kernel", "inlined") for name in function.decorator_list)


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what ``ast.walk`` yields, in another order and in half of its time."""
    remaining: list[ast.AST] = [tree]
    while remaining:
        node = remaining.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                remaining.append(value)
            elif isinstance(value, list):
                remaining += [one for one in value if isinstance(one, ast.AST)]


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def docstring(folder: Path) -> str:
    return contents_of(folder / "__init__.py").docstring


def listed_in(text: str) -> list[str]:
    """The modules that a docstring lists: ``    name  what it is``, or several names at once."""
    return [name for found in _LISTED.finditer(text) for name in found[1].split(", ")]


def named_imports(text: str, package: str) -> set[str] | None:
    """The modules that a docstring says its package imports, None where it says nothing of it.

    Read from a sentence ``Imports `a`, `b` and `c`.``: full names, or such as stand beside the name
    before or in a parent of the package; a package stands for all that is in it. What follows
    "never", "not", "no" or "nothing" is not read: import-linter has a contract for it.
    """
    found: set[str] = set()
    for sentence in _IMPORTS.finditer(text):
        positive = re.split(r"\b(?:never|not|no|nothing|neither|but)\b", sentence[1])[0]
        before = package
        for quoted, root in _NAME.findall(positive):
            before = _resolved(quoted or root, before, package)
            found.add(before)
    return found or None


def _resolved(name: str, before: str, package: str) -> str:
    if name.split(".")[0] in ROOTS:
        return name
    for start in (before, package):
        parts = start.split(".")
        for count in range(len(parts), 0, -1):
            candidate = ".".join([*parts[:count], name])
            if _exists(candidate):
                return candidate
    return name


@cache
def _exists(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@cache
def imports_of(file: Path) -> set[str]:
    """The project's modules that a file imports, wherever in it: full names."""
    contents = contents_of(file)
    found = {name for name in contents.imports if name.split(".")[0] in ROOTS}
    for module, name in contents.imports_from:
        if module.split(".")[0] in ROOTS:
            full = f"{module}.{name}"
            found.add(full if _exists(full) else module)
    return found

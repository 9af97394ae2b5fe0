"""Texts with placeholders: Jinja in a sandbox of expressions, `if` and a single `for`. Nothing else, and bounded.

Facts print with their unit; `.value` is the bare number. In a rule's own texts an unknown value is an error; in a
remedy's (`lenient`) it prints as "unknown", and `x is known` tells the two apart.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import BytecodeCache, FunctionLoader, StrictUndefined, Template, TemplateError, compiler, nodes
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from advisor.basics.errors import RuleError
from advisor.basics.units import EXACT, tied
from advisor.kept import load, own_folder, program, prune, store
from advisor.knowledge.values import say_value
from advisor.knowledge.words import word
from advisor.model import LANGUAGES
from advisor.ruleset.language.expression import Call, Expr, ExpressionError, FactRef
from advisor.ruleset.language.scopes import IDENTITY
from advisor.ruleset.truth.evaluate import Scope

MAX_SOURCE = 8000
MAX_OUTPUT = 20_000
MAX_DEPTH = 25

_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Const,
    nodes.Filter, nodes.Test, nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or,
    nodes.Not, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.Neg, nodes.Pos,
)  # fmt: skip
_FILTERS = ("join", "length", "first", "last", "upper", "lower", "show", "digits")
_TESTS = ("known", "even", "odd", "string", "number")


CODE = ""
"""The language of snippets: numbers as a program reads them."""
_WRITTEN = ("number", "count", "list", "bool", "text")
"""Units without a sign of their own, of which a snippet wants the bare value."""


class Measured:
    """A value with its unit. Compares and calculates as the number, prints as people read it.

    `fact`: whose value it is, which may have words for it. `digits`: significant ones, where not the usual.
    """

    __slots__ = ("digits", "fact", "lang", "unit", "value")

    def __init__(
        self, value: Any, unit: str = "number", lang: str = CODE, fact: str = "", digits: int | None = None
    ) -> None:
        self.value, self.unit, self.lang, self.fact, self.digits = value, unit, lang, fact, digits

    def __str__(self) -> str:
        if self.lang == CODE and self.unit in _WRITTEN:
            return _written(self.value)
        return say_value(self.value, self.unit, self.lang or LANGUAGES[0], self.fact, self.digits)

    def _as(self, value: Any, unit: str | None = None) -> Measured:
        """Another value that is said like this one."""
        return Measured(value, unit or self.unit, self.lang, digits=self.digits)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Measured]:
        return iter([Measured(item, lang=self.lang, fact=self.fact) for item in self.value])

    def __getitem__(self, index: Any) -> Measured:
        return Measured(self.value[index], lang=self.lang, fact=self.fact)

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == _bare(other))

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < _bare(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= _bare(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > _bare(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= _bare(other))

    def __add__(self, other: Any) -> Measured:
        return self._as(_number(self.value) + _number(other))

    def __sub__(self, other: Any) -> Measured:
        return self._as(_number(self.value) - _number(other))

    def __mul__(self, other: Any) -> Measured:
        return self._as(_number(self.value) * _number(other))

    def __truediv__(self, other: Any) -> Measured:
        same = isinstance(other, Measured) and other.unit == self.unit
        return self._as(_number(self.value) / _number(other), "ratio" if same else self.unit)

    def __rsub__(self, other: Any) -> Measured:
        return self._as(_number(other) - _number(self.value))

    __radd__ = __add__
    __rmul__ = __mul__


class Unknown:
    """A value that was not measured."""

    __slots__ = ("lang", "name")

    def __init__(self, name: str, lang: str) -> None:
        self.name, self.lang = name, lang

    def __bool__(self) -> bool:
        return False


class Namespace:
    """Facts of one subject by the parts of their dotted names."""

    __slots__ = ("_lang", "_prefix", "_scope")

    def __init__(self, scope: Scope, prefix: str, lang: str) -> None:
        self._scope, self._prefix, self._lang = scope, prefix, lang

    def __getitem__(self, name: str) -> Any:
        full = f"{self._prefix}{name}"
        kinds = self._scope.catalogue
        if full in kinds or full in IDENTITY:
            kind = kinds.get(full) or IDENTITY[full]
            try:
                fact = self._scope.fact(FactRef(full))
            except ExpressionError as error:
                raise TemplateError(error.message) from None
            return Unknown(full, self._lang) if fact is None else Measured(fact.value, kind.unit, self._lang, full)
        if full in _prefixes(self._scope):
            return Namespace(self._scope, full + ".", self._lang)
        raise KeyError(full)


def _prefixes(scope: Scope) -> frozenset[str]:
    """What stands before a dot in the names of facts, kept with the population: catalogues are long."""
    cache = scope.population.cache
    if "prefixes" not in cache:
        parts = (name.split(".") for name in (*scope.catalogue, *IDENTITY))
        cache["prefixes"] = frozenset(".".join(each[:end]) for each in parts for end in range(1, len(each)))
    found: frozenset[str] = cache["prefixes"]
    return found


class Group:
    """Values by name; unlike a dict it has no attributes that a name could hit."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = items

    def __getitem__(self, name: str) -> Any:
        return self._items[name]


class Variables:
    """What the texts of one finding may mention: facts, `let` names, parameters and the subject."""

    def __init__(self, scope: Scope, values: Mapping[str, tuple[Any, str, str]] | None = None) -> None:
        self._scope, self._values = scope, dict(values or {})

    def with_values(
        self, values: Mapping[str, Any], units: Mapping[str, str], exprs: Mapping[str, Expr] = MappingProxyType({})
    ) -> Variables:
        """The same, with the values a rule hands to a remedy, their units and the expressions they come from."""
        facts = {name: _fact_of(expr) for name, expr in exprs.items()}
        given = {name: (value, units.get(name, "number"), facts.get(name, "")) for name, value in values.items()}
        return Variables(self._scope, {**self._values, **given})

    def find(self, name: str, lang: str) -> Any:
        """The variable of this name as the language says it; KeyError where there is none."""
        scope = self._scope
        if name in self._values:
            return _measured(name, *self._values[name], lang)
        if name in scope.rule.let:
            expr = scope.rule.let[name]
            return _measured(name, scope.value(expr), scope.rule.units.get(name, "number"), _fact_of(expr), lang)
        if name == "param":
            params = scope.rule.params.items()
            return Group({key: Measured(each.value, each.unit, lang, digits=EXACT) for key, each in params})
        if name == "subject":
            return Namespace(scope, "subject.", lang)
        if name in _prefixes(scope):
            return Namespace(scope, name + ".", lang)
        raise KeyError(name)


def _measured(name: str, value: Any, unit: str, fact: str, lang: str) -> Measured | Unknown:
    return Unknown(name, lang) if value is None else Measured(value, unit, lang, fact)


def _fact_of(expr: Expr) -> str:
    """The fact whose value an expression is, or would be if it were measured; "" where it is calculated."""
    if isinstance(expr, Call) and expr.function == "or_else":
        return _fact_of(expr.arguments[0])
    return expr.fact if isinstance(expr, FactRef) else ""


def _written(value: Any) -> str:
    """A bare value in a program's own notation: 12, 0.9, True, 85, 160."""
    if isinstance(value, (tuple, list)):
        return ", ".join(_written(item) for item in value)
    return f"{value:.{EXACT}g}" if isinstance(value, float) else str(value)


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, Measured) else value


def _number(value: Any) -> float:
    bare = _bare(value)
    if isinstance(bare, bool) or not isinstance(bare, (int, float)):
        raise TemplateError(f"{bare!r} is no number")
    return bare


def _finalize(strict: bool) -> Any:
    def finalize(value: Any) -> Any:
        if isinstance(value, Unknown):
            if strict:
                raise TemplateError(f"{value.name} is unknown")
            return word(value.lang or LANGUAGES[0], "values.unknown")
        if not isinstance(value, (str, int, float, tuple, Measured, StrictUndefined)):
            raise TemplateError("a placeholder names a group of facts, or nothing that can be shown")
        return str(Measured(value)) if isinstance(value, (float, tuple)) else value

    return finalize


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*", "+", "-", "/"])

    def compile(self, source: str, name: str | None = None, filename: str | None = None) -> Any:  # type: ignore[override]
        """As the environment does, of permitted templates alone: RuleError for others."""
        return super().compile(check_template(source), name, filename)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _number(left), _number(right)
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return isinstance(obj, Measured) and attr in ("value", "unit")


class _Context(Context):
    """Looks a name up where the text mentions it: among the variables, in the language."""

    def resolve_or_missing(self, key: str) -> Any:
        try:
            return self.parent[_FIND](key)
        except KeyError:
            return missing


_FIND = "{"
"""The context's entry that looks names up: no name itself, so that no text can mention it."""

MOST_TEMPLATES = 4000
"""Compiled texts kept, the latest: those of a few versions and packs."""


@lru_cache(maxsize=1)
def _made_by() -> str:
    """Who compiles texts: Python, the advisor's own files, and the compiler of templates by size and date of its file,
    for asking the package's version takes 20 ms."""
    status = Path(compiler.__file__).stat()
    return repr((sys.version_info, program(), status.st_size, status.st_mtime_ns))


class _Kept(BytecodeCache):
    """Templates that were checked and compiled once. `kind`: those of one environment."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._pruned = False

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        return hashlib.sha256("\0".join((_made_by(), self._kind, name)).encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        place = own_folder("texts")
        body = None if place is None else load(place / f"{bucket.key}.text")
        if body is not None:
            bucket.bytecode_from_string(body)

    def dump_bytecode(self, bucket: Bucket) -> None:
        place = own_folder("texts")
        if place is None:
            return
        store(place / f"{bucket.key}.text", bucket.bytecode_to_string())
        if not self._pruned:
            self._pruned = True
            prune(place, "*.text", MOST_TEMPLATES)


def _environment(strict: bool) -> _Sandbox:
    environment = _Sandbox(
        undefined=StrictUndefined,
        finalize=_finalize(strict),
        autoescape=False,
        cache_size=0,
        loader=FunctionLoader(lambda source: (source, None, None)),
        bytecode_cache=_Kept(f"strict {strict}"),
    )
    environment.context_class = _Context
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in _FILTERS if name in environment.filters}
    environment.filters.update(show=_show, digits=_digits, join=_join)
    environment.tests = {name: environment.tests[name] for name in _TESTS if name in environment.tests}
    environment.tests["known"] = lambda value: not isinstance(value, Unknown)
    return environment


def _join(values: Any, separator: str = "") -> str:
    """The values in a row. Grows no further than a text may: a join of a join multiplies lengths before it is shown."""
    pieces, length = [], 0
    for value in values:
        piece = str(Measured(value) if isinstance(value, float) else value)
        length += len(piece) + len(str(separator))
        if length > MAX_OUTPUT:
            raise TemplateError(f"a join of more than {MAX_OUTPUT} characters")
        pieces.append(piece)
    return str(separator).join(pieces)


def _show(value: Any, unit: str) -> Measured:
    """The value in another unit."""
    return value._as(value.value, unit) if isinstance(value, Measured) else Measured(value, unit)


def _digits(value: Any, count: int = 0) -> str:
    """The bare number with so many digits after the point."""
    return f"{_number(value):.{max(0, min(int(_bare(count)), 9))}f}"


_STRICT, _LENIENT = _environment(True), _environment(False)


def check_template(source: str) -> nodes.Template:
    """The template's syntax tree. Raises RuleError for everything beyond expressions, `if` and a single `for`."""
    if len(source) > MAX_SOURCE:
        raise RuleError(f"a text of {len(source)} characters", hint=f"at most {MAX_SOURCE}")
    try:
        tree = _STRICT.parse(source)
    except TemplateError as error:
        raise RuleError(
            f"the text's placeholders: {error.message}", hint="placeholders look like {{ step.count }}"
        ) from None
    except (RecursionError, MemoryError, ValueError, OverflowError, SyntaxError):
        raise RuleError("the text's placeholders cannot be read") from None
    _guard(tree, 0, 0)
    return tree


def _guard(node: nodes.Node, depth: int, loops: int) -> None:
    if depth > MAX_DEPTH:
        raise RuleError("the text's placeholders are nested too deeply")
    if not isinstance(node, _ALLOWED):
        raise RuleError(
            f"{type(node).__name__.lower()} has no place in a text", hint="placeholders, if and one for are allowed"
        )
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        raise RuleError(f"there is no filter {node.name}", hint="filters: " + ", ".join(_FILTERS))
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        raise RuleError(f"there is no test {node.name}", hint="write {% if x is known %}")
    loops += isinstance(node, nodes.For)
    if loops > 1 or (isinstance(node, nodes.For) and node.recursive):
        raise RuleError("a for inside a for", hint="one for is enough for a text")
    for child in node.iter_child_nodes():
        _guard(child, depth + 1, loops)


@lru_cache(maxsize=5000)
def _compiled(source: str, strict: bool) -> Template:
    try:
        return (_STRICT if strict else _LENIENT).get_template(source)
    except (TemplateError, RecursionError, MemoryError, ValueError, OverflowError, SyntaxError):
        raise RuleError("the text's placeholders cannot be read") from None


_NAME = re.compile(r"\{\{ *([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*) *\}\}", re.ASCII)
_WORDS = frozenset(
    ("true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else", "elif")
)
"""Names that mean something else in a template."""


@lru_cache(maxsize=5000)
def _pieces(source: str) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """A text with names alone for placeholders, as most are: what stands before each name, and the name by its parts.
    None where there is more to it: compiling a template takes a hundred times as long as looking up its names."""
    texts = _NAME.split(source)
    names = [tuple(name.split(".")) for name in texts[1::2]]
    if any("{" in text for text in texts[::2]) or "\r" in source or source.endswith("\n") or len(source) > MAX_SOURCE:
        return None
    if any(len(name) > MAX_DEPTH // 2 or not _WORDS.isdisjoint(name) for name in names):
        return None
    return tuple(zip(texts[::2], (*names, ()), strict=True))


def _filled(pieces: tuple[tuple[str, tuple[str, ...]], ...], context: Mapping[str, Any], strict: bool) -> Iterator[str]:
    """What the compiled template would give."""
    environment = _STRICT if strict else _LENIENT
    for text, name in pieces:
        yield text
        if name:
            value = context[name[0]]
            for part in name[1:]:
                value = environment.getattr(value, part)
            yield str(environment.finalize(value) if environment.finalize else value)


@lru_cache(maxsize=5000)
def placeholders(source: str) -> frozenset[str]:
    """The dotted names a text mentions, without `.value` and `.unit`, and without the variable of its `for`."""
    tree = check_template(source)
    local = {each.target.name for each in tree.find_all(nodes.For) if isinstance(each.target, nodes.Name)} | {"loop"}
    found = {_dotted(node) for node in tree.find_all((nodes.Getattr, nodes.Name))} - {""}
    whole = {name for name in found if not any(other.startswith(name + ".") for other in found)}
    bare = {name.removesuffix(".value").removesuffix(".unit") for name in whole}
    return frozenset(name for name in bare if name.partition(".")[0] not in local)


def _dotted(node: nodes.Node) -> str:
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        inner = _dotted(node.node)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _context(names: Iterable[str], variables: Variables, lang: str) -> dict[str, Any]:
    """Those of the variables that there are."""
    context = {}
    for name in names:
        try:
            context[name] = variables.find(name, lang)
        except KeyError:
            continue
    return context


def render(source: str, variables: Variables, lang: str = LANGUAGES[0], *, lenient: bool = False) -> str:
    """The text with its placeholders filled in, with numbers and words as the language `lang` (or `CODE`) has them.

    Raises RuleError for a name that does not exist, for an unknown value (unless `lenient`), and for a text that is
    not a permitted template or grows beyond `MAX_OUTPUT` characters.
    """
    if "{{" not in source and "{%" not in source and "{#" not in source:
        return tied(source) if lang != CODE else source
    plain = _pieces(source)
    context = _context({name[0] for _, name in plain if name} if plain else (), variables, lang)
    if plain is None or any(name and name[0] not in context for _, name in plain):
        found = _compiled(source, not lenient).generate({_FIND: partial(variables.find, lang=lang)})
    else:
        found = _filled(plain, context, not lenient)
    pieces, length = [], 0
    try:
        for piece in found:
            length += len(piece)
            if length > MAX_OUTPUT:
                raise RuleError("the text grows without end", hint=f"at most {MAX_OUTPUT} characters")
            pieces.append(piece)
    except TemplateError as error:
        raise RuleError(f"the text {source[:60]!r}: {error.message}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise RuleError(f"the text {source[:60]!r}: {error}") from None
    text = "".join(pieces)
    return tied(text) if lang != CODE else text

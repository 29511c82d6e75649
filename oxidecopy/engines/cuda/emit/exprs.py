"""Index expressions and conditions as C++ text, 32 bits wide where the launch allows, division rounding down where it must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, assert_never, final

from oxidecopy.engines.cuda.emit.ranges import Span, span
from oxidecopy.errors import DeviceCodeError, Diagnostic, Site
from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym

WIDE_RULE: Final = "OX5510"
_ATOM, _PRODUCT, _SUM, _SHIFT, _COMPARE, _BITAND, _AND, _OR = 9, 8, 7, 6, 5, 4, 3, 2


class Text(NamedTuple):
    """C++ text of an integer; `wide` when it has 64 bits, `level` for how tightly its outermost operator binds."""

    text: str
    wide: bool
    level: int = _ATOM

    def at(self, level: int) -> str:
        """In parentheses where an operator of `level` around it binds tighter."""
        return self.text if self.level >= level else f"({self.text})"


@final
class Exprs:
    """Writes expressions; `spans` and `names` of the symbols grow and shrink with the blocks."""

    def __init__(self) -> None:
        self.spans: dict[str, Span] = {}
        self.names: dict[str, Text] = {}
        self.common: dict[Expr, Text] = {}  # subexpressions that have a name
        self.used: set[str] = set()
        self.helpers: set[str] = set()
        self.site: Site | None = None

    def bind(self, symbol: str, text: str, values: Span) -> None:
        """From now on `symbol` is written `text`."""
        self.spans[symbol] = values
        self.names[symbol] = Text(text, wide=not values.narrow)

    def span(self, e: Expr) -> Span:
        """Its bounds in this launch."""
        return span(e, self.spans)

    def ctype(self, e: Expr) -> str:
        """`int` or `i64`."""
        return "i64" if self.write(e).wide else "int"

    def text(self, e: Expr) -> str:
        """As an argument or initialiser."""
        return self.write(e).text

    def narrow(self, e: Expr) -> str:
        """As a 32-bit coordinate, index or rank: what does not fit wraps, as in the register."""
        made = self.write(e)
        return f"(int)({made.text})" if made.wide else made.text

    def write(self, e: Expr) -> Text:
        """With what is needed to put it into a larger expression."""
        named = None if isinstance(e, Const | Sym) else self.common.get(e)
        return self._write(e) if named is None else named

    def _write(self, e: Expr) -> Text:  # noqa: C901 - one case per kind of node
        bounds = self.span(e)
        if not bounds.representable:
            raise DeviceCodeError(
                Diagnostic(
                    rule=WIDE_RULE,
                    what="an index needs more than 64 bits",
                    got=f"values from {bounds.lo} to {bounds.hi}",
                    required="values of 64-bit integers, in every step of the calculation",
                    fix="divide before you multiply, or take the factors from smaller parameters",
                    site=self.site,
                )
            )
        match e:
            case Const(value):
                return _constant(value)
            case Sym(name):
                self.used.add(name)
                return self.names[name]
            case Add(a, b):
                return self._sum(a, b, bounds)
            case Mul(a, b):
                if b == Const(-1):
                    x = self.write(a)
                    return Text(f"-{x.at(_ATOM)}", x.wide, _PRODUCT)
                x, y = self._pair(a, b, bounds)
                return Text(f"{x.at(_PRODUCT)} * {y.at(_ATOM)}", x.wide or y.wide, _PRODUCT)
            case FloorDiv(a, b) | Mod(a, b):
                return self._division(e, a, b, bounds)
            case Min(a, b) | Max(a, b):
                return self._smaller("min" if isinstance(e, Min) else "max", a, b, bounds)
            case _:
                assert_never(e)

    def _pair(self, a: Expr, b: Expr, bounds: Span) -> tuple[Text, Text]:
        """Both operands, the first widened where the result needs it."""
        x, y = self.write(a), self.write(b)
        if not bounds.narrow and not x.wide and not y.wide:
            x = Text(f"(i64){x.at(_ATOM)}", wide=True)
        return x, y

    def _sum(self, a: Expr, b: Expr, bounds: Span) -> Text:
        minus, b = _negated(b)
        x, y = self._pair(a, b, bounds)
        return Text(f"{x.at(_SUM)} {'-' if minus else '+'} {y.at(_PRODUCT)}", x.wide or y.wide, _SUM)

    def _division(self, e: FloorDiv | Mod, a: Expr, b: Expr, bounds: Span) -> Text:
        whole = isinstance(e, FloorDiv)
        if isinstance(b, Const) and b.value > 0 and b.value & (b.value - 1) == 0 and self.span(b).narrow:
            x = self.write(a)  # of a negative number, too, the shift rounds down and the mask leaves what is not negative
            if whole:
                return Text(f"{x.at(_PRODUCT)} >> {b.value.bit_length() - 1}", x.wide, _SHIFT)
            return Text(f"{x.at(_PRODUCT)} & {b.value - 1}", x.wide, _BITAND)
        x, y = self._pair(a, b, bounds)
        if self.span(a).lo >= 0 and self.span(b).lo > 0:
            return Text(f"{x.at(_PRODUCT)} {'/' if whole else '%'} {y.at(_ATOM)}", x.wide or y.wide, _PRODUCT)
        name = "floor_div" if whole else "floor_mod"
        return self._call(name, x, y)

    def _smaller(self, which: str, a: Expr, b: Expr, bounds: Span) -> Text:
        x, y = self._pair(a, b, bounds)
        return self._call(f"{which}imum", x, y)

    def _call(self, name: str, x: Text, y: Text) -> Text:
        self.helpers.add(name)
        wide = x.wide or y.wide
        return Text(f"{name}<{'i64' if wide else 'int'}>({x.text}, {y.text})", wide)

    # ---- conditions
    def cond(self, c: Cond) -> str:
        """As the condition of an `if`."""
        return self._cond(c).text

    def _cond(self, c: Cond) -> Text:
        match c:
            case Bool(value):
                return Text("true" if value else "false", wide=False)
            case Cmp(op, a, b):
                return Text(f"{self.write(a).at(_SUM)} {op.value} {self.write(b).at(_SUM)}", wide=False, level=_COMPARE)
            case And(a, b):
                return Text(f"{self._cond(a).at(_AND)} && {self._cond(b).at(_AND)}", wide=False, level=_AND)
            case Or(a, b):
                return Text(f"{self._cond(a).at(_AND + 1)} || {self._cond(b).at(_AND + 1)}", wide=False, level=_OR)
            case Not(a):
                return Text(f"!{self._cond(a).at(_ATOM)}", wide=False)
            case Answer(register):
                return Text(f"answer{register}", wide=False)
            case _:
                assert_never(c)


def _constant(value: int) -> Text:
    wide = not Span(value, value).narrow
    if value == -(1 << 63):
        return Text("(-9223372036854775807ll - 1)", wide)
    if value == -(1 << 31):
        return Text("(-2147483647 - 1)", wide)
    return Text(f"{value}{'ll' if wide else ''}", wide, _ATOM if value >= 0 else _PRODUCT)


def _negated(e: Expr) -> tuple[bool, Expr]:
    """True with what is to be taken away, where adding `e` is better written so."""
    match e:
        case Const(value) if value < 0:
            return True, Const(-value)
        case Mul(a, Const(-1)):
            return True, a
        case Mul(a, Const(value)) if value < 0:
            return True, Mul(a, Const(-value))
        case _:
            return False, e


HELPERS: Final[Mapping[str, str]] = {
    "floor_div": """// a / b rounded down
template <class T>
__device__ __forceinline__ T floor_div(T a, T b) {
    const T q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}""",
    "floor_mod": """// what a / b rounded down leaves, of b's sign
template <class T>
__device__ __forceinline__ T floor_mod(T a, T b) {
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
    "minimum": """template <class T>
__device__ __forceinline__ T minimum(T a, T b) {
    return a < b ? a : b;
}""",
    "maximum": """template <class T>
__device__ __forceinline__ T maximum(T a, T b) {
    return a < b ? b : a;
}""",
}

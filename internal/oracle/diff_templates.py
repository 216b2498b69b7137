"""Compares `plumb render` with transformers on random templates.

usage: diff_templates.py PLUMB COUNT [SEED] [TEMPLATES CONVERSATIONS_JSON]

Half of the cases are made from the grammar of the language over random values,
with every filter, test and method, fitting and odd arguments; a part of them is
then damaged, so that syntax errors are compared, too (kind and line). With a
folder of templates and the conversations of the templates kit the other half is
real templates, changed at random, over those conversations. Text, kind of error
and raised message are compared; the first differences are printed and the exit
status is 1.
"""
import copy, datetime as dt, glob, json, os, random, re, signal, subprocess, sys, tempfile, time
import jinja2
from transformers.utils import chat_template_utils as ctu
from chat_snippets import error_of

NOW = "2026-01-15T12:00:00"
# Results that differ from run to run, and messages with Python's addresses.
VOLATILE = re.compile(r"0x[0-9a-f]{6,}|object at |<function|<bound|<built-in|<generator|<class|<jinja2|TemplateDict|iterator|\dj\b|lipsum", re.I)
STRINGS = ["", "a", "abc", "Hello World", " pad ", "\t x\n", "a\nb\r\nc\n\n", "it's", 'say "hi"', "both ' and \"", "é漢😀", "ŉ ß İ ΣΑΣ ǆ", "\\n\\", "\x00\x1b\x7f", "\u00a0\u3000x\u2028", "\u200b\ufeff\u00ad",
           "<b>&amp;</b>", "{{ x }}", "%s %d%%", "{} {0}", "12", "-3.5", " 7 ", "0x1f", "1e3", "1_0", "nan", "inf", "True", "a,b,,c", "a b  c", "key", "items", "x" * 30, "the quick-brown fox", "ǅ", "²½", "٣", "\ud7ff\U0010ffff", "a.b.c", "__class__"]
NUMBERS = ["0", "1", "-1", "2", "7", "10", "-3", "100", "255", "2147483648", "9223372036854775808", "10**20", "0.0", "-0.0", "1.0", "2.5", "-0.5", "0.1", "1e16", "1e-5", "123456.789", "1e22", "1e300", "(f*1e308*1e10)", "0x1F", "0b101", "0o17", "1_000", "1.5e3", "3.999"]
NAMES = ["a", "b", "x", "y", "s", "l", "d", "o", "n", "i", "f", "t", "missing", "ls", "ns", "m"]
# filter: kind of its value, kinds of its arguments, kind of its result
FILTERS = {
    "abs": ("num", [], "num"), "attr": ("any", [("name", "key")], "any"), "batch": ("list", [("linecount", "small"), ("fill_with", "any")], "iter"), "capitalize": ("str", [], "str"),
    "center": ("str", [("width", "small")], "str"), "count": ("list", [], "num"), "default": ("any", [("default_value", "any"), ("boolean", "bool")], "any"), "d": ("any", [("default_value", "any"), ("boolean", "bool")], "any"),
    "dictsort": ("dict", [("case_sensitive", "bool"), ("by", "by"), ("reverse", "bool")], "list"), "escape": ("str", [], "str"), "e": ("any", [], "str"), "filesizeformat": ("num", [("binary", "bool")], "str"),
    "first": ("list", [], "any"), "last": ("list", [], "any"), "float": ("any", [("default", "num")], "num"), "forceescape": ("str", [], "str"), "format": ("format", [("", "any"), ("", "any")], "str"),
    "groupby": ("objs", [("attribute", "attr"), ("default", "any"), ("case_sensitive", "bool")], "list"), "indent": ("str", [("width", "indent"), ("first", "bool"), ("blank", "bool")], "str"),
    "int": ("any", [("default", "num"), ("base", "base")], "num"), "items": ("dict", [], "iter"), "join": ("list", [("d", "str"), ("attribute", "attr")], "str"), "length": ("list", [], "num"), "list": ("list", [], "list"),
    "lower": ("str", [], "str"), "map": ("list", [("", "fname"), ("", "str")], "iter"), "max": ("list", [("case_sensitive", "bool"), ("attribute", "attr")], "any"), "min": ("list", [("case_sensitive", "bool"), ("attribute", "attr")], "any"),
    "pprint": ("any", [], "str"), "reject": ("list", [("", "tname"), ("", "any")], "iter"), "rejectattr": ("objs", [("", "attr"), ("", "tname"), ("", "any")], "iter"), "replace": ("str", [("old", "str"), ("new", "str"), ("count", "small")], "str"),
    "reverse": ("list", [], "iter"), "round": ("num", [("precision", "small"), ("method", "method")], "num"), "safe": ("str", [], "str"), "select": ("list", [("", "tname"), ("", "any")], "iter"), "selectattr": ("objs", [("", "attr"), ("", "tname"), ("", "any")], "iter"),
    "slice": ("list", [("slices", "small"), ("fill_with", "any")], "iter"), "sort": ("list", [("reverse", "bool"), ("case_sensitive", "bool"), ("attribute", "attr")], "list"), "string": ("any", [], "str"), "striptags": ("str", [], "str"),
    "sum": ("list", [("attribute", "attr"), ("start", "num")], "num"), "title": ("str", [], "str"), "tojson": ("any", [("ensure_ascii", "bool"), ("indent", "indent"), ("separators", "seps"), ("sort_keys", "bool")], "str"),
    "trim": ("str", [("chars", "str")], "str"), "truncate": ("str", [("length", "small"), ("killwords", "bool"), ("end", "str"), ("leeway", "small")], "str"), "unique": ("list", [("case_sensitive", "bool"), ("attribute", "attr")], "iter"),
    "upper": ("str", [], "str"), "urlencode": ("any", [], "str"), "urlize": ("str", [("trim_url_limit", "limit"), ("nofollow", "bool"), ("target", "word"), ("rel", "word")], "str"), "wordcount": ("str", [], "num"),
    "wordwrap": ("str", [("width", "small"), ("break_long_words", "bool"), ("wrapstring", "str"), ("break_on_hyphens", "bool")], "str"), "xmlattr": ("dict", [("autospace", "bool")], "str"),
}
TESTS = {"boolean": [], "callable": [], "defined": [], "divisibleby": ["num"], "escaped": [], "even": [], "odd": [], "false": [], "true": [], "filter": [], "test": [], "float": [], "integer": [], "number": [], "iterable": [], "sequence": [],
         "mapping": [], "string": [], "lower": [], "upper": [], "none": [], "undefined": [], "in": ["list"], "sameas": ["any"], "eq": ["any"], "ne": ["any"], "lt": ["num"], "ge": ["num"], "gt": ["num"], "le": ["num"], "equalto": ["any"],
         "greaterthan": ["num"], "lessthan": ["str"]}
METHODS = {
    "str": [("capitalize", [], "str"), ("casefold", [], "str"), ("center", ["small", "char"], "str"), ("count", ["str", "small", "small"], "num"), ("endswith", ["strs", "small", "small"], "bool"), ("expandtabs", ["small"], "str"),
            ("find", ["str", "small", "small"], "num"), ("format", ["any", "any"], "str"), ("isalnum", [], "bool"), ("isalpha", [], "bool"), ("isascii", [], "bool"), ("isdecimal", [], "bool"), ("isdigit", [], "bool"),
            ("isidentifier", [], "bool"), ("islower", [], "bool"), ("isnumeric", [], "bool"), ("isprintable", [], "bool"), ("isspace", [], "bool"), ("istitle", [], "bool"), ("isupper", [], "bool"), ("join", ["list"], "str"), ("ljust", ["small", "char"], "str"),
            ("lower", [], "str"), ("lstrip", ["str"], "str"), ("partition", ["str"], "list"), ("removeprefix", ["str"], "str"), ("removesuffix", ["str"], "str"), ("replace", ["str", "str", "small"], "str"), ("rfind", ["str", "small"], "num"),
            ("rindex", ["str"], "num"), ("rjust", ["small", "char"], "str"), ("rpartition", ["str"], "list"), ("rsplit", ["str", "small"], "list"), ("rstrip", ["str"], "str"), ("split", ["str", "small"], "list"), ("splitlines", ["bool"], "list"),
            ("startswith", ["strs", "small", "small"], "bool"), ("strip", ["str"], "str"), ("swapcase", [], "str"), ("title", [], "str"), ("upper", [], "str"), ("zfill", ["small"], "str"), ("encode", ["str"], "any"), ],
    "dict": [("items", [], "list"), ("keys", [], "list"), ("values", [], "list"), ("get", ["key", "any"], "any"), ("copy", [], "dict"), ("pop", ["key"], "any"), ("fromkeys", ["list", "any"], "dict"), ("setdefault", ["key", "any"], "any")],
    "list": [("count", ["any"], "num"), ("index", ["any"], "num"), ("copy", [], "list"), ("append", ["any"], "any")],
    "num": [("conjugate", [], "num"), ("as_integer_ratio", [], "list")],
}
KEYWORDS = {"split": ["sep", "maxsplit"], "rsplit": ["sep", "maxsplit"], "splitlines": ["keepends"], "expandtabs": ["tabsize"], "encode": ["encoding"]}
BINARY = {"num": ["+", "-", "*", "/", "//", "%", "**"], "str": ["+", "~", "%", "*"], "list": ["+", "*"], "bool": ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"], "any": ["and", "or", "+", "~"]}
FORMATS = ["%s", "%r", "%5d|", "%-8s|", "%05.1f", "%x", "%e", "%g", "%c", "%%", "%(a)s", "%(b)r", "%*d", "%.3s", "%+d", "%i %s", "%a"]
SPECS = ["{}", "{0}", "{!r}", "{:>8}", "{:*^9}", "{:05d}", "{:.2f}", "{:,}", "{:x}", "{0[a]}", "{0.a}", "{a}", "{{}}", "{:{}}", "{", "{1}", "{:s}", "{:e}", "{:%}", "{:_}", "{!s:5}|"]
DAMAGE = ["{{", "}}", "{%", "%}", "{#", "#}", "-", "+", "|", "(", ")", "[", "]", "{", "}", ",", ".", ":", "'", '"', "~", "=", "==", "!", "*", "**", "if", "else", "elif", "endif", "for", "in", "endfor", "set", "endset", "is", "not", "and", "or",
          "macro", "endmacro", "block", "raw", "endraw", "recursive", "call", "filter", "with", "1", "1.", ".5", "1e", "0x", "x", "loop", "true", "None", "break", "\n", " ", "\\", "$", "?", "@", "generation", "endgeneration", "do", "import", "scoped", "é", "ª", "caller", "_", "self"]


class Random:
    """Random templates and values; the same seed gives the same ones."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.odd = self.r.choice([0, 0, 0.05, 1])  # how much of what does not fit

    def chance(self, p):
        return self.r.random() < p

    # ---- values of the context
    def value(self, depth=0):
        r, k = self.r, self.r.random()
        if k < 0.35 or depth > 2:
            return r.choice(STRINGS)
        if k < 0.5:
            return r.choice([0, 1, -1, 7, 10**20, 255, 2, 3])
        if k < 0.6:
            return r.choice([0.0, -0.0, 1.0, 2.5, 1e16, 1e-5, 1e22, 0.1, 1e-320])
        if k < 0.7:
            return r.choice([True, False, None])
        if k < 0.85:
            return [self.value(depth + 1) for _ in range(r.randint(0, 3))]
        return {r.choice(["a", "b", "k", "items", "x y", "é", "get", "A", ""]): self.value(depth + 1) for _ in range(r.randint(0, 3))}

    def context(self):
        r = self.r
        objects = [{k: self.value(2) for k in r.sample(["k", "v", "n", "a"], r.randint(1, 4))} for _ in range(r.randint(0, 4))]
        return {"a": self.value(), "b": self.value(), "x": self.value(), "s": r.choice(STRINGS), "l": [self.value(2) for _ in range(r.randint(0, 4))], "ls": [r.choice(STRINGS) for _ in range(r.randint(0, 4))], "d": {r.choice("abckvAB"): self.value(1) for _ in range(r.randint(0, 4))},
                "o": objects, "n": None, "i": r.randint(-5, 20), "f": r.choice([2.5, -0.0, 1e16, 0.1]), "t": self.chance(0.5), "m": [{"role": r.choice(["user", "assistant", "tool"]), "content": r.choice(STRINGS)} for _ in range(r.randint(0, 4))]}

    # ---- expressions
    def string(self):
        s = self.r.choice(STRINGS)
        q = self.r.choice("'\"")
        out = s.replace("\\", "\\\\").replace(q, "\\" + q)
        if self.chance(0.5):
            out = out.replace("\n", "\\n").replace("\t", "\\t")
        if self.chance(0.1):
            out += self.r.choice(["\\x41", "\\u00e9", "\\101", "\\q", "\\\n", "\\U0001F600"])
        return q + out.replace("\x00", "\\x00") + q

    def literal(self, kind):
        r = self.r
        if kind == "num":
            return r.choice(NUMBERS)
        if kind in ("str", "key"):
            return self.string()
        if kind == "list":
            items = ", ".join(self.literal(r.choice(["num", "str", "num", "str", "dict", "list"])) for _ in range(r.randint(0, 4)))
            return r.choice(["[%s]" % items, "(%s,)" % items if items else "()", "[%s]" % items, "range(%s)" % r.choice(["4", "1, 9, 2", "5, 0, -1", "0"])])
        if kind == "dict":
            keys = [r.choice(["'a'", "'b'", "1", "none", "true", "2.5", "'é'", "(1, 2)"]) for _ in range(r.randint(0, 3))]
            return "{%s}" % ", ".join(k + ": " + self.literal("any") for k in keys)
        if kind == "bool":
            return r.choice(["true", "false", "True", "False", "t"])
        return r.choice([self.literal(r.choice(["num", "str", "list", "dict", "bool"])), "none", "missing"]) if self.chance(0.6) else r.choice(NAMES)

    def argument(self, kind, depth):
        r = self.r
        if self.chance(0.08 * self.odd) and kind not in ("limit", "word"):  # urlize reads these for links alone
            return self.expr("any", depth + 1)
        fixed = {"small": ["0", "1", "2", "3", "5", "10", "20", "-1", "none", "true", "i"], "by": ["'key'", "'value'", "'x'"], "indent": ["2", "4", "0", "'\\t'", "none", "1", "-1", "'> '"], "base": ["10", "16", "2", "0", "8", "36"], "limit": ["0", "3", "10", "-1", "none"], "word": ["'a'", "''", "'x y'", "none"], "method": ["'common'", "'ceil'", "'floor'", "'x'"],
                 "seps": ["(',', ':')", "[', ', ': ']", "none", "(' ; ', ' = ')", "','"], "attr": ["'k'", "'v'", "'a'", "'n.p'", "'role'", "'content'", "0", "'k,v'", "'0'", "''"], "char": ["'*'", "'é'", "' '", "''", "'ab'"], "strs": ["('a', 'H')", "'a'", "s", "()"], "ints": ["[]", "[1, 2]", "(3, 0.5)", "range(5)"],
                 "fname": ["'upper'", "'string'", "'length'", "'trim'", "'tojson'", "'first'", "'default'", "'nope'", "'int'", "'list'"], "tname": ["'string'", "'none'", "'defined'", "'equalto'", "'mapping'", "'odd'", "'in'", "'nope'", "'eq'", "'gt'"], "key": ["'a'", "'b'", "'k'", "'items'", "1"]}
        if kind in fixed:
            return r.choice(fixed[kind])
        return self.expr(kind, depth + 1) if self.chance(0.3) else self.literal(kind)

    def arguments(self, params, depth):
        r, out, kw = self.r, [], []
        n = len(params) if self.chance(0.2) else r.randint(0, len(params))
        if self.chance(0.02 * self.odd):
            return "(%s)" % self.literal("any")
        for name, kind in params[:n]:
            v = self.argument(kind, depth)
            if name and (kw or self.chance(0.25)):
                kw.append(name + "=" + v)
            elif not kw:
                out.append(v)
        if not kw and n < len(params) and self.chance(0.2):
            name, kind = r.choice(params[n:])
            kw.append((name or r.choice(["attribute", "default", "a"])) + "=" + self.argument(kind, depth))
        if self.chance(0.01 * self.odd):
            kw.append("nope=1")
        return "(%s)" % ", ".join(out + kw) if out or kw else r.choice(["", "", "", "()"])

    def filtered(self, kind, depth):
        r = self.r
        fits = [f for f, (_, _, out) in FILTERS.items() if out == kind or kind == "any" or (kind == "list" and out == "iter")]
        name = r.choice(fits or list(FILTERS))
        of, params, out = FILTERS[name]
        v = r.choice(FORMATS).join("''") if of == "format" else self.expr({"objs": "list"}.get(of, of), depth + 1)
        if of == "objs" and self.chance(0.8):
            v = r.choice(["o", "m", "o", "[d]", "d"])
        e = "%s|%s%s" % (self.wrap(v), name, self.arguments(params, depth))
        return e + "|list" if out == "iter" and self.chance(0.9) else e

    def wrap(self, e):
        return e if re.fullmatch(r"\w+|'[^']*'", e) and not e[0].isdigit() else "(%s)" % e

    def called(self, kind, depth):
        r = self.r
        of = r.choice(list(METHODS))
        fits = [m for m in METHODS[of] if kind == "any" or m[2] == kind] or METHODS[of]
        name, kinds, _ = r.choice(fits)
        names = KEYWORDS.get(name)
        args = self.arguments([(names[i] if names and i < len(names) else "", k) for i, k in enumerate(kinds)], depth)
        v = r.choice(SPECS + ["%s-{}" % r.choice(SPECS)]).join("''") if name == "format" else self.expr(of, depth + 1)
        return "%s.%s%s" % (self.wrap(v), name, args or "()")

    def expr(self, kind="any", depth=0):
        r, k = self.r, self.r.random()
        if self.chance(0.06 * self.odd):
            kind = r.choice(["num", "str", "list", "dict", "bool", "any"])
        if depth > 3 or k < 0.2:
            return self.literal(kind)
        if k < 0.32:
            return {"num": r.choice("ifx"), "str": r.choice(["s", "x", "a"]), "list": r.choice(["l", "ls", "o", "m"]), "dict": "d", "bool": "t"}.get(kind) or r.choice(NAMES)
        if k < 0.55:
            return self.filtered(kind, depth)
        if k < 0.66:
            return self.called(kind, depth)
        if k < 0.76:
            op = r.choice(BINARY.get(kind, BINARY["any"]))
            sub = kind if kind in ("num", "str", "list") else r.choice(["num", "str", "list", "any"])
            left, right = self.expr(sub, depth + 1), self.expr("num" if op == "*" else "list" if "in" in op else sub, depth + 1)
            if op == "**":
                left, right = r.choice(["2", "-3", "0", "2.5", "i", "10"]), r.choice(["0", "2", "-1", "0.5", "10", "3 ** 2"])
                right = right.replace("0.5", "2") if left[0] in "-i" else right  # complex numbers are left out
            if op == "*" and kind != "num":
                right = r.choice(["2", "0", "-1", "true", "3"])
            if kind == "bool" and self.chance(0.2):
                return "%s %s %s %s %s" % (self.wrap(left), op, self.wrap(right), r.choice(["<", "==", "!=", ">="]), self.wrap(self.expr(sub, depth + 1)))
            return "%s %s %s" % ((left, op, right) if self.chance(0.3) else (self.wrap(left), op, self.wrap(right)))
        if k < 0.82:
            name = r.choice(list(TESTS))
            args = [self.argument(a, depth) for a in TESTS[name]]
            form = "" if not args else "(%s)" % args[0] if self.chance(0.6) or not re.fullmatch(r"\w+|'[^']*'", args[0]) else " " + args[0]
            return "%s is %s%s%s" % (self.wrap(self.expr("any", depth + 1)), r.choice(["", "", "not "]), name, form)
        if k < 0.87:
            other = r.choice(["", " else " + self.expr(kind, depth + 1)])
            return "(%s if %s%s)" % (self.expr(kind, depth + 1), self.expr("bool", depth + 1), other)
        if k < 0.94 and (kind == "any" or self.odd):
            part = lambda: r.choice(["", "", "1", "-1", "2", "-2", "0", "i", "-100", "100", "none"])
            index = r.choice(["[%s:%s]" % (part(), part()), "[%s:%s:%s]" % (part(), part(), r.choice(["1", "-1", "2", "-2", ""])), "[0]", "[-1]", "[9]", "['a']", "['items']", ".a", ".k", ".items", ".0", "[i]", "[s]", ".missing", "[none]", "[true]", "[1.0]", "['a', 1]"])
            return r.choice(["s", "l", "ls", "d", "o", "m", "x", "a", "n", "missing", "m[0]", "o[0]"]) + index
        if k < 0.97 or (kind not in ("any", "str") and not self.odd):
            if kind not in ("any", "num", "bool"):
                return self.literal(kind)
            return r.choice(["not ", "-", "+", "not not "]) + self.wrap(self.expr(r.choice(["num", "bool"]), depth + 1))
        return r.choice(["loop.index", "loop.last", "loop.previtem", "loop.nextitem", "loop.length", "loop.revindex0", "loop.cycle('p', 'q')", "loop.changed(x)", "loop.depth", "loop is defined", "ns.v", "ns", "g(%s)" % self.expr("any", depth + 1), "g()", "caller()", "varargs", "kwargs",
                         "namespace(a=%s).a" % self.literal("any"), "dict(a=1, **d)", "cycler(1, 2).next()", "joiner(',')()", "range(i)|list", "raise_exception(%s)" % self.literal("str"), "strftime_now('%d %b')", "g.name", "true.real", "m[-1].role == 'user'"])

    # ---- statements
    def tag(self, text):
        r = self.r
        return "{%" + r.choice(["", "", "-", "", "+"]) + " " + text + " " + r.choice(["", "", "-", "", "+" if self.chance(0.3) else ""]) + "%}"

    def blank(self):
        return self.r.choice(["", "", " ", "\n", "\n  ", "  \n", "txt", " t\n\n", "\t", "\r\n", "{# c #}", "\n  {#- c -#} \n", "{{ x }}\n"])

    def body(self, depth=0, loop=False):
        return "".join(self.blank() + self.statement(depth, loop) for _ in range(self.r.choice([1, 1, 2, 3] if depth < 1 else [1]))) + self.blank()

    def statement(self, depth, loop):
        r, k = self.r, self.r.random()
        name = lambda: r.choice(["a", "b", "x", "y", "s", "i", "g"])
        if depth > 2 or k < 0.3:
            return "{{%s %s %s}}" % (r.choice(["", "", "-"]), self.expr(), r.choice(["", "", "-"]))
        sub = lambda l=loop: self.body(depth + 1, l)
        if k < 0.42:
            out = self.tag("if " + self.expr("bool", 1)) + sub()
            if self.chance(0.3):
                out += self.tag("elif " + self.expr("bool", 1)) + sub()
            return out + (self.tag("else") + sub() if self.chance(0.5) else "") + self.tag("endif")
        if k < 0.56:
            target = r.choice(["x", "y", "a", "a, b", "x", "(a, b), x"] + ["loop"] * bool(self.odd) if self.chance(0.2) else ["x", "a"])
            over = r.choice(["d.items()", "d|items", "o|groupby('k')", "[[1, 2], [3, 4]]"]) if "," in target else self.expr("list", 1)
            rest = r.choice(["", "", "", " if " + self.expr("bool", 2), " recursive"])
            inside = sub(True)
            if "recursive" in rest and self.chance(0.5):
                inside += "{% if loop.depth < 3 %}{{ loop(" + r.choice(["l", "ls", "x", "[1, [2]]"]) + ") }}{% endif %}"
            return self.tag("for %s in %s%s" % (target, over, rest)) + inside + (self.tag("else") + sub() if self.chance(0.2) else "") + self.tag("endfor")
        if k < 0.66:
            return self.tag("set " + r.choice([name() + " = " + self.expr(), name() + " = " + self.expr(), "ns.v = " + self.expr(), "a, b = " + r.choice([self.expr("list"), "1, 2", "b, a"]), name() + " = 1, " + self.expr()]))
        if k < 0.71:
            return self.tag("set %s%s" % (r.choice([name(), "ns.v"]), r.choice(["", "", " | upper", " | trim | replace('a', 'b')"]))) + sub() + self.tag("endset")
        if k < 0.79:
            params = r.choice(["", "a", "a, b=1", "x=s, y=x", "a, b, x=none", "a='é'"])
            return self.tag("macro g(%s)" % params) + sub(False) + r.choice(["", "{{ a }}", "{{ varargs }}", "{{ kwargs }}"] + ["{{ caller() }}", "{{ caller }}"] * bool(self.odd)) + self.tag("endmacro") + "{{ g(%s) }}" % (r.choice(["", "1", "1, b=2", "1, 2, 3", "x=3", "*l", "**d", self.expr()]) if self.odd else self.expr() if params else "")
        if k < 0.83:
            first, given = r.choice([("", "caller()"), ("(x)", "caller(a)"), ("(a, b=2)", "caller(a, b=a)"), ("(a, b=2)", "caller(x)")])
            return "{%% macro h(a) %%}[{{ %s }}{{ a }}]{%% endmacro %%}" % given + self.tag("call%s %s(%s)" % (first, r.choice(["h", "h", "h", "g"]), r.choice(["1", self.expr()]))) + sub(False) + self.tag("endcall")
        if k < 0.87:
            return self.tag("filter " + r.choice(["upper", "trim", "indent(2)", "replace('a', '<b>')|title", "tojson", "default('x', true)", "escape"])) + sub() + self.tag("endfilter")
        if k < 0.91:
            return self.tag("with " + r.choice(["x = " + self.expr(), "a = b, b = a", "y = 1"])) + sub() + self.tag("endwith")
        if k < 0.94:
            return self.tag("generation") + sub(False) + self.tag("endgeneration")
        if k < 0.97 and loop:
            return "{%% if %s %%}%s{%% endif %%}" % (self.expr("bool", 2), self.tag(r.choice(["break", "continue"])))
        return r.choice(["{% raw %} {{ x }} {% endraw %}", "{%- raw -%} {% if %}\n{%- endraw +%}", r.choice(["{% raw +%}", "{%+ raw %}"] if self.odd else ["{%+ raw %}"]) + "x\n{% endraw %}\n", self.tag("block bl") + sub(False) + self.tag("endblock"), "{% autoescape true %}{{ s }}{{ x }}{{ l }}{% endautoescape %}", "{% print x, s %}"])

    def template(self):
        text = "{% set ns = namespace(v=1) %}" + self.r.choice([""] * bool(self.odd) + ["{% macro g(a=0, b=2) %}<{{ a }}{{ b }}{% endmacro %}"]) + self.body()
        return self.damaged(text) if self.chance(0.15) else text

    def damaged(self, text, times=1):
        """A copy with a few tokens left out, doubled, swapped or put in."""
        r = self.r
        tokens = re.findall(r"\w+|\s+|\{[{%#][-+]?|[-+]?[%#}]\}|.", text, re.S)
        for _ in range(r.randint(1, 3) * times):
            i = r.randrange(len(tokens))
            k = r.random()
            if k < 0.3 and len(tokens) > 1:
                del tokens[i]
            elif k < 0.45:
                tokens.insert(i, tokens[i])
            elif k < 0.6:
                j = r.randrange(len(tokens))
                tokens[i], tokens[j] = tokens[j], tokens[i]
            else:
                tokens.insert(i, r.choice(DAMAGE))
        return "".join(tokens)


class Clock(dt.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(NOW)


def answer(render):
    """What Python says: {text} or {error}, None where it says nothing that can be compared."""
    signal.alarm(5)
    try:
        text = render()
        return None if VOLATILE.search(text) else {"text": text}
    except (RecursionError, MemoryError, TimeoutError):
        return None
    except Exception as e:
        return {"error": error_of(e), "message": str(e), "line": getattr(e, "lineno", None)}
    finally:
        signal.alarm(0)


def same(want, got):
    if "error" not in want:
        return got.get("text") == want["text"]
    e = got.get("error")
    if not e or e["kind"] != want["error"]:
        return False
    return (want["error"] != "raise_exception" or e["message"] == want["message"]) and (want["error"] != "syntax" or want["line"] == e.get("line"))


def grammar_case(seed):
    g = Random(seed)
    template, context = g.template(), g.context()
    # Python reads the context as the command does, so that no object is shared.
    return {"id": seed, "template_text": template, "context": context}, lambda: ctu._compile_jinja_template(template).render(**json.loads(json.dumps(context)))


def real_case(seed, sources, conversations):
    g = Random(seed)
    source = g.damaged(g.r.choice(sources), g.r.choice([0, 1, 1, 3]))
    conv = g.r.choice(conversations)
    setting = copy.deepcopy(g.r.choice(conv["settings"]))
    flags = {"add_generation_prompt": g.chance(0.5), "continue_final_message": False}
    messages = [{k: v for k, v in m.items() if v is not None} for m in conv["messages"]]
    if g.chance(0.3) and messages:
        at = g.r.randrange(len(messages))
        messages[at] = dict(messages[at], **{g.r.choice(["content", "role", "name", "reasoning_content", "tool_call_id"]): g.value(1)})
    data = {k: conv.get(k) for k in ("tools", "documents")}
    case = {"id": seed, "template_text": source, "messages": messages, **data, **flags, "kwargs": setting["kwargs"], "drop_null_keys": False}

    def render():
        c = json.loads(json.dumps(case))
        return ctu.render_jinja_template(conversations=[c["messages"]], tools=c["tools"], documents=c["documents"], chat_template=source, **flags, **c["kwargs"])[0][0]
    return case, render


def main():
    binary, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
    sources, conversations = [], []
    if len(sys.argv) > 5:
        sources = [open(p, encoding="utf-8", newline="").read() for p in sorted(glob.glob(sys.argv[4] + "/*.jinja"))]
        conversations = json.load(open(sys.argv[5], encoding="utf-8"))
    ctu.datetime = Clock
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    compared = bad = errors = limits = 0
    for first in range(0, count, 2000):
        made = []
        for i in range(first, min(first + 2000, count)):
            at = seed * 1_000_003 + i
            made.append(real_case(at, sources, conversations) if sources and i % 2 else grammar_case(at))
        for real in (False, True):
            cases = [(c, r) for c, r in made if ("messages" in c) == real]
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
                f.writelines(json.dumps(c) + "\n" for c, _ in cases)
                f.flush()
                p = subprocess.run([binary, "render", "--errors=data", "--now", NOW, *([] if real else ["--snippets"]), f.name], capture_output=True, check=True)
            for (case, render), line in zip(cases, p.stdout.splitlines(), strict=True):
                want, got = answer(render), json.loads(line)
                if want is None or (got.get("error") or {}).get("kind") == "limit":
                    limits += 1
                    continue
                compared += 1
                errors += "error" in want
                if not same(want, got):
                    bad += 1
                    if bad <= int(os.environ.get("TURNPACK_SHOW", "5")):
                        print("seed %d: %r\n  want %s\n  got  %s" % (case["id"], case["template_text"][:1500], json.dumps(want)[:700], line.decode()[:700]))
                        if os.environ.get("TURNPACK_KEEP"):
                            with open(os.environ["TURNPACK_KEEP"], "a", encoding="utf-8") as f:
                                f.write(json.dumps({"case": case, "want": want, "got": got}) + "\n")
    print(f"{compared} templates, seed {seed}, {bad} differ ({errors} errors, {limits} not comparable; jinja2 {jinja2.__version__})")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

"""Compares `plumb render` with jinja2 in one area of the language after another.

usage: diff_language.py PLUMB COUNT [SEED] [AREA...]
       diff_language.py --record COUNT SEED > tokenize/chat/testdata/language.jsonl

Where diff_templates.py mixes everything, each generator here stays in one area
(macros, scopes, white space, literals, formats, …) and combines its forms
densely. COUNT templates are made for each area. Text, kind of error and raised
message are compared; a line an area, exit status 1 on any difference. What
depends on an address, on the folding of constants or on chance is not made.
"""
import json, os, random, re, signal, subprocess, sys, tempfile, time
import jinja2
from transformers.utils import chat_template_utils as ctu
from diff_templates import NOW, Clock, answer, same

CONTEXT = {
    "s": "Hello World", "u": "é漢😀 ŉß", "e": "", "q": "it's \"x\" <b>&", "w": " \t pad\n", "lines": "a\nb\r\nc\n\n  d", "n": 7, "z": 0, "neg": -3, "big": 12345678901234567890123, "f": 2.5, "g": 1e22, "h": -0.0,
    "t": True, "no": False, "none_": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "mix": [1, "a", None, 2.5, True, [1], {"k": 1}], "nest": [1, [2, [3, []]], 4], "d": {"b": 1, "a": "x", "items": [1], "é": None}, "dd": {"x": {"y": [1, {"z": "deep"}]}}, "ed": {}, "el": [],
    "o": [{"k": "x", "v": 2, "p": {"q": 1}}, {"k": "Y", "v": 1}, {"k": "x", "v": 3, "p": {"q": 0}}, {"v": None, "k": ""}], "m": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": [1.0, "é"]}}}]}],
    "tree": [{"n": "a", "c": [{"n": "b", "c": []}, {"n": "c", "c": [{"n": "d", "c": []}]}]}, {"n": "e", "c": []}], "ctl": "\x00\x1f\x7f\u2028\ud7ff\U0010ffff", "num": "42", "float_": "1e3",
}
ODD_TEXT = [*"aabb  AB-1'\"<&>\u3000\u00a0\t\u2003\u00e9\n\r\x0b\x1c\x85\u2014\u01c5\u00df\u0130\u0131\u0149\u03a3\u03c2\u0663\u00b2\u00bd._/:@?#(){}[]%,;!|\\", "http://a.b/c?d=e", "www.x.org", "a@b.co", "mailto:x@y.z", "<b>", "</b>", "<!-- c -->", "--", "&amp;", "&#39;", "&lt", "don't", "x.com.", "(www.a.com)", "https://[::1]/x", "\ufb01", "e\u0301"]
INF = "(f*1e308*1e10)"
NAMES = list(CONTEXT) + ["missing", "missing.x", INF, "(%s-%s)" % (INF, INF)]
LAZY = re.compile(r"\|(batch|slice|unique|map|select|reject|selectattr|rejectattr|items|reverse)\b")
# Text that may hold the address of an iterator taken apart, or its length.
VAGUE = re.compile(r"generator|object|^\d*x?$")


class Area:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n = 0

    def pick(self, *of):
        return self.r.choice(of)

    def some(self, of, most=3):
        return [self.r.choice(of) for _ in range(self.r.randint(0, most))]

    def name(self):
        return self.r.choice(NAMES)

    # ---- values
    def value(self):
        return self.pick(*NAMES, "1", "'a'", "[1, 2]", "(1,)", "()", "{'a': 1}", "none", "true", "2.5", "-1", "'x' * 2", "l[0]", "d.a", "namespace(a=1)", "range(3)", "d.items()", "l|reverse", "o|map(attribute='k')")

    def blank(self):
        return self.pick("", " ", "\n", "\n  ", "  \n", "\t", "x", "\r\n", "\r", "\n\n", " \n ", "\x0b", "\u00a0", "\u2028")

    def mark(self, open_):
        return open_ + self.pick("", "", "-", "+")

    def end(self, close):
        return self.pick("", "", "-", *(["+"] if close != "}}" else [])) + close

    def tag(self, text):
        return self.mark("{%") + self.pick("", " ", "\n") + text + self.pick("", " ", "\n ") + self.end("%}")

    # ---- areas
    def macros(self):
        params = self.pick("", "a", "a, b", "a, b=1", "a=x, b=a", "a, b=missing, c=[]", "caller=none", "a, caller=1", "a, a=1", "varargs", "kwargs=1", "loop", "self=2")
        inside = ["{{ a }}", "{{ b }}", "{{ c }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller else '' }}", "{{ caller(1, x=2) }}", "{{ x }}", "{% set x = 5 %}{{ x }}", "{{ caller is defined }}", "{{ varargs|length }}", "{{ kwargs|tojson }}", "{{ f2() if f2 is defined }}", "{% macro f2(a) %}({{ a }}{{ x }}){% endmacro %}{{ f2(1) }}", "{% for a in [1, 2] %}{{ a }}{% endfor %}", "{{ name }}"]
        calls = ["1", "1, 2", "a=1", "b=2, a=1", "1, a=2", "1, 2, 3, 4", "*l", "**{'a': 1}", "**{'zz': 1}", "*[1], **{'b': 3}", "x", "caller=1", "missing", "1, zz=3", "*missing", "**d", "**none", "a=1, a=2", "*l, b=2", "varargs=1", "kwargs=2", "caller=g"]
        body = "".join(self.some(inside, 4))
        out = "{% set x = 'X' %}{% macro g() %}G{% endmacro %}{% macro f(" + params + ") %}" + body + "{% endmacro %}"
        for _ in range(self.r.randint(1, 3)):
            k = self.r.random()
            call = "f(%s)" % self.r.choice(calls)
            if k < 0.5:
                out += "{{ %s }}|" % call
            elif k < 0.8:
                out += "{%% call%s %s %%}%s{%% endcall %%}|" % (self.pick("", "(p)", "(p, q=1)", "(p, x)", "(a, b=a)"), call, self.pick("in", "{{ p }}{{ q }}", "{{ x }}", "{% set x = 9 %}{{ x }}", "{{ caller() }}", "{{ varargs }}{{ kwargs }}", "{% call f(1) %}deep{{ p }}{% endcall %}"))
            else:
                out += self.pick("{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f.caller }}|", "{{ f is callable }}{{ f is string }}|", "{% set x = 'late' %}", "{% for f in [f] %}{{ f(1) }}{% endfor %}", "{% set h = f %}{{ h(2) }}", "{{ [1, 2]|map('string')|map('upper')|list }}", "{{ f|string|length > 3 }}", "{% if t %}{% macro f(z) %}new{{ z }}{% endmacro %}{% endif %}{{ f(1) }}", "{{ f == f }}{{ f != g }}", "{{ f(1) ~ f(2) }}", "{{ f(1)|upper }}", "{{ f(1) + 'x' }}", "{{ f(1) is escaped }}")
        return out

    def loops(self):
        over = self.pick("l", "ls", "el", "nest", "range(3)", "'abc'", "d", "d.items()", "o", "l|reverse", "ls|select('string')", "missing", "none_", "7", "dd.values()", "u", "[]|list", "o|map(attribute='v')", "{}", "l + ls", "(1, 2)", "self", "loop", "namespace()", "o|groupby('k')", "mix")
        target = self.pick("x", "x", "x", "x, y", "(x, y)", "x, (y, z)", "ns.a", "loop")
        attrs = ["{{ loop.index }}", "{{ loop.index0 }}", "{{ loop.revindex }}", "{{ loop.revindex0 }}", "{{ loop.first }}", "{{ loop.last }}", "{{ loop.length }}", "{{ loop.depth }}{{ loop.depth0 }}", "{{ loop.previtem }}", "{{ loop.nextitem }}", "{{ loop.previtem is defined }}", "{{ loop.nextitem|default('end') }}", "{{ loop.cycle('a', 'b', 'c') }}", "{{ loop.cycle() }}", "{{ loop.cycle(*l) }}", "{{ loop.changed(x) }}", "{{ loop.changed() }}", "{{ loop.changed(x, loop.first) }}", "{{ loop|length }}", "{{ loop }}", "{{ loop.missing }}", "{{ loop['index'] }}", "{{ loop is defined }}", "{% set loop = 1 %}{{ loop }}", "{{ loop.index is even }}", "{{ loop.nextitem.k }}", "{% for x in loop %}{{ x }}{% endfor %}", "{{ loop|list }}", "{{ loop|first }}", "{{ loop.__class__ }}", "{{ loop._length }}", "{{ loop.index + loop.index0 * 2 }}", "{{ x }}", "{{ y }}", "{% if loop.index > 1 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}", "{{ loop.index == loop.length }}", "{% for q in 'ab' %}{{ loop.index }}{% endfor %}{{ loop.index }}", "{% set outer = loop %}{% for q in 'ab' %}{{ outer.index }}.{{ loop.index }} {% endfor %}"]
        if self.r.random() < 0.25:
            shape = self.pick("{%% for x in tree recursive %%}%s{%% if x.c %%}[{{ loop(x.c) }}]{%% endif %%}%s{%% endfor %%}", "{%% for x in nest recursive %%}%s{%% if x is iterable %%}<{{ loop(x) }}>{%% else %%}{{ x }}{%% endif %%}%s{%% endfor %%}", "{%% for x in tree recursive %%}%s{%% set sub = loop(x.c) %%}{{ sub|upper }}%s{%% else %%}none{%% endfor %%}", "{%% for x in tree if x.n != 'b' recursive %%}%s{{ loop(x.c) ~ loop(x.c) }}%s{%% endfor %%}", "{%% for x in l recursive %%}%s{{ loop() }}%s{%% endfor %%}", "{%% for x in tree recursive %%}%s{{ loop(x.c, 1) }}%s{%% endfor %%}", "{%% for x in tree recursive %%}%s{{ loop(x.c)|length }}%s{%% endfor %%}{{ loop }}", "{%% for x in tree recursive %%}%s{%% for y in l %%}{{ loop.index }}{{ loop(x.c) }}{%% endfor %%}%s{%% endfor %%}")
            return "{% set ns = namespace(a=0) %}" + shape % ("".join(self.some(attrs, 2)), "".join(self.some(attrs, 2)))
        test = self.pick("", "", "", " if x", " if loop.first", " if x is string", " if x != 1", " if missing.x", " if x is defined and y is not defined")
        other = self.pick("", "", "{% else %}E{{ x }}{{ loop }}", "{% else %}{% break %}")
        return "{% set ns = namespace(a=0) %}{% for " + target + " in " + over + test + " %}" + "".join(self.some(attrs, 4)) + other + "{% endfor %}" + self.pick("", "{{ x }}", "{{ loop is defined }}", "{{ loop.index }}", "{{ y }}")

    def scopes(self, depth=0):
        name = lambda: self.pick("a", "b", "x", "ns.v")
        show = lambda: "{{ %s }}," % self.pick("a", "b", "x", "ns.v", "a is defined", "b|default('-')", "ns.w")
        out = "" if depth else self.pick("", "{% set a = 1 %}", "{% set a, b = 1, 2 %}") + "{% set ns = namespace(v=0) %}"
        for _ in range(self.r.randint(1, 3)):
            k = self.r.randrange(14)
            sub = lambda: self.scopes(depth + 1) if depth < 3 else show()
            v = self.pick("1", "a", "b", "x", "'s'", "a ~ 1", "ns.v + 1", "missing", "[a, b]")
            if k < 3:
                out += show()
            elif k < 6:
                out += "{%% set %s = %s %%}" % (name(), v)
            else:
                out += [lambda: "{%% if %s %%}%s%s{%% endif %%}" % (self.pick("t", "no", "a", "b is defined"), sub(), self.pick("", "{% else %}" + sub(), "{% elif x %}" + sub())), lambda: "{%% for %s in [1, 2]%s %%}%s{%% endfor %%}" % (self.pick("x", "a", "i"), self.pick("", " if a", " if x"), sub()), lambda: "{%% with %s %%}%s{%% endwith %%}" % (self.pick("", "a = 5", "a = b, b = a", "x = a"), sub()),
                        lambda: "{%% macro m%d(%s) %%}%s{%% endmacro %%}{{ m%d(%s) }}" % (depth, p := self.pick("", "a", "a, x=b"), sub(), depth, "7" if p else ""), lambda: "{%% set %s %%}%s{%% endset %%}" % (name(), sub()), lambda: "{%% filter %s %%}%s{%% endfilter %%}" % (self.pick("upper", "default(a)", "replace(',', a|string)"), sub()),
                        lambda: "{%% block k%d %s %%}%s{%% endblock %%}" % (self.r.randrange(10**9), self.pick("", "scoped", "required") if self.r.random() < 0.5 else "", sub()), lambda: "{%% generation %%}%s{%% endgeneration %%}" % sub()][k - 6]()
        return out + (show() if depth else show() + show() + "{{ self is defined }}{{ super is defined }}")

    def whitespace(self):
        out = ""
        for _ in range(self.r.randint(1, 4)):
            k = self.r.randrange(7)
            a, b = self.blank(), self.blank()
            if k == 0:
                out += a + self.tag("if t") + b + self.tag(self.pick("else", "elif no")) + self.blank() + self.tag("endif") + self.blank()
            elif k == 1:
                out += a + self.tag("for x in [1, 2]") + b + "{{ x }}" + self.blank() + self.tag("endfor") + self.blank()
            elif k == 2:
                out += a + self.mark("{{") + " " + self.pick("s", "n", "'\n'", "' '", "1 }", "'}}'") + " " + self.end("}}") + b
            elif k == 3:
                out += a + self.mark("{#") + self.pick(" c ", "", "\n", " {{ x }} {% if %} ", "#", "-", "}") + self.end("#}") + b
            elif k == 4:
                out += a + self.tag("raw") + b + self.pick("{{ x }}", "{% if %}", "{#", " ", "\n") + self.blank() + self.tag("endraw") + self.blank()
            elif k == 5:
                out += a + self.tag("set y = 1") + b + self.tag("set z_") + self.blank() + self.tag("endset") + "[{{ z_ }}]"
            else:
                out += a + b + self.pick("{", "}", "%", "#}", "%}", "}}", "{ {", "$", "\\", "##", "# for x in l")
        return out + self.pick("", "\n", "\n\n", "\r\n", "\r", " ", "\n ")

    def literals(self):
        digits = lambda: self.pick("0", "1", "12", "1_000", "1__0", "_1", "1_", "0x1F", "0XfF", "0b101", "0B1_0", "0o17", "0o8", "017", "00", "0_0", "1.5", "1.", ".5", "1e5", "1E-3", "1.e2", "1e", "1_0.5_0", "1e1_0", "123456789012345678901234567890", "0x", "1.5.2", "1j", "١", "1e+2", "0.1", "1if", "1or 2")
        def text():
            q = self.pick("'", '"')
            return q + "".join(self.some(["a", "\\n", "\\t", "\\\\", "\\'", '\\"', "\\x41", "\\x4", "\\u00e9", "\\u12", "\\U0001F600", "\\U00110000", "\\101", "\\8", "\\0", "\\q", "\\é", "\\\n", "\n", "é", "😀", "{{", "%}", "\\N{DASH}", "\\a\\b\\f\\v\\r", "'" if q == '"' else '"', "\x7f", "\t", "\\400", "\\777"], 5)) + q
        k = self.r.randrange(6)
        if k < 2:
            return "{{ %s }}" % self.pick(*["%s" % digits() for _ in range(3)], "%s %s %s" % (digits(), self.pick("+", "-", "*", "/", "//", "%", "~", "<", "=="), digits()))
        if k < 5:
            return "{{ %s }}%s" % (text(), self.pick("", "{{ %s %s }}" % (text(), text()), "{{ %s|tojson }}" % text(), "{{ [%s] }}" % text(), "{{ %s|length }}" % text()))
        return "{{ %s }}" % self.pick("none", "None", "NONE", "true", "True", "TRUE", "nil", "()", "(1)", "(1,)", "1,", "1, 2", "[]", "[1,]", "[,]", "{}", "{'a': 1,}", "{a: 1}", "{1: 2, 1.0: 3, true: 4}", "{'a' 1}", "{'a': 1 'b': 2}", "{*l}", "{**d}", "[*l]", "(x)", "((1, 2), [3])", "{[1]: 2}", "{(1, 2): 3}", "{none: 1, 'none': 2}", "'a' 'b' 'c'", "'a' ~ 'b' 'c'", "'%s' '%s' % (1, 2)", "{'a': 1}['a']", "[1, 2][0]", "(1, 2)[-1]", "'abc'[1]", "1.real", "1 .real", "{}.a", "[].a", "''.a", "none.a", "().x", "l.0", "l.0.x", "l.-1", "nest.1.0", "d.'a'", "d.b.c", "s.upper()", "not", "not not 1", "is none", "1 is", "()()", "{{}}", "{ {} }", "- 1", "--1", "+-1", "not -1", "-'a'", "+'a'", "-none", "-missing", "-true", "+l")

    def operators(self):
        atom = lambda: self.pick("1", "2", "0", "-1", "2.5", "n", "f", "t", "no", "none", "'a'", "'b'", "s", "l", "[1]", "d", "big", "missing", "e", "(1, 2)", "true")
        op = lambda: self.pick("+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or", "is", "is not", "if", "|", "and not", "or not", "not")
        tests = lambda: self.pick("none", "defined", "even", "string", "in [1]", "divisibleby 2", "divisibleby(2)", "eq 1", "sameas true", "not none", "mapping")
        filters = lambda: self.pick("abs", "string", "length", "int", "list", "upper", "default(1)", "first")
        out = self.pick("", "not ", "-", "- -", "+", "not -") + atom()
        for _ in range(self.r.randint(1, 4)):
            o = op()
            if o in ("is", "is not"):
                out += " %s %s" % (o, tests())
            elif o == "|":
                out += "|" + filters()
            elif o == "if":
                out += " if " + atom() + self.pick("", " else " + atom())
            elif o == "**":
                out += " ** " + self.pick("2", "0", "3", "-1", "-n")
            else:
                out += " %s %s%s" % (o, self.pick("", "", "-", "not "), self.pick(atom(), "(%s %s %s)" % (atom(), self.pick("+", "==", "or", "~", "in", "*"), atom())))
        return "{{ %s }}" % out

    def slices(self):
        of = self.pick("s", "u", "l", "ls", "e", "el", "nest", "range(10)", "range(2, 20, 3)", "d", "n", "none_", "missing", "d.items()", "m", "range(5, 0, -1)", "o|map(attribute='k')", "u|list")
        p = lambda: self.pick("", "", "0", "1", "-1", "2", "-2", "5", "-100", "100", "n", "none", "true", "big", "-big", "'a'", "1.0", "missing", "f")
        k = self.r.randrange(5)
        index = self.pick("%s:%s" % (p(), p()), "%s:%s:%s" % (p(), p(), self.pick("1", "-1", "2", "-2", "", "3", "-3", "none", "0", "n")), p() or "0", "%s, %s" % (p() or 1, p() or 2), "::", ":", "1:2, 3", "1:2:3:4", "'a'", "'items'", "'k'", "(1, 2)", "[1]", "{}")
        base = "%s[%s]" % (of, index)
        return "{{ %s }}" % [base, base, "%s|list" % base, "%s %s %s" % (self.pick("1", "'a'", "'l'", "[2, [3, []]]", "none", "''", "'b'", "2.0", "true", "missing", "('b', 1)", "[1]", "{}"), self.pick("in", "not in"), of), base + self.pick(".k", "[0]", "|length", "|string", "[::-1]", " is defined", " == %s" % of)][k]

    def formats(self):
        spec = lambda: self.pick("", "", "-", "+", " ", "0", "#", "-0", "+#", "0-+ #") + self.pick("", "", "5", "12", "1", "*", "0") + self.pick("", "", ".2", ".0", ".", ".10", ".*") + self.pick(*"sdifgGeExXorcauFb%q", "ld")
        value = lambda: self.pick("1", "-7", "2.5", "1e300", "'a'", "'é'", "n", "big", "none", "t", "l", "d", "missing", "0.1", "-0.0", INF, "65", "128512", "-1", "u", "(1, 2)", "q", "1e-7", "123456.789", "'ab'", "1114112", "1e16")
        k = self.r.randrange(4)
        if k == 0:
            fmt = "".join("%" + spec() + self.pick("", "|", " ") for _ in range(self.r.randint(1, 2)))
            arg = self.pick(value(), "(%s,)" % value(), "(%s, %s)" % (value(), value()), "(%s, %s, %s)" % (value(), value(), value()))
            return "{{ '%s' %% %s }}" % (fmt, arg)
        if k == 1:
            return "{{ '%%(a)%s %%(b)%s' %% {'a': %s, 'b': %s} }}" % (spec().replace("*", ""), spec().replace("*", ""), value(), value())
        if k == 2:
            fmt = "".join("%" + spec() for _ in range(self.r.randint(1, 2)))
            return "{{ '%s'|format(%s) }}" % (fmt, self.pick("", value(), "%s, %s" % (value(), value()), "a=%s" % value(), "%s, b=1" % value()))
        def field():
            name = self.pick("", "", "", "0", "1", "a", "0.real", "0[0]", "a[k]", "0.__class__", "a.b.c", "0[x][y]", "-1", " 0", "0[", "a.", "2")
            conv = self.pick("", "", "", "!r", "!s", "!a", "!x", "!")
            f = self.pick("", "", ":" + self.pick("", "*", "é", "0", "{", "😀") + self.pick("", "<", ">", "^", "=") + self.pick("", "+", "-", " ") + self.pick("", "", "#", "z", "0") + self.pick("", "5", "10", "1", "03") + self.pick("", ",", "_", "", "") + self.pick("", ".2", ".0", ".10", ".") + self.pick("", *"sdfgGeEbxXocn%qF"), ":{}", ":{1}", ":{a}", ":>{1}.{2}")
            return "{" + name + conv + f + "}"
        fmt = "".join(self.pick(field(), field(), "{{", "}}", "x", "{", "}") for _ in range(self.r.randint(1, 3)))
        return "{{ \"%s\".%s }}" % (fmt, self.pick("format(%s)" % value(), "format(%s, %s, %s)" % (value(), value(), value()), "format(a=%s)" % value(), "format(%s, a=%s)" % (value(), value()), "format()", "format(*l)", "format(**d)", "format_map({'a': %s})" % value(), "format_map(d)"))

    def strings(self):
        of = self.pick("s", "u", "e", "q", "w", "lines", "'aXbXc'", "'x'", "' a  b '", "'ÀÉß'", "'ǆ'", "'12'", "'²'", "'\\t'", "'aaa'", "'a\\tb\\n\\tc'", "'-5'", "'+'", "'ΑΣ'", "'İ'")
        sub = lambda: self.pick("'a'", "'X'", "''", "' '", "'l'", "'lo'", "'\\n'", "none", "1", "('H', 'x')", "()", "['a']", "missing", "s", "'é'", "' \\t'", "('x', 1)", "true")
        num = lambda: self.pick("0", "1", "-1", "2", "5", "100", "-100", "none", "true", "'1'", "2.0", "missing", "big", "n")
        method = self.pick("startswith", "endswith", "find", "rfind", "index", "rindex", "count", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "partition", "rpartition", "replace", "center", "ljust", "rjust", "zfill", "expandtabs", "join", "removeprefix", "removesuffix", "title", "capitalize", "swapcase", "upper", "lower", "casefold", "isalpha", "isdigit", "isdecimal", "isnumeric", "isalnum", "isspace", "istitle", "isupper", "islower", "isidentifier", "isprintable", "isascii", "translate", "encode", "maketrans", "format", "nope")
        args = {"startswith": [sub, num, num], "endswith": [sub, num, num], "find": [sub, num, num], "rfind": [sub, num, num], "index": [sub, num, num], "rindex": [sub, num, num], "count": [sub, num, num], "strip": [sub], "lstrip": [sub], "rstrip": [sub], "split": [sub, num], "rsplit": [sub, num], "splitlines": [num], "partition": [sub], "rpartition": [sub], "replace": [sub, sub, num], "center": [num, sub], "ljust": [num, sub], "rjust": [num, sub], "zfill": [num], "expandtabs": [num], "join": [lambda: self.pick("ls", "l", "el", "s", "d", "('a', 'b')", "mix", "none", "o|map(attribute='k')", "missing", "d.keys()")], "removeprefix": [sub], "removesuffix": [sub], "translate": [lambda: self.pick("{97: 'Z'}", "{'a': 'b'}", "{104: none}", "d", "none", "'abc'.maketrans('a', 'b')")], "maketrans": [sub, sub, sub], "encode": [lambda: self.pick("'utf-8'", "'ascii'", "'x'", "1")]}.get(method, [sub])
        n = self.r.choice([len(args)] * 3 + list(range(len(args) + 2)))
        given = [(args[i] if i < len(args) else sub)() for i in range(n)]
        if given and self.r.random() < 0.15:
            given[-1] = self.pick("sep=", "maxsplit=", "keepends=", "tabsize=", "count=", "old=", "chars=", "fillchar=", "encoding=", "zz=") + given[-1]
        return "{{ %s.%s(%s)%s }}" % (of, method, ", ".join(given), self.pick("", "", "|string", "|list", "|length", "[0]", "|tojson", " ~ 'x'"))

    def json(self):
        v = lambda d=0: self.pick(self.name(), "[%s, %s]" % (v(d + 1), v(d + 1)) if d < 2 else "1", "{'a': %s, 'B': %s}" % (v(d + 1), v(d + 1)) if d < 2 else "{}", "(%s,)" % v(d + 1) if d < 2 else "()", "{1: 2, none: 3, true: 4, 2.5: 5, 'x': 6}", "{(1, 2): 3}", "{'b': 1, 'a': [], 'c': {}}", "range(3)", "d.items()", "l|reverse", "namespace(a=1)", "joiner()", "-0.0", "1e16", "1e-7", "'\\x00\\u2028</script>'", "m", "dd", "s|safe", "missing", "u", "ctl", INF, "big")
        opts = self.some(["indent=%s" % self.pick("0", "2", "4", "none", "-1", "true", "'--'", "''", "1.5", "missing", "'\\t'"), "ensure_ascii=%s" % self.pick("true", "false", "none", "0", "'x'"), "sort_keys=%s" % self.pick("true", "false", "1"), "separators=%s" % self.pick("(',', ':')", "[';', '=']", "none", "(',',)", "'ab'", "('', '')", "(', ', ': ')"), "zz=1", "indent=3", "sort_keys=true"], 3)
        seen, kept = set(), []
        for o in opts:
            if o.split("=")[0] not in seen:
                seen.add(o.split("=")[0])
                kept.append(o)
        if self.r.random() < 0.15:
            kept = [self.pick("true", "false, 2", "none, none", "false, 2, (',', ':'), true", "1, 2, 3, 4, 5")]
        return "{{ %s%s|tojson%s%s }}" % ("" , self.pick(self.name(), "(%s)" % v(), "(%s)" % v()), "(%s)" % ", ".join(kept) if kept else "", self.pick("", "", "|length", "|upper", "|safe", " ~ 1", "[1:-1]", "|tojson"))

    def methods(self):
        of = self.pick("d", "ed", "dd", "l", "ls", "el", "(1, 2, 1)", "n", "f", "t", "big", "none_", "s", "range(5)", "d.items()", "d.keys()", "namespace(a=1)", "cycler(1, 2)", "joiner('-')", "f.hex", "dict", "namespace", "range", "missing", "m[1]", "o|groupby('k')|first")
        name = self.pick("items", "keys", "values", "get", "pop", "popitem", "update", "setdefault", "clear", "copy", "fromkeys", "append", "extend", "insert", "remove", "sort", "reverse", "index", "count", "bit_length", "bit_count", "conjugate", "real", "imag", "numerator", "is_integer", "as_integer_ratio", "hex", "next", "reset", "current", "a", "b", "isdisjoint", "grouper", "list", "start", "stop", "step", "__class__", "__init__", "__len__", "_x", "func_code", "format", "union", "add")
        arg = self.pick("", "1", "'a'", "'zz'", "'zz', 1", "1, 2", "l", "d", "key=1", "'a', 'b', 'c'", "none", "missing", "*l", "x=1", "[1]", "{}")
        forms = ["{{ OF.NAME }}", "{{ OF.NAME(ARG) }}", "{{ OF.NAME(ARG) }}", "{{ OF['NAME'] }}", "{{ OF|attr('NAME') }}", "{{ OF.NAME is defined }}", "{{ OF.NAME(ARG)|list }}", "{{ (OF.NAME)(ARG) }}", "{{ OF|map(attribute='NAME')|list }}", "{% set f_ = OF.NAME %}{{ f_(ARG) }}", "{{ '{0.NAME}'.format(OF) }}", "{{ OF['NAME'](ARG) }}", "{{ OF.NAME is callable }}", "{% if OF.NAME %}y{% else %}n{% endif %}", "{{ OF.NAME == 1 }}", "{% set ns = namespace() %}{% set ns.NAME = 1 %}{{ ns }}", "{% set OF.NAME = 1 %}", "{{ OF.NAME.NAME }}", "{{ (OF|attr('NAME'))(ARG) }}", "{{ '%(NAME)s' % OF }}", "{{ '{NAME}'.format(**OF) }}"]
        return self.pick(*forms).replace("OF", of).replace("NAME", name).replace("ARG", arg)

    def undefined(self):
        u = self.pick("missing", "d.missing", "d['missing']", "l[99]", "none_.x", "n.x", "missing.x", "missing['x']", "missing()", "s.x", "s[99]", "('x' if no)", "l|first|attr('x')", "el|first", "el|last", "el|min", "el|random", "missing|default", "loop", "self", "caller", "varargs", "x.y.z", "m[0].x.y", "m[9].role", "d.items.x", "missing|attr('x')", "ns.a", "namespace().a", "_x", "d._x", "d.__class__", "s.__class__.__mro__")
        use = self.pick("{{ U }}", "{{ U is defined }}", "{{ U is undefined }}", "{{ U is none }}", "{{ U == none }}", "{{ U == U }}", "{{ U != 1 }}", "{{ U < 1 }}", "{{ 1 < U }}", "{{ U + 1 }}", "{{ 1 + U }}", "{{ 'a' ~ U }}", "{{ 'a' + U }}", "{{ U ~ U }}", "{{ -U }}", "{{ not U }}", "{{ U and 1 }}", "{{ U or 1 }}", "{{ U|length }}", "{{ U|list }}", "{{ U|join }}", "{{ U|tojson }}", "{{ U|string }}", "{{ U|upper }}", "{{ U|trim }}", "{{ U|default('x') }}", "{{ U|d('x', true) }}", "{{ U|d }}", "{{ U|int }}", "{{ U|float }}", "{{ U|abs }}", "{{ U|round }}", "{{ U|first }}", "{{ U|last }}", "{{ U|sum }}", "{{ U|sort }}", "{{ U|items|list }}", "{{ U|dictsort }}", "{{ U|map('upper')|list }}", "{{ U|selectattr('x')|list }}", "{{ U|groupby('x') }}", "{{ U|unique|list }}", "{{ U|reverse }}", "{{ U|replace('a', 'b') }}", "{{ U|batch(2)|list }}", "{{ U|max }}", "{{ U in l }}", "{{ 1 in U }}", "{{ U in U }}", "{{ U() }}", "{{ U.x }}", "{{ U[0] }}", "{{ U['x'] }}", "{{ U[:1] }}", "{% for x in U %}x{% else %}e{% endfor %}", "{% for a, b in U %}x{% endfor %}", "{% if U %}y{% else %}n{% endif %}", "{{ U is string }}{{ U is mapping }}{{ U is iterable }}{{ U is sequence }}{{ U is number }}{{ U is callable }}", "{{ U is sameas U }}", "{{ U is in l }}", "{{ U is even }}", "{{ U is eq 1 }}", "{{ {U: 1} }}", "{{ [U] }}", "{{ (U,)|string }}", "{{ {'a': U} }}", "{{ dict(a=U) }}", "{{ U % 2 }}", "{{ '%s' % U }}", "{{ '%d' % U }}", "{{ '{}'.format(U) }}", "{{ range(U) }}", "{{ l[U] }}", "{{ d[U] }}", "{{ d.get(U) }}", "{{ s * U }}", "{{ U ** 2 }}", "{% set a, b = U %}", "{% set x = U %}{{ x }}", "{{ U|pprint }}", "{{ U|safe }}", "{{ U|e }}", "{{ U|indent }}", "{{ U|wordcount }}", "{{ U|center(3) }}", "{{ U|title }}", "{{ raise_exception(U) }}", "{{ strftime_now(U) }}", "{{ U|attr('x') }}", "{{ U.upper() }}", "{{ [1]|sum(start=U) }}", "{{ l|join(U) }}", "{{ s|replace(U, 'x') }}", "{{ U if U else 'z' }}", "{{ (U if U)|string }}", "{{ U|filesizeformat }}", "{{ U|xmlattr }}", "{{ U|striptags }}", "{{ U|truncate(3) }}", "{{ U|wordwrap(3) }}", "{{ U|slice(2)|list }}", "{{ U|format(1) }}", "{{ U|count }}", "{{ U|lower ~ U|capitalize }}", "{{ U|forceescape }}", "{{ U|urlize }}")
        return use.replace("U", u)

    def filters(self):
        v = lambda: self.pick(*NAMES, "'a,b'", "[3, 1, 2]", "o", "ls", "d", "u", "'<b>x</b> y'", "lines", "q", "'http://a.b/c?d=e&f www.x.org me@x.org'", "[true, 1, 'x']", "[[1, 2], [3]]", "['b', 'B', 'a']", "[1, 'a']", "[none, 1]", "1234567", "0.5", "1.5", "-2.675", "'12abc'", "' 12 '", "'0x1A'")
        n = lambda: self.pick("0", "1", "2", "3", "-1", "10", "none", "'2'", "2.5", "true", "missing", "100")
        t = lambda: self.pick("''", "'x'", "', '", "'k'", "'v'", "'p.q'", "'missing'", "none", "1", "0", "'k,v'", "'<br>'", "u", "true")
        b = lambda: self.pick("true", "false", "none", "1", "''")
        x = lambda: self.pick(v(), n(), t())
        test = lambda: self.pick("'string'", "'none'", "'odd'", "'defined'", "'nope'", "'eq', 1", "'in', l", "'equalto', 'x'", "'gt', 1", "'sameas', none", "'mapping'", "1", "none", "'lower'")
        names = {"abs": [], "attr": [t], "batch": [n, x], "capitalize": [], "center": [n], "count": [], "d": [x, b], "default": [x, b], "dictsort": [b, lambda: self.pick("'key'", "'value'", "'x'"), b], "e": [], "escape": [], "filesizeformat": [b], "first": [], "float": [n], "forceescape": [], "format": [x, x], "groupby": [t, x, b], "indent": [lambda: self.pick(n(), t()), b, b], "int": [x, n], "items": [], "join": [t, t], "last": [], "length": [], "list": [], "lower": [], "map": [lambda: self.pick("'upper'", "'length'", "'int'", "'nope'", "attribute='k'", "attribute='v', default=9", "'default', 'z'", "'replace', 'a', 'b'", "attribute=0", "attribute='p.q'", "1", "'join', '-'", "attribute='k', zz=1", "'tojson', indent=2")], "max": [b, t], "min": [b, t], "pprint": [], "reject": [test], "rejectattr": [t, test], "replace": [t, t, n], "reverse": [], "round": [n, lambda: self.pick("'common'", "'ceil'", "'floor'", "'x'", "1")], "safe": [], "select": [test], "selectattr": [t, test], "slice": [n, x], "sort": [b, b, t], "string": [], "striptags": [], "sum": [t, n], "title": [], "trim": [t], "truncate": [lambda: self.pick("0", "2", "3", "9", "-1", "true"), b, t, n], "unique": [b, t], "upper": [], "urlencode": [], "urlize": [n, b, t, t, t], "wordcount": [], "wordwrap": [lambda: self.pick("1", "2", "5", "0", "-1", "'2'", "none"), b, t, b], "xmlattr": [b], "tojson": [], "nope": []}
        def one(e):
            name = self.r.choice(list(names))
            kinds = names[name]
            k = self.r.choice([len(kinds)] * 2 + list(range(len(kinds) + 1)))
            given = [f() for f in kinds[:k]]
            if self.r.random() < 0.05:
                given.append(self.pick("1", "zz=2", "*l", "**d"))
            return "%s|%s%s" % (e, name, "(%s)" % ", ".join(given) if given else self.pick("", "", "()"))
        e = one(v() if self.r.random() < 0.7 else "(%s)" % v())
        for _ in range(self.pick(0, 0, 1, 1, 2)):
            e = one(e)
        return "{{ %s%s }}" % (e, self.pick("", "", "|list", "|string", "|length", "|first", "|join", " ~ 'x'", "[0]", "|tojson"))

    def orders(self):
        pool = self.r.sample(["1", "'a'", "none", "missing", "[1]", "{}", "2.5", "true", "'b'", "(1,)", "0", "-1", "range(2)", "'B'"], self.r.choice([1, 2, 3, 5]))
        items = [self.r.choice(pool) for _ in range(self.r.choice([2, 3, 4, 5, 8, 12, 30]))]
        return self.pick("{{ [%s]|sort(%s) }}" % (", ".join(items), self.pick("", "true", "case_sensitive=true")), "{{ [%s]|%s }}" % (", ".join(items), self.pick("min", "max", "unique|list")),
                         "{{ {%s}|dictsort(by='value', reverse=%s) }}" % (", ".join("%d: %s" % p for p in enumerate(items)), self.pick("true", "false")), "{{ [%s]|groupby('a')|list }}" % ", ".join("{'a': %s}" % x for x in items))

    def tests(self):
        name = self.pick("boolean", "callable", "defined", "divisibleby", "eq", "equalto", "==", "escaped", "even", "false", "filter", "float", "ge", "gt", "greaterthan", "in", "integer", "iterable", "le", "lower", "lt", "lessthan", "mapping", "ne", "none", "number", "odd", "sameas", "sequence", "string", "test", "true", "undefined", "upper", "nope", "and", "not", "is", "None", "True")
        v, w = self.value(), self.value()
        form = self.pick("is NAME", "is NAME", "is not NAME", "is NAME(W)", "is NAME W", "is not NAME W", "is NAME()", "is NAME and t", "is NAME or no", "is NAME is NAME", "is NAME == true", "is NAME ~ 'x'", "is NAME(W, W)", "is NAME if t", "is NAME|string", "is NAME in l", "is NAME not in l", "is NAME(other=W)", "is NAME [1]", "is NAME.x", "is NAME {}", "is NAME - 1", "is not NAME(W) and not no", "is NAME 'upper'", "is and not", "is NAME not")
        return "{{ %s %s }}" % (self.pick(v, "(%s)" % v, "not %s" % v, "1 + %s" % v), form.replace("NAME", name).replace("W", w))

    def dates(self):
        return "{{ strftime_now('%s') }}" % "".join(self.some(["%Y", "%m", "%d", "%H", "%I", "%M", "%S", "%f", "%p", "%a", "%A", "%b", "%B", "%j", "%U", "%W", "%w", "%u", "%V", "%G", "%g", "%y", "%C", "%e", "%k", "%l", "%D", "%F", "%T", "%R", "%r", "%c", "%x", "%X", "%h", "%n", "%t", "%%", "%Z", "%z", "%s", "%-5d", "%_8B", "%05a", "%^B", "%#p", "%^p", "%3%", "%EY", "%OY", "%Ob", "%^c", "%12F", "%-d", "%-m", "%_d", "%^a", "%#Z", "%0e", "%Ey", "%Od", "%q", "%", "x", " ", "é", "%-I", "%P", "%10Y", "%+", "%v", "%L", "%N", "%:z"], 4))

    def texts(self):
        text = "".join(self.pick(*ODD_TEXT) for _ in range(self.r.randint(0, 14)))
        n, flag = self.r.randint(0, 9), self.pick("true", "false")
        work = self.pick("title", "capitalize", "center(%d)" % n, "indent(%d, %s, %s)" % (n, flag, self.pick("true", "false")), "indent('> ', true)", "truncate(%d, %s)" % (n, flag), "truncate(%d, %s, '\u2026', 0)" % (n + 1, flag), "wordcount", "urlize",
                         "urlize(%d, %s)" % (n, flag), "urlize(target='_b', rel='x y', extra_schemes=['\u00e9:'])", "striptags", "striptags|wordcount", "forceescape", "trim", "trim('ab ')", "urlencode", "wordwrap(%d, %s, '|', %s)" % (n + 1, flag, self.pick("true", "false")), "int", "float", "xmlattr",
                         "tojson(indent=%d)" % n, "list|join('|')", "reverse", "replace('a', 'xx', %d)" % n, "pprint", "e|upper", "batch(%d, '-')|list" % (n + 1), "sort|join", "unique|join", "first", "last")
        return "{{ %s|%s }}" % (json.dumps(text), work)

    def loaders(self):
        what = self.pick("'x'", "s", "none", "missing", "['a', 'b']", "1", "missing.x", "('a',)", "[]", "l", "raise_exception('r')")
        tag = self.pick("{%% include %s %%}", "{%% include %s ignore missing %%}", "{%% include %s with context %%}", "{%% include %s ignore missing without context %%}", "{%% import %s as m %%}{{ m }}", "{%% import %s as m with context %%}", "{%% from %s import a %%}{{ a }}", "{%% from %s import a as b, c with context %%}", "{%% extends %s %%}", "{%% from %s import _x %%}", "{%% from %s import %%}", "{%% import %s %%}", "{%% include %%}", "{%% extends %s %%}{%% extends %s %%}", "{%% do l.append(%s) %%}", "{%% trans %%}%s{%% endtrans %%}", "{%% debug %%}", "{%% autoescape %s %%}{{ q }}{%% endautoescape %%}")
        body = tag % ((what,) * tag.count("%s"))
        return self.pick("%s", "a%sb", "{%% if no %%}%s{%% endif %%}z", "{%% if t %%}x%s{%% endif %%}", "{%% for i in el %%}%s{%% endfor %%}", "{%% block b %%}%s{%% endblock %%}", "{%% macro f() %%}%s{%% endmacro %%}y", "{%% block b %%}1{%% endblock %%}%s", "{{ 'x' }}%s{{ missing.x }}") % body

    def blocks(self):
        text = self.pick("x", "{{ s }}", "{{ missing.x }}", "{{ l }}", "{{ q }}", " y\n", "{% set a = 1 %}{{ a }}", "{{ raise_exception('in') }}")
        f = self.pick("upper", "length", "list", "first", "tojson", "int", "safe", "e", "replace('x', n|string)", "default(missing.x)", "nope", "join('-')", "reverse", "indent(2)|upper", "wordcount", "string", "trim|length", "map('upper')|list", "center(9)", "attr('upper')", "d('z', true)", "format(1)", "sort", "batch(2)")
        later = self.pick("", "{{ missing.x }}", "{{ raise_exception('later') }}", "{{ 1 + 'a' }}", "end")
        return self.pick("{% filter F %}T{% endfilter %}L", "{% set a | F %}T{% endset %}{{ a }}L", "{% set a %}T{% endset %}{{ a|F }}L", "{% filter F %}{% filter upper %}T{% endfilter %}{% endfilter %}L", "{% macro m() %}T{% endmacro %}{% filter F %}{{ m() }}{% endfilter %}L", "{% set a | F | F %}T{% endset %}{{ a }}L", "{% autoescape true %}{% filter F %}T{% endfilter %}{% endautoescape %}L", "{% autoescape true %}{% set a %}T{% endset %}{{ a }}{{ q ~ a }}{{ a + q }}{% endautoescape %}L", "{% generation %}{% filter F %}T{% endfilter %}{% endgeneration %}L", "{% block b %}T{% endblock %}{{ self.b()|F }}L", "{% block b scoped %}T{% endblock %}{{ self.b() ~ self.c }}L", "{{ self }}{{ self.b }}{% block b %}T{{ super() }}{% endblock %}", "{% for x in self %}{{ x }}{% endfor %}T", "{% call(F) m() %}T{% endcall %}", "{% set a, b | F %}T{% endset %}", "{% set ns = namespace() %}{% set ns.a | F %}T{% endset %}{{ ns.a }}L", "{% print T, F %}", "{% with %}T{% endwith %}L").replace("F", f).replace("T", text).replace("L", later)


AREAS = ["macros", "loops", "scopes", "whitespace", "literals", "operators", "slices", "formats", "strings", "json", "methods", "undefined", "filters", "orders", "tests", "dates", "texts", "loaders", "blocks"]


def templates(area, count, seed):
    """The different templates of an area, with their numbers."""
    seen = {}
    for i in range(count):
        seen.setdefault(getattr(Area(f"{area} {seed} {i}"), area)(), i)
    return [(i, source) for source, i in seen.items()]


def answered(source):
    """What jinja2 says, None where that cannot be compared."""
    want = answer(lambda: ctu._compile_jinja_template(source).render(**json.loads(json.dumps(CONTEXT))))
    if want and LAZY.search(source) and VAGUE.search(re.sub(r"[^a-z0-9]", "", want.get("text", "-").lower())):
        return None
    return want


def record(count, seed):
    print(json.dumps({"context": CONTEXT}))
    for area in AREAS:
        for _, source in templates(area, count, seed):
            want = answered(source)
            if want:
                want.pop("line", None)
                print(json.dumps({"template": source, **want}))


def main():
    ctu.datetime = Clock
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    if sys.argv[1] == "--record":
        return record(int(sys.argv[2]), sys.argv[3])
    binary, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
    show, total = int(os.environ.get("TURNPACK_SHOW", "3")), 0
    for area in sys.argv[4:] or AREAS:
        made = [{"id": i, "template_text": source, "context": CONTEXT} for i, source in templates(area, count, seed)]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
            f.writelines(json.dumps(c) + "\n" for c in made)
            f.flush()
            p = subprocess.run([binary, "render", "--errors=data", "--now", NOW, "--snippets", f.name], capture_output=True, check=True)
        compared = bad = errors = 0
        for case, line in zip(made, p.stdout.splitlines(), strict=True):
            source = case["template_text"]
            want, got = answered(source), json.loads(line)
            if want is None or (got.get("error") or {}).get("kind") == "limit":
                continue
            compared += 1
            errors += "error" in want
            if not same(want, got):
                bad += 1
                if bad <= show:
                    print("%s: %r\n  want %s\n  got  %s" % (area, source, json.dumps(want)[:500], line.decode()[:500]))
        total += bad
        print(f"{area}: {compared} templates, {bad} differ ({errors} errors)", flush=True)
    print(f"seed {seed}, {total} differ; jinja2 {jinja2.__version__}")
    sys.exit(total > 0)


if __name__ == "__main__":
    main()

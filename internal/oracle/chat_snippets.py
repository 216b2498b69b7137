"""Makes tokenize/chat/testdata/snippets.jsonl: small templates for every builtin
and what transformers' Jinja environment gives for them.

usage: chat_snippets.py > snippets.jsonl
       chat_snippets.py --fuzz COUNT --seed SEED > cases.jsonl

Needs transformers==5.23.0 and jinja2==3.1.6. Results that hold an object's
address, random text or the hash order of a set are left out.
"""
import argparse, datetime as dt, itertools, json, random, re, signal, sys
import jinja2
from transformers.utils import chat_template_utils as ctu


class FixedClock(dt.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 15, 12, 0, 0)


ctu.datetime = FixedClock
CONTEXT = {
    "s": "Hello, World", "e": "", "w": "  \t pad me\n\n", "u": "äß漢字 ŉ ΣΑΣ 😀", "m": "a\nb\r\nc\n\nd\n", "q": "it's \"q\" <b>&amp;</b>",
    "i": 7, "neg": -3, "z": 0, "big": 10**25, "f": 2.5, "nf": -0.0, "ex": 1e22, "t": True, "no": False, "n": None,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "mix": [1, "a", None, True, 2.0], "el": [], "d": {"b": 1, "A": [1, {"x": None}], "c": "z"}, "ed": {},
    "o": [{"k": "x", "v": 2, "n": {"p": 1}}, {"k": "y", "v": 1}, {"k": "X", "v": 3, "n": {"p": 0}}],
    "p": [["a", 1], ["b", 2]], "num": "42", "fl": "3.75", "long": "The quick brown fox jumps over the well-known lazy dog. " * 3,
}
VALUES = list(CONTEXT) + ["missing", "(1,2)", "()", "range(4)", "d.items()", "d.keys()", "'x'|safe", "1.0", "[[1,2],[3]]"]
FEW = ["s", "u", "m", "i", "f", "n", "l", "d", "missing", "o", "t"]
FILTERS = {
    "abs": [""], "attr": ["('k')", "('items')", "('__class__')", "()"], "batch": ["(2)", "(2,'-')", "(0)", "(3)"], "capitalize": [""],
    "center": ["", "(20)", "(3)"], "count": [""], "d": ["", "('x')", "('x',true)"], "default": ["('x',boolean=true)", "(default_value=1)"],
    "dictsort": ["", "(true)", "(by='value')", "(reverse=true)", "(false,'key',true)", "(by='x')"], "e": [""], "escape": [""],
    "filesizeformat": ["", "(true)"], "first": [""], "float": ["", "(1.5)"], "forceescape": [""], "format": ["(1)", "('a',2)", "(a=1)", ""],
    "groupby": ["('k')", "('k',case_sensitive=true)", "('n.p')", "('n.p',default=9)", "(0)"],
    "indent": ["", "(2)", "(2,true)", "(2,true,true)", "('>> ')", "(width=1,blank=true)"], "int": ["", "(5)", "(base=16)", "(0,8)"], "items": ["", "|list"],
    "join": ["", "(', ')", "('-','k')", "(attribute='v')", "(1)"], "last": [""], "length": [""], "list": [""], "lower": [""],
    "map": ["('upper')|list", "(attribute='k')|list", "(attribute='n.p',default='D')|list", "('default','x')|list", "()|list", "('nope')|list", "('string')|join('|')"],
    "max": ["", "(attribute='v')", "(case_sensitive=true)"], "min": ["", "(attribute='v')"], "pprint": [""],
    "reject": ["|list", "('none')|list", "('odd')|list"], "rejectattr": ["('n')|list", "('v','gt',1)|list"], "replace": ["('a','b')", "('l','L',1)", "('','.')", "(1,2)", "('l','<b>')"],
    "reverse": ["|list", ""], "round": ["", "(1)", "(0,'ceil')", "(1,'floor')", "(-1)", "(method='x')"], "safe": [""],
    "select": ["|list", "('string')|list", "('equalto',1)|list"], "selectattr": ["('n')|list", "('k','equalto','x')|list", "('k','in',['x','y'])|list", "()|list"],
    "slice": ["(2)|list", "(2,'-')|list", "(0)|list"], "sort": ["", "(true)", "(case_sensitive=true)", "(attribute='v')", "(attribute='k,v')"], "string": [""], "striptags": [""],
    "sum": ["", "(attribute='v')", "(start=10)"], "title": [""], "trim": ["", "('Hd')", "(chars='a')"],
    "truncate": ["", "(9)", "(9,true)", "(9,false,'~')", "(9,true,'...',0)", "(2)"], "unique": ["|list", "(true)|list", "(attribute='k')|list"], "upper": [""],
    "urlencode": [""], "wordcount": [""], "wordwrap": ["(10)", "(10,false)", "(10,true,'|')", "(20,break_on_hyphens=false)", ""], "xmlattr": ["", "(false)"],
    "tojson": ["", "(indent=2)", "(ensure_ascii=true)", "(sort_keys=true)", "(separators=(',',':'))", "(indent='\t')", "(true,1)", "(indent=0)"], "urlize": ["", "(10)", "(nofollow=true)"],
}
TESTS = ["boolean", "callable", "defined", "divisibleby 2", "divisibleby(3)", "escaped", "even", "false", "filter", "float", "integer", "iterable", "lower", "mapping",
         "none", "number", "odd", "sequence", "string", "test", "true", "undefined", "upper", "in [7, 's', none]", "sameas true", "sameas none", "eq 7", "ne 7", "lt 8", "ge 2.5",
         "equalto 's'", "greaterthan 1", "== 7"]
METHODS = {
    "s": ["capitalize()", "casefold()", "center(20,'*')", "center(7)", "count('l')", "count('l',3,5)", "count('')", "encode()", "endswith('d')", "endswith(('x','ld'))", "endswith('o',0,5)",
          "expandtabs(2)", "find('o')", "find('o',5)", "find('zz')", "index('o')", "index('zz')", "isalnum()", "isalpha()", "isascii()", "isdecimal()", "isdigit()", "isidentifier()",
          "islower()", "isnumeric()", "isprintable()", "isspace()", "istitle()", "isupper()", "join(['a','b'])", "join([1])", "join('ab')", "ljust(15,'.')", "lower()", "lstrip('He')",
          "partition(', ')", "partition('zz')", "removeprefix('Hel')", "removesuffix('ld')", "replace('o','0')", "replace('o','0',1)", "replace('','-')", "rfind('o')", "rindex('l')",
          "rjust(15)", "rpartition('o')", "rpartition('zz')", "rsplit('o',1)", "rsplit()", "rstrip('dl')", "split()", "split(None,1)", "split('l')", "split('l',1)", "split(sep='o',maxsplit=1)",
          "split('')", "splitlines()", "startswith('H')", "startswith('e',1)", "startswith(['a'])", "strip('Hd')", "strip()", "swapcase()", "title()", "upper()", "zfill(15)", "format()",
          "translate({72:'J',108:none})", "nope()", "__len__()", "format_map({})"],
    "w": ["strip()", "lstrip()", "rstrip()", "split()", "split(' ')", "splitlines(true)", "isspace()", "expandtabs()", "title()", "rsplit(none,1)"],
    "u": ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "casefold()", "center(25,'é')", "find('字')", "split('漢')", "isalpha()", "isprintable()", "encode('utf-8')", "zfill(20)"],
    "m": ["splitlines()", "splitlines(true)", "split('\\n')", "split()", "replace('\\n','|')", "partition('\\n')"],
    "l": ["count(1)", "index(2)", "index(9)", "copy()", "append(1)", "pop()", "sort()", "reverse()", "extend([1])", "insert(0,1)", "remove(1)", "clear()"],
    "d": ["items()|list", "keys()|list", "values()|list", "get('b')", "get('zz')", "get('zz',5)", "get()", "copy()", "pop('b')", "update({})", "setdefault('b',1)", "fromkeys([1,2],3)", "popitem()", "clear()", "get([1])"],
    "(1,2,1)": ["count(1)", "index(2)"], "i": ["bit_length()", "real", "numerator", "conjugate()", "as_integer_ratio()"], "f": ["is_integer()", "real", "hex()"], "range(5)": ["count(2)", "index(3)", "start"],
}
OPS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
OPERANDS = ["1", "7", "-3", "0", "2.5", "-0.5", "true", "none", "'ab'", "'5'", "''", "[1,2]", "[]", "(1,2)", "{'a':1}", "missing", "big", "1e300"]
FORMATS = ["%s", "%r", "%d", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%x", "%X", "%#x", "%o", "%e", "%E", "%.2f", "%8.3f|", "%-8.3f|", "%g", "%G", "%#g", "%.3g", "%c", "%%", "%5s|", "%-5s|", "%.2s", "%i", "%u", "%10.4d|", "%+.1e", "%08.2f"]
SPECS = ["", "5", "<5", ">5", "^5", "*^9", "05", "+", " ", "d", "5d", "x", "#x", "X", "b", "#b", "o", "c", ",", "_", ",d", "08,d", "e", ".2e", "f", ".2f", "10.3f", "g", ".3g", "%", ".1%", "n", "s", ".2", ".2s", "=+6", "015,.2f", "_x", "G", "#.3g", ".0f", "#.0f", "E", "010", "<010"]
FORMAT_ARGS = ["7", "-7", "0", "65", "12345678", "2.5", "-0.0", "1e22", "1e-7", "123456.789", "true", "none", "'abc'", "big", "[1]", "1.0", "12.0"]
SLICES = ["[:]", "[1:]", "[:2]", "[:-1]", "[-2:]", "[::2]", "[::-1]", "[1:3]", "[3:1]", "[5:]", "[-100:100]", "[::-2]", "[2::-1]", "[:1:-1]", "[0]", "[-1]", "[9]", "['a']", "[none:]", "['x':]", "[::0]", "[true]", "[1.0]"]
SYNTAX = """
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for x in l %}{{ loop.cycle('a','b') }}{{ loop.changed(x > 1) }}{% endfor %}
{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.last }};{% else %}none{% endfor %}
{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d %}{{ k }}{% endfor %}
{% for a, b in p %}{{ a }}{{ b }}{% endfor %}
{% for a, b, c in p %}{{ a }}{% endfor %}
{% for (a, b), c in [((1,2),3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for x in o recursive %}{{ x.k }}{% if x.n is mapping %}[{{ loop([x.n]) }}]{% endif %}{{ loop.depth }}{% endfor %}
{% for x in [[1,[2]],[3]] recursive %}{% if x is sequence %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth0 }}{% endif %}{% endfor %}
{% for x in l %}{{ loop(x) }}{% endfor %}
{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% for y in ls %}{% if y == 'A' %}{% break %}{% endif %}{{ x }}{{ y }}{% endfor %}{% endfor %}
{% for x in l %}{% set loop = 1 %}{% endfor %}
{% for x in missing %}a{% else %}b{% endfor %}
{% for x in n %}a{% endfor %}
{% for c in s %}{{ c }}.{% endfor %}
{% for x in l %}{% set y = x %}{% endfor %}{{ y }}
{% set y = 0 %}{% for x in l %}{% set y = y + x %}{{ y }},{% endfor %}{{ y }}
{% set ns = namespace(y=0) %}{% for x in l %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}{{ ns.c }}|{{ ns }}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set d.x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a, b = 1, 2, 3 %}
{% set a = b = 1 %}
{% set x %}cap {{ i }}{% endset %}[{{ x }}]
{% set x | upper %}cap {{ i }}{% endset %}[{{ x }}]
{% set x | replace('a', 'b') | upper %}cap{% endset %}[{{ x }}]
{% set ns = namespace() %}{% set ns.t %}abc{% endset %}{{ ns.t }}
{% set ns = 1 %}{% set ns.t %}abc{% endset %}
{% set ns.t | upper %}abc{% endset %}
{% set ns = [] %}{% set ns.t %}{{ raise_exception('no') }}{% endset %}
{% if t %}{% set v = 1 %}{% endif %}{{ v }}
{% if no %}{% set s = 1 %}{% endif %}{{ s }}
{% if no %}a{% elif n %}b{% elif i %}c{% else %}d{% endif %}
{% with a = 1, b = i %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with a = 1, b = a %}{{ b }}{% endwith %}
{% with %}{% set q2 = 1 %}{{ q2 }}{% endwith %}{{ q2 }}
{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(a=1, c=5) }} {{ f() }}
{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, z=4) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}
{% macro f(a, a) %}{% endmacro %}
{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}body {{ i }}{% endcall %}
{% macro f() %}{{ caller(1, y=2) }}{% endmacro %}{% call(x, y) f() %}{{ x }}{{ y }}{% endcall %}
{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}
{% macro f() %}x{% endmacro %}{% call f() %}b{% endcall %}
{% macro f(x) %}{{ x }}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f.caller }}{% endmacro %}{{ f(1) }}
{% macro f(x) %}{% if x %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(4) }}
{% macro f() %}{{ g }}{% endmacro %}{% set g = 5 %}{{ f() }}
{% set g = 1 %}{% macro f() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ f() }}
{% for g in l %}{% macro f() %}{{ g }}{% endmacro %}{{ f() }}{% endfor %}
{% macro f() %}{{ x9 }}{% endmacro %}{% for x9 in l %}{{ f() }}{% endfor %}
{{ f(1) }}{% macro f(a) %}{% endmacro %}
{% macro f() %}{% set i = 9 %}{{ i }}{% endmacro %}{{ f() }}{{ i }}
{% macro f(i) %}{{ i }}{% endmacro %}{{ f(*[1]) }}{{ f(**{'i': 2}) }}
{% macro f(a,b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*l[:2]) }}{{ f(1, **{'b': 2}) }}{{ f(1, a=2) }}
{% filter upper %}abc {{ s }}{% endfilter %}
{% filter replace('l', '1') | upper %}{{ s }}{% endfilter %}
{% filter nope %}x{% endfilter %}
{% raw %}{{ x }}{% if %}{% endraw %}
{%- raw -%} {{ x }} {%- endraw -%} y
{# comment #}a{#- c -#} b
a {{- s -}} b
a {%- if t -%} b {%- endif -%} c
  {% if t %}
x
  {% endif %}
y
  {%+ if t %}
x
  {%- endif +%}
y
a  {% set v = 1 +%}
b
{% generation %}a{{ i }}{% endgeneration %}b{% generation %}c{% endgeneration %}
{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
{% generation %}{% set gg = 1 %}{% endgeneration %}{{ gg }}
{% block a %}x{{ i }}{% endblock %}{{ self.a() }}
{% block a %}{% set g1 = 1 %}{{ super() }}{% endblock %}
{% set g2 = 3 %}{% block a %}{{ g2 }}{% endblock %}
{% for x in l %}{% block a scoped %}{{ x }}{% endblock %}{% endfor %}
{% for x in l %}{% block a %}{{ x }}{% endblock %}{% endfor %}
{% block a %}{% endblock %}{% block a %}{% endblock %}
{% extends 'x' %}
{% include 'x' %}
{% include 'x' ignore missing %}
{% import 'x' as y %}
{% from 'x' import y %}
{% autoescape true %}{{ q }}{{ q|safe }}{{ q ~ (s|safe) }}{% endautoescape %}{{ q }}
{{ '<' + ('>'|safe) }}{{ ('<'|safe) + '>' }}{{ ('<'|safe) * 2 }}{{ ('a%s'|safe) % '<' }}{{ ('{}'|safe).format('<') }}
{{ ['<'|safe, '<']|join(',') }}{{ ('-'|safe).join(['<','a']) }}{{ ('a<'|safe).upper() }}{{ ('<'|safe)|e }}{{ ('<'|safe)|forceescape }}
{{ ('<'|safe)|tojson }}{{ [('<'|safe)] }}{{ ('x'|safe) == 'x' }}{{ {('x'|safe): 1}['x'] }}
{{ cycler('a','b') }}
{% set c = cycler('a','b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.current }}
{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}{{ joiner()() }}
{{ dict(a=1, b=2) }}{{ dict([('a', 1)]) }}{{ dict({'x': 1}, y=2) }}{{ dict([1]) }}
{{ range(3)|list }}{{ range(1,4)|list }}{{ range(5,0,-2)|list }}{{ range(3) }}{{ range(1,9,2) }}
{{ range(0) is sequence }}{{ range(5)[1:3] }}{{ range(5)[-1] }}{{ 3 in range(5) }}{{ range(5)|length }}{{ range(3) == range(0,3) }}
{{ range(100001) }}
{{ range('a') }}
{{ range(1,2,0) }}
{{ range(1.5) }}
{{ raise_exception('boom ' ~ i) }}
{{ raise_exception(none) }}
{{ raise_exception() }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %a %A %b %B %d %e %j %y %p %I %U %W %u %w %% %-d %-m %D %F %T %R %h %C %G %V %c %x %X') }}
{{ strftime_now(1) }}
{{ 1 if t }}{{ 1 if no }}{{ (1 if no) is defined }}{{ 'a' if no else 'b' if no else 'c' }}
{{ not t }}{{ not not i }}{{ not e == '' }}
{{ 1 < 2 < 3 }}{{ 3 > 2 > 2 }}{{ 1 == 1.0 == true }}{{ 1 in [1] == true }}{{ 'a' not in 'abc' }}{{ not 'a' in 'abc' }}
{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 2 ** -1 }}{{ 10 // 3 }}{{ -10 // 3 }}{{ 10 % -3 }}{{ -7.5 // 2 }}{{ -7.5 % 2 }}{{ 7 / 2 }}{{ 6 / 2 }}
{{ 1 ~ 2 + 3 }}{{ 'a' ~ 1 ~ none ~ true ~ [1] ~ missing }}{{ 1 + 2 ~ 3 * 2 }}
{{ [1, 'a', none, true, 1.5, (1,), (), {}, {'a': [1]}] }}
{{ {'a': 1, 2: 'b', none: 3, true: 4, 1.5: 5, (1, 2): 6} }}{{ {1: 'a', 1.0: 'b', true: 'c'} }}{{ {[1]: 2} }}
{{ 'it\\'s' }}{{ ['it\\'s', 'q"', 'b\\'"', 'n\\n\\t\\x00\\x7f\\xad\\u200b\\U0001F600é'] }}
{{ '\\x41\\u00e9\\N\\101\\q' }}
{{ "a" 'b' "c" }}{{ 'a' 'b'|upper }}
{{ 1_000 }}{{ 0x1F }}{{ 0b101 }}{{ 0o17 }}{{ 1e3 }}{{ 1.5e-3 }}{{ 1E5 }}{{ 12_3.4_5 }}{{ 00 }}
{{ 012 }}
{{ l.0 }}{{ l.1 }}{{ p.0.1 }}{{ s.0 }}
{{ l[0, 1] }}
{{ d.items }}
{{ d['b'] }}{{ d.b }}{{ d['items'] }}
{{ {'items': 5}['items'] }}{{ {'keys': 5}.get('keys') }}
{{ missing.x }}
{{ missing['x'] }}
{{ d.zz }}|{{ d.zz.y }}
{{ n.x }}|{{ n.x.y }}
{{ s.zz }}|{{ s.__class__ }}|{{ s._x }}|{{ s.__class__.__name__ }}
{{ l.append }}|
{{ l.append(1) }}
{{ ''.__class__ is defined }}{{ d.__len__ is defined }}{{ ''['__class__'] is defined }}
{{ '{0.__class__}'.format(s) }}|{{ '{0[b]} {x} {}'.format(d, x=1) }}
{{ '{} {}'.format(1, 'a') }}{{ '{1}{0}'.format(1, 2) }}{{ '{a}'.format(a=1) }}{{ '{a.b}{a[c]}'.format(a=d) }}{{ '{{}}'.format() }}{{ '{:>{w}}'.format('x', w=5) }}{{ '{!r}'.format('x') }}
{{ '{}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{0}{}'.format(1, 2) }}
{{ '{0[a'.format(d) }}
{{ '{0[b}'.format(missing) }}
{{ '{0[}}]}|{0[!r]}|{0[:>5]}|{0[{]}'.format(d) }}
{{ '{0[b}]}{0}'.format(missing) }}
{{ '{0[b]x}'.format(d) }}
{{ '{0[]}'.format(d) }}
{{ '{0{}'.format(d) }}
{{ '{0!r}{0!s:>20}'.format(d) }}
{{ '{0!rx}'.format(d) }}
{{ '{0!'.format(d) }}
{{ '{0!é}'.format(d) }}
{{ '{0:{}'.format(d) }}
{{ '{+1}'.format(1, 2) }}
{{ '{٣}{0[٠]}'.format(l, 1, 2, 3) }}
{{ '{0[-1]}|{0[+1]}|{0[01]}'.format(l) }}
{{ '{99999999999999999999}'.format(1) }}
{{ '{0[99999999999999999999]}'.format(l) }}
{{ '%s %s' % (1, 'a') }}{{ '%s' % [1, 2] }}{{ '%(b)s' % d }}{{ '%s %%' % 1 }}{{ '%r' % 'x' }}{{ '%s' % missing }}
{{ '%s %s' % 1 }}
{{ '%s' % (1, 2) }}
{{ '%d' % 'x' }}
{{ '%q' % 1 }}
{{ '%' % 1 }}
{{ 'abc' % 1 }}{{ 'abc' % d }}{{ 'abc' % l }}
{{ 'a' is string and 'b' is not mapping }}{{ 1 is not none }}{{ not 1 is none }}{{ (1,) is sequence }}
{{ x is defined and x }}{{ x is not defined or x }}
{{ l is iterable is true }}
{{ lipsum is callable }}{{ range is callable }}{{ dict is callable }}{{ 5 is callable }}
{{ s | nope }}
{{ s is nope }}
{% if no %}{{ s | nope }}{% endif %}ok
{% if t %}{{ s | nope }}{% endif %}
{{ (s | nope) if no else 'ok' }}
{% if no %}{% for x in l %}{{ x | nope }}{% endfor %}{% endif %}ok
{{ 'nope' is filter }}{{ 'upper' is filter }}{{ 'defined' is test }}
{{ s | upper | lower | title }}{{ s | replace('o', '0') | upper }}{{ -1 | abs }}{{ (-1) | abs }}{{ 1 + 2 | abs }}
{{ [1, 2, 3,] }}{{ (1,) }}{{ () }}{{ {'a': 1,} }}{{ [] }}{{ {} }}
{{ s[1:3] ~ s[-1] }}{{ s[::-1] | upper }}{{ l[::-1] }}{{ (1,2,3)[1:] }}
{% print s, i %}
{% print %}
{{ }}
{{ a b }}
{{ 1 + }}
{{ (1 }}
{{ [1 }}
{{ {1} }}
{{ s. }}
{{ s[ }}
{{ f(a=1, 2) }}
{{ f(*l, 1) }}
{{ f(a=1, a=2) }}
{% if %}{% endif %}
{% for x l %}{% endfor %}
{% for x in l %}
{% endfor %}
{% if t %}{% endfor %}
{% nope %}
{% set %}
{% set 1 = 2 %}
{% set none = 2 %}
{% macro %}{% endmacro %}
{% break %}
{% if t %}{% continue %}{% endif %}
{{ 'abc
{{ 'abc }}
{# abc
{% raw %} abc
{{ "\\u12" }}
{{ a ? b }}
{{ a.b.1c }}
{{ $ }}
{{ d | tojson }}{{ o | tojson }}{{ mix | tojson }}{{ u | tojson }}{{ q | tojson }}{{ m | tojson }}{{ (1, 2) | tojson }}{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}
{{ missing | tojson }}
{{ range(2) | tojson }}
{{ {(1, 2): 3} | tojson }}
{{ d.items() | tojson }}
{{ [1.0, 1e22, 1e-7, 123456789012345678901234567890, -0.0, true, none] | tojson }}
{{ {'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true, indent=1) }}
{{ [[], {}, [[]], {'a': []}] | tojson(indent=2) }}
{{ (1e308 * 10) | tojson }}{{ (1e308 * 10) }}{{ -(1e308 * 10) }}{{ (1e308 * 10) - (1e308 * 10) }}
{{ '\\x00\\x1f\\x7f\\u2028é😀"\\\\/' | tojson }}{{ '\\x00\\x1f\\x7f\\u2028é😀"\\\\/' | tojson(ensure_ascii=true) }}
{{ big }}{{ big + 1 }}{{ big * big }}{{ -big }}{{ big // 7 }}{{ big % 7 }}{{ big / 7 }}{{ big == big + 0.0 }}{{ big > 1 }}{{ 2 ** 100 }}{{ 7 ** 30 % 1000 }}
{{ 0.1 + 0.2 }}{{ 1e16 }}{{ 123456789.0 }}{{ 1e15 }}{{ 0.0001 }}{{ 0.00001 }}{{ 100 * 1.1 }}{{ 1 / 3 }}{{ 5 % 2.5 }}{{ 2 ** 0.5 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ none + 1 }}
{{ [1] + (2,) }}
{{ [1] + [2] }}{{ (1,) + (2,) }}{{ [0] * 3 }}{{ 3 * 'ab' }}{{ 'ab' * -1 }}{{ [1] * true }}
{{ 'a' < 1 }}
{{ [1, 2] < [1, 3] }}{{ (1, 'a') < (1, 'b') }}{{ [1] == (1,) }}{{ [1, [2]] == [1, [2.0]] }}{{ {'a': 1} == {'a': true} }}{{ 'a' < 'b' }}{{ none == missing }}{{ missing == missing2 }}
{{ none < 1 }}
{{ 1 in 5 }}
{{ 1 in 'abc' }}
{{ 'a' in d }}{{ 'b' in d }}{{ 1 in l }}{{ 1.0 in l }}{{ none in [none] }}{{ 'x' in missing }}{{ [1] in [[1]] }}
{{ [1] in d }}
{{ s() }}
{{ s.upper }}|
{{ s.upper(1) }}
{{ missing() }}
{{ n() }}
{{ (missing | default([])) | length }}{{ none | default('x') }}{{ none | default('x', true) }}{{ '' | d('y', boolean=true) }}
{{ [3, 1, 2] | sort }}{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A', 'c'] | sort(case_sensitive=true) }}{{ [1, 'a'] | sort }}
{{ [true, 1, 2] | sum }}{{ ['a'] | sum }}
{{ ['a', 'b'] | sum(start='') }}
{{ [1, [2]] | join(',') }}{{ {'a': 1} | join }}{{ 5 | join }}
{{ 'a,b' | map('upper') | join('-') }}{{ [' a ', 'b '] | map('trim') | list }}{{ [1.5, 2] | map('round') | list }}{{ ['ab', 'c'] | map('length') | list }}{{ [[1, 2], [3]] | map('first') | list }}
{{ o | selectattr('n', 'defined') | map(attribute='k') | join }}{{ o | rejectattr('n', 'defined') | list | length }}{{ o | selectattr('n.p') | list | length }}
{{ o | groupby('k') | length }}{% for g, items in o | groupby('k') %}{{ g }}:{{ items | length }};{% endfor %}{% for x in o | groupby('k') %}{{ x.grouper }}{{ x.list | length }}{% endfor %}
{{ (o | groupby('v'))[0] }}
{{ ls | unique | list }}{{ [1, 1.0, true, '1'] | unique | list }}{{ [[1], [1]] | unique | list }}
{{ s | first }}{{ s | last }}{{ el | first }}|{{ el | last }}|{{ d | first }}{{ d | last }}{{ [] | max }}|{{ [] | min }}
{{ d | dictsort }}{{ d | dictsort(true) }}{{ {'a': 2, 'b': 1} | dictsort(by='value') }}{{ {'a': 2, 'b': 1} | dictsort(reverse=true) }}
{{ 5 | dictsort }}
{{ d | items | list }}{{ missing | items | list }}{{ 5 | items | list }}
{{ 'a b' | urlencode }}{{ 'é/?&' | urlencode }}{{ {'a': 1, 'b c': 'd e'} | urlencode }}{{ [('a', 1)] | urlencode }}
{{ 'http://x.org www.y.com a@b.co (http://z.net).' | urlize }}
{{ {'a': 1, 'b': none, 'c': '<'} | xmlattr }}{{ {'a b': 1} | xmlattr }}
{{ '<p>a <b>b</b>\\n c</p><!-- x -->&amp;' | striptags }}
{{ [1, [2, 3]] | pprint }}{{ {'b': 1, 'a': 2} | pprint }}{{ (range(60) | list) | pprint }}
{{ long | pprint }}
{{ 3.7 | int }}{{ '3.7' | int }}{{ 'x' | int }}{{ 'x' | int(9) }}{{ '0x1A' | int(0, 16) }}{{ '1_000' | int }}{{ ' 12 ' | int }}{{ true | int }}{{ none | int }}{{ '1e3' | int }}{{ [] | int }}{{ '٣' | int }}
{{ '3.5' | float }}{{ 'x' | float }}{{ none | float }}{{ 'inf' | float }}{{ 'nan' | float }}{{ 3 | float }}{{ '1_0.5' | float }}{{ big | float }}
{{ 2.5 | round }}{{ 3.5 | round }}{{ -2.5 | round }}{{ 2.675 | round(2) }}{{ 1234.5 | round(-2) }}{{ 25 | round(-1) }}{{ 2.1 | round(0, 'ceil') }}{{ -2.1 | round(0, 'floor') }}{{ 2.34 | round(1, 'ceil') }}{{ 7 | round(0, 'floor') }}
{{ 1500 | filesizeformat }}{{ 1 | filesizeformat }}{{ 0 | filesizeformat }}{{ 1500 | filesizeformat(true) }}{{ 10**12 | filesizeformat }}{{ 1e30 | filesizeformat }}{{ '1000' | filesizeformat }}
{{ 'foo bar baz qux' | truncate(9) }}|{{ 'foo bar baz qux' | truncate(9, true) }}|{{ 'foo bar baz qux' | truncate(11) }}|{{ 'foo bar baz qux' | truncate(11, false, '...', 0) }}
{{ 'a-b c-d well-known--dash x' | wordwrap(6) }}|{{ 'aaaaaaaaaaaaaaaa' | wordwrap(5) }}|{{ 'a\\nb c' | wordwrap(3) }}
{{ '\\é' }}{{ '\\漢\\😀\\q' }}
{% for x ,in [[1]] %}{{ x }}{% endfor %}
{% for x in 1, recursive %}{{ x }}{% endfor %}
{% filter length %}abc{% endfilter %}
{% filter first %}{% endfilter %}
{% generation %}{{ kwargs }}{{ varargs }}{{ caller }}|{% endgeneration %}
{% generation %}{{ caller() }}{% endgeneration %}
{% set kwargs = 1 %}{% generation %}{{ kwargs }}{% endgeneration %}
{{ [2, 1] | sort(reverse='x') }}
{{ [2, 1] | sort(missing) }}
{{ l | map(l) | list }}
{{ l | select({}) | list }}
{{ s.center(missing) }}
{{ s | truncate(missing) }}
{{ s | truncate(5, end=l) }}
{{ e | wordwrap(l) }}
{{ s | wordwrap(3, wrapstring=l) }}
{{ 'say "hi" ab' | wordwrap(2) }}
{{ 'ab cd\u3000\u2003 x\u00a0y' | wordwrap(2) }}|{{ 'a \u3000\u2003 b' | wordwrap(3, wrapstring='|') }}|{{ 'a\t\u3000x' | wordwrap(2, false) }}
{{ '-\u3000\u2003--a\u2014a b--c--d !--x "a"--b' | wordwrap(2, false, '|') }}
{{ 'ab-cd-e a-b-c 1a-b2 x_-y_z --ab-cd' | wordwrap(4, false, '|') }}|{{ 'ab-cd-ef' | wordwrap(4, true, '|', false) }}
{{ range(5).index(3) }}{{ range(5).index('zz', 1) }}
{{ 'a\r' | indent(2) }}|{{ 'a\rb\r' | indent(1, true, true) }}|{{ 'a\x1c' | indent(1, true, true) }}
{{ 'x<y <!-- c -->z' | striptags }}|{{ 'a<!-- b > c --><b>d <!-- e' | striptags }}|{{ '<i<!-->j-->k' | striptags }}
{{ 'www.x.org\u0130 \ufb01x.com \u00e9@b\u00df.co mailto:x@y.z\u00df a.\u0131nfo' | urlize }}|{{ '\u00e9\u00e9:x' | urlize(extra_schemes=['\u00e9\u00e9:']) }}
{{ ('word ' * 14 + 'x' * 20 + '\u2003' + 'y' * 30 + '\u3000\x1cz' * 9) | pprint }}
{{ 'a \u3000bcdefgh\u2003\u2003\u2003ij' | wordwrap(3, wrapstring='|') }}|{{ '\u2003\u2003\u2003\u2003a' | wordwrap(2, wrapstring='|') }}
{{ [1, 2, 3] | truncate(1, end='', leeway=0) }}
{{ range(9) | truncate(1, false, '', 0) }}
{{ dict(missing) }}
{{ namespace(missing) }}
{{ '%x' | format(missing) }}
{{ '%d' | format(missing) }}
{{ s.splitlines('x') }}
{{ n | items | reverse }}
{{ (missing | reverse) * 2 }}
{{ missing | round(none, 'ceil') }}
{{ i | round(method={}) }}
{{ n is filter(1) }}
{{ i.as_integer_ratio(1) }}
{{ 'one two_three 4' | wordcount }}{{ 'foo-bar (baz) [qux] {x}<y' | title }}{{ "it's o'neil" | title }}{{ "it's o'neil".title() }}
"""


def error_of(e):
    if type(e) is jinja2.exceptions.TemplateError:
        return "raise_exception"
    for cls, kind in ((jinja2.exceptions.UndefinedError, "undefined"), (jinja2.exceptions.SecurityError, "security"), (jinja2.exceptions.TemplateSyntaxError, "syntax"), (TypeError, "type")):
        if isinstance(e, cls):
            return kind
    return "other"


def run(template, context):
    out = {"template": template}
    try:
        out["text"] = ctu._compile_jinja_template(template).render(**json.loads(json.dumps(context)))
    except RecursionError:
        return None
    except Exception as e:
        out["error"] = error_of(e)
    if re.search(r"0x[0-9a-f]{8,}|object at |<function|<bound|<built-in|<generator|<class|<jinja2|TemplateDict|iterator|\dj\)", out.get("text", ""), re.I):
        return None
    return out


def systematic():
    for name, argss in FILTERS.items():
        for args in argss:
            for v in (VALUES if args == argss[0] else FEW + ["ls", "w", "el", "num"]):
                yield "{{ (%s)|%s%s }}" % (v, name, args)
    for t in TESTS:
        yield "".join("{{ (%s) is %s }}" % (v, t) for v in VALUES) if t.split()[0].split("(")[0] not in ("divisibleby", "even", "odd", "lt", "ge", "greaterthan", "filter", "test", "in") else "{{ i is %s }}" % t
        for v in FEW:
            yield "{{ (%s) is %s }}" % (v, t)
    for v, calls in METHODS.items():
        for c in calls:
            yield "{{ %s.%s }}" % (v, c)
    some = [o for o in OPERANDS if o not in ("7", "-0.5", "'5'", "[]", "1e300", "(1,2)")]
    for a, op, b in itertools.product(some, [o for o in OPS if o not in ("!=", "<=", ">")], some):
        if op == "**" and ("big" in (a, b) or "1e300" in (a, b)):
            continue
        if op in ("~", "and", "or") and b not in ("1", "missing", "'ab'"):
            continue
        yield "{{ (%s) %s (%s) }}" % (a, op, b)
    for f in FORMATS:
        for a in FORMAT_ARGS:
            yield "{{ '%s' %% (%s,) }}" % (f, a)
    for f in SPECS:
        for a in FORMAT_ARGS:
            yield "{{ '{:%s}'.format(%s) }}" % (f, a)
    for v in ("s", "u", "l", "(1,2,3)", "range(6)", "e", "d", "n", "missing", "i"):
        for sl in SLICES:
            if not (v[0] == "(" and "'x'" in sl):  # constant folding turns that error into Undefined
                yield "{{ (%s)%s }}" % (v, sl)
    for v in VALUES:
        yield "{{ %s }}|{{ [%s] }}|{{ (%s)|string }}" % (v, v, v)
    lines = SYNTAX.strip("\n").split("\n")
    i = 0
    while i < len(lines):
        t = lines[i]
        while t.count("{% if") + t.count("{%+ if") > t.count("endif") and i + 1 < len(lines) and not lines[i + 1].startswith("{{") and t.startswith("  ") or t.endswith("{% endif %}") and t.startswith("  ") or t.endswith("+%}"):
            i += 1
            t += "\n" + lines[i]
        yield t
        i += 1


class Fuzz:
    """Random templates over the context."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def expr(self, depth=0):
        r = self.r
        k = r.random()
        if depth > 3 or k < 0.3:
            return r.choice(VALUES + OPERANDS)
        if k < 0.5:
            name = r.choice([f for f in FILTERS if f not in ("urlize",)])
            return "(%s)|%s%s" % (self.expr(depth + 1), name, r.choice(FILTERS[name]))
        if k < 0.6:
            v = r.choice(list(METHODS))
            return "(%s).%s" % (self.expr(depth + 1) if r.random() < 0.4 else v, r.choice(METHODS[v]))
        if k < 0.75:
            op = r.choice([o for o in OPS if o != "**"])
            return "(%s) %s (%s)" % (self.expr(depth + 1), op, self.expr(depth + 1))
        if k < 0.8:
            # Not of constants: folding turns their errors into Undefined.
            return "(%s)%s" % (r.choice(list(CONTEXT) + ["missing"]), r.choice(SLICES))
        if k < 0.85:
            return "((%s) is %s%s)" % (self.expr(depth + 1), r.choice(["", "not "]), r.choice(TESTS))
        if k < 0.9:
            return "((%s) if (%s) else (%s))" % tuple(self.expr(depth + 1) for _ in range(3))
        if k < 0.93:
            return "[%s, %s]" % (self.expr(depth + 1), self.expr(depth + 1))
        if k < 0.96:
            return "{'a': %s, %s: 2}" % (self.expr(depth + 1), r.choice(["'b'", "1", "none", "s"]))
        return r.choice(["x", "y", "ns.v", "loop.index", "loop.last", "loop.previtem", "f(1)", "f(%s)" % self.expr(depth + 1), "x.k", "x[0]", "loop.length"])

    def body(self, depth=0):
        r = self.r
        out = ""
        for _ in range(r.randint(1, 3)):
            k = r.random()
            a, b, c = (r.choice(["", "-", ""]) for _ in range(3))
            ws = r.choice(["", " ", "\n", "\n  ", "  \n"])
            if k < 0.35 or depth > 2:
                out += ws + "{{%s %s %s}}" % (a, self.expr(), b)
            elif k < 0.5:
                out += ws + "{%%%s if %s %s%%}%s{%% else %%}%s{%%%s endif %%}" % (a, self.expr(), b, self.body(depth + 1), self.body(depth + 1), c)
            elif k < 0.65:
                out += ws + "{%%%s for x in %s%s %%}%s%s{%%%s endfor %s%%}" % (a, self.expr(), r.choice(["", " if x", " if " + self.expr(2)]), self.body(depth + 1),
                                                                          r.choice(["", "{% else %}E", "{% if x %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}"]), b, c)
            elif k < 0.75:
                out += ws + "{%% set %s = %s %%}" % (r.choice(["x", "y", "i", "s", "ns.v", "x, y"]), self.expr())
            elif k < 0.8:
                out += ws + "{%% set y %s%%}%s{%% endset %%}" % (r.choice(["", "| upper ", "| trim "]), self.body(depth + 1))
            elif k < 0.86:
                out += ws + "{%% macro f(%s) %s%%}%s{%% endmacro %%}{{ f(%s) }}" % (r.choice(["a", "a, b=1", "x=s", ""]), a, self.body(depth + 1) + r.choice(["", "{{ a }}", "{{ varargs }}", "{{ kwargs }}"]), r.choice(["", "1", "1, b=2", "1, 2", "z=3"]))
            elif k < 0.9:
                out += ws + "{%% filter %s %%}%s{%% endfilter %%}" % (r.choice(["upper", "trim", "indent(2, true)", "replace('a','<b>')", "title"]), self.body(depth + 1))
            elif k < 0.93:
                out += ws + "{%% with x = %s %%}%s{%% endwith %%}" % (self.expr(), self.body(depth + 1))
            elif k < 0.96:
                out += ws + "{%% generation %%}%s{%% endgeneration %%}" % self.body(depth + 1)
            else:
                out += r.choice([" text ", "\n", "a\n  ", "{# c #}", "{#- c -#}\n", "{% raw %}{{ }}{% endraw %}"])
        return out

    def template(self):
        return "{% set ns = namespace(v=1) %}" + self.body()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fuzz", type=int, default=0)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    if a.fuzz:
        source = (Fuzz(a.seed * 1_000_003 + i).template() for i in range(a.fuzz))
    else:
        source = systematic()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(RecursionError()))
    print(json.dumps({"context": CONTEXT}, ensure_ascii=False))
    seen = set()
    for t in source:
        if t in seen:
            continue
        seen.add(t)
        signal.alarm(5)
        row = run(t, CONTEXT)
        signal.alarm(0)
        if row:
            print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()

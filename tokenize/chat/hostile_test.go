package chat

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// nest returns template code that sets ns.l to lists nested n deep, each holding the same list twice: 2^n leaves.
func nest(n int) string {
	return fmt.Sprintf("{%% set ns = namespace(l=[1]) %%}{%% for i in range(%d) %%}{%% set ns.l = [ns.l, ns.l] %%}{%% endfor %%}", n)
}

// grow returns template code that sets ns.s to 2^n copies of a text.
func grow(text string, n int) string {
	return fmt.Sprintf("{%% set ns = namespace(s=%s) %%}{%% for i in range(%d) %%}{%% set ns.s = ns.s + ns.s %%}{%% endfor %%}", text, n)
}

// again returns template code that applies e, an expression in ns.s, n times to its own result.
func again(e string, n int) string {
	return fmt.Sprintf("{%% for i in range(%d) %%}{%% set ns.s = %s %%}{%% endfor %%}", n, e)
}

func manyMacros(n int, call bool) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{%% macro m%d(a) %%}{{ a }}{%% endmacro %%}", i)
	}
	if call {
		b.WriteString("{% for i in range(100000) %}{{ m0(i) }}{% endfor %}")
	}
	return b.String()
}

// expensive are short templates that use much time or memory: s is a text of 60 kB, b one of bits, l a list of
// messages.
var expensive = []struct{ reason, source string }{
	{"JSON of its own output", "{% set ns = namespace(s=s) %}" + again("ns.s|tojson", 60)},
	{"JSON of its own output, printed", "{% set ns = namespace(s='\"') %}{% for i in range(60) %}{% set ns.s = ns.s|tojson %}{{ ns.s }}{% endfor %}"},
	{"JSON of a shared list", nest(40) + "{{ ns.l|tojson }}"},
	{"JSON of a shared list, not printed", nest(40) + "{% set x = ns.l|tojson|length %}"},
	{"JSON again and again", "{% for i in range(100000) %}{% set x = l|tojson %}{% endfor %}"},
	{"macros", manyMacros(30_000, false)},
	{"macros that are called", manyMacros(30_000, true)},
	{"pprint of a shared list", nest(40) + "{{ ns.l|pprint }}"},
	{"pprint of shared dicts", "{% set ns = namespace(l={'a': 1}) %}{% for i in range(40) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}{{ ns.l|pprint }}"},
	{"pprint of deep keys", "{% set ns = namespace(l=[1, 2, 3]) %}{% for i in range(100) %}{% set ns.l = {s: ns.l, 'b': ns.l} %}{% endfor %}{{ ns.l|pprint }}"},
	{"unique of a shared tuple", "{% set ns = namespace(l=(1,)) %}{% for i in range(40) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ [ns.l, ns.l]|unique|list|length }}"},
	{"a shared tuple as key", "{% set ns = namespace(l=(1,)) %}{% for i in range(40) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1}|length }}"},
	{"== of shared lists", nest(40) + "{% set a = ns.l %}" + nest(40) + "{{ a == ns.l }}"},
	{"< of shared lists", nest(40) + "{% set a = ns.l %}" + nest(40) + "{{ a < ns.l }}"},
	{"in of shared lists", nest(40) + "{% set a = ns.l %}" + nest(40) + "{{ a in [ns.l] }}"},
	{"sort of shared lists", nest(40) + "{% set a = ns.l %}" + nest(40) + "{{ [a, ns.l]|sort|length }}"},
	{"groupby of shared lists", nest(40) + "{% set a = ns.l %}" + nest(40) + "{{ [{'k': a}, {'k': ns.l}]|groupby('k')|length }}"},
	{"== of shared dicts", "{% set ns = namespace(l={'a': 1}, m={'a': 1}) %}{% for i in range(40) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% set ns.m = {'a': ns.m, 'b': ns.m} %}{% endfor %}{{ ns.l == ns.m }}"},
	{"str of a shared list", nest(40) + "{{ ns.l|string|length }}"},
	{"join of shared lists", nest(40) + "{{ [ns.l]|join|length }}"},
	{"% of a shared list", nest(40) + "{{ '%s' % [ns.l] }}"},
	{"format of a shared list", nest(40) + "{{ '{}'.format(ns.l) }}"},
	{"strip of many characters", "{% set a = 'x' * 30000000 %}{{ a.strip('y' * 30000000 + 'x') }}"},
	{"strip of many kinds of characters", grow("s", 9) + "{{ ('y' * 1000000).strip(ns.s) }}"},
	{"strip again and again", "{% set a = 'x' * 1000000 + 'y' %}{% for i in range(100000) %}{% set x = a.strip('x') %}{% endfor %}"},
	{"urlize", "{{ ('(' * 1000000)|urlize }}"},
	{"urlize of points", "{{ ('a' + '.' * 1000000)|urlize }}"},
	{"urlize of addresses", "{{ ('www.a.com ' * 1000000)|urlize }}"},
	{"urlize of one address", "{{ ('www.' + 'a.' * 3000000)|urlize }}"},
	{"urlize again and again", "{% for i in range(100000) %}{% set x = s|urlize %}{% endfor %}"},
	{"sum of lists", "{{ ([[1, 2, 3]] * 100000)|sum(start=[])|length }}"},
	{"sum of tuples", "{{ ([(1, 2, 3)] * 300000)|sum(start=())|length }}"},
	{"wordwrap", "{{ ('a ' * 20000000)|wordwrap(1)|length }}"},
	{"wordwrap of hyphens", "{{ ('a-' * 20000000)|wordwrap(1)|length }}"},
	{"wordwrap of one word", "{{ ('a' * 40000000)|wordwrap(3)|length }}"},
	{"upper of long text", "{{ ('ä' * 20000000)|upper|length }}"},
	{"upper of text of two kinds", grow("s", 9) + "{{ ns.s|upper|lower|title|length }}"},
	{"upper again and again", "{% for i in range(100000) %}{% set x = s|upper %}{% endfor %}"},
	{"upper of bits", grow("b", 9) + "{{ ns.s|upper|length }}"},
	{"lower of sigmas", "{{ ('Σ' * 20000000)|lower|length }}"},
	{"lower of sigmas between points", "{{ ('.' * 100000 + 'Σ' * 100000)|lower|length }}"},
	{"title of a long word", "{{ ('ab' * 2000000)|title|length }}"},
	{"title of sigmas", "{{ ('aΣ' * 2000000)|title|length }}"},
	{"capitalize, swapcase, casefold", "{% set a = 'ß' * 10000000 %}{{ a.capitalize()|length }}{{ a.swapcase()|length }}{{ a.casefold()|length }}"},
	{"replace of characters by none", grow("s", 9) + "{{ ns.s.replace('a', '')|length }}"},
	{"replace of nothing", grow("s", 9) + "{{ ns.s.replace('', '-')|length }}"},
	{"replace of other text", grow("s", 9) + "{{ ns.s.replace('a', b)|length }}"},
	{"escape", grow("s", 9) + "{{ ns.s|e|length }}"},
	{"escape again and again", "{% set ns = namespace(s='&') %}" + again("ns.s|forceescape", 60)},
	{"URL encoding of its own output", "{% set ns = namespace(s='%') %}" + again("ns.s|urlencode", 60)},
	{"repr of its own output", "{% set ns = namespace(s='\"\\'') %}" + again("[ns.s]|string", 60)},
	{"split into characters", grow("s", 9) + "{{ ns.s.split('a')|length }}"},
	{"split of pieces", grow("b.upper()", 8) + "{{ ns.s.split()|length }}{{ ns.s.split('A')|length }}{{ ns.s.splitlines()|length }}"},
	{"list of characters", grow("s", 4) + "{% set ns.l = ns.s|list %}{% for i in range(1000) %}{% set ns.l = ns.s|list %}{% endfor %}"},
	{"reverse", grow("s", 9) + "{{ ns.s[::-1]|length }}{{ ns.s|reverse|length }}"},
	{"last character of a long text", grow("s", 9) + "{% for i in range(100000) %}{{ ns.s[20000000] }}{% endfor %}"},
	{"slices of a long text", grow("s", 9) + "{% for i in range(100000) %}{% set x = ns.s[20000000:20000001] %}{% endfor %}"},
	{"length of a long text", "{% set a = 'x' * 60000000 %}{% for i in range(100000) %}{% set x = a|length %}{% endfor %}"},
	{"find in a long text", "{% set a = 'x' * 60000000 %}{% for i in range(100000) %}{% set x = a.find('y') %}{% endfor %}"},
	{"in of a long text", "{% set a = 'x' * 60000000 %}{% for i in range(100000) %}{% set x = 'xy' in a %}{% endfor %}"},
	{"count, partition, isalpha", "{% set a = 'x' * 60000000 %}{% for i in range(100000) %}{% set x = a.count('xy') + a.partition('y')|length %}{% if a.isalpha() %}{% endif %}{% endfor %}"},
	{"comparing long texts", "{% set a = 'x' * 30000000 %}{% set c = 'x' * 30000000 %}{% for i in range(100000) %}{% set x = a == c %}{% endfor %}"},
	{"ordering long texts", "{% set a = 'x' * 30000000 %}{% set c = 'x' * 30000000 %}{% for i in range(100000) %}{% set x = a < c %}{% endfor %}"},
	{"sorting long texts", "{{ (['x' * 100000] * 100000)|sort(case_sensitive=true)|length }}"},
	{"sorting long texts without case", "{{ (['x' * 100000] * 100000)|sort|length }}"},
	{"keys of long integers", "{% for i in range(100000) %}{% set x = {2 ** 100000: i} %}{% endfor %}"},
	{"long integers as text", "{% for i in range(100000) %}{% set x = (2 ** 10000)|string %}{% endfor %}"},
	{"products of long integers", "{% set a = 3 ** 60000 %}{% for i in range(100000) %}{% set x = a * 2 % a // 3 %}{% endfor %}"},
	{"fractions of long integers", "{% set a = 3 ** 70000 %}{% set c = 5 ** 50000 %}{% for i in range(100000) %}{% set x = a / c %}{% endfor %}"},
	{"list of lists", "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = ns.l + [i] %}{% endfor %}"},
	{"lists in lists", "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% for j in range(100) %}{% set ns.l = [ns.l, i] %}{% endfor %}{% endfor %}"},
	{"namespaces in namespaces", "{% set ns = namespace(l=1) %}{% for i in range(100000) %}{% for j in range(100) %}{% set ns.l = namespace(l=ns.l) %}{% endfor %}{% endfor %}"},
	{"dicts in dicts", "{% set ns = namespace(l=1) %}{% for i in range(100000) %}{% for j in range(100) %}{% set ns.l = {'a': ns.l} %}{% endfor %}{% endfor %}"},
	{"iterators over iterators", "{% set ns = namespace(l=l) %}{% for i in range(100000) %}{% for j in range(10) %}{% set ns.l = ns.l|map('string') %}{% endfor %}{% endfor %}{{ ns.l|list|length }}"},
	{"loops over loops", "{% set ns = namespace(l=range(100000)) %}{% for i in range(100000) %}{% for j in ns.l %}{% set ns.l = loop %}{% break %}{% endfor %}{% endfor %}"},
	{"batches over batches", "{% set ns = namespace(l=l) %}{% for i in range(100000) %}{% set ns.l = ns.l|batch(1) %}{% endfor %}{{ ns.l|list|length }}"},
	{"map of long paths", "{{ range(100000)|map(attribute='a.' * 100000)|list|length }}"},
	{"macro with many variables", "{% macro m() %}{% if false %}" + manyNames(20_000) + "{% endif %}{% endmacro %}{% for i in range(100000) %}{{ m() }}{% endfor %}"},
	{"loop with many variables", "{% for i in range(100000) %}{% if false %}" + manyNames(20_000) + "{% endif %}{% endfor %}"},
	{"one long expression again and again", "{% for i in range(100000) %}{% set x = 1" + strings.Repeat(" + i", 20_000) + " %}{% endfor %}"},
	{"many captured texts", "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set x %}{{ s }}{% endset %}{% set ns.l = [ns.l, x] %}{% endfor %}"},
	{"one message printed in pieces", "{% for i in range(100) %}{% for c in s %}{{ c }}-{% endfor %}{% endfor %}"},
	{"generation blocks", "{% for i in range(100000) %}{% for j in range(100) %}{% generation %}{% endgeneration %}{% endfor %}{% endfor %}"},
	{"translate", grow("s", 9) + "{{ ns.s.translate({97: 'bc'})|length }}"},
	{"maketrans", "{% set a = 'ab' * 20000000 %}{{ 'x'.maketrans(a, a)|length }}"},
	{"format fields", "{{ ('{0}' * 5000000).format(1)|length }}"},
	{"percent fields", "{{ ('%(a)s' * 5000000) % {'a': 1} }}"},
	{"indent of lines", "{{ ('a\n' * 20000000)|indent(1)|length }}"},
	{"striptags", "{{ ('<a> ' * 15000000)|striptags|length }}"},
	{"wordcount", "{% set a = 'a ' * 20000000 %}{% for i in range(100000) %}{% set x = a|wordcount %}{% endfor %}"},
	{"date of a long format", "{{ strftime_now('%Y' * 20000000)|length }}"},
	{"bytes", "{% set ns = namespace(s=s.encode()) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"},
	{"hex of bytes", "{{ ('x' * 60000000).encode().hex()|length }}"},
	{"arguments", "{% macro m() %}{{ varargs|length }}{% endmacro %}{% for i in range(100000) %}{{ m(*range(100000)) }}{% endfor %}"},
	{"center, ljust, zfill", "{% for i in range(100000) %}{% set x = 'a'.center(1000000) + 'a'.ljust(1000000) + 'a'.zfill(1000000) %}{% endfor %}"},
	{"padding with recorded text", "{{ s[0].center(60000000, b[0])|length }}"},
	{"tabs", "{{ ('a\t' * 5000000).expandtabs(10)|length }}"},
	{"dictsort", "{% set d = dict(range(100000)|map('string')|batch(2)) %}{% for i in range(1000) %}{% set x = d|dictsort %}{% endfor %}"},
	{"batch and slice", "{% for i in range(100000) %}{% set x = range(100000)|batch(1)|list + range(100000)|slice(100000)|list %}{% endfor %}"},
	{"groupby", "{% for i in range(100000) %}{% set x = range(100000)|groupby('real')|length %}{% endfor %}"},
	{"xmlattr", "{% set d = dict.fromkeys(range(100000)|map('string'), s) %}{{ d|xmlattr|length }}"},
	{"round of long integers", "{% for i in range(100000) %}{% set x = (3 ** 60000)|round(2) %}{% endfor %}"},
	{"integers of long texts", "{% for i in range(100000) %}{% set x = ('9' * 4000)|int %}{% endfor %}"},
	{"integers of other bases", "{% for i in range(100000) %}{% set x = ('f' * 100000)|int(0, 16) %}{% endfor %}"},
	{"floats of long texts", "{% for i in range(100000) %}{% set x = ('9' * 100000)|float %}{% endfor %}"},
	{"shifted product", "{% set ns = namespace(s=3) %}{% for i in range(60) %}{% set ns.s = ns.s * ns.s %}{% endfor %}"},
	{"power of powers", "{% for i in range(100000) %}{% set x = 7 ** 20000 %}{% endfor %}"},
	{"selectattr over deep paths", "{% for i in range(100000) %}{% set x = l|selectattr('" + strings.Repeat("content.", 1000) + "x')|list %}{% endfor %}"},
	{"map of filters over filters", "{{ range(100000)|map('string')|map('upper')|map('lower')|map('title')|map('trim')|map('tojson')|map('tojson')|map('tojson')|join }}"},
	{"min and max of long texts", "{% for i in range(100000) %}{% set x = [s, s ~ i, s]|max %}{% endfor %}"},
	{"items of a dict that grows", "{% set ns = namespace(d={}) %}{% for i in range(100000) %}{% set ns.d = dict(ns.d, **{'k' ~ i: i}) %}{% endfor %}"},
	{"macro that calls its caller", "{% macro m(n) %}{% if n %}{% call m(n - 1) %}{{ caller() }}{{ caller() }}{% endcall %}{% else %}x{% endif %}{{ caller() }}{{ caller() }}{% endmacro %}{% call m(60) %}y{% endcall %}"},
	{"recursive loop over itself", "{% for x in [l, l] recursive %}{{ loop([l, l, l]) }}{% endfor %}"},
	{"cycler of many", "{% for i in range(100000) %}{% set c = cycler(*range(100000)) %}{% endfor %}"},
	{"joiner again", "{% set j = joiner('x' * 1000000) %}{% for i in range(100000) %}{{ j() }}{% endfor %}"},
	{"lorem", "{{ lipsum(n=100000, min=1000, max=10000) }}"},
	{"filter block of its own output", "{% set ns = namespace(s='&') %}{% for i in range(40) %}{% set ns.s %}{% filter e %}{{ ns.s }}{{ ns.s }}{% endfilter %}{% endset %}{% endfor %}"},
	{"blocks in loops", "{% for i in range(100000) %}{% block b scoped %}{{ s }}{% endblock %}{% endfor %}"},
	{"truncate", "{% set a = 'a b ' * 10000000 %}{% for i in range(100000) %}{% set x = a|truncate(30000000) %}{% endfor %}"},
	{"filesizeformat", "{% for i in range(100000) %}{% set x = (10 ** 60000)|filesizeformat %}{% endfor %}"},
	{"default of long", "{% for i in range(100000) %}{% set x = (s * 100)|d(s * 100) %}{% endfor %}"},
	{"attributes of long names", "{% for i in range(100000) %}{% set x = l[0]['a' * 1000000] %}{% endfor %}"},
	{"slices with steps", "{% set ns = namespace(l=range(100000)|list) %}{% for i in range(100000) %}{% set x = ns.l[::-1] %}{% endfor %}"},
	{"unpacking", "{% set a = range(100000)|list %}{% for i in range(100000) %}{% set x = [a, a, a]|map('list')|list %}{% endfor %}"},
	{"tests of containers", "{% set a = range(100000)|list %}{% for i in range(100000) %}{% if -1 in a %}{% endif %}{% endfor %}"},
	{"sort by attribute of shared lists", nest(40) + "{{ [{'k': [ns.l]}, {'k': [[ns.l]]}]|sort(attribute='k')|length }}"},
	{"unique by attribute of shared lists", nest(40) + "{{ [{'k': (1, ns.l)}, {'k': (1, ns.l)}]|unique(attribute='k')|list|length }}"},
	{"hash of a shared list in a set of keys", nest(40) + "{{ dict([((ns.l, 1), 2)])|length }}"},
	{"debug print of a namespace", nest(40) + "{{ ns }}"},
	{"error with a shared list", nest(40) + "{{ raise_exception(ns.l) }}"},
	{"missing key of a shared list", nest(40) + "{{ {}[ns.l] }}{{ ns.l.x.y }}"},
	{"comment of megabytes", "{#" + strings.Repeat("{# -#", 300_000) + "#}x"},
	{"raw of many tags", strings.Repeat("{% raw %}{{{% endraw %}", 60_000)},
	{"many elifs", "{% for i in range(100000) %}{% if 0 %}" + strings.Repeat("{% elif 0 %}", 30_000) + "{% endif %}{% endfor %}"},
	{"a long chain of comparisons", "{% for i in range(100000) %}{% if 1" + strings.Repeat(" < 2", 10_000) + " %}{% endif %}{% endfor %}"},
	{"a long chain of filters", "{% for i in range(100000) %}{% set x = s" + strings.Repeat("|trim", 1_500) + " %}{% endfor %}"},
	{"concatenation of many", "{% for i in range(1000) %}{% set x = s" + strings.Repeat(" ~ s", 1_500) + " %}{% endfor %}"},
	{"negated long integers", "{% set a = 3 ** 60000 %}{% for i in range(100000) %}{% for j in range(100000) %}{% set x = -a %}{% endfor %}{% endfor %}"},
	{"bits of long integers", "{% set a = 3 ** 60000 %}{% for i in range(100000) %}{% set x = a.bit_count() + a.bit_length() + a|abs|int|float %}{% endfor %}"},
	{"comparing long integers", "{% set a = 3 ** 60000 %}{% set c = 9 ** 30000 %}{% for i in range(100000) %}{% for j in range(100000) %}{% set x = a == c %}{% endfor %}{% endfor %}"},
	{"grouped digits", "{% set a = 2 ** 120000 %}{% for i in range(100000) %}{% set x = '{:_b}'.format(a) %}{% endfor %}"},
	{"rounding to tens of thousands", "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = 5|round(-4999) %}{% endfor %}{% endfor %}"},
	{"rounding floats to places", "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = 1.7e300|round(-307) %}{% endfor %}{% endfor %}"},
	{"ratios of floats", "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = 1.7e-300.as_integer_ratio() %}{% endfor %}{% endfor %}"},
	{"keyword arguments of a dict", "{% macro m() %}{{ kwargs|length }}{% endmacro %}{% set d = dict.fromkeys(range(100000)|map('string'), 1) %}{% for i in range(1000) %}{{ m(**d) }}{% endfor %}"},
	{"keyword arguments for parameters", "{% macro m(" + list("a%d=1", 20_000) + ") %}{% endmacro %}{% for i in range(100000) %}{{ m(" + list("a%d=2", 20_000) + ") }}{% endfor %}"},
	{"defaults of parameters", "{% macro m(" + list("a%d=s", 20_000) + ") %}{% endmacro %}{% for i in range(100000) %}{{ m() }}{% endfor %}"},
	{"a default of many nodes", "{% macro m(a=[" + list("a%d", 20_000) + "]) %}{% endmacro %}{% for i in range(100000) %}{{ m() }}{% endfor %}"},
	{"call blocks with long arguments", "{% macro m() %}{{ caller() }}{% endmacro %}{% for i in range(100000) %}{% call(" + list("a%d=1", 10_000) + ") m() %}x{% endcall %}{% endfor %}"},
	{"and of many", "{% for i in range(100000) %}{% if 1" + strings.Repeat(" and 1", 1_500) + " %}{% endif %}{% endfor %}"},
	{"or of many", "{% for i in range(100000) %}{% if 0" + strings.Repeat(" or 0", 1_500) + " %}{% endif %}{% endfor %}"},
	{"not of many", "{% for i in range(100000) %}{% if " + strings.Repeat("not ", 1_500) + "0 %}{% endif %}{% endfor %}"},
	{"many conditional expressions", "{% for i in range(100000) %}{{ " + strings.Repeat("'' if 0 else ", 1_500) + "'' }}{% endfor %}"},
	{"a long list", "{% for i in range(100000) %}{% set x = [" + strings.Repeat("i,", 100_000) + "] %}{% endfor %}"},
	{"a long list of empty conditions", "{% for i in range(100000) %}{% if [" + strings.Repeat("i.a,", 50_000) + "] %}{% endif %}{% endfor %}"},
	{"missing items", "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = [l[9], l['a'], l.a, l[9], l['a'], l[j]] %}{% endfor %}{% endfor %}"},
	{"a long dict", "{% for i in range(100000) %}{% set x = {" + strings.Repeat("'a':i,", 100_000) + "} %}{% endfor %}"},
	{"many targets", "{% set a = range(20000)|list %}{% for i in range(100000) %}{% set " + list("a%d", 20_000) + " = a %}{% endfor %}"},
	{"many targets of a loop", "{% set a = [range(20000)|list] * 100000 %}{% for " + list("a%d", 20_000) + " in a %}{% endfor %}"},
	{"many targets of a loop with a condition", "{% set a = [range(20000)|list] * 100000 %}{% for " + list("a%d", 20_000) + " in a if 0 %}{% endfor %}"},
	{"a loop with a long condition", "{% for i in range(100000) %}{% for j in range(1000) if [" + strings.Repeat("i,", 20_000) + "][1:] == 1 %}{% endfor %}{% endfor %}"},
	{"with of many", "{% for i in range(100000) %}{% with " + list("a%d=1", 20_000) + " %}{% endwith %}{% endfor %}"},
	{"with over many variables", "{% for i in range(100000) %}{% with %}{% if 0 %}" + manyNames(20_000) + "{% endif %}{% endwith %}{% endfor %}"},
	{"long tests", "{% for i in range(100000) %}{% if i is divisibleby(" + strings.Repeat("1 * ", 1_500) + "1) %}{% endif %}{% endfor %}"},
	{"looking up long keys", "{% set d = {'b': 1} %}{% for i in range(100000) %}{% for j in range(100) %}{% if '" + strings.Repeat("a", 1_000_000) + "' in d %}{% endif %}{% endfor %}{% endfor %}"},
	{"long attributes", "{% set d = {'b': 1} %}{% for i in range(100000) %}{% for j in range(100) %}{% if d." + strings.Repeat("a", 1_000_000) + " %}{% endif %}{% endfor %}{% endfor %}"},
	{"== of a long constant", "{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{% for j in range(100) %}{% if a == '" + strings.Repeat("a", 1_000_000) + "' %}{% endif %}{% endfor %}{% endfor %}"},
	{"empty loops", "{% for i in range(100000) %}{% for j in range(100000) %}{% for k in [] %}{% endfor %}{% endfor %}{% endfor %}"},
	{"loops of a constant condition", "{% for i in range(100000) %}{% for j in range(100000) %}{% if 1 %}{% endif %}{% endfor %}{% endfor %}"},
	{"include of nothing", "{% for i in range(100000) %}{% for j in range(1000) %}{% include [] ignore missing %}{% endfor %}{% endfor %}"},
	{"changed", "{% for i in range(100000) %}{% set x = loop.changed(*range(100000)) %}{% endfor %}"},
	{"floats of long text in attributes", "{{ range(100000)|map(attribute='" + strings.Repeat("1", 4_000) + "')|list|length }}"},
}

// list returns n formatted names, separated by commas.
func list(format string, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(names, ", ")
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{{ v%d }}", i)
	}
	return b.String()
}

// No template takes more than about a second or much memory for data of ordinary size, including compilation. Work
// and memory are proportional to the limits, so the test uses a twentieth of them; TURNPACK_LIMITS=full uses the
// defaults.
func TestExpensiveTemplatesAreBounded(t *testing.T) {
	kit.OneGoroutine(t)
	text := strings.Repeat("look at the files, then say what you found <b> & go on\n", 1100)
	bits := strings.Repeat("aB cD\nÄß ", 500)
	message := Object(Member{"role", String("user")}, Member{"content", String(text)})
	long := Object(Member{"s", String(text)}, Member{"b", String(bits)}, Member{"l", List(message, message)})
	message = Object(Member{"role", String("user")}, Member{"content", String("abc")})
	short := Object(Member{"l", List(message, message)})
	opts, mostTime, mostMemory := Options{Limits: Limits{Work: 50_000_000, Memory: 128 << 20 / 20}}, 300*time.Millisecond, uint64(48<<20)
	if os.Getenv("TURNPACK_LIMITS") == "full" {
		opts, mostTime, mostMemory = Options{}, 2*time.Second, 512<<20
	}
	tried, stopped := 0, 0
	bounded := func(reason, source string, vars Value) {
		t.Run(reason, func(t *testing.T) {
			var tmpl *Template
			var err error
			kit.Within(t, 2*time.Second, 512<<20, func() { tmpl, err = Compile(source, opts) })
			var made uint64
			used := kit.LeastCPU(t, mostTime, func() {
				if tmpl == nil {
					return
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err = tmpl.RenderVars(t.Context(), vars, Input{Now: kit.TemplateClock})
				runtime.ReadMemStats(&after)
				made = after.TotalAlloc - before.TotalAlloc
			})
			tried++
			if err != nil {
				if !errors.Is(err, rollout.KindLimit) {
					require.ErrorIs(t, err, rollout.KindTemplate)
				}
				stopped++
			}
			t.Logf("%8v %4d MB %s: %.60v", used.Round(time.Millisecond), made>>20, reason, err)
			require.Less(t, used, mostTime, "of processor time, on a machine that may be busy")
			require.Less(t, made, mostMemory, "bytes allocated in all")
		})
	}
	for _, x := range expensive {
		bounded(x.reason, x.source, long)
	}
	for _, x := range append(attacks, mixed...) {
		bounded(x.reason, x.source, long)
	}
	for _, s := range small {
		if !strings.HasPrefix(s, "{%") {
			s = "{% set x = " + s + " %}"
		}
		bounded(s, "{% macro m(a, b=1) %}{{ caller() if caller }}{% endmacro %}{% set ns = namespace(a=1) %}{% for i in range(100000) %}{% for j in range(1000) %}"+s+"{% endfor %}{% endfor %}", short)
	}
	require.Greater(t, stopped, tried/2)
}

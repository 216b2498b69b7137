package syntax

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// show formats an expression with all its parentheses.
func show(e Expr) string {
	list := func(items []Expr) string {
		var out []string
		for _, it := range items {
			out = append(out, show(it))
		}
		return strings.Join(out, ", ")
	}
	switch n := e.(type) {
	case *Name:
		return n.Name
	case *Const:
		switch n.Kind {
		case ConstInt:
			return n.Int.String()
		case ConstStr:
			return "'" + n.Str + "'"
		}
		return "const"
	case *Binary:
		return "(" + show(n.Left) + " " + n.Op + " " + show(n.Right) + ")"
	case *Unary:
		return "(" + n.Op + show(n.X) + ")"
	case *Not:
		return "(not " + show(n.X) + ")"
	case *Logic:
		return "(" + show(n.Left) + map[bool]string{true: " or ", false: " and "}[n.Or] + show(n.Right) + ")"
	case *Compare:
		return "(" + show(n.X) + " " + strings.Join(n.Ops, ",") + " " + list(n.Rest) + ")"
	case *Concat:
		return "(" + strings.ReplaceAll(list(n.Items), ", ", " ~ ") + ")"
	case *Cond:
		return "(" + show(n.Then) + " if " + show(n.Test) + ")"
	case *Getattr:
		return show(n.X) + "." + n.Attr
	case *Getitem:
		return show(n.X) + "[" + show(n.Index) + "]"
	case *Filter:
		return show(n.X) + "|" + n.Name + "(" + list(n.List) + ")"
	case *Test:
		return "(" + show(n.X) + " is " + n.Name + "(" + list(n.List) + "))"
	case *Call:
		return show(n.Fn) + "(" + list(n.List) + ")"
	case *Tuple:
		return "(" + list(n.Items) + ",)"
	}
	return "?"
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"a + b * c - d", "((a + (b * c)) - d)"},
		{"a ~ b + c", "((a ~ b) + c)"},
		{"-a ** b", "((-a) ** b)"},
		{"a ** b ** c", "((a ** b) ** c)"},
		{"not a == b", "(not (a == b))"},
		{"a or b and not c", "(a or (b and (not c)))"},
		{"a < b <= c", "(a <,<= b, c)"},
		{"a not in b", "(a notin b)"},
		{"a.b[c].d|f(g)|h", "a.b[c].d|f(g)|h()"},
		{"a + b|f", "(a + b|f())"},
		{"-a|f", "(-a)|f()"},
		{"a is b and c is not d", "((a is b()) and (not (c is d())))"},
		{"a is divisibleby 3", "(a is divisibleby(3))"},
		{"a if b else c", "(a if b)"},
		{"a, b", "(a, b,)"},
		{"f(a)(b)", "f(a)(b)"},
	} {
		body, err := Parse("{{ "+c.source+" }}", 50)
		require.NoError(t, err, c.source)
		require.Equal(t, c.want, show(body[0].(*Output).Nodes[0]), c.source)
	}
}

func TestParseFaults(t *testing.T) {
	for _, c := range []struct {
		source, says string
		pos          Pos
	}{
		{"ab{% if x %}", "Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.", 10},
		{"{% nope %}", "Encountered unknown tag 'nope'.", 3},
		{"{% if x %}{% endfor %}", "Encountered unknown tag 'endfor'. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.", 13},
		{"{{ a b }}", `expected token "end of print statement", got "b"`, 5},
		{"{{ }}", `Expected an expression, got "end of print statement"`, 3},
		{"{{ a. }}", "expected name or number", 6},
		{"{% set 1 = 2 %}", "can't assign to this expression", 7},
		{"{% set true = 2 %}", "can't assign to this expression", 7},
		{"{% macro f(a=1, b) %}{% endmacro %}", "non-default argument follows default argument", 17},
		{"{{ f(a=1, b) }}", "invalid syntax for function call expression", 4},
		{"{{ a is b is c }}", "You cannot chain multiple tests with is", 10},
	} {
		_, err := Parse(c.source, 50)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, c.source)
		require.Equal(t, c.says, e.Msg, c.source)
		require.Equal(t, c.pos, e.Pos, c.source)
		require.False(t, e.Limit)
	}
}

// Nesting beyond the limit is refused, for every kind of nesting.
func TestNestingIsBounded(t *testing.T) {
	for _, source := range []string{
		"{{ " + strings.Repeat("(", 60) + "1" + strings.Repeat(")", 60) + " }}",
		"{{ " + strings.Repeat("not ", 60) + "1 }}",
		"{{ " + strings.Repeat("-", 60) + "1 }}",
		strings.Repeat("{% if x %}", 60) + strings.Repeat("{% endif %}", 60),
	} {
		_, err := Parse(source, 50)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, source)
		require.True(t, e.Limit, e.Msg)
		_, err = Parse(source, 1000)
		require.NoError(t, err, source)
	}
}

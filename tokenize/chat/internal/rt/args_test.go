package rt

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Arguments bind to the parameters of a signature as Python binds them.
func TestArgumentsBindToSignatures(t *testing.T) {
	one, two := value.Lit("1"), value.Lit("2")
	for _, c := range []struct {
		signature string
		a         Args
		want      string // the parameters, or the failure
	}{
		{"f()", Args{}, ""},
		{"f()", Args{Pos: []value.Value{one}}, "f() takes at most 0 arguments (1 given)"},
		{"f(a, b=)", Args{Pos: []value.Value{one}}, "1 -"},
		{"f(a, b=)", Args{Pos: []value.Value{one, two}}, "1 2"},
		{"f(a, b=)", Args{Kw: []Keyword{{"b", two}, {"a", one}}}, "1 2"},
		{"f(a, b=)", Args{Kw: []Keyword{{"b", two}}}, "f() missing required argument: 'a'"},
		{"f(a, b=)", Args{Pos: []value.Value{one}, Kw: []Keyword{{"a", two}}}, "f() got multiple values for argument 'a'"},
		{"f(a, b=)", Args{Pos: []value.Value{one}, Kw: []Keyword{{"c", two}}}, "f() got an unexpected keyword argument 'c'"},
		{"f(a, b=, /)", Args{Pos: []value.Value{one}, Kw: []Keyword{{"b", two}}}, "f() takes no keyword arguments"},
		{"f(a, b=, /)", Args{Pos: []value.Value{one, two}}, "1 2"},
	} {
		var x Context
		x.Start(t.Context(), &Limits{}, time.Now)
		s := Parse(c.signature)
		var p Params
		if !s.Bind(&x, c.a, &p) {
			require.Equal(t, c.want, x.Err.Msg, c.signature)
			require.Equal(t, value.Type, x.Err.Class)
			continue
		}
		var got []string
		for i := range s.params {
			if p[i] == nil {
				got = append(got, "-")
			} else {
				got = append(got, p[i].(*value.Str).S)
			}
		}
		require.Equal(t, c.want, strings.Join(got, " "), c.signature)
	}
}

// The first failure is kept and ends the run at the next step.
func TestFirstFailureStays(t *testing.T) {
	var x Context
	x.Start(t.Context(), &Limits{}, time.Now)
	require.True(t, x.Step(1))
	x.Fail(nil)
	require.True(t, x.Step(1))
	x.Failf(value.Type, "first")
	x.Failf(value.Other, "second")
	require.Equal(t, "first", x.Err.Msg)
	require.False(t, x.Step(1))
	require.False(t, x.Make(1))
	require.False(t, x.Spend(1))
}

package verbs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

func TestWindowKit(t *testing.T) {
	path := kit.Dir(t, "conformance", "context_manager", "cases.jsonl")
	var out, errs bytes.Buffer
	require.Zero(t, Main(context.Background(), []string{"window", path}, nil, &out, &errs), errs.String())
	cases, err := os.Open(path)
	require.NoError(t, err)
	defer cases.Close()
	want, got := bufio.NewScanner(cases), bufio.NewScanner(&out)
	want.Buffer(nil, 1<<24)
	got.Buffer(nil, 1<<24)
	n := 0
	for want.Scan() {
		require.True(t, got.Scan())
		var c struct {
			ID       string         `json:"id"`
			Expected map[string]any `json:"expected"`
		}
		var answer map[string]any
		require.NoError(t, json.Unmarshal(want.Bytes(), &c))
		require.NoError(t, json.Unmarshal(got.Bytes(), &answer))
		c.Expected["id"] = c.ID
		require.Equal(t, c.Expected, answer)
		n++
	}
	require.NoError(t, want.Err())
	require.Equal(t, 100, n)
	require.False(t, got.Scan())
}

func TestWindowCountsAsTheReferenceDoes(t *testing.T) {
	for _, tc := range []struct{ line, want, reason string }{
		{`{"counter":"ws","budget":9,"head_ratio":0.3,"messages":[]}`, `"total_tokens":1,"fixed_tokens":16,`, "no messages: the generation prompt alone"},
		{`{"counter":"ws","budget":9,"head_ratio":0.3,"messages":[{"role":"user","content":"a\u001cb\u0085c"}]}`, `"total_tokens":6,`, "what Python's split takes for white space"},
	} {
		var out, errs bytes.Buffer
		require.Zero(t, Main(context.Background(), []string{"window"}, strings.NewReader(tc.line), &out, &errs), out.String())
		require.Contains(t, out.String(), tc.want, tc.reason)
	}
}

func TestWindowPoliciesStayInBudget(t *testing.T) {
	for _, policy := range []func(*windowCase) ctxwindow.Policy{
		func(c *windowCase) ctxwindow.Policy {
			return ctxwindow.HeadTail{Budget: c.Budget, Head: cmp.Or(c.HeadRatio, -1)}
		},
		func(c *windowCase) ctxwindow.Policy { return ctxwindow.Tail{Budget: c.Budget} },
		func(c *windowCase) ctxwindow.Policy { return ctxwindow.Refill{Budget: c.Budget} },
	} {
		failed := 0
		for c := range kit.Lines[windowCase](t, kit.Dir(t, "conformance", "context_manager", "cases.jsonl")) {
			counter, err := newWindowCounter(c.Counter)
			require.NoError(t, err)
			fitted, err := ctxwindow.Fit(t.Context(), c.Messages, policy(&c), counter)
			if err != nil {
				require.ErrorIs(t, err, rollout.KindLimit)
				failed++
				continue
			}
			require.LessOrEqual(t, fitted.Tokens, c.Budget)
		}
		require.LessOrEqual(t, failed, 2, "two budgets are smaller than empty messages")
	}
}

func TestWindowFailures(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 1, Main(context.Background(), []string{"window"}, strings.NewReader(`{"id":1,"counter":"bytes","messages":[]}`), &out, &errs))
	require.Contains(t, out.String(), `"kind":"input"`)
}

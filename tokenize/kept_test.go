package tokenize_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/parse"
)

// An encoder copies its template variables.
func TestAnEncoderKeepsItsTemplateVariables(t *testing.T) {
	tpl, err := tokenize.Load(".", tokenize.LoadOptions{FS: kit.Qwen3(t), TemplateText: "{{ who }}{% for m in messages %}{{ m.content }}{% endfor %}"})
	require.NoError(t, err)
	kwargs := map[string]json.RawMessage{"who": json.RawMessage(`"before "`)}
	e, err := tokenize.NewEncoder(tpl, tokenize.Options{Kwargs: kwargs})
	require.NoError(t, err)
	kwargs["who"] = json.RawMessage(`"after "`)
	p, err := e.Prompt(context.Background(), &rollout.Rollout{ID: "r"}, say("user: hi"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(p.Text.Text, "before "), p.Text.Text)
}

// In every mode, the error of an ended context wraps the context's error.
func TestTheEndOfAContextIsTheCause(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := &rollout.Rollout{ID: "r", Messages: say("user: hi", "assistant: hello")}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
		e, err := tokenize.NewEncoder(embeddedModel(t), tokenize.Options{Mode: mode})
		require.NoError(t, err)
		_, _, err = e.Encode(ctx, r)
		require.ErrorIs(t, err, context.Canceled, "%s", mode)
	}
	_, err := parse.Func(nil, parse.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
}

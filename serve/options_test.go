package serve_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
)

// fieldsOf returns the fields that an error names, sorted.
func fieldsOf(err error) (fields []string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			fields = append(fields, fieldsOf(e)...)
		}
		slices.Sort(fields)
		return fields
	}
	if e, ok := err.(*rollout.Error); ok {
		return []string{e.Where.Field}
	}
	return []string{err.Error()}
}

// Each fault of the options is reported under the field of serve.Options that has it, and nothing else is: the
// record, the gate and the proxy each have a MaxCalls.
func TestFaultsOfOptions(t *testing.T) {
	for _, x := range []struct {
		spoil  func(*serve.Options)
		fields []string
	}{
		{func(o *serve.Options) { o.Engines, o.Journal, o.Out = nil, "", "" }, []string{"Engines", "Journal", "Out"}},
		{func(o *serve.Options) { o.Exact = true }, []string{"Model"}},
		{func(o *serve.Options) { o.Engines = append(o.Engines, engine.Options{Silence: -1}) }, []string{"Engines[1].Silence", "Engines[1].URL"}},
		{func(o *serve.Options) { o.Record = live.Options{MaxCalls: -1, MaxBlob: -1} }, []string{"Record.MaxBlob", "Record.MaxCalls"}},
		{func(o *serve.Options) { o.Gate = gate.Options{MaxCalls: -1, Caps: gate.Caps{Turns: -1}} }, []string{"Gate.Caps.Turns", "Gate.MaxCalls"}},
		{func(o *serve.Options) { o.Proxy = proxy.Options{MaxCalls: -1, KeepAlive: -1} }, []string{"Proxy.KeepAlive", "Proxy.MaxCalls"}},
		{func(o *serve.Options) { o.Groups.Rows = nil }, []string{"Groups.Rows"}},
		{func(o *serve.Options) { o.Groups.Size = -1 }, []string{"Groups.Size"}},
		{func(o *serve.Options) { o.Groups.Deadline = -time.Second }, []string{"Groups.Deadline"}},
		{func(o *serve.Options) { o.Groups.Least = 9 }, []string{"Groups.Least"}},
	} {
		o := serve.Options{Engines: []engine.Options{{URL: "http://localhost"}}, Journal: t.TempDir(), Out: t.TempDir(),
			Groups: serve.Groups{Rows: func(context.Context, []*rollout.Rollout, *export.Writer) error { return nil }}}
		x.spoil(&o)
		_, err := serve.Open(o)
		require.ErrorIs(t, err, rollout.KindInput)
		require.False(t, errors.Is(err, context.Canceled), "%v", err)
		require.Equal(t, x.fields, fieldsOf(err), "%v", err)
	}
}

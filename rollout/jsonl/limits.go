package jsonl

import (
	"errors"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/lines"
)

// Limits bounds what a reader accepts. A zero field means its default; a negative one is an
// error.
type Limits struct {
	// LineBytes is the longest accepted line, without the newline; default 1 GiB. The
	// longest recorded message known is under 1 MB, a rollout of 145 steps under 2 MB.
	LineBytes int
	// Depth is the deepest nesting of JSON values; default 512.
	Depth int
	// Messages and Turns bound one rollout; default 1,000,000 each.
	Messages int
	Turns    int
	// Tokens bounds the recorded ids of one rollout, counted as written in the file, so
	// that a short file cannot cause large allocations; default 256 Mi.
	Tokens int
}

// The defaults of Limits.
const (
	defaultMessages = 1_000_000
	defaultTurns    = 1_000_000
	defaultTokens   = 256 << 20
	defaultDepth    = 512
)

func (l Limits) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{{"LineBytes", l.LineBytes}, {"Depth", l.Depth}, {"Messages", l.Messages}, {"Turns", l.Turns}, {"Tokens", l.Tokens}} {
		if f.value < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Limits." + f.name}, "limit is %d, expected 0 (default) or more", f.value))
		}
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	l := &o.Limits
	for _, f := range []struct {
		field *int
		value int
	}{{&l.LineBytes, lines.DefaultBytes}, {&l.Depth, defaultDepth}, {&l.Messages, defaultMessages}, {&l.Turns, defaultTurns}, {&l.Tokens, defaultTokens}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return o
}

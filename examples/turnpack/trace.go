package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/show"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

// sourcesOf finds rollouts by id in the dumps. The function it returns encodes the
// rollout of a row again, with the options of the batch. It is nil if no dumps are known.
func sourcesOf(ctx context.Context, model *tokenize.Model, file string, in []string, ids map[string]bool) (func(*rollout.Sample) (*show.Source, error), error) {
	c, err := conversionOf(file, in)
	if err != nil || c == nil {
		return nil, err
	}
	pipe, err := c.pipeline(ctx, model)
	if err != nil {
		return nil, err
	}
	found, faults, err := c.find(ids)
	if err != nil {
		return nil, err
	}
	missing := func(id string) error {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id}, "the rollout of the row is not in %s", strings.Join(c.In, ", ")).WithFix("name the dumps that the batch was made of with --in")
	}
	if len(in) > 0 && len(found) == 0 { // dumps that are named have to be readable and those of the batch
		return nil, append(faults, missing(slices.Min(slices.Collect(maps.Keys(ids)))))[0]
	}
	return func(row *rollout.Sample) (*show.Source, error) {
		r, ok := found[row.Rollout]
		if !ok {
			return nil, missing(row.Rollout)
		}
		return encodedAgain(ctx, pipe, r, row)
	}, nil
}

// tracersOf is sourcesOf for tracers. The tracer is nil for rows whose rollout is missing
// or now encodes to other rows.
func tracersOf(ctx context.Context, model *tokenize.Model, file string, in []string, ids map[string]bool) (func(*rollout.Sample) *tokens.Tracer, error) {
	sources, err := sourcesOf(ctx, model, file, in, ids)
	if sources == nil {
		return nil, err
	}
	return func(row *rollout.Sample) *tokens.Tracer {
		src, err := sources(row)
		if err != nil {
			return nil
		}
		return src.Tracer
	}, nil
}

// conversionOf reconstructs the conversion that made the batch of file from its record
// and in. It returns nil if no dumps are known.
func conversionOf(file string, in []string) (*convertCmd, error) {
	c := &convertCmd{Format: "auto", GroupBy: "auto", Mode: "merged", Specials: "guard", Edges: "sampled", PromptsBy: "record", Drift: "fork", Window: "none", Estimator: "none"}
	var made record
	found, err := cli.RecordOf(file, &made)
	if err != nil {
		return nil, err
	}
	if found {
		options, err := json.Marshal(made.Options)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(options, c); err != nil {
			return nil, err
		}
		for _, i := range made.Inputs {
			switch _, err := os.Stat(i.Path); {
			case err != nil:
			case i.System:
				c.System = i.Path
			case len(in) == 0:
				c.In = append(c.In, i.Path)
			}
		}
	}
	if c.In = append(c.In, in...); len(c.In) == 0 {
		return nil, nil
	}
	return c, nil
}

// find reads the dumps until it has the rollouts with these ids, and returns the failures
// that were passed over.
func (c *convertCmd) find(ids map[string]bool) (found map[string]*rollout.Rollout, faults []error, err error) {
	o, err := c.readerOptions()
	if err != nil {
		return nil, nil, err
	}
	in, err := traj.Open(c.In, o)
	if err != nil {
		return nil, nil, err
	}
	found = map[string]*rollout.Rollout{}
	for r, err := range in.All() {
		if err == nil && ids[r.ID] && found[r.ID] == nil {
			if found[r.ID] = r; len(found) == len(ids) {
				break
			}
		}
	}
	return found, in.Report().Errors, nil
}

// encodedAgain encodes r as a conversion does and returns the sequence that matches row.
func encodedAgain(ctx context.Context, p turnpack.Pipeline, r *rollout.Rollout, row *rollout.Sample) (*show.Source, error) {
	enc, err := tokenize.NewEncoder(p.Model, p.Encode)
	if err != nil {
		return nil, err
	}
	if p.Window != nil {
		contexts, _, err := ctxwindow.Plan(ctx, r, p.Window, enc.Counter(r))
		if err != nil {
			return nil, err
		}
		if r, err = ctxwindow.Apply(r, contexts); err != nil {
			return nil, err
		}
	}
	seqs, _, err := enc.Encode(ctx, r)
	if err != nil {
		return nil, err
	}
	for i := range seqs { // rows end at their last trained token
		if n := row.Len(); seqs[i].Len() >= n && slices.Equal(seqs[i].IDs[:n], row.IDs) {
			s := &show.Source{Rollout: r, Sequence: seqs[i]}
			s.Tracer = tokens.NewTracer(enc, p.Encode.Mode, tokens.NewSpeller(p.Model.Tokenizer), r, &s.Sequence)
			return s, nil
		}
	}
	return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "the rollout gives other rows than the batch holds").WithFix("name the dumps, the --model and the --template that the batch was made with")
}

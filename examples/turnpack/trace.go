package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

// source is the rollout that a row was made of, encoded as it was then.
type source struct {
	tracer *tokens.Tracer
	r      *rollout.Rollout
	seq    rollout.Sequence
}

// recordOf reads what made the batch that file belongs to; nil without a record.
func recordOf(file string) (*record, error) {
	text := cli.RecordOf(file)
	if text == nil {
		return nil, nil // batches of others have none
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: file}, "%s beside it cannot be read: %w", recordName, err)
	}
	return r, nil
}

// sourceOf finds the rollout of row in the dumps and encodes it again, with the
// options that made the batch. It is nil when no dumps are known.
func sourceOf(ctx context.Context, model *tokenize.Model, file string, in []string, row *rollout.Sample) (*source, error) {
	c, err := conversionOf(file, in)
	if err != nil || c == nil {
		return nil, err
	}
	pipe, err := c.pipeline(ctx, model)
	if err != nil {
		return nil, err
	}
	found, err := c.find(func(id string) bool { return id == row.Rollout }, 1)
	if err != nil {
		return nil, err
	}
	r, ok := found[row.Rollout]
	if !ok {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: row.Rollout}, "the rollout of the row is not in %s", strings.Join(c.In, ", ")).WithFix("name the dumps that the batch was made of with --in")
	}
	return encoded(ctx, pipe, r, row)
}

// tracersOf does for many rows what sourceOf does for one. Rows whose rollout is
// gone, or gives other rows now, have no tracer.
func tracersOf(ctx context.Context, model *tokenize.Model, file string, in []string, rollouts map[string]bool) (func(*rollout.Sample) *tokens.Tracer, error) {
	c, err := conversionOf(file, in)
	if err != nil || c == nil {
		return nil, err
	}
	pipe, err := c.pipeline(ctx, model)
	if err != nil {
		return nil, err
	}
	found, err := c.find(func(id string) bool { return rollouts[id] }, len(rollouts))
	if err != nil {
		return nil, err
	}
	return func(row *rollout.Sample) *tokens.Tracer {
		r, ok := found[row.Rollout]
		if !ok {
			return nil
		}
		src, err := encoded(ctx, pipe, r, row)
		if err != nil {
			return nil
		}
		return src.tracer
	}, nil
}

// conversionOf is the conversion that made the batch that file belongs to, as
// far as its record and in tell; nil when no dumps are known.
func conversionOf(file string, in []string) (*convertCmd, error) {
	c := &convertCmd{Format: "auto", GroupBy: "auto", Mode: "merged", Specials: "guard", Edges: "sampled", PromptsBy: "record", Drift: "fork", Window: "none", Estimator: "none"}
	made, err := recordOf(file)
	if err != nil {
		return nil, err
	}
	if made != nil {
		options, err := json.Marshal(made.Options)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(options, c); err != nil {
			return nil, err
		}
		for _, i := range made.Inputs {
			if _, err := os.Stat(i.Path); len(in) == 0 && err == nil {
				c.In = append(c.In, i.Path)
			}
		}
	}
	if c.In = append(c.In, in...); len(c.In) == 0 {
		return nil, nil
	}
	return c, nil
}

// find reads the dumps until it has n wanted rollouts.
func (c *convertCmd) find(wanted func(id string) bool, n int) (map[string]*rollout.Rollout, error) {
	o, err := c.dumps()
	if err != nil {
		return nil, err
	}
	in, err := traj.Open(c.In, o)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read
	found := map[string]*rollout.Rollout{}
	for r, err := range in.All() {
		if err == nil && wanted(r.ID) && found[r.ID] == nil {
			if found[r.ID] = r; len(found) == n {
				break
			}
		}
	}
	return found, nil
}

// encoded encodes r as a conversion does and takes the sequence that is row.
func encoded(ctx context.Context, p turnpack.Pipeline, r *rollout.Rollout, row *rollout.Sample) (*source, error) {
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
	for i := range seqs { // rows end on their last trained token
		if n := row.Len(); seqs[i].Len() >= n && slices.Equal(seqs[i].IDs[:n], row.IDs) {
			s := &source{r: r, seq: seqs[i]}
			s.tracer = tokens.NewTracer(enc, p.Encode.Mode, tokens.NewSpeller(p.Model.Tokenizer), r, &s.seq)
			return s, nil
		}
	}
	return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "the rollout gives other rows than the batch holds").WithFix("name the dumps, the --model and the --template that the batch was made with")
}

// printToken prints what is known of token t of a row; src may be nil.
func printToken(ctx context.Context, w io.Writer, m *tokenize.Model, s *rollout.Sample, t int, src *source) error {
	if t < 0 || t >= s.Len() {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: s.Rollout, Field: "--token"}, "token %d asked for, the row has tokens 0 to %d", t, s.Len()-1)
	}
	text, ok := tokens.NewSpeller(m.Tokenizer).Bytes(s.IDs[t])
	if !ok {
		return rollout.Errorf(rollout.KindTokenizer, rollout.Where{Rollout: s.Rollout, Token: rollout.At(t)}, "id %d is not in the vocabulary", s.IDs[t]).WithFix("name the model folder of the batch with --model")
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "token %d of row %s\n", t, visible(s.ID))
	line("id", "%d", s.IDs[t])
	line("text", "%q", text)
	line("bytes", "% x", text)
	scaffold := printRecorded(ctx, line, s, t, src)
	line("weight", "%g, %s", s.Weight[t], why(s, t, src, scaffold))
	if s.Logprob != nil && s.Weight[t] > 0 {
		line("logprob", "%.6g (p %.3g)", s.Logprob[t], math.Exp(float64(s.Logprob[t])))
	} else {
		line("logprob", "none")
	}
	if s.Weight[t] > 0 && (s.Credit != nil || s.Advantage != nil) {
		line("advantage", "%+.4f", advantage(s, t))
	}
	if s.Version != nil && s.Version[t] >= 0 {
		line("version", "%d", s.Version[t])
	}
	if names := s.Flags[t].Names(); len(names) > 0 {
		line("flags", "%s", strings.Join(names, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printRecorded prints where the text of token t is recorded, and reports whether it
// is the chat template's own.
func printRecorded(ctx context.Context, line func(name, format string, args ...any), s *rollout.Sample, t int, src *source) (scaffold bool) {
	const other = "unknown: the engine's ids spell another text than the template gives for the record"
	if src == nil {
		switch from := s.Source[t]; {
		case from >= 0:
			line("message", "%d", from)
		case tokens.Traced(s):
			line("message", "none: the chat template wrote it")
			scaffold = true
		default:
			line("message", "unknown: the batch does not tell")
		}
		line("field", "unknown: name the dumps with --in")
		return scaffold
	}
	from := src.seq.Source[t]
	origins, known, err := src.tracer.At(ctx, t)
	known = known && err == nil // the rest can be told all the same
	switch {
	case from >= 0:
		line("message", "%d, %s, of %s", from, visible(string(src.r.Messages[from].Role)), place(src.r.Origin))
	case known:
		line("message", "none: the chat template wrote it")
	default:
		line("message", other)
		return false
	}
	switch {
	case !known:
		line("field", other)
	case len(origins) == 0 && from >= 0:
		line("field", "none: a marker that the policy wrote and the record leaves out")
	}
	for _, o := range origins {
		where, how := "", ""
		if o.Message >= 0 && o.Message != int(from) {
			where = fmt.Sprintf("of message %d, ", o.Message)
		}
		if !o.Exact {
			how = ", spelled otherwise there"
		}
		line("field", "%s%s, bytes %d to %d%s", where, visible(o.Field), o.From, o.To, how)
	}
	return from < 0
}

// why says why token t is trained or not; scaffold says that the chat template wrote
// it.
func why(s *rollout.Sample, t int, src *source, scaffold bool) string {
	sampled := s.Flags[t]&rollout.FlagSampled != 0
	from := s.Source[t]
	if src != nil {
		sampled, from = src.seq.Flags[t]&rollout.FlagSampled != 0, src.seq.Source[t]
	}
	switch {
	case s.Weight[t] > 0 && sampled && src != nil:
		turn := src.seq.Turn[t]
		return fmt.Sprintf("trained: the policy sampled it at step %d", rollout.TurnsOf(src.r)[turn].Step)
	case s.Weight[t] > 0 && sampled:
		return "trained: the policy sampled it"
	case s.Weight[t] > 0:
		return "trained"
	case sampled:
		return "not trained: sampled, and left out by the loss mask"
	case scaffold:
		return "not trained: the chat template wrote it"
	case src == nil || from < 0 || src.r.Messages[from].Role != rollout.RoleAssistant:
		return "not trained: the policy read it"
	case src.r.Messages[from].Sampled == rollout.SampledByPolicy:
		return "not trained here: the policy sampled the message in another turn, and reads it in this one"
	}
	return "not trained: the message was not sampled (" + src.r.Messages[from].Sampled.String() + ")"
}

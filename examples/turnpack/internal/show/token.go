package show

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Source is the rollout that a row was made from, encoded again.
type Source struct {
	Tracer   *tokens.Tracer
	Rollout  *rollout.Rollout
	Sequence rollout.Sequence
}

// Place returns the name of a record of a dump.
func Place(o rollout.Origin) string { return fmt.Sprintf("%s#%d", o.File, o.Index) }

// Token prints what is known about token t of a row. src may be nil.
func Token(ctx context.Context, w io.Writer, m *tokenize.Model, s *rollout.Sample, t int, src *Source) error {
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
	fmt.Fprintf(&b, "token %d of row %s\n", t, Visible(s.ID))
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

// printRecorded prints where the text of token t is recorded, and reports whether the
// chat template wrote it.
func printRecorded(ctx context.Context, line func(name, format string, args ...any), s *rollout.Sample, t int, src *Source) (scaffold bool) {
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
	from := src.Sequence.Source[t]
	origins, known, err := src.Tracer.At(ctx, t)
	known = known && err == nil // on an error, print the rest
	switch {
	case from >= 0:
		line("message", "%d, %s, of %s", from, Visible(string(src.Rollout.Messages[from].Role)), Place(src.Rollout.Origin))
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
		line("field", "%s%s, bytes %d to %d%s", where, Visible(o.Field), o.From, o.To, how)
	}
	return from < 0
}

// why explains why token t is trained or not. scaffold means that the chat template wrote
// it.
func why(s *rollout.Sample, t int, src *Source, scaffold bool) string {
	sampled := s.Flags[t]&rollout.FlagSampled != 0
	from := s.Source[t]
	if src != nil {
		sampled, from = src.Sequence.Flags[t]&rollout.FlagSampled != 0, src.Sequence.Source[t]
	}
	switch {
	case s.Weight[t] > 0 && sampled && src != nil:
		turn := src.Sequence.Turn[t]
		return fmt.Sprintf("trained: the policy sampled it at step %d", rollout.TurnsOf(src.Rollout)[turn].Step)
	case s.Weight[t] > 0 && sampled:
		return "trained: the policy sampled it"
	case s.Weight[t] > 0:
		return "trained"
	case sampled:
		return "not trained: sampled, and left out by the loss mask"
	case scaffold:
		return "not trained: the chat template wrote it"
	case src == nil || from < 0 || src.Rollout.Messages[from].Role != rollout.RoleAssistant:
		return "not trained: the policy read it"
	case src.Rollout.Messages[from].Sampled == rollout.SampledByPolicy:
		return "not trained here: the policy sampled the message in another turn, and reads it in this one"
	}
	return "not trained: the message was not sampled (" + src.Rollout.Messages[from].Sampled.String() + ")"
}

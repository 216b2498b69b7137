package tokenize

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// BenchmarkDocument compares rendering conversations and encoding them with
// encoding the texts that come out, on two tokenizers with the same past. The
// conversations have 30 turns and were prepared beforehand; the tokenizers have seen
// nothing; other conversations; or these very ones, rendered again, where rendering
// shows most. The fourth case is what a trainer meets: recorded rollouts one after
// the other, each once and prepared right before, on tokenizers that have seen what
// came before. Preparing is not measured. The metrics are the processor time for one
// conversation (least of the passes), and its ratio to guarded encoding to columns
// from a rendering at hand, and to plain encoding of the text without offsets.
func BenchmarkDocument(b *testing.B) { eachModel(b, benchmarkDocument) }

// eachModel runs a benchmark with the tokenizers of the kit, beside a chat template
// and the published ids that end a completion.
func eachModel(b *testing.B, run func(b *testing.B, files fstest.MapFS)) {
	for _, m := range []struct{ name, template, stops string }{
		{"qwen3", "qwen3", "[151645,151643]"}, {"llama3", "llama3_1", "[128001,128008,128009]"}, {"gptoss", "gptoss", "[200002,199999,200012]"},
	} {
		source, err := os.ReadFile(filepath.Join(kit.Templates(b), m.template+".jinja"))
		require.NoError(b, err)
		files := fstest.MapFS{"tokenizer.json": {Data: kit.Tokenizer(b, m.name)}, "chat_template.jinja": {Data: source},
			"generation_config.json": {Data: []byte(`{"eos_token_id":` + m.stops + `}`)}}
		b.Run(m.name, func(b *testing.B) {
			for range b.N {
				run(b, files)
			}
		})
	}
}

func benchmarkDocument(b *testing.B, files fstest.MapFS) {
	const warm, passes, streams = 40, 12, 5
	unseen, other, again, stream := newDocumentTimes(), newDocumentTimes(), newDocumentTimes(), newDocumentTimes()
	made := func(from, to int) (list []*rollout.Rollout) {
		for seed := from; seed < to; seed++ {
			list = append(list, agentRollout(b, seed))
		}
		return list
	}
	for i := range 5 {
		s := newDocumentSides(b, files)
		unseen.least(s.encode(b, s.prepare(b, made(i, i+1)), false))
		s.encode(b, s.prepare(b, made(warm, 2*warm)), false)
		other.least(s.encode(b, s.prepare(b, made(2*warm, 3*warm)), false))
		if i == 0 {
			seen := s.prepare(b, made(3*warm, 3*warm+16))
			for range passes {
				again.least(s.encode(b, seen, false))
			}
		}
	}
	recorded := recordedRollouts(b)
	bytes := 0
	for range streams {
		s := newDocumentSides(b, files)
		list := s.prepare(b, recorded)
		stream.least(s.encode(b, list, true))
		bytes = 0
		for _, d := range list {
			bytes += len(d.text.text) / len(list)
		}
	}
	b.ReportMetric(float64(bytes), "stream-bytes")
	for _, t := range []struct {
		name string
		documentTimes
	}{{"unseen", unseen}, {"new-text", other}, {"seen", again}, {"stream", stream}} {
		b.ReportMetric(float64(t.whole.Microseconds()), t.name+"-µs")
		b.ReportMetric(float64(t.whole)/float64(t.guarded), t.name+"/guarded")
		b.ReportMetric(float64(t.whole)/float64(t.plain), t.name+"/plain")
	}
}

// BenchmarkDocumentLoop compares the same on one tokenizer: one conversation again and
// again, and sixteen in turn. The metrics are the processor times for one
// conversation, each of the best of 60 blocks, which take turns, and their ratio.
func BenchmarkDocumentLoop(b *testing.B) { eachModel(b, benchmarkDocumentLoop) }

func benchmarkDocumentLoop(b *testing.B, files fstest.MapFS) {
	s := newDocumentSides(b, files)
	var rollouts []*rollout.Rollout
	for seed := range 16 {
		rollouts = append(rollouts, agentRollout(b, 100+seed))
	}
	var free spent
	render := func(d document) rendering {
		d.spent = free
		text, err := d.run(d.all, d.index, false)
		if err != nil {
			b.Fatal(err)
		}
		free, d.last = spent{result: d.last, fields: text.fields[:0]}, nil
		return text
	}
	for name, list := range map[string][]document{"one": s.prepare(b, rollouts[:1]), "sixteen": s.prepare(b, rollouts)} {
		times := [3]time.Duration{time.Hour, time.Hour, time.Hour}
		const rounds = 32
		for range 60 {
			for i, f := range [3]func(d document){
				func(d document) { render(d) },
				func(d document) { guarded(b, s.whole, d, &d.text) },
				func(d document) { text := render(d); guarded(b, s.whole, d, &text) },
			} {
				start := kit.CPUTime()
				for k := range rounds {
					f(list[k%len(list)])
				}
				times[i] = min(times[i], (kit.CPUTime()-start)/rounds)
			}
		}
		rendering, encoding, whole := times[0], times[1], times[2]
		b.ReportMetric(float64(rendering.Nanoseconds())/1000, name+"-render-µs")
		b.ReportMetric(float64(whole.Nanoseconds())/1000, name+"-µs")
		b.ReportMetric(float64(whole)/float64(encoding), name+"/guarded")
	}
}

// documentTimes are the processor times for one conversation: of rendering and
// guarded encoding, of guarded encoding, and of plain encoding.
type documentTimes struct{ whole, guarded, plain time.Duration }

func newDocumentTimes() documentTimes {
	return documentTimes{time.Hour, time.Hour, time.Hour}
}

func (t *documentTimes) least(o documentTimes) {
	t.whole, t.guarded, t.plain = min(t.whole, o.whole), min(t.guarded, o.guarded), min(t.plain, o.plain)
}

// documentSides are tokenizers that see the same texts.
type documentSides struct{ whole, guarded, plain *Encoder }

func newDocumentSides(b *testing.B, files fstest.MapFS) *documentSides {
	load := func() *Encoder { return newBenchEncoder(b, files, Options{}) }
	return &documentSides{load(), load(), load()}
}

func newBenchEncoder(b *testing.B, files fstest.MapFS, opts Options) *Encoder {
	m, err := LoadFS(files, ".")
	require.NoError(b, err)
	m.SpecialTokens["bos_token"] = "<s>"
	e, err := NewEncoder(m, opts)
	require.NoError(b, err)
	return e
}

// document is a conversation prepared for rendering, and its text at hand.
type document struct {
	*renderer
	text rendering
}

// prepare leaves out what the template refuses.
func (s *documentSides) prepare(b *testing.B, rollouts []*rollout.Rollout) (list []document) {
	for _, r := range rollouts {
		x, err := newRenderer(b.Context(), s.whole.model, r, Options{})
		if err != nil {
			continue
		}
		if text, err := x.run(x.all, x.index, false); err == nil {
			list = append(list, document{s.renderer(b, r), text})
		}
	}
	return list
}

// renderer has rendered nothing yet.
func (s *documentSides) renderer(b *testing.B, r *rollout.Rollout) *renderer {
	x, err := newRenderer(b.Context(), s.whole.model, r, Options{})
	require.NoError(b, err)
	return x
}

// encode measures each document. With justPrepared, it is prepared again before.
func (s *documentSides) encode(b *testing.B, list []document, justPrepared bool) documentTimes {
	var free spent
	whole := eachDocument(list, func(d *document) {
		if justPrepared {
			d.renderer = s.renderer(b, d.r)
		}
	}, func(d document) {
		d.spent = free
		text, err := d.run(d.all, d.index, false)
		if err != nil || len(text.text) != len(d.text.text) {
			b.Fatal(err, len(text.text))
		}
		guarded(b, s.whole, d, &text)
		free, d.last = spent{result: d.last, fields: text.fields[:0]}, nil // the next rendering starts afresh
	})
	return documentTimes{mean(whole), mean(s.encodeGuarded(b, list)), mean(s.encodePlain(b, list))}
}

// encodeGuarded encodes the texts at hand to columns.
func (s *documentSides) encodeGuarded(b *testing.B, list []document) []time.Duration {
	return eachDocument(list, nil, func(d document) { guarded(b, s.guarded, d, &d.text) })
}

// encodePlain encodes them without guard, offsets and columns.
func (s *documentSides) encodePlain(b *testing.B, list []document) []time.Duration {
	return eachDocument(list, nil, func(d document) {
		var out Encoding
		if err := s.plain.model.Tokenizer.Encode(&out, d.text.text, EncodeOptions{}); err != nil {
			b.Fatal(err)
		}
	})
}

// guarded encodes a text to columns. Checks by testify would take a microsecond of what is
// measured.
func guarded(b *testing.B, e *Encoder, d document, text *rendering) {
	var cols columns
	p := e.pieces(func(m int32) bool { return d.r.Messages[m].Sampled == rollout.SampledByPolicy })
	if err := p.encode(&cols, text, 0, len(text.text), AfterNothing); err != nil {
		b.Fatal(err)
	}
	e.release(p)
}

// eachDocument returns the processor times of f for all but the first document, which
// is there for the working memory, unless it is alone. before is not measured.
func eachDocument(list []document, before func(d *document), f func(d document)) []time.Duration {
	runtime.GC() // of the rubbish before
	times := make([]time.Duration, len(list))
	for i, d := range list {
		if before != nil {
			before(&d)
		}
		start := kit.CPUTime()
		f(d)
		times[i] = kit.CPUTime() - start
	}
	return times[min(1, len(list)-1):]
}

func mean(times []time.Duration) (sum time.Duration) {
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}

// recordedRollouts are those of the recorded dumps.
func recordedRollouts(b *testing.B) (list []*rollout.Rollout) {
	dumps, err := traj.Open([]string{kit.Dir(b, "data", "trajectories")}, traj.Options{})
	require.NoError(b, err)
	for r, err := range dumps.All() {
		if err == nil && len(r.Messages) > 0 {
			list = append(list, r)
		}
	}
	return list
}

// agentRollout is a tool conversation of 30 turns over Go source of the toolchain,
// about 33 kB; seed chooses the place.
func agentRollout(b *testing.B, seed int) *rollout.Rollout {
	code := toolchainSource(b)
	at := seed * 20_000 % (len(code) - 40_000)
	next := func(n int) string { at += n; return code[at-n : at] }
	r := &rollout.Rollout{ID: fmt.Sprint(seed), Tools: []rollout.Tool{rollout.Tool(`{"type":"function","function":{"name":"bash","description":"Run a shell command","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}`)}}
	add := func(m rollout.Message) { r.Messages = append(r.Messages, m) }
	add(rollout.Message{Role: rollout.RoleSystem, Content: strings.Repeat("You are a software engineering agent. ", 8)})
	for i := range 30 {
		call := fmt.Sprintf("call%05d", i)
		if i%5 == 0 {
			add(rollout.Message{Role: rollout.RoleUser, Content: "Please look at this and tell me what is wrong.\n" + next(200)})
		} else {
			add(rollout.Message{Role: rollout.RoleTool, ToolCallID: call, Name: "bash", Content: next(1200)})
		}
		m := rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "I will look at the next part now, since the error is not here. " + next(40)}
		if i%5 != 4 {
			m.ToolCalls = []rollout.ToolCall{{ID: fmt.Sprintf("call%05d", i+1), Name: "bash", Arguments: fmt.Sprintf(`{"command":"sed -n %d,%dp src/module_%d.go"}`, 40*i, 40*i+40, seed)}}
		}
		add(m)
	}
	return r
}

// toolchainSource is Go source in printable ASCII.
func toolchainSource(b *testing.B) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return r
		}
		return -1
	}, kit.GoSource(b))
}

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
)

// BenchmarkDocument compares rendering a conversation of 30 turns and encoding it
// with encoding the text that comes out, on two tokenizers with the same past: one
// that has seen nothing, one that has seen other conversations, and one that has
// seen these. The metrics are the processor time for one prepared conversation
// (least of the passes), and its ratio to guarded encoding to columns from a
// rendering at hand, and to plain encoding of the text without offsets.
func BenchmarkDocument(b *testing.B) {
	cache, err := os.UserCacheDir()
	require.NoError(b, err)
	for name, template := range map[string]string{"qwen3": "qwen3", "llama3": "llama3_1", "gptoss": "gptoss"} {
		definition, err := os.ReadFile(filepath.Join(cache, "turnpack", "tokenizers-kit", name, "tokenizer.json"))
		if err != nil {
			b.Skip("SKIPPED FOR LACK OF A TOKENIZER: run internal/oracle/tokenizers.sh to fetch them")
		}
		source, err := os.ReadFile(filepath.Join(cache, "turnpack", "templates-kit", template+".jinja"))
		if err != nil {
			b.Skip("SKIPPED FOR LACK OF TEMPLATES: run internal/oracle/templates.sh to fetch them")
		}
		files := fstest.MapFS{"tokenizer.json": {Data: definition}, "chat_template.jinja": {Data: source}}
		b.Run(name, func(b *testing.B) {
			for range b.N {
				benchmarkDocument(b, files)
			}
		})
	}
}

func benchmarkDocument(b *testing.B, files fstest.MapFS) {
	const warm, passes = 40, 9
	unseen, other, again := newDocumentTimes(), newDocumentTimes(), newDocumentTimes()
	for i := range 5 {
		s := newDocumentSides(b, files)
		unseen.least(s.encode(b, s.prepare(b, i, i+1)))
		if i == 0 {
			s.encode(b, s.prepare(b, warm, 2*warm))
			other.least(s.encode(b, s.prepare(b, 2*warm, 3*warm)))
			seen := s.prepare(b, 3*warm, 3*warm+4)
			for range passes {
				again.least(s.encode(b, seen))
			}
		}
	}
	for _, t := range []struct {
		name string
		documentTimes
	}{{"unseen", unseen}, {"new-text", other}, {"seen", again}} {
		b.ReportMetric(float64(t.whole.Microseconds()), t.name+"-µs")
		b.ReportMetric(float64(t.whole)/float64(t.guarded), t.name+"/guarded")
		b.ReportMetric(float64(t.whole)/float64(t.plain), t.name+"/plain")
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
	load := func() *Encoder {
		m, err := LoadFS(files, ".")
		require.NoError(b, err)
		m.SpecialTokens["bos_token"] = "<s>"
		e, err := NewEncoder(m, Options{})
		require.NoError(b, err)
		return e
	}
	return &documentSides{load(), load(), load()}
}

func (s *documentSides) prepare(b *testing.B, from, to int) (list []*renderer) {
	for seed := from; seed < to; seed++ {
		x, err := newRenderer(b.Context(), s.whole.model, agentRollout(b, seed), nil, time.Time{})
		require.NoError(b, err)
		list = append(list, x)
	}
	return list
}

func (s *documentSides) encode(b *testing.B, list []*renderer) documentTimes {
	texts := make([]rendering, len(list))
	ids := make([][]rollout.TokenID, len(list))
	each := func(f func(i int, x *renderer)) time.Duration {
		runtime.GC() // of the rubbish before
		start := kit.CPUTime()
		for i, x := range list {
			f(i, x)
		}
		return (kit.CPUTime() - start) / time.Duration(len(list))
	}
	guarded := func(e *Encoder, i int, x *renderer) columns {
		var cols columns
		sampled := func(m int32) bool { return x.r.Messages[m].Sampled == rollout.SampledByPolicy }
		p := e.pieces(sampled)
		require.NoError(b, p.encode(&cols, &texts[i], 0, len(texts[i].text), AfterNothing))
		e.release(p)
		return cols
	}
	return documentTimes{
		whole: each(func(i int, x *renderer) {
			text, err := x.run(x.all, x.index, false)
			require.NoError(b, err)
			texts[i], x.last = text, nil // the next rendering starts afresh
			ids[i] = guarded(s.whole, i, x).ids
		}),
		guarded: each(func(i int, x *renderer) { require.Len(b, guarded(s.guarded, i, x).ids, len(ids[i])) }),
		plain: each(func(i int, x *renderer) {
			var out Encoding
			require.NoError(b, s.plain.model.Tokenizer.Encode(&out, texts[i].text, EncodeOptions{}))
		}),
	}
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

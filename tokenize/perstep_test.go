package tokenize_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// randomRollout draws a conversation with features that make templates rewrite history: reasoning,
// tool calls, user turns in between, empty texts, text with white space at its ends, and control
// tokens typed by users.
func randomRollout(rng *rand.Rand, tools bool) *rollout.Rollout {
	words := []string{"look", " at", "\n", "the files", "</think>", "<think>", "<|im_end|>", "é", "🙂", "x = 1\n\n", " ", "done"}
	text := func(most int) string {
		s := ""
		for range rng.IntN(most + 1) {
			s += words[rng.IntN(len(words))]
		}
		return s
	}
	r := &rollout.Rollout{ID: "random"}
	if rng.IntN(2) == 0 {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleSystem, Content: "be brief" + text(3)})
	}
	r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: "task" + text(6)})
	for k := range 1 + rng.IntN(6) {
		m := rollout.Message{Role: rollout.RoleAssistant, Content: text(6), Sampled: rollout.SampledByPolicy}
		if rng.IntN(3) == 0 {
			m.Reasoning = "so" + text(4)
		}
		next := []rollout.Message{{Role: rollout.RoleUser, Content: "seen" + text(8)}}
		if tools && rng.IntN(2) == 0 {
			next = nil
			for n := range 1 + rng.IntN(5)/4 {
				call := rollout.ToolCall{ID: fmt.Sprintf("call%02d%03d", n, k), Name: []string{"bash", "ls"}[rng.IntN(2)]}
				call.Arguments = []string{fmt.Sprintf(`{"command": %q}`, text(3)), `{}`, `{"list": [1, {}], "deep": {"x": []}}`}[rng.IntN(6)/4*(1+rng.IntN(2))]
				result := rollout.Message{Role: rollout.RoleTool, Content: text(8), ToolCallID: call.ID}
				if rng.IntN(2) == 0 {
					result.Name = call.Name
				}
				m.ToolCalls, next = append(m.ToolCalls, call), append(next, result)
			}
		}
		r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages), Step: k})
		r.Messages = append(append(r.Messages, m), next...)
	}
	if tools {
		r.Tools = []rollout.Tool{rollout.Tool(`{"type":"function","function":{"name":"bash","description":"run","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}`)}
	}
	return r
}

// window hides messages from some turns, as a context manager does.
func window(rng *rand.Rand, r *rollout.Rollout) {
	head := 1
	if r.Messages[0].Role == rollout.RoleSystem {
		head = 2
	}
	for i := range r.Turns {
		m := r.Turns[i].Message
		if m <= head+2 || rng.IntN(2) == 0 {
			continue
		}
		from := head + 2*rng.IntN((m-head)/2)
		note := &rollout.Message{Role: rollout.RoleUser, Content: "some turns are left out"}
		r.Turns[i].Context.Parts = []rollout.ContextPart{{From: 0, To: head}, {From: head, To: from, Message: note}, {From: from, To: m}}
	}
}

// rows returns the sequences of r, or the error's text.
func rows(t testing.TB, m *tokenize.Model, o tokenize.Options, r *rollout.Rollout) ([]rollout.Sequence, string) {
	t.Helper()
	enc, err := tokenize.NewEncoder(m, o)
	require.NoError(t, err)
	return rowsBy(t, enc, r)
}

func rowsBy(t testing.TB, enc *tokenize.Encoder, r *rollout.Rollout) ([]rollout.Sequence, string) {
	t.Helper()
	seqs, _, err := enc.Encode(t.Context(), r)
	if err != nil {
		return nil, err.Error()
	}
	for i := range seqs {
		require.NoError(t, seqs[i].Check())
	}
	return seqs, ""
}

// checkRowsStandAlone: rows share memory and prompts build on the previous one; each row must equal
// that of a rollout that ends there, and that of its turn encoded alone.
func checkRowsStandAlone(t *testing.T, m *tokenize.Model, r *rollout.Rollout, note string) int {
	t.Helper()
	o := tokenize.Options{Mode: tokenize.PerStep}
	all, failure := rows(t, m, o, r)
	if failure != "" {
		return 0
	}
	k := 0
	for i, turn := range r.Turns {
		part := *r
		part.Messages = r.Messages[:turn.Message+1]
		part.Turns = r.Turns[:i+1]
		short, failure := rows(t, m, o, &part)
		require.Empty(t, failure, note)
		if k == len(all) || all[k].FirstTurn != i {
			require.Len(t, short, k, "%s: turn %d", note, i)
			continue
		}
		require.Len(t, short, k+1, "%s: turn %d", note, i)
		want, got := short[k], all[k]
		require.Equal(t, want, got, "%s: row %d", note, k)
		// Without earlier turns nothing is spliced, so ids may be spelled differently.
		part.Turns = slices.Clone(r.Turns[i : i+1])
		alone, failure := rows(t, m, o, &part)
		require.Empty(t, failure, note)
		require.Len(t, alone, 1)
		require.Equal(t, decode(t, m, alone[0].IDs), decode(t, m, got.IDs), "%s: row %d", note, k)
		n := completionLen(&got)
		require.Equal(t, alone[0].IDs[alone[0].Len()-n:], got.IDs[got.Len()-n:], "%s: row %d", note, k)
		require.Equal(t, alone[0].Flags[alone[0].Len()-n:], got.Flags[got.Len()-n:], "%s: row %d", note, k)
		k++
	}
	require.Len(t, all, k)
	checkMergedContexts(t, m, r, all, note)
	return k
}

// checkMergedContexts: the context and completion of a turn in a merged row equal those in the
// turn's per-step row.
func checkMergedContexts(t *testing.T, m *tokenize.Model, r *rollout.Rollout, own []rollout.Sequence, note string) {
	t.Helper()
	merged, failure := rows(t, m, tokenize.Options{}, r)
	require.Empty(t, failure, note)
	trained := 0
	for i := range merged {
		seq := &merged[i]
		for k := range seq.Turn {
			if seq.Turn[k] < 0 {
				continue
			}
			trained++
			if end := k + 1; end == seq.Len() || seq.Turn[end] != seq.Turn[k] {
				at := slices.IndexFunc(own, func(s rollout.Sequence) bool { return s.FirstTurn == int(seq.Turn[k]) })
				require.GreaterOrEqual(t, at, 0, note)
				require.Equal(t, own[at].IDs, seq.IDs[:end], "%s: turn %d", note, seq.Turn[k])
			}
		}
	}
	for i := range own {
		trained -= completionLen(&own[i])
	}
	require.Zero(t, trained, "%s: every sampled token is trained once", note)
}

func completionLen(s *rollout.Sequence) int {
	n := 0
	for _, f := range s.Flags {
		if f&rollout.FlagSampled != 0 {
			n++
		}
	}
	return n
}

func TestRowsStandAlone(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 61
	for name, m := range map[string]*tokenize.Model{"embedded": embeddedModel(t), "qwen3": qwen3(t)} {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 0
		for k := range 60 {
			r := randomRollout(rng, k%2 == 0)
			if k%3 == 0 {
				window(rng, r)
			}
			n += checkRowsStandAlone(t, m, r, fmt.Sprintf("%s, seed %d, rollout %d", name, seed, k))
		}
		require.Greater(t, n, 100, name)
	}
}

func TestRowsStandAloneUnderKitTemplates(t *testing.T) {
	kit.OneGoroutine(t)
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	const seed = 62
	rng := rand.New(rand.NewPCG(seed, 0))
	count := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		m := withTemplate(t, string(src))
		for k := range 3 {
			r := randomRollout(rng, k%2 == 0)
			if k%3 == 0 {
				window(rng, r)
			}
			count += checkRowsStandAlone(t, m, r, fmt.Sprintf("%s, seed %d, rollout %d", filepath.Base(file), seed, k))
		}
	}
	t.Logf("%d rows under %d templates", count, len(files))
	require.Greater(t, count, 4*len(files))
}

// Turns with unknown context train no token; the others have what they have without them.
func TestTurnsOfUnknownContext(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 62
	m := embeddedModel(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	left, out := 0, 0
	for k := range 80 {
		note := fmt.Sprintf("seed %d, rollout %d", seed, k)
		r := randomRollout(rng, k%2 == 0)
		if k%3 == 0 {
			window(rng, r)
		}
		all, failure := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		if failure != "" {
			continue
		}
		want := map[int]rollout.Sequence{}
		for _, s := range all {
			want[s.FirstTurn] = s
		}
		unknown := 0
		for i := range r.Turns {
			if rng.IntN(3) == 0 {
				r.Turns[i].Context = rollout.Context{Unknown: true}
				delete(want, i)
				unknown++
			}
		}
		for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged} {
			enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
			require.NoError(t, err)
			got, report, err := enc.Encode(t.Context(), r)
			require.NoError(t, err, note)
			require.Equal(t, unknown, report.UnknownContext, note)
			require.Equal(t, unknown > 0, report.FirstUnknown != nil, note)
			seen := 0
			for _, s := range got {
				require.NoError(t, s.Check(), note)
				for from := 0; from < s.Len(); from++ {
					turn := int(s.Turn[from])
					if turn < 0 {
						continue
					}
					end := from
					for end < s.Len() && int(s.Turn[end]) == turn {
						end++
					}
					one, ok := want[turn]
					require.True(t, ok, "%s: %s trains turn %d", note, mode, turn)
					require.Equal(t, decode(t, m, one.IDs), decode(t, m, s.IDs[:end]), "%s: %s turn %d", note, mode, turn)
					n := completionLen(&one)
					require.Equal(t, one.IDs[one.Len()-n:], s.IDs[from:end], note)
					for k, message := range one.Source {
						if slices.Equal(one.IDs, s.IDs[:end]) && message >= 0 && s.Source[k] >= 0 {
							require.Equal(t, message, s.Source[k], "%s: %s turn %d", note, mode, turn)
						}
					}
					seen++
					from = end - 1
				}
			}
			require.Len(t, want, seen, "%s: %s", note, mode)
			left, out = left+seen, out+unknown
		}
	}
	require.Greater(t, left, 100)
	require.Greater(t, out, 50)
}

// A reply that a template rewrites in history is encoded as text, with the ids that the whole
// prompt has; one shown as it was sampled keeps its own ids.
func TestRewrittenRepliesInContexts(t *testing.T) {
	m := templateModels(t)["lfm2_2_5"]
	for reasoning, sampled := range map[string]bool{"so": false, "": true} {
		r := &rollout.Rollout{ID: "a", Messages: append(append(say("user: one"), reply(reasoning, "\ntwo")), say("user: three", "assistant: four")...)}
		seqs, fault := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		require.Empty(t, fault)
		prompt := seqs[1].IDs[:slices.Index(seqs[1].Turn, 1)]
		text := decode(t, m, prompt)
		require.Contains(t, text, "assistant\n\ntwo")
		require.Equal(t, !sampled, slices.Equal(plainIDs(t, m, text, nil), prompt))
		require.Equal(t, sampled, slices.Equal(seqs[0].IDs, prompt[:seqs[0].Len()]))
	}
}

package lineage

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// The toy vocabulary has control tokens below word0; from word0 on, each word is one whole id or
// two ids for its halves.
const word0 = 10000

func toyText(id rollout.TokenID) string {
	if id < word0 {
		return fmt.Sprintf("<%d>", id)
	}
	w := (id - word0) / 3
	return [...]string{fmt.Sprintf("w%d.", w), fmt.Sprintf("w%d", w), "."}[(id-word0)%3]
}

func toyTexts(ids []rollout.TokenID) string {
	var s []byte
	for _, id := range ids {
		s = append(s, toyText(id)...)
	}
	return string(s)
}

func whole(w int) rollout.TokenID    { return rollout.TokenID(word0 + 3*w) }
func halves(w int) []rollout.TokenID { return []rollout.TokenID{whole(w) + 1, whole(w) + 2} }

// flat is a turn whose prompt the test expanded itself.
type flat struct {
	prompt, output []rollout.TokenID
	logprobs       []float32
	stopped        bool
	excluded       bool
}

func (f flat) full() []rollout.TokenID { return slices.Concat(f.prompt, f.output) }

func (f flat) turn() Turn {
	return Turn{Prompt: rollout.PromptIDs{Add: f.prompt}, Output: f.output, Logprobs: f.logprobs, Stopped: f.stopped, Excluded: f.excluded}
}

func plainTurns(flats []flat) []Turn {
	turns := make([]Turn, len(flats))
	for i, f := range flats {
		turns[i] = f.turn()
	}
	return turns
}

type kitCase struct {
	ID, Kind string
	Turns    []struct {
		Base, Keep    int
		Add           []rollout.TokenID
		CompletionIDs []rollout.TokenID `json:"completion_ids"`
		LP0           int
		FinishReason  string `json:"finish_reason"`
	}
	Expect struct {
		EmptyTurns []int `json:"empty_turns"`
		Sampled    int   `json:"sampled_tokens"`
		Rows       int   `json:"rows_opt"`
		PerStep    int   `json:"per_step_tokens"`
		Trie       int   `json:"trie_tokens"`
		Realign    map[string]struct{ Rows, Dropped int }
	}
	flats   []flat
	compact []Turn
}

func kitCases(t testing.TB) []kitCase {
	t.Helper()
	var cases []kitCase
	for c := range kit.Lines[kitCase](t, kit.Dir(t, "conformance", "lineage", "cases.jsonl.gz")) {
		for _, kt := range c.Turns {
			var fl flat
			var base []rollout.TokenID
			ct := Turn{Prompt: rollout.PromptIDs{Keep: kt.Keep, Add: kt.Add}}
			if kt.Base >= 0 {
				base = c.flats[kt.Base].full()
				ct.Prompt.Base = rollout.At(kt.Base)
			}
			fl.prompt = slices.Concat(base[:kt.Keep], kt.Add)
			fl.output = kt.CompletionIDs
			for k := range fl.output {
				fl.logprobs = append(fl.logprobs, -float32(kt.LP0+k+1)/4096)
			}
			fl.stopped = kt.FinishReason == "stop"
			ct.Output, ct.Logprobs, ct.Stopped = fl.output, fl.logprobs, fl.stopped
			c.flats = append(c.flats, fl)
			c.compact = append(c.compact, ct)
		}
		cases = append(cases, c)
	}
	return cases
}

// checkInvariants asserts the invariants of the design on a result, from the recorded turns only.
func checkInvariants(t testing.TB, flats []flat, res *Result) {
	t.Helper()
	seen := make([][]int, len(flats))    // times trained
	dropped := make([][]int, len(flats)) // times declared as dropped
	for i, f := range flats {
		seen[i], dropped[i] = make([]int, len(f.output)), make([]int, len(f.output))
	}
	rowTokens := 0
	for k := range res.Rows {
		row := &res.Rows[k]
		ids, mask, lps := row.AppendIDs(nil), row.AppendMask(nil), row.AppendLogprobs(nil)
		require.Len(t, ids, row.n, "row %d", k)
		require.Len(t, mask, len(ids), "row %d", k)
		require.Len(t, lps, len(ids), "row %d", k)
		rowTokens += len(ids)
		require.NotEmpty(t, row.Spans, "row %d trains nothing", k)
		claimed := make([]bool, len(ids))
		end := 0
		for _, s := range row.Spans {
			f := flats[s.Turn]
			require.Positive(t, s.Len)
			require.GreaterOrEqual(t, s.Start, end, "row %d: spans in order", k)
			end = s.Start + s.Len
			require.Equal(t, f.output[s.From:s.From+s.Len], ids[s.Start:end], "row %d turn %d", k, s.Turn)
			for x := range s.Len {
				claimed[s.Start+x] = true
				seen[s.Turn][s.From+x]++
				if f.logprobs != nil && math.Float32bits(f.logprobs[s.From+x]) != math.Float32bits(lps[s.Start+x]) {
					require.Failf(t, "logprobs are the engine's, bit for bit", "row %d turn %d token %d", k, s.Turn, s.From+x)
				}
			}
			requireContext(t, ids[:s.Start], slices.Concat(f.prompt, f.output[:s.From]), s.Subs, fmt.Sprintf("row %d turn %d", k, s.Turn))
		}
		for p := range ids {
			if claimed[p] != (mask[p] == 1) || !claimed[p] && lps[p] != 0 {
				require.Failf(t, "mask and logprobs follow the spans", "row %d position %d", k, p)
			}
		}
		checkPartition(t, flats, row, ids, mask)
	}
	for _, d := range res.Dropped {
		for x := range d.Len {
			dropped[d.Turn][d.From+x]++
		}
	}
	empty := []int{}
	nSampled, nTrained := 0, 0
	for i, f := range flats {
		if len(f.output) == 0 {
			empty = append(empty, i)
		}
		for k := range f.output {
			nSampled++
			nTrained += seen[i][k]
			if seen[i][k]+dropped[i][k] != 1 {
				require.Failf(t, "each token is trained or dropped once", "turn %d token %d: trained %d times, declared dropped %d times", i, k, seen[i][k], dropped[i][k])
			}
		}
	}
	require.Equal(t, empty, append([]int{}, res.EmptyTurns...))
	rep := res.Report
	require.Equal(t, nSampled, rep.Sampled)
	require.Equal(t, nTrained, rep.Trained)
	require.Equal(t, nSampled-nTrained, rep.Dropped)
	require.Equal(t, len(res.Rows), rep.Rows)
	require.Equal(t, rowTokens, rep.RowTokens)
	stops, lost := 0, 0
	for i, f := range flats {
		if f.stopped && len(f.output) > 0 {
			stops++
			lost += 1 - seen[i][len(f.output)-1]
		}
	}
	require.Equal(t, [2]int{stops, lost}, [2]int{rep.Stops, rep.StopsLost})
}

func requireContext(t testing.TB, row, engine []rollout.TokenID, subs []Sub, what string) {
	t.Helper()
	r, e := 0, 0
	for _, s := range subs {
		n := s.At - r
		require.GreaterOrEqual(t, n, 0, "%s: substitutions in order", what)
		require.LessOrEqual(t, s.At+s.Len, len(row), what)
		require.True(t, slices.Equal(row[r:s.At], engine[e:e+n]), "%s: undeclared difference before %d", what, s.At)
		e += n
		if s.Stop {
			require.Equal(t, [2]int{1, 1}, [2]int{s.Len, s.EngineLen}, what)
		} else {
			require.Equal(t, toyTexts(engine[e:e+s.EngineLen]), toyTexts(row[s.At:s.At+s.Len]), "%s: substitution changes text", what)
		}
		r, e = s.At+s.Len, e+s.EngineLen
	}
	require.True(t, slices.Equal(row[r:], engine[e:]), "%s: context differs from the engine's", what)
}

func checkPartition(t testing.TB, flats []flat, row *Row, ids []rollout.TokenID, mask []uint8) {
	t.Helper()
	at := 0
	for p := range row.Pieces() {
		require.Equal(t, at, p.Start)
		require.NotEmpty(t, p.IDs)
		require.True(t, slices.Equal(p.IDs, ids[at:at+len(p.IDs)]))
		for k := range p.IDs {
			if (p.Kind == segSampled) != (mask[at+k] == 1) {
				require.Failf(t, "what is sampled is trained", "position %d", at+k)
			}
		}
		if p.Kind == segSampled || p.Kind == segReplay {
			require.True(t, slices.Equal(flats[p.Turn].output[p.From:p.From+len(p.IDs)], p.IDs), "%s of turn %d from %d", p.Kind, p.Turn, p.From)
		} else {
			require.Equal(t, [2]int{-1, -1}, [2]int{p.Turn, p.From})
		}
		at += len(p.IDs)
	}
	require.Equal(t, len(ids), at)
	n := 0
	for _, s := range segments(row) {
		require.Equal(t, n, s.Start)
		n += s.Len
	}
	require.Equal(t, len(ids), n)
}

// optimum is the smallest number of exact rows, by definition: turns minus a maximum matching of
// "the full ids of i are a prefix of the prompt of j".
func optimum(flats []flat) int {
	n := 0
	succ := make([][]int, len(flats))
	for i := range flats {
		if len(flats[i].output) == 0 || flats[i].excluded {
			continue
		}
		n++
		full := flats[i].full()
		for j := range flats {
			if j != i && len(flats[j].output) > 0 && !flats[j].excluded && len(flats[j].prompt) >= len(full) && slices.Equal(flats[j].prompt[:len(full)], full) {
				succ[i] = append(succ[i], j)
			}
		}
	}
	back := make(map[int]int)
	var augment func(i int, seen map[int]bool) bool
	augment = func(i int, seen map[int]bool) bool {
		for _, j := range succ[i] {
			if seen[j] {
				continue
			}
			seen[j] = true
			if k, taken := back[j]; !taken || augment(k, seen) {
				back[j] = i
				return true
			}
		}
		return false
	}
	for i := range succ {
		if augment(i, map[int]bool{}) {
			n--
		}
	}
	return n
}

// segment is a maximal run of row positions of one kind and turn.
type segment struct {
	Kind       string
	Turn       int
	Start, Len int
}

func segments(r *Row) (out []segment) {
	for p := range r.Pieces() {
		if k := len(out) - 1; k >= 0 && out[k].Kind == p.Kind && out[k].Turn == p.Turn {
			out[k].Len += len(p.IDs)
			continue
		}
		out = append(out, segment{p.Kind, p.Turn, p.Start, len(p.IDs)})
	}
	return out
}

// Package spool keeps rows until they can be written: in memory up to a limit, beyond it in a
// temporary file.
package spool

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Row is a row, plain or run-length encoded.
type Row struct {
	// Sample is the row. With Lens, its columns have one entry per run of tokens that agree in
	// all columns but ids and log probabilities, whose entries are then unused.
	rollout.Sample
	Lens     []int32 // number of tokens in each run; nil = a plain row, one entry per token
	Tokens   []rollout.TokenID
	Logprobs []float32 // of all tokens, with Lens; nil if the sample has none
}

// Runs returns seq as a run-length encoded row. The first token, which is never trained, is a
// run by itself. ok is false if the runs are too short to save memory. The ids are not copied.
func Runs(seq *rollout.Sequence) (row Row, ok bool) {
	row.Identity, row.Tokens, row.Logprobs = seq.Identity, seq.IDs, seq.Logprob
	if !row.Extend(rollout.Columns{IDs: seq.IDs, Source: seq.Source, Flags: seq.Flags, Turn: seq.Turn, Version: seq.Version}) {
		return Row{}, false
	}
	if seq.Logprob != nil {
		row.Logprob = make([]float32, len(row.Lens))
	}
	return row, true
}

// Extend adds the runs of the next tokens to the row, and returns false if the runs are too
// short. It does not touch Tokens and Logprobs.
func (r *Row) Extend(seq rollout.Columns) bool {
	n := len(seq.IDs)
	var flags, source, turn, version int // per column, where the current run ends
	for i := 0; i < n; {
		run := Run{ID: seq.IDs[i], Flags: seq.Flags[i], Source: seq.Source[i], Turn: seq.Turn[i]}
		flags, source, turn = until(seq.Flags, i, flags), until(seq.Source, i, source), until(seq.Turn, i, turn)
		end := min(flags, source, turn)
		if seq.Version != nil {
			run.Version, version = seq.Version[i], until(seq.Version, i, version)
			end = min(end, version)
		}
		run.Len, i = end-i, end
		if r.Put(run, seq.Version != nil); !r.Long() {
			return false
		}
	}
	return true
}

// until returns the end of the run of values equal to s[i], or end if i is before it.
func until[T comparable](s []T, i, end int) int {
	if i < end {
		return end
	}
	for end = i + 1; end+32 <= len(s) && *(*[32]T)(s[end:]) == *(*[32]T)(s[end-1:]); end += 32 {
	}
	for end < len(s) && s[end] == s[i] {
		end++
	}
	return end
}

// Run describes consecutive tokens that agree in all columns but ids and log probabilities; ID
// is the id of the first.
type Run struct {
	Len                   int
	ID                    rollout.TokenID
	Flags                 rollout.Flag
	Source, Turn, Version int32
}

// Put adds a run to the row's columns, merged with the last run if they agree. versioned says
// that the row has the column Version.
func (r *Row) Put(run Run, versioned bool) {
	k := len(r.Lens) - 1
	if k > 0 && r.Flags[k] == run.Flags && r.Source[k] == run.Source && r.Turn[k] == run.Turn && (!versioned || r.Version[k] == run.Version) {
		r.Lens[k] += int32(run.Len)
		return
	}
	if k < 0 && r.Lens == nil {
		r.Lens, r.Sequence.IDs, r.Flags = make([]int32, 0, fewRuns), make([]rollout.TokenID, 0, fewRuns), make([]rollout.Flag, 0, fewRuns)
		r.Source, r.Turn = make([]int32, 0, fewRuns), make([]int32, 0, fewRuns)
	}
	for n := run.Len; n > 0; n = run.Len {
		if k < 0 {
			n = 1
		}
		k, run.Len = 0, run.Len-n
		r.Lens = append(r.Lens, int32(n))
		r.Sequence.IDs, r.Flags = append(r.Sequence.IDs, run.ID), append(r.Flags, run.Flags)
		r.Source, r.Turn = append(r.Source, run.Source), append(r.Turn, run.Turn)
		if versioned {
			r.Version = append(r.Version, run.Version)
		}
	}
}

// fewRuns is about the number of runs in a row of one turn.
const fewRuns = 12

// Long reports whether the runs so far are long enough to save memory over a plain row.
func (r *Row) Long() bool { return len(r.Lens) <= len(r.Tokens)/minRun }

// minRun is the smallest mean length of runs in a run-length encoded row.
const minRun = 16

// Finish returns r with s, the result of rollout.FinishRows for its Sample.
func (r Row) Finish(s rollout.Sample) Row {
	if r.Lens == nil {
		return Row{Sample: s}
	}
	runs := s.Sequence.Len()
	s.PromptLen = sum(r.Lens[:s.PromptLen])
	n := sum(r.Lens[:runs])
	r.Sample, r.Lens, r.Tokens = s, r.Lens[:runs], r.Tokens[:n]
	if s.Logprob == nil {
		r.Logprobs = nil
	} else {
		r.Logprobs = r.Logprobs[:n]
	}
	return r
}

func sum(lens []int32) (n int) {
	for _, k := range lens {
		n += int(k)
	}
	return n
}

// Len returns the number of tokens.
func (r *Row) Len() int {
	if r.Lens == nil {
		return r.Sample.Len()
	}
	return len(r.Tokens)
}

// Trained returns the number of tokens with a positive loss weight.
func (r *Row) Trained() (n int) {
	if r.Lens == nil {
		return r.Sample.Trained()
	}
	for i, w := range r.Weight {
		if w > 0 {
			n += int(r.Lens[i])
		}
	}
	return n
}

// Tail returns the length of the last run of trained tokens.
func (r *Row) Tail() (n int) {
	end := 0 // end of the last trained tokens
	r.Each(func(i, at, k int) {
		if r.Weight[i] <= 0 {
			return
		}
		if at != end {
			n = 0
		}
		n, end = n+k, at+k
	})
	return n
}

// MeanCredit returns the mean credit of the trained tokens, exactly the credit of each if they
// are equal, as in a row of one step. It returns 0 if no token is trained.
func (r *Row) MeanCredit() float64 {
	sum, n, first, alike := 0.0, 0, float32(0), true
	r.Each(func(i, _, k int) {
		if r.Weight[i] <= 0 {
			return
		}
		if n == 0 {
			first = r.Credit[i]
		}
		alike = alike && r.Credit[i] == first
		for range k { // the same rounding as for a plain row
			sum += float64(r.Credit[i])
		}
		n += k
	})
	if alike {
		return float64(first)
	}
	return sum / float64(n)
}

// Each calls visit for each entry of the columns, with the position of its first token and its
// number of tokens.
func (r *Row) Each(visit func(entry, at, n int)) {
	at := 0
	for i := range r.Sequence.IDs {
		n := 1
		if r.Lens != nil {
			n = int(r.Lens[i])
		}
		visit(i, at, n)
		at += n
	}
}

// MaxWhole is the greatest length of a plain row if its runs are too short: far beyond any
// model's context.
const MaxWhole = 1 << 22

// CheckWhole returns an error for a row of more than MaxWhole tokens.
func (r *Row) CheckWhole() error {
	if r.Len() <= MaxWhole {
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.Rollout}, "a row has %d tokens; rows of more than %d are written as files of the row schema alone, with one advantage for a step or more", r.Len(), MaxWhole).
		WithFix("leave long rows out (lossmask.Policy.MaxTokens, convert --max-tokens) or plan a window over the context; else choose a target whose files are Parquet and leave discounts out")
}

// Whole returns the row with one entry per token. It copies the columns of a run-length encoded
// row.
func (r *Row) Whole() rollout.Sample {
	if r.Lens == nil {
		return r.Sample
	}
	return Whole(r.Sample, r.Lens, r.Tokens, r.Logprobs)
}

// Whole returns the run-length encoded row s with one entry per token, in newly allocated
// columns.
func Whole(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprob []float32) rollout.Sample {
	n := sum(lens)
	s.IDs, s.Logprob = slices.Clone(ids), slices.Clone(logprob)
	s.Flags = spread(s.Flags, lens, n)
	s.Source, s.Turn, s.Version = spread(s.Source, lens, n), spread(s.Turn, lens, n), spread(s.Version, lens, n)
	s.Weight, s.Credit = spread(s.Weight, lens, n), spread(s.Credit, lens, n)
	return s
}

// spread returns column with entry i repeated lens[i] times, n entries in all.
func spread[T any](column []T, lens []int32, n int) []T {
	if column == nil {
		return nil
	}
	out := make([]T, 0, n)
	for i, k := range lens {
		out = appendRun(out, column[i], int(k))
	}
	return out
}

// appendRun appends n times v.
func appendRun[T any](s []T, v T, n int) []T {
	for range n {
		s = append(s, v)
	}
	return s
}

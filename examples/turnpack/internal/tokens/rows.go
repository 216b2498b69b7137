package tokens

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/rollout"
)

// Rows reads the rows of a file, of the row schema or of another program, as samples. It
// is not safe for concurrent use.
type Rows struct {
	r       *anyrows.Reader
	foreign bool
	path    string
	drift   *audit.Drift    // of the last row
	begun   error           // set if the file belongs to an incomplete set
	has     map[string]bool // columns seen in rows of another program's file
}

// OpenRows opens a file of rows: the row schema, other Parquet with token ids, a .pt file
// of slime, a rank file of prime-rl, or JSON Lines. The caller closes the result.
func OpenRows(path string) (*Rows, error) {
	r, err := anyrows.Open(path)
	if err != nil {
		return nil, err
	}
	_, own := r.Info()
	return &Rows{r: r, foreign: !own, path: path, begun: shard.Unfinished(path), has: map[string]bool{}}, nil
}

// Tokenizer returns the digest of the tokenizer that the file names, or "" if none.
func (r *Rows) Tokenizer() string {
	info, _ := r.r.Info()
	return info.Tokenizer
}

// Close closes the file.
func (r *Rows) Close() error { return r.r.Close() }

// Read returns the next row, or io.EOF after the last.
func (r *Rows) Read() (rollout.Sample, error) {
	row, err := r.r.Read()
	if err != nil {
		return rollout.Sample{}, err
	}
	var apart anyrows.Apart
	if apart.Add(row); apart.Tokens > 0 {
		r.drift = &audit.Drift{Tokens: apart.Tokens, Mean: apart.Sum / float64(apart.Tokens), Beyond: apart.Beyond, Largest: apart.Largest}
	} else {
		r.drift = nil
	}
	if row.Sample != nil {
		return *row.Sample, nil
	}
	return r.sample(row), nil
}

// Drift compares the trainer's log probabilities of the last row read with the recorded
// ones. It returns nil if the row lacks either.
func (r *Rows) Drift() *audit.Drift { return r.drift }

// At returns row i, counted from 0.
func (r *Rows) At(i int) (rollout.Sample, error) {
	for n := 0; ; n++ {
		s, err := r.Read()
		if errors.Is(err, io.EOF) {
			return s, rollout.Errorf(rollout.KindInput, rollout.Where{File: r.path}, "row %d asked for, the file has rows 0 to %d", i, n-1)
		}
		if err != nil || n == i {
			return s, err
		}
	}
}

// sample converts a row of another program. Missing values are weight 0, a NaN reward, or
// nil.
func (r *Rows) sample(row *anyrows.Row) rollout.Sample {
	n := len(row.IDs)
	s := rollout.Sample{ID: row.ID, Reward: math.NaN(), OutcomeReward: math.NaN(), PromptLen: max(0, row.PromptLen), FinishReason: row.FinishReason}
	s.Group, s.Rollout, s.IDs, s.FirstStep, s.LastStep = row.Group, row.Rollout, row.IDs, -1, -1
	s.Weight, s.Logprob, s.Credit = fit(row.Mask, n), fit(row.Logprobs, n), fit(row.Advantages, n)
	if row.Reward != nil {
		s.Reward = *row.Reward
	}
	s.Advantage = row.Advantage
	if s.Weight == nil {
		s.Weight = make([]float32, n)
	}
	if s.ID == "" {
		s.ID = fmt.Sprintf("row %d", row.Index)
	}
	if s.Status.UnmarshalText([]byte(row.Status)) != nil {
		s.Status = rollout.StatusUnknown
	}
	s.Source, s.Flags, s.Turn = row.Sources, row.Flags, make([]int32, n)
	if s.Source == nil {
		s.Source, s.Flags = make([]int32, n), make([]rollout.Flag, n)
		for t := range s.Source {
			s.Source[t] = -1
		}
	}
	for t := range s.Turn {
		s.Turn[t] = -1
	}
	for name, here := range map[string]bool{"loss_mask": row.Mask != nil, "logprobs": row.Logprobs != nil, "advantages": row.Advantages != nil,
		"reward": row.Reward != nil, "group_id": row.Group != "", "rollout_id": row.Rollout != "", "sources": row.Sources != nil} {
		r.has[name] = r.has[name] || here
	}
	return s
}

// fit returns v with exactly one value per token. Extra values are cut and missing ones
// are 0; the audit reports both.
func fit(v []float64, n int) []float32 {
	if v == nil {
		return nil
	}
	out := make([]float32, n)
	for t := range min(n, len(v)) {
		out[t] = float32(v[t])
	}
	return out
}

// Note reports that the file belongs to an incomplete set, and what another program's
// file lacks in the rows read so far. It returns "" for a complete file of the row
// schema. model is the folder of the tokenizer used.
func (r *Rows) Note(model string) string {
	var notes []string
	if r.begun != nil {
		notes = append(notes, r.begun.Error())
	}
	if r.foreign {
		notes = append(notes, r.lacks(model))
	}
	return strings.Join(notes, "\n")
}

func (r *Rows) lacks(model string) string {
	var lacks []string
	for _, name := range []string{"loss_mask", "logprobs", "advantages", "reward", "group_id", "rollout_id", "sources"} {
		if !r.has[name] {
			lacks = append(lacks, name)
		}
	}
	note := "This file is not of turnpack's row schema: " + r.r.Shape() + "."
	if len(lacks) > 0 {
		note += " It holds no " + strings.Join(lacks, ", ") + "."
	}
	if !r.has["loss_mask"] {
		note += " Without a loss mask nothing shows as trained; trainers would train every token."
	}
	if model == "" {
		note += " It does not name its tokenizer: text is spelled with the embedded one, name another with --model."
	}
	return note
}

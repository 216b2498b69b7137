package primerl

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/internal/pack"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Options says how a step is packed. SeqLen is required.
type Options struct {
	// SeqLen is the trainer's sequence length, the most tokens in a micro-batch.
	SeqLen int
	// Ranks is the number of data-parallel ranks; 0 means 1.
	Ranks int
	// PadMultiple is the trainer's pad_to_multiple_of; 0 and 1 mean no padding.
	PadMultiple int
	Force       bool
}

// Validate returns all faults of o, joined.
func (o Options) Validate() error {
	f := faults.List{Of: "primerl.Options."}
	if o.SeqLen < 1 {
		f.Add("SeqLen", "found %d, expected at least 1", o.SeqLen)
	}
	f.Count("Ranks", o.Ranks)
	if o.PadMultiple < 0 || o.PadMultiple > 1 && o.SeqLen%o.PadMultiple != 0 {
		f.Add("PadMultiple", "found %d, expected a divisor of SeqLen %d", o.PadMultiple, o.SeqLen)
	}
	return f.Err()
}

const (
	padID   = 1          // id of padding tokens
	envName = "turnpack" // environment of the other tokens; the trainer reserves "all"
)

// WriteStep packs rows and writes the files of one step under dir/rollouts. Steps are numbered
// from 1. Each file appears complete under its name, as the trainer expects.
func WriteStep(dir string, step int, rows []rollout.Sample, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Ranks == 0 {
		o.Ranks = 1
	}
	if step < 1 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "step"}, "found %d, the trainer counts from 1", step)
	}
	if len(rows) == 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "there are no rows for step %d", step).WithFix("give rows with trained tokens")
	}
	weighted, err := check(rows, &o)
	if err != nil {
		return err
	}
	sizes := make([]int, len(rows))
	for i := range rows {
		sizes[i] = rows[i].Len()
	}
	bins := pack.BestFit(sizes, o.SeqLen)
	ranks := pack.Balance(bins, o.Ranks)
	folder := filepath.Join(dir, "rollouts", fmt.Sprintf("step_%d", step))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return atomic.Locate(rollout.Where{File: folder}, err)
	}
	most := (len(bins) + o.Ranks - 1) / o.Ranks
	var files []*atomic.File
	abort := func(err error) error {
		for _, f := range files {
			err = errors.Join(err, f.Abort())
		}
		return err
	}
	for r, of := range ranks {
		path := filepath.Join(folder, fmt.Sprintf("rank_%d.bin", r))
		f, err := atomic.Create(path, o.Force)
		if err != nil {
			return abort(err)
		}
		files = append(files, f)
		// A rank without bins of its own repeats the first one as filler.
		filler := bins[0]
		if len(of) > 0 {
			filler = bins[of[0]]
		}
		w := bufio.NewWriterSize(f, 1<<16)
		e := &encoder{e: msgpack.NewEncoder(w), rows: rows, o: &o, weighted: weighted}
		e.length(most)
		for i := range most {
			if i < len(of) {
				e.batch(bins[of[i]], true)
			} else {
				e.batch(filler, false)
			}
		}
		if err := w.Flush(); err != nil {
			return abort(atomic.Locate(rollout.Where{File: path}, err))
		}
	}
	for _, f := range files {
		if err := f.Commit(); err != nil {
			return abort(err)
		}
	}
	return nil
}

// check returns an error for rows that the trainer cannot take. weighted reports whether any
// row has weights other than 0 and 1.
func check(rows []rollout.Sample, o *Options) (weighted bool, err error) {
	checker, err := export.NewChecker(export.Options{UnknownStatus: rollout.StatusCompleted,
		Columns: &export.Columns{Logprobs: true, Advantages: true, Advantage: true}})
	if err != nil {
		return false, err
	}
	for _, s := range rows {
		if err := checker.Check(&s); err != nil {
			return false, err
		}
		refuse := func(column, fix, format string, args ...any) error {
			return export.Refuse(&s, column, "target", fix, "prime-rl: %s", fmt.Sprintf(format, args...))
		}
		switch {
		case s.Len() > o.SeqLen:
			return false, refuse(col.InputIDs, "raise SeqLen or leave the row out", "the row has %d tokens, a micro-batch takes %d", s.Len(), o.SeqLen)
		case !(s.Temperature > 0):
			return false, refuse(col.Temperature, "record the temperature the rollout was sampled with", "logits are divided by the temperature, which is %g", s.Temperature)
		}
		weighted = weighted || slices.ContainsFunc(s.Weight, func(w float32) bool { return w != 0 && w != 1 })
	}
	return weighted, checker.End()
}

// encoder writes micro-batches to a writer that keeps its first error.
type encoder struct {
	e        *msgpack.Encoder
	rows     []rollout.Sample
	o        *Options
	weighted bool
}

func (e *encoder) length(n int)    { _ = e.e.EncodeArrayLen(n) }
func (e *encoder) int(v int)       { _ = e.e.EncodeInt(int64(v)) }
func (e *encoder) float(v float32) { _ = e.e.EncodeFloat32(v) }
func (e *encoder) null()           { _ = e.e.EncodeNil() }

// batch writes one micro-batch, an array of 16 fields. Without train it is a filler: the same
// shape, with nothing trained.
func (e *encoder) batch(b pack.Bin, train bool) {
	m := max(1, e.o.PadMultiple)
	total := (b.Size + m - 1) / m * m
	pads := total - b.Size
	// each calls row for every token in order, then pad for every padding position.
	each := func(row func(s *rollout.Sample, t int), pad func(i int)) {
		e.length(total)
		for _, i := range b.Items {
			s := &e.rows[i]
			for t := range s.IDs {
				row(s, t)
			}
		}
		for i := range pads {
			pad(i)
		}
	}
	zero := func(int) { e.float(0) }
	trained := func(s *rollout.Sample, v float32, t int) float32 {
		if !train || s.Weight[t] <= 0 {
			return 0
		}
		return v
	}

	e.length(16)
	each(func(s *rollout.Sample, t int) { e.int(int(s.IDs[t])) }, func(int) { e.int(padID) })
	each(func(s *rollout.Sample, t int) { _ = e.e.EncodeBool(train && s.Weight[t] > 0) }, func(int) { _ = e.e.EncodeBool(false) })
	each(func(s *rollout.Sample, t int) { e.float(trained(s, s.Credit[t], t)) }, zero)
	each(func(s *rollout.Sample, t int) {
		lp := float32(0)
		if s.Weight[t] > 0 {
			lp = s.Logprob[t]
		}
		e.float(lp)
	}, zero)
	each(func(_ *rollout.Sample, t int) { e.int(t) }, e.int)
	e.lengths(b, pads)
	each(func(s *rollout.Sample, _ int) { e.float(s.Temperature) }, func(int) { e.float(1) })
	each(func(*rollout.Sample, int) { _ = e.e.EncodeString(envName) }, func(int) { _ = e.e.EncodeString("") })
	e.lengths(b, pads)
	for range 4 { // ref_logprobs, routed_experts, mm_kwargs, mm_token_type_ids
		e.null()
	}
	if e.weighted && train {
		each(func(s *rollout.Sample, t int) { e.float(s.Weight[t]) }, zero)
	} else {
		e.null()
	}
	e.null() // ce_weights
	e.null() // ref_kl_weights
}

// lengths writes the lengths of the sequences; the last one includes the padding.
func (e *encoder) lengths(b pack.Bin, pads int) {
	e.length(len(b.Items))
	for k, i := range b.Items {
		n := e.rows[i].Len()
		if k == len(b.Items)-1 {
			n += pads
		}
		e.int(n)
	}
}

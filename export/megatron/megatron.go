package megatron

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/internal/pack"
	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// Suffix ends the names of packed files; the trainer recognises them by it.
const Suffix = ".idx.parquet"

// packsPerGroup is the number of packs in a Parquet row group, which the reader holds at a time.
const packsPerGroup = 32

// Options says how rows are packed. PackSize is required.
type Options struct {
	// PackSize is the number of positions in a pack, the trainer's packed_sequence_size.
	PackSize int
	// PadMultiple is the trainer's pad_seq_to_mult: segments are padded with EOS until (L − 1)
	// is a multiple of it. 0 and 1 mean no padding. With context parallelism CP and tensor
	// parallelism TP it is lcm(2·CP, CP·TP).
	PadMultiple int
	// EOS is the tokenizer's eos_id, the only id that the reader treats as padding.
	EOS   rollout.TokenID
	Force bool
}

// Validate returns all faults of o, joined.
func (o Options) Validate() error {
	f := faults.List{Of: "megatron.Options."}
	if o.PackSize < 1 {
		f.Add("PackSize", "found %d, expected at least 1", o.PackSize)
	}
	f.Count("PadMultiple", o.PadMultiple)
	if m := o.multiple(); o.PackSize%m != 0 {
		f.Add("PackSize", "%d is no multiple of PadMultiple %d, so the tail of a pack would be misaligned", o.PackSize, m)
	} else if m > 1 && o.PackSize%lcm(16, m) != 0 {
		f.Add("PackSize", "%d is no multiple of %d = lcm(16, PadMultiple): the reader rounds the tail to 16", o.PackSize, lcm(16, m))
	}
	if o.EOS < 0 {
		f.Add("EOS", "token id %d is negative", o.EOS)
	}
	return f.Err()
}

func (o *Options) multiple() int { return max(1, o.PadMultiple) }

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// metadata is the content of the trainer's packed_metadata_path (as a list of one): extremes
// over a file set.
type metadata struct {
	MaxSamplesPerBin int `json:"max_samples_per_bin"`
	DatasetMaxSeqlen int `json:"dataset_max_seqlen"` // largest L − 1, padding included
	MinPackedSeqlen  int `json:"min_packed_seqlen"`  // smallest number of positions used in a pack
}

func columns() []pq.Column {
	list := func(name string, k pq.Kind, enc pq.Encoding, level int) pq.Column {
		return pq.Column{Name: name, Kind: k, List: true, Encoding: enc, Level: level}
	}
	return []pq.Column{list("input_ids", pq.Int32, pq.Plain, 9), list("loss_mask", pq.Int8, pq.Dictionary, 0),
		list("seq_start_id", pq.Int32, pq.Plain, 0), list("sample_ids", pq.Text, pq.Plain, 0)}
}

// Check returns an error for a row that no pack can hold.
func (o *Options) Check(s *rollout.Sample) error {
	n := s.Len()
	refuse := func(column, fix, format string, args ...any) error {
		return export.Refuse(s, column, "target", fix, "megatron: %s", fmt.Sprintf(format, args...))
	}
	switch {
	case n < 2:
		return refuse(col.InputIDs, "leave the row out", "a row of %d tokens makes an empty segment", n)
	case len(s.Weight) != n:
		return refuse(col.LossMask, "apply a loss mask policy first", "%d weights for %d tokens", len(s.Weight), n)
	case s.Weight[0] != 0:
		return refuse(col.LossMask, "mask it", "the first token is trained and has no label position")
	}
	if used := o.positions(n); used > o.PackSize {
		return refuse(col.InputIDs, "raise PackSize or leave the row out", "the row takes %d positions, a pack has %d", used, o.PackSize)
	}
	if t := slices.IndexFunc(s.Weight, func(w float32) bool { return w != 0 && w != 1 }); t >= 0 {
		return refuse(col.Weights, "leave the weights at 0 and 1", "token %d has weight %g; the trainer cuts weights to whole numbers", t, s.Weight[t])
	}
	if o.multiple() == 1 {
		return nil
	}
	// With padding, the reader takes the final run of EOS ids for padding and masks all of it
	// after its first token.
	from := n - 1
	for from > 0 && s.IDs[from-1] == o.EOS {
		from--
	}
	for t := from + 1; t < n; t++ {
		if s.Weight[t] == 1 {
			return refuse(col.LossMask, "mask the token, cut the row before it, or pack with PadMultiple 1",
				"trained token %d follows an end-of-sequence id in the closing run of such ids, which the reader takes for padding", t)
		}
	}
	return nil
}

// positions returns the number of positions that a row of n tokens takes in a pack.
func (o *Options) positions(n int) int {
	m := o.multiple()
	return (n - 1 + m - 1) / m * m
}

// segment returns the stored form of a row: the padded ids and the mask shifted to labels.
func (o *Options) segment(s *rollout.Sample) (ids []rollout.TokenID, mask []int32, err error) {
	if err := o.Check(s); err != nil {
		return nil, nil, err
	}
	used := o.positions(s.Len())
	ids = append(make([]rollout.TokenID, 0, used+1), s.IDs...)
	for len(ids) < used+1 {
		ids = append(ids, o.EOS)
	}
	mask = make([]int32, used+1)
	for t, w := range s.Weight[1:] {
		mask[t] = int32(w)
	}
	return ids, mask, nil
}

// Write packs rows into the file path, whose name must end in Suffix. If about is not "", it
// also writes the packing metadata to that file. Rows are packed by best-fit decreasing;
// segments keep their order inside a pack.
func Write(path, about string, rows []rollout.Sample, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if !strings.HasSuffix(filepath.Base(path), Suffix) {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "the name does not end in %s", Suffix).WithFix("rename the output: the trainer finds packs by that ending")
	}
	if len(rows) == 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "there are no rows to pack").WithFix("give rows with trained tokens")
	}
	type segment struct {
		ids  []rollout.TokenID
		mask []int32
	}
	segments := make([]segment, len(rows))
	sizes := make([]int, len(rows))
	for i := range rows {
		s := &rows[i]
		ids, mask, err := o.segment(s)
		if err != nil {
			return err
		}
		segments[i] = segment{ids, mask}
		sizes[i] = len(ids) - 1
	}
	bins := pack.BestFit(sizes, o.PackSize)
	f, err := atomic.Create(path, o.Force)
	if err != nil {
		return err
	}
	err = func() error {
		w, err := pq.NewWriter(f, columns(), 0)
		if err != nil {
			return err
		}
		for group := range slices.Chunk(bins, packsPerGroup) {
			v := make([]pq.Values, 4)
			for _, b := range group {
				at := int32(0)
				for _, i := range b.Items {
					v[0].Ints = append(v[0].Ints, segments[i].ids...)
					v[1].Ints = append(v[1].Ints, segments[i].mask...)
					v[2].Ints = append(v[2].Ints, at)
					id := rows[i].ID
					if id == "" {
						id = rollout.SampleID(rows[i].Rollout, rows[i].SampleIndex)
					}
					v[3].Texts = append(v[3].Texts, id)
					at += int32(len(segments[i].ids))
				}
				n := int32(len(b.Items))
				for c, lens := range []int32{at, at, n, n} {
					v[c].Lens = append(v[c].Lens, lens)
				}
			}
			if err := w.WriteRowGroup(len(group), v); err != nil {
				return err
			}
		}
		return w.Close([]pqread.KV{{Key: "turnpack.pack_size", Value: fmt.Sprint(o.PackSize)}, {Key: "turnpack.pad_multiple", Value: fmt.Sprint(o.multiple())}})
	}()
	if err != nil {
		return errors.Join(atomic.Locate(rollout.Where{File: path}, err), f.Abort())
	}
	if err := f.Commit(); err != nil {
		return err
	}
	if about == "" {
		return nil
	}
	m := metadata{DatasetMaxSeqlen: slices.Max(sizes), MinPackedSeqlen: bins[0].Size}
	for _, b := range bins {
		m.MaxSamplesPerBin = max(m.MaxSamplesPerBin, len(b.Items))
		m.MinPackedSeqlen = min(m.MinPackedSeqlen, b.Size)
	}
	data, err := json.Marshal([]metadata{m})
	if err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{File: about}, "%v", err)
	}
	return atomic.WriteFile(about, append(data, '\n'), o.Force)
}

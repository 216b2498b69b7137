package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// Options says how a folder is divided and written. The zero value writes
// data/part-00000.parquet, data/part-00001.parquet, … of about 1 GiB.
type Options struct {
	// Export applies to every shard. Its Force is not used.
	Export export.Options
	// RowsPerShard, BytesPerShard and GroupsPerShard end a shard at the next GRPO
	// group; 0 is no limit. With none of them, BytesPerShard is 1 GiB. Bytes are
	// counted by row groups that are done. GroupsPerShard cuts exactly: a trainer
	// that wants one file a training step takes the step's number of groups.
	RowsPerShard   int
	BytesPerShard  int64
	GroupsPerShard int
	// Name gives the name of shard i as seen from the folder, with slashes; nil is
	// data/part-00000.parquet and so on, or .arrow for Arrow formats. Readers of whole
	// folders (pyarrow, pandas, polars, DuckDB, Hugging Face datasets) stumble over a
	// manifest among the data, so a name had better keep to a folder of the set.
	Name func(i int) string
	// Source says what the rows are made of and how, as a digest of the input and of
	// the options before this package. With it a later run with the same Source takes
	// the shards that are done as they are, without their rows (Kept), and finds that
	// nothing is left to do in a folder that it completed; one with another Source is
	// refused. "" compares the rows of a later run with those of the first.
	Source string
	// Maker writes the files of each shard in place of an export file.
	Maker *Maker
	// Force starts the folder anew: shards named by an old manifest or an
	// unfinished run are removed first.
	Force bool
}

// Maker writes the files of a trainer's own format, a shard at a time, from all its
// rows, which are held in memory until then.
type Maker struct {
	// ID names all that decides the bytes of the files besides the rows.
	ID string
	// Names are the files of shard i, at least one, as seen from the folder, with
	// slashes.
	Names func(i int) []string
	// Write makes them, whole or not at all, each over what a killed run left.
	Write func(i int, rows []rollout.Sample) error
}

// validate reports all faults of o at once.
func (o Options) validate() error {
	faults := []error{o.Export.Validate()}
	for name, v := range map[string]int64{"RowsPerShard": int64(o.RowsPerShard), "BytesPerShard": o.BytesPerShard, "GroupsPerShard": int64(o.GroupsPerShard)} {
		if v < 0 {
			faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options." + name}, "found %d, expected 0 (no limit) or more", v))
		}
	}
	if m := o.Maker; m != nil && (m.Names == nil || m.Write == nil || len(m.Names(0)) == 0) {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Maker"}, "expected Write, and Names that give at least one file"))
	}
	return errors.Join(faults...)
}

const defaultBytes = 1 << 30

func (o *Options) name(i int) string {
	switch {
	case o.Maker != nil:
		return o.Maker.Names(i)[0]
	case o.Name != nil:
		return o.Name(i)
	case o.Export.Format == "" || o.Export.Format == "parquet":
		return fmt.Sprintf(DataFolder+"/part-%05d.parquet", i)
	}
	return fmt.Sprintf(DataFolder+"/part-%05d.arrow", i)
}

// digest names what decides the bytes of the set besides the rows.
func (o *Options) digest() string {
	e := o.Export
	columns := "auto"
	if e.Columns != nil {
		columns = e.Columns.String()
	} else if e.Weighted {
		columns = "auto+" + col.Weights
	}
	keys := slices.Sorted(func(yield func(string) bool) {
		for k, v := range e.Metadata {
			if !yield(k + "=" + v) {
				return
			}
		}
	})
	trace := ""
	if e.Trace { // absent otherwise, so that earlier manifests keep their digest
		trace = "|trace"
	}
	if o.Maker != nil {
		trace += "|" + o.Maker.ID
	}
	format := max(0, slices.Index([]string{"parquet", "arrow", "arrow-stream"}, e.Format)) // as it was numbered
	text := fmt.Sprintf("1|%d|%s|%v|%v|%v|%q|%q|%q|%q|%d|%d|%d|0|%d|%d|%d|%s", format, columns, e.KeepTail, e.KeepUntrained, e.UnknownStatus,
		e.Tokenizer, e.Template, e.Estimator, keys, e.ZstdLevel, e.GroupTokens, e.GroupRows, o.RowsPerShard, o.BytesPerShard, o.GroupsPerShard, o.name(0)) + trace
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

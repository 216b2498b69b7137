package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Options says how a folder is divided and written. The zero value writes
// data/part-00000.parquet, data/part-00001.parquet, … of about 1 GiB each.
type Options struct {
	// Export applies to every shard. Its Force is ignored.
	Export export.Options
	// RowsPerShard, BytesPerShard and GroupsPerShard are the size from which a shard ends at
	// the next GRPO group; 0 means no limit. If all are 0, BytesPerShard is 1 GiB. Bytes are
	// counted in finished row groups. GroupsPerShard is exact: set it to the groups of a
	// training step for one file per step.
	RowsPerShard   int
	BytesPerShard  int64
	GroupsPerShard int
	// Name returns the name of shard i relative to the folder, with slashes; nil means
	// data/part-00000.parquet and so on, or .arrow for Arrow formats. Use a subfolder: readers
	// of whole folders (pyarrow, pandas, polars, DuckDB, Hugging Face datasets) fail on a
	// manifest among the data.
	Name func(i int) string
	// Source is a digest of the input and of the options of the steps before this package. If
	// it is set, a later run with the same Source keeps the finished shards without being given
	// their rows (see Kept), and has nothing left to do in a folder that is complete. A run
	// with another Source is refused. If it is "", the rows of a later run are compared with
	// those of the first.
	Source string
	// Maker writes the files of each shard instead of export.
	Maker *Maker
	// Force starts the folder anew: the shards in an old manifest or progress file are removed
	// first.
	Force bool
}

// Maker writes files in a trainer's own format, one shard at a time. All rows of the shard are
// held in memory until then.
type Maker struct {
	// ID names everything besides the rows that decides the bytes of the files.
	ID string
	// Names returns the files of shard i, at least one, relative to the folder, with slashes.
	Names func(i int) []string
	// Write writes them, each completely or not at all, and replaces what a killed run left.
	Write func(i int, rows []rollout.Sample) error
}

// validate returns all faults of o, joined.
func (o Options) validate() error {
	f := faults.List{Of: "Options."}
	f.Join(o.Export.Validate())
	f.Count("RowsPerShard", o.RowsPerShard)
	if o.BytesPerShard < 0 {
		f.Add("BytesPerShard", "found %d, expected 0 or more", o.BytesPerShard)
	}
	f.Count("GroupsPerShard", o.GroupsPerShard)
	if m := o.Maker; m != nil && (m.Names == nil || m.Write == nil || len(m.Names(0)) == 0) {
		f.Add("Maker", "expected Write, and Names that give at least one file")
	}
	return f.Err()
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

// digest returns a digest of the options that, besides the rows, decide the bytes of the set.
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
	if e.Trace { // absent otherwise, so that the digests in earlier manifests stay valid
		trace = "|trace"
	}
	if o.Maker != nil {
		trace += "|" + o.Maker.ID
	}
	format := max(0, slices.Index([]string{"parquet", "arrow", "arrow-stream"}, e.Format)) // numbering of earlier versions
	text := fmt.Sprintf("1|%d|%s|%v|%v|%v|%q|%q|%q|%q|%d|0|%d|0|%d|%d|%d|%s", format, columns, e.KeepTail, e.KeepUntrained, e.UnknownStatus,
		e.Tokenizer, e.Template, e.Estimator, keys, e.ZstdLevel, e.GroupRows, o.RowsPerShard, o.BytesPerShard, o.GroupsPerShard, o.name(0)) + trace
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Columns says which optional columns a file has; every row must have them. The others are
// written as null in every row, with their full type.
type Columns struct {
	Logprobs, Weights, Advantages, Versions, Advantage bool
}

var columnNames = []string{col.Logprobs, col.Weights, col.Advantages, col.Versions, col.Advantage}

// fields returns pointers to the fields of c in the order of columnNames.
func (c *Columns) fields() []*bool {
	return []*bool{&c.Logprobs, &c.Weights, &c.Advantages, &c.Versions, &c.Advantage}
}

// String returns the column names, separated by commas.
func (c Columns) String() string {
	var out []string
	for i, on := range c.fields() {
		if *on {
			out = append(out, columnNames[i])
		}
	}
	return strings.Join(out, ",")
}

// ColumnsNamed parses the output of String. Unknown names are ignored.
func ColumnsNamed(names string) (c Columns) {
	on := strings.Split(names, ",")
	for i, field := range c.fields() {
		*field = slices.Contains(on, columnNames[i])
	}
	return c
}

// ColumnsOf returns the optional columns that a row has. Weights counts only if a loss weight
// is neither 0 nor 1; otherwise it repeats the loss mask.
func ColumnsOf(s *rollout.Sample) Columns {
	c := columnsOf(s)
	c.Weights = slices.ContainsFunc(s.Weight, func(w float32) bool { return w != 0 && w != 1 })
	return c
}

// columnsOf is ColumnsOf without the weights.
func columnsOf(s *rollout.Sample) Columns {
	return Columns{
		Logprobs:   s.Logprob != nil,
		Advantages: s.Credit != nil,
		Versions:   s.Version != nil,
		Advantage:  s.Advantage != nil,
	}
}

// Missing returns the names of the columns in has that are not in c.
func (c Columns) Missing(has Columns) []string {
	var out []string
	for i, on := range has.fields() {
		if *on && !*c.fields()[i] {
			out = append(out, columnNames[i])
		}
	}
	return out
}

// The file formats.
const (
	parquet     = "parquet"
	arrowFile   = "arrow"
	arrowStream = "arrow-stream"
)

// Options says how rows are checked and written. The zero value is the default: schema version
// 1, every rule on, zstd.
type Options struct {
	// Format is the file format; each has the same schema: "parquet", the default; "arrow", an
	// Arrow IPC file, readable by memory mapping; or "arrow-stream", an Arrow IPC stream,
	// readable from a pipe.
	Format string
	// Columns are the optional columns of the file. If nil, they are those of the first row,
	// and a later row with more or fewer is refused.
	Columns *Columns
	// Weighted adds the column weights even if the first row has no weight other than 0 and 1,
	// as with importance weights. It has no effect if Columns is set.
	Weighted bool
	// Trace adds the columns sources and flags, which say which message each token's text is
	// from and which part of it. Every row must have both, as rows of package tokenize do.
	// Trainers do not need them.
	Trace bool
	// Force replaces an existing output.
	Force bool
	// KeepTail accepts rows with tokens after their last trained token.
	KeepTail bool
	// KeepUntrained accepts rows without a trained token. Such a file is for inspection, not
	// for training.
	KeepUntrained bool
	// UnknownStatus is written for rows whose record does not say how the rollout ended. The
	// zero value, unknown, refuses such rows.
	UnknownStatus rollout.Status
	// Tokenizer, Template and Estimator are the file's digests and its estimator record. Empty
	// digests are taken from the first row. A row with a different digest is refused in any
	// case.
	Tokenizer, Template, Estimator string
	// GroupSeq is the number of the batch in a stream (package stream), written to the file's
	// metadata; 0 means that the file is not part of a stream.
	GroupSeq int
	// Metadata is added to the file metadata; keys starting with "turnpack." are reserved.
	Metadata map[string]string
	// ZstdLevel is 1 to 22 for every column; -1 writes uncompressed pages. 0 means level 1 for
	// ids and log probabilities, which compress little, and 3 for every other column.
	ZstdLevel int
	// GroupRows is the number of rows from which a row group ends at the next GRPO group, as it
	// does from 524288 tokens on; 0 means 64. Both double after every 1024 row groups of a file,
	// at most to 16 times, which keeps its footer small. A row group ends at a rollout once it
	// has twice either size, at a row once it has four times, or, in Arrow, before a column has
	// 2 GiB of text.
	GroupRows int
}

const (
	groupTokens      = 1 << 19
	defaultGroupRows = 64
	reservedPrefix   = "turnpack."
)

// Validate returns all faults of o, joined.
func (o Options) Validate() error {
	f := faults.List{Of: "Options."}
	if !slices.Contains([]string{"", parquet, arrowFile, arrowStream}, o.Format) {
		f.Add("Format", "found %q, expected parquet, arrow or arrow-stream", o.Format)
	}
	f.Count("GroupRows", o.GroupRows)
	f.Count("GroupSeq", o.GroupSeq)
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		if strings.HasPrefix(k, reservedPrefix) {
			f.Add("Metadata", "key %q is reserved", k)
		}
	}
	if o.UnknownStatus > rollout.StatusFailed {
		f.Add("UnknownStatus", "found %v, expected a status", o.UnknownStatus)
	}
	if o.ZstdLevel < -1 || o.ZstdLevel > 22 {
		f.Add("ZstdLevel", "found %d, expected -1 (none), 0 (default) or 1 to 22", o.ZstdLevel)
	}
	return f.Err()
}

// InUse returns the names of the optional columns of a file with the columns c, separated by
// commas, including those of Trace.
func (o *Options) InUse(c Columns) string {
	names := c.String()
	if o.Trace {
		names = strings.TrimPrefix(names+","+col.Sources+","+col.Flags, ",")
	}
	return names
}

func (o *Options) defaults() {
	o.Format = cmp.Or(o.Format, parquet)
	o.GroupRows = cmp.Or(o.GroupRows, defaultGroupRows)
}

// The rules of the row schema, by their names in docs/format.md. Errors give the name and the
// number of the rule.
const (
	ruleAligned   = "aligned"   // every column has one value per token, token-aligned
	ruleTail      = "tail"      // a row ends with its last trained token
	ruleTrained   = "trained"   // a row has a trained token
	ruleColumns   = "columns"   // an optional column is present in all rows or in none
	ruleOrder     = "order"     // groups and rollouts are contiguous, is_last is exact
	rulePrompt    = "prompt"    // prompt_len is at least 1 and the first token is not trained
	ruleSampling  = "sampling"  // one temperature per row, log probabilities at most 0
	ruleAdvantage = "advantage" // a row with per-token advantages has a scalar advantage
	ruleWeights   = "weights"   // weights are finite and at least 0
	ruleIdentity  = "identity"  // ids, indices, status and metadata are well formed
	ruleTarget    = "target"    // the target trainer cannot take the row
)

// rules lists the rules in the order of docs/format.md, which numbers them.
var rules = []string{ruleAligned, ruleTail, ruleTrained, ruleColumns, ruleOrder, rulePrompt, ruleSampling, ruleAdvantage, ruleWeights, ruleIdentity, ruleTarget}

// numbered returns the number and the name of a rule, for example "rule 5 (order)".
func numbered(r string) string {
	return fmt.Sprintf("rule %d (%s)", slices.Index(rules, r)+1, r)
}

// RefusedError is the cause in the error of a refused row: the row, column and rule. errors.As
// finds it in the error that Write returns.
type RefusedError struct {
	Sample string
	Column string
	Rule   string
}

// Error returns the row, column and rule as text.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("row %q, column %s, %s", e.Sample, e.Column, numbered(e.Rule))
}

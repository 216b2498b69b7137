package export

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// Columns names the optional columns of a file that every row must have. A
// column that is not named is written as null in every row, with its full type.
type Columns struct {
	Logprobs, Weights, Advantages, Versions, Advantage bool
}

var columnNames = []string{col.Logprobs, col.Weights, col.Advantages, col.Versions, col.Advantage}

// fields are those of c in the order of columnNames.
func (c *Columns) fields() []*bool {
	return []*bool{&c.Logprobs, &c.Weights, &c.Advantages, &c.Versions, &c.Advantage}
}

// String lists the names, comma separated.
func (c Columns) String() string {
	var out []string
	for i, on := range c.fields() {
		if *on {
			out = append(out, columnNames[i])
		}
	}
	return strings.Join(out, ",")
}

// ColumnsNamed reads what String lists. Other names are passed over.
func ColumnsNamed(names string) (c Columns) {
	on := strings.Split(names, ",")
	for i, field := range c.fields() {
		*field = slices.Contains(on, columnNames[i])
	}
	return c
}

// ColumnsOf returns the optional columns that a row has. Weights counts when a
// loss weight is neither 0 nor 1: others say no more than the loss mask.
func ColumnsOf(s *rollout.Sample) Columns {
	c := columnsOf(s)
	c.Weights = slices.ContainsFunc(s.Weight, func(w float32) bool { return w != 0 && w != 1 })
	return c
}

// columnsOf leaves the weights out.
func columnsOf(s *rollout.Sample) Columns {
	return Columns{
		Logprobs:   s.Logprob != nil,
		Advantages: s.Credit != nil,
		Versions:   s.Version != nil,
		Advantage:  s.Advantage != nil,
	}
}

// Missing names the columns of has that c lacks.
func (c Columns) Missing(has Columns) []string {
	var out []string
	for i, on := range has.fields() {
		if *on && !*c.fields()[i] {
			out = append(out, columnNames[i])
		}
	}
	return out
}

// The formats of a file.
const (
	parquet     = "parquet"
	arrowFile   = "arrow"
	arrowStream = "arrow-stream"
)

// Options says how rows are checked and written. The zero value is the default:
// schema version 1, every rule on, zstd.
type Options struct {
	// Format is that of the file, in a word, each with the same schema: "parquet", also
	// ""; "arrow", a file of Arrow IPC, readable by memory mapping; "arrow-stream",
	// readable from a pipe.
	Format string
	// Columns are the optional columns of the file; nil takes those of the first
	// row, and a later row that has more or fewer is refused.
	Columns *Columns
	// Weighted gives the file the column weights though its first row may have no weight
	// other than 0 and 1, as with importance weights; Columns that are given name it.
	Weighted bool
	// Trace adds the columns sources and flags, which say of every token which
	// message and which part of it the text is from. Every row must know them, as
	// rows of package tokenize do. Files for trainers do without.
	Trace bool
	// Force replaces an output that exists.
	Force bool
	// KeepTail accepts rows with tokens after their last trained one.
	KeepTail bool
	// KeepUntrained accepts rows without a trained token. Such a file is for
	// looking at, not for training.
	KeepUntrained bool
	// UnknownStatus is written for rows whose record does not say how the rollout
	// ended; unknown, the zero value, refuses them.
	UnknownStatus rollout.Status
	// Tokenizer, Template and Estimator are the file's digests and estimator
	// record. Empty digests are taken from the first row; a row with another one is
	// refused either way.
	Tokenizer, Template, Estimator string
	// GroupSeq is the number of the batch in a stream (package stream), which the file's
	// metadata tells; 0 = it is in none.
	GroupSeq int
	// Metadata is added to the file metadata; keys starting with "turnpack." are
	// reserved.
	Metadata map[string]string
	// ZstdLevel is 1 … 22 for every column, -1 writes uncompressed pages; 0 takes
	// 1 for ids and log probabilities, which compress little, and 3 for every other column.
	ZstdLevel int
	// GroupTokens and GroupRows are where a row group is cut, at the next GRPO
	// group: 0 is 524288 tokens and 64 rows. Both double after every 1024 row
	// groups of a file, so that its footer stays small. A row group never holds
	// more than four times either.
	GroupTokens, GroupRows int
}

const (
	defaultGroupTokens = 1 << 19
	defaultGroupRows   = 64
	reservedPrefix     = "turnpack."
)

// Validate reports all faults of o at once.
func (o Options) Validate() error {
	var faults []error
	bad := func(field, format string, args ...any) {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options." + field}, format, args...))
	}
	if o.ZstdLevel < -1 || o.ZstdLevel > 22 {
		bad("ZstdLevel", "found %d, expected -1 (none), 0 (default) or 1 to 22", o.ZstdLevel)
	}
	for name, v := range map[string]int{"GroupSeq": o.GroupSeq, "GroupTokens": o.GroupTokens, "GroupRows": o.GroupRows} {
		if v < 0 {
			bad(name, "found %d, expected 0 (default) or more", v)
		}
	}
	if !slices.Contains([]string{"", parquet, arrowFile, arrowStream}, o.Format) {
		bad("Format", "found %q, expected parquet, arrow or arrow-stream", o.Format)
	}
	if o.UnknownStatus > rollout.StatusFailed {
		bad("UnknownStatus", "found %v, expected a status", o.UnknownStatus)
	}
	for k := range o.Metadata {
		if strings.HasPrefix(k, reservedPrefix) {
			bad("Metadata", "key %q is reserved", k)
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// InUse names the optional columns of a file that has c, comma separated, those
// of Trace included.
func (o *Options) InUse(c Columns) string {
	names := c.String()
	if o.Trace {
		names = strings.TrimPrefix(names+","+col.Sources+","+col.Flags, ",")
	}
	return names
}

func (o *Options) defaults() {
	o.Format = cmp.Or(o.Format, parquet)
	if o.GroupTokens == 0 {
		o.GroupTokens = defaultGroupTokens
	}
	if o.GroupRows == 0 {
		o.GroupRows = defaultGroupRows
	}
}

// The rules of the row schema by their names in docs/format.md. Errors name them and
// their numbers there.
const (
	ruleAligned   = "aligned"   // one value per token, token-aligned
	ruleTail      = "tail"      // a row ends on its last trained token
	ruleTrained   = "trained"   // a row has a trained token
	ruleColumns   = "columns"   // optional columns are there for all rows or for none
	ruleOrder     = "order"     // groups and rollouts are contiguous, is_last exact
	rulePrompt    = "prompt"    // prompt_len is at least 1 and the first token never trained
	ruleSampling  = "sampling"  // one temperature per row, log probabilities at most 0
	ruleAdvantage = "advantage" // a scalar advantage stands beside per-token ones
	ruleWeights   = "weights"   // weights are finite and at least 0
	ruleIdentity  = "identity"  // ids, indices, status and metadata are well formed
	ruleTarget    = "target"    // the trainer named as target cannot take the row
)

// rules stand in the order of docs/format.md, which numbers them.
var rules = []string{ruleAligned, ruleTail, ruleTrained, ruleColumns, ruleOrder, rulePrompt, ruleSampling, ruleAdvantage, ruleWeights, ruleIdentity, ruleTarget}

// numbered is "rule 5 (order)".
func numbered(r string) string {
	return fmt.Sprintf("rule %d (%s)", slices.Index(rules, r)+1, r)
}

// RefusedError is the cause of a refused row: which row, column and rule.
// errors.As finds it within the located error that Write returns.
type RefusedError struct {
	Sample string
	Column string
	Rule   string
}

// Error names row, column and rule.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("row %q, column %s, %s", e.Sample, e.Column, numbered(e.Rule))
}

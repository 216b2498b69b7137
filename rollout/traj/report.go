package traj

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// Print identifies what Open reads from a path: the number of files and bytes, and the
// SHA-256 (hex) of their names and contents.
type Print struct {
	Files  int
	Bytes  int64
	SHA256 string
}

// neighbours are the files that are read beside a dump, by their paths relative to its
// folder.
var neighbours = []string{"patch.diff", "meta.json", "../results.jsonl", "../base_state.json", "../results.json", "../result.json", "../verifier/reward.json", "../verifier/reward.txt"}

// Fingerprint digests what Open would read from path, a file, a folder or a pattern,
// without decompressing it. The folder except, such as an output below the input, is left
// out; "" = none.
func Fingerprint(path, except string) (Print, error) {
	p, err := source.Fingerprint(path, except, neighbours)
	return Print(p), err
}

// maxListed bounds the lists of a Report; the counts continue.
const maxListed = 1000

// Report says what was read from the input and what was not.
type Report struct {
	Files    int            // files and archive members looked at
	Rollouts int            // rollouts returned
	Formats  map[string]int // rollouts by format
	// Incomplete counts the turns among them whose recorded tokens are not what was sampled
	// (rollout.Turn.Incomplete).
	Incomplete int
	// Skipped counts the failures that were skipped; Errors lists the first 1,000.
	Skipped int
	Errors  []error
	// Ignored lists the first 1,000 of the IgnoredCount files in folders that are not
	// dumps.
	Ignored      []Ignored
	IgnoredCount int
	// Unread lists the first 1,000 of the UnreadCount ignored files from which nothing was
	// read at all, not as rewards or beside a trajectory either; hidden and repeated files
	// are left out. UnreadKinds counts them by extension. Filled at the end.
	Unread      []Ignored
	UnreadCount int
	UnreadKinds map[string]int
	// Duplicates counts rollouts left out by Dedup; Repeats lists the first 1,000.
	Duplicates int
	Repeats    []Repeat
	// Joined counts the rollouts that took a recorded reward. Unmatched lists the
	// first 1,000 of the UnmatchedCount rewards that no rollout took, Unrewarded the
	// first 1,000 of the UnrewardedCount rollouts for which none is recorded.
	Joined          int
	Unmatched       []string
	UnmatchedCount  int
	Unrewarded      []string
	UnrewardedCount int
}

// Ignored is a file that was passed over.
type Ignored struct{ Path, Why string }

// Repeat is a rollout left out because an earlier one equals it.
type Repeat struct{ Of, This rollout.Origin }

func (r *Report) skip(err error) {
	r.Skipped++
	if len(r.Errors) < maxListed {
		r.Errors = append(r.Errors, err)
	}
}

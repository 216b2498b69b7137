package lineage

import (
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/rollout"
)

// DriftPolicy says what happens where a recorded prompt does not repeat,
// token for token, what an earlier turn sampled.
type DriftPolicy uint8

// The policies. The zero value is DriftFork.
const (
	// DriftFork starts a new row at every divergence: nothing is lost and every
	// token is trained in the engine's own context. Rows are minimal.
	DriftFork DriftPolicy = iota
	// DriftSplice continues a row through a divergence that changes only the
	// spelling of the same text. Nothing is lost; later spans of the row declare
	// the substitutions in their context. Needs Options.Text.
	DriftSplice
	// DriftRealign continues a row after giving up the diverging tail of a
	// response (always with its stop token), within a token budget.
	DriftRealign
	// DriftAuto splices where it can, else realigns, else forks. Needs Options.Text.
	DriftAuto
	// DriftRefuse answers the first divergence inside a sampled response with an
	// error of kind drift that names the turn, the position and the two ids.
	DriftRefuse
)

// JoinKind says how two neighbouring turns of a row hold together.
type JoinKind uint8

// The kinds of join.
const (
	JoinExact   JoinKind = iota // the prompt begins with every id of the turn before
	JoinSplice                  // same text, declared other spelling
	JoinRealign                 // the turn before gave up its tail
)

// BreakReason says why a row starts where it does.
type BreakReason uint8

// The reasons.
const (
	// BreakRoot: no recorded turn shares a sampled prefix.
	BreakRoot BreakReason = iota
	// BreakDriftLast: the prompt diverges inside the last response of a row.
	BreakDriftLast
	// BreakDriftEarlier: it diverges inside a response that the row has gone on from.
	BreakDriftEarlier
	// BreakRewrite: it diverges inside context while it repeats elsewhere what a
	// recorded turn sampled: compaction, window, volatile header.
	BreakRewrite
	// BreakSibling: an exact predecessor exists but already has a successor:
	// retry, branch.
	BreakSibling
	// BreakBudget: a repair existed but exceeded a limit.
	BreakBudget
)

// SegmentKind names one part of the partition of a row.
type SegmentKind uint8

// The kinds of segment. Only SegSampled is trained.
const (
	SegPrompt    SegmentKind = iota // context of the row's first turn
	SegSampled                      // sampled by a turn this row owns
	SegContext                      // between two turns: separator, tool output, headers
	SegReplay                       // sampled by a turn that another row owns (or none)
	SegRealigned                    // the engine's spelling where sampled tokens were dropped
	SegScaffold                     // between two turns, written by the template: only where the caller knows it
)

// DropReason says why a sampled token is trained in no row.
type DropReason uint8

// The reasons.
const (
	DropRealign DropReason = iota // tail of a response given up by a realigned join
	DropErase                     // whole response given up by a join (Options.AllowErase)
	DropTooLong                   // beyond Options.MaxRowTokens
	DropPolicy                    // its turn was excluded by the caller
	DropFirst                     // first of a row, so that nothing predicts it: counted where rows are encoded
)

var (
	driftNames   = [...]string{"fork", "splice", "realign", "auto", "refuse"}
	joinNames    = [...]string{"exact", "splice", "realign"}
	breakNames   = [...]string{"root", "drift_last", "drift_earlier", "rewrite", "sibling", "budget"}
	segmentNames = [...]string{"prompt", "sampled", "context", "replay", "realigned", "scaffold"}
	dropNames    = [...]string{"realign", "erase", "too_long", "policy", "first"}
)

func nameOf(names []string, what string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return what + "(" + strconv.Itoa(int(i)) + ")"
}

// String returns the lower-case name: fork, splice, realign, auto, refuse.
func (p DriftPolicy) String() string { return nameOf(driftNames[:], "drift", uint8(p)) }

// String returns the lower-case name: exact, splice, realign.
func (k JoinKind) String() string { return nameOf(joinNames[:], "join", uint8(k)) }

// String returns the lower-case name: root, drift_last, drift_earlier, rewrite,
// sibling, budget.
func (r BreakReason) String() string { return nameOf(breakNames[:], "break", uint8(r)) }

// String returns the lower-case name: prompt, sampled, context, replay,
// realigned, scaffold.
func (k SegmentKind) String() string { return nameOf(segmentNames[:], "segment", uint8(k)) }

// String returns the lower-case name: realign, erase, too_long, policy, first.
func (r DropReason) String() string { return nameOf(dropNames[:], "drop", uint8(r)) }

// MarshalText writes String, so that reports read as words.
func (k JoinKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText writes String, so that reports read as words.
func (k SegmentKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText writes String, so that reports read as words.
func (r BreakReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText writes String, so that reports read as words.
func (r DropReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *JoinKind) UnmarshalText(b []byte) error { return read(k, joinNames[:], "join", b) }

// UnmarshalText reads what MarshalText writes.
func (k *SegmentKind) UnmarshalText(b []byte) error { return read(k, segmentNames[:], "segment", b) }

// UnmarshalText reads what MarshalText writes.
func (r *BreakReason) UnmarshalText(b []byte) error { return read(r, breakNames[:], "break", b) }

// UnmarshalText reads what MarshalText writes.
func (r *DropReason) UnmarshalText(b []byte) error { return read(r, dropNames[:], "drop", b) }

// read finds the value of a name.
func read[T ~uint8](to *T, names []string, what string, name []byte) error {
	i := slices.Index(names, string(name))
	if i < 0 {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{}, "%q is no name of a %s", name, what)
	}
	*to = T(i)
	return nil
}

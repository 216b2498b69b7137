package lineage

// DriftPolicy says what happens where a recorded prompt does not repeat,
// token for token, what an earlier turn sampled.
type DriftPolicy string

// The policies. The zero value is DriftFork, too.
const (
	// DriftFork starts a new row at every divergence: nothing is lost and every
	// token is trained in the engine's own context. Rows are minimal.
	DriftFork DriftPolicy = "fork"
	// DriftSplice continues a row through a divergence that changes only the
	// spelling of the same text. Nothing is lost; later spans of the row declare
	// the substitutions in their context. Needs Options.Text.
	DriftSplice DriftPolicy = "splice"
	// DriftRealign continues a row after giving up the diverging tail of a
	// response (always with its stop token), within a token budget.
	DriftRealign DriftPolicy = "realign"
	// DriftAuto splices where it can, else realigns, else forks. Needs Options.Text.
	DriftAuto DriftPolicy = "auto"
	// DriftRefuse answers the first divergence inside a sampled response with an
	// error of kind drift that names the turn, the position and the two ids.
	DriftRefuse DriftPolicy = "refuse"
)

// JoinKind says how two neighbouring turns of a row hold together.
type JoinKind string

// The kinds of join.
const (
	JoinExact   JoinKind = "exact"   // the prompt begins with every id of the turn before
	joinSplice  JoinKind = "splice"  // same text, declared other spelling
	joinRealign JoinKind = "realign" // the turn before gave up its tail
)

// BreakReason says why a row starts where it does.
type BreakReason string

// The reasons.
const (
	// breakRoot: no recorded turn shares a sampled prefix.
	breakRoot BreakReason = "root"
	// breakDriftLast: the prompt diverges inside the last response of a row.
	breakDriftLast BreakReason = "drift_last"
	// breakDriftEarlier: it diverges inside a response that the row has gone on from.
	breakDriftEarlier BreakReason = "drift_earlier"
	// breakRewrite: it diverges inside context while it repeats elsewhere what a
	// recorded turn sampled: compaction, window, volatile header.
	breakRewrite BreakReason = "rewrite"
	// breakSibling: an exact predecessor exists but already has a successor:
	// retry, branch.
	breakSibling BreakReason = "sibling"
	// breakBudget: a repair existed but exceeded a limit.
	breakBudget BreakReason = "budget"
)

// SegmentKind names one part of the partition of a row.
type SegmentKind string

// The kinds of segment. Only SegSampled is trained.
const (
	segPrompt    SegmentKind = "prompt"    // context of the row's first turn
	SegSampled   SegmentKind = "sampled"   // sampled by a turn this row owns
	segContext   SegmentKind = "context"   // between two turns: separator, tool output, headers
	segReplay    SegmentKind = "replay"    // sampled by a turn that another row owns (or none)
	segRealigned SegmentKind = "realigned" // the engine's spelling where sampled tokens were dropped
	segScaffold  SegmentKind = "scaffold"  // between two turns, written by the template: only where the caller knows it
)

// DropReason says why a sampled token is trained in no row.
type DropReason string

// The reasons.
const (
	dropRealign DropReason = "realign"  // tail of a response given up by a realigned join
	dropErase   DropReason = "erase"    // whole response given up by a join (Options.AllowErase)
	dropTooLong DropReason = "too_long" // beyond Options.MaxRowTokens
	dropPolicy  DropReason = "policy"   // its turn was excluded by the caller
	DropFirst   DropReason = "first"    // first of a row, so that nothing predicts it: counted where rows are encoded
)

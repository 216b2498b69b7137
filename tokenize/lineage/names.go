package lineage

// The words of Options.Drift.
const (
	driftFork    = "fork"
	driftSplice  = "splice"
	driftRealign = "realign"
	driftAuto    = "auto"
	driftRefuse  = "refuse"
)

// How two neighbouring turns of a row hold together: Join.Kind, Report.Joins.
const (
	joinExact   = "exact"   // the prompt begins with every id of the turn before
	joinSplice  = "splice"  // same text, declared other spelling
	joinRealign = "realign" // the turn before gave up its tail
)

// Why a row starts where it does: Row.Break, Report.Breaks.
const (
	// breakRoot: no recorded turn shares a sampled prefix.
	breakRoot = "root"
	// breakDriftLast: the prompt diverges inside the last response of a row.
	breakDriftLast = "drift_last"
	// breakDriftEarlier: it diverges inside a response that the row has gone on from.
	breakDriftEarlier = "drift_earlier"
	// breakRewrite: it diverges inside context while it repeats elsewhere what a
	// recorded turn sampled: compaction, window, volatile header.
	breakRewrite = "rewrite"
	// breakSibling: an exact predecessor exists but already has a successor:
	// retry, branch.
	breakSibling = "sibling"
	// breakBudget: a repair existed but exceeded a limit.
	breakBudget = "budget"
)

// The parts of a row: Piece.Kind. Only what was sampled is trained.
const (
	segPrompt    = "prompt"    // context of the row's first turn
	segSampled   = "sampled"   // sampled by a turn this row owns
	segContext   = "context"   // between two turns: separator, tool output, headers
	segReplay    = "replay"    // sampled by a turn that another row owns (or none)
	segRealigned = "realigned" // the engine's spelling where sampled tokens were dropped
)

// Why a sampled token is trained in no row: Drop.Reason, Report.DroppedBy.
const (
	dropRealign = "realign"  // tail of a response given up by a realigned join
	dropErase   = "erase"    // whole response given up by a join (Options.AllowErase)
	dropTooLong = "too_long" // beyond Options.MaxRowTokens
	dropPolicy  = "policy"   // its turn was excluded by the caller
	dropFirst   = "first"    // first of a row, so that nothing predicts it: counted where rows are encoded
)

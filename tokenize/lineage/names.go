package lineage

// Values of Options.Drift.
const (
	driftFork    = "fork"
	driftSplice  = "splice"
	driftRealign = "realign"
	driftAuto    = "auto"
	driftRefuse  = "refuse"
)

// Kinds of joins between two neighbouring turns of a row: Join.Kind, Report.Joins.
const (
	joinExact   = "exact"   // the prompt begins with the full ids of the turn before
	joinSplice  = "splice"  // same text in another spelling, declared
	joinRealign = "realign" // the turn before gave up its tail
)

// Reasons for a row start: Row.Break, Report.Breaks.
const (
	// breakRoot: no recorded turn shares a sampled prefix.
	breakRoot = "root"
	// breakDriftLast: the prompt diverges inside the last response of a row.
	breakDriftLast = "drift_last"
	// breakDriftEarlier: the prompt diverges inside a response after which the row continued.
	breakDriftEarlier = "drift_earlier"
	// breakRewrite: the prompt diverges inside context, but repeats elsewhere what a recorded turn
	// sampled: compaction, window, volatile header.
	breakRewrite = "rewrite"
	// breakSibling: there is an exact predecessor, but it already has a successor: retry, branch.
	breakSibling = "sibling"
	// breakBudget: there was a repair, but it exceeded a limit.
	breakBudget = "budget"
)

// Kinds of the parts of a row: Piece.Kind. Only sampled parts are trained.
const (
	segPrompt    = "prompt"    // context of the row's first turn
	segSampled   = "sampled"   // sampled by a turn this row owns
	segContext   = "context"   // between two turns: separator, tool output, headers
	segReplay    = "replay"    // sampled by a turn of another row, or of none
	segRealigned = "realigned" // the engine's spelling in place of dropped tokens
)

// Reasons for a sampled token being trained in no row: Drop.Reason, Report.DroppedBy.
const (
	dropRealign = "realign"  // tail of a response given up by a realigned join
	dropErase   = "erase"    // whole response given up by a join (Options.AllowErase)
	dropTooLong = "too_long" // beyond Options.MaxRowTokens
	dropPolicy  = "policy"   // the caller excluded its turn
	dropFirst   = "first"    // first token of a row, which nothing predicts: counted by package tokenize
)

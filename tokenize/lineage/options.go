package lineage

import (
	"cmp"
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Defaults of the limits of Options.
const (
	defaultMaxDropTokens    = 8
	defaultMaxDropFrac      = 1.0
	defaultMaxSubTokens     = 64
	defaultMaxStopLossShare = 1.0
)

// Options chooses the drift policy and its limits. The zero value forks at every divergence. A
// limit of 0 is the default, a negative one allows nothing.
type Options struct {
	// Drift says what happens if a recorded prompt does not repeat, token for token, what an
	// earlier turn sampled:
	//
	//   - "fork", also "", starts a new row at every divergence: nothing is lost and every token is
	//     trained in the engine's own context. Rows are minimal.
	//   - "splice" continues a row through a divergence that changes only the spelling of the same
	//     text. Nothing is lost; later spans of the row declare the substitutions in their context.
	//     Needs Text.
	//   - "realign" continues a row after giving up the diverging tail of a response (always with
	//     its stop token), within a token budget.
	//   - "auto" splices if it can, else realigns, else forks. Needs Text.
	//   - "refuse" returns an error of kind drift for the first divergence inside a sampled
	//     response; the error names the turn, the position and the two ids.
	Drift string

	// MaxDropTokens is the most sampled tokens that one realigned join may give up. Default 8;
	// negative allows none.
	MaxDropTokens int
	// MaxDropFrac is the largest share of a response, 0…1, that one realigned join may give up.
	// Default 1.
	MaxDropFrac float64
	// MaxSubTokens bounds the tokens that one spliced join may respell: the sum, over runs that
	// differ, of the longer side. Default 64.
	MaxSubTokens int
	// AllowErase lets a realigned join give up every sampled token of a turn. The divergence may
	// then lie before the response; MaxDropTokens counts all positions given up. Such joins are
	// made only between row ends and starts that no other repair joins. For parity with mergers
	// that delete turns.
	AllowErase bool
	// MaxStopLossShare is the largest share, 0…1, of the turns that ended by themselves which may
	// lose their stop token to realigned joins. Beyond it the cheapest realigned joins become forks
	// again. Default 1.
	MaxStopLossShare float64
	// MaxRowTokens cuts longer rows. The sampled tokens cut off are declared as "too_long": no row
	// of that length could train them in their context. 0 means no limit.
	MaxRowTokens int

	// StopRewrites maps a sampled stop id to the id that a template shows for it in history
	// (gpt-oss: <|return|> to <|end|>). The policies "splice" and "auto" treat the two as the same
	// text: the sampled id stays in the row and is trained with its own log probability, and later
	// spans declare it as a Sub, since they were sampled after the other id. Off (nil) by default.
	// See tokenize.Model.StopRewrites.
	StopRewrites map[rollout.TokenID]rollout.TokenID

	// Text returns the text of one token; "splice" and "auto" need it. The concatenated texts of a
	// token run must be the text of the run. Give control tokens a text that ordinary tokens cannot
	// spell, or a spelled-out marker is taken for the marker. Text may be called from several
	// goroutines.
	Text func(rollout.TokenID) string
}

// Validate returns every fault, joined, each of kind input and located by field.
func (o Options) Validate() error {
	var f faults.List
	switch o.Drift {
	case "", driftFork, driftSplice, driftRealign, driftAuto, driftRefuse:
	default:
		f.Add("Drift", "found %q, expected one of fork, splice, realign, auto, refuse", o.Drift)
	}
	if math.IsNaN(o.MaxDropFrac) || o.MaxDropFrac > 1 {
		f.Add("MaxDropFrac", "is %v, want a share of at most 1", o.MaxDropFrac)
	}
	if math.IsNaN(o.MaxStopLossShare) || o.MaxStopLossShare > 1 {
		f.Add("MaxStopLossShare", "is %v, want a share of at most 1", o.MaxStopLossShare)
	}
	if o.MaxRowTokens < 0 {
		f.Add("MaxRowTokens", "is %d, want 0 (no limit) or more", o.MaxRowTokens)
	}
	if o.splices() && o.Text == nil {
		f.Add("Text", "policy %s compares texts but Text is nil", o.Drift)
	}
	return f.Err()
}

func (o Options) splices() bool  { return o.Drift == driftSplice || o.Drift == driftAuto }
func (o Options) realigns() bool { return o.Drift == driftRealign || o.Drift == driftAuto }

// withDefaults replaces limits of 0 by the default and negative ones by 0.
func (o Options) withDefaults() Options {
	o.MaxDropTokens = limit(o.MaxDropTokens, defaultMaxDropTokens)
	o.MaxSubTokens = limit(o.MaxSubTokens, defaultMaxSubTokens)
	o.MaxDropFrac = limit(o.MaxDropFrac, defaultMaxDropFrac)
	o.MaxStopLossShare = limit(o.MaxStopLossShare, defaultMaxStopLossShare)
	if text := o.Text; text != nil && len(o.StopRewrites) > 0 {
		o.Text = func(id rollout.TokenID) string {
			if shown, ok := o.StopRewrites[id]; ok {
				id = shown
			}
			return text(id)
		}
	}
	return o
}

func limit[T int | float64](v, def T) T { return max(cmp.Or(v, def), 0) }

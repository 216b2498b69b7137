package verbs

import (
	"context"
	"flag"
	"fmt"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

func mergeVerb() pipe.Verb {
	return pipe.Verb{Name: "merge", Help: "merge recorded turns into rows (lineage kit cases, or plain prompt_ids)", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		drift := fs.String("drift", "fork", "fork|splice|realign|auto|refuse (also repair = auto, fail = refuse)")
		maxDrop := fs.Int("max-drop-tokens", 8, "most sampled tokens one realigned join may give up")
		maxFrac := fs.Float64("max-drop-frac", 1, "largest share of a response that a join may give up")
		maxSub := fs.Int("max-sub-tokens", 64, "most tokens one spliced join may respell")
		maxStop := fs.Float64("max-stop-loss-share", 1, "largest share of stop tokens that a rollout may lose")
		maxRow := fs.Int("max-row-tokens", 0, "cut longer rows and declare what falls off (0: no limit)")
		erase := fs.Bool("allow-erase", false, "let a join give up every sampled token of a turn")
		return func() (pipe.Run, error) {
			name := *drift
			switch name {
			case "repair":
				name = "auto"
			case "fail":
				name = "refuse"
			}
			opts := lineage.Options{Drift: name, MaxDropTokens: *maxDrop, MaxDropFrac: *maxFrac, MaxSubTokens: *maxSub,
				MaxStopLossShare: *maxStop, MaxRowTokens: *maxRow, AllowErase: *erase, Text: kitText}
			// On the command line 0 means none, in Options a negative value.
			for _, v := range []*int{&opts.MaxDropTokens, &opts.MaxSubTokens} {
				if *v == 0 {
					*v = -1
				}
			}
			for _, v := range []*float64{&opts.MaxDropFrac, &opts.MaxStopLossShare} {
				if *v == 0 {
					*v = -1
				}
			}
			if err := opts.Validate(); err != nil {
				return pipe.Run{}, err
			}
			return pipe.Run{Lines: pipe.Cases(func(_ context.Context, c *mergeCase) (any, error) { return c.merge(opts) })}, nil
		}
	}}
}

// kitText returns the text of a token in the lineage kit. Ids under 100 are control
// tokens. From 10000, each word has one id for the whole and two ids for its halves; its
// full stop belongs to the second half.
func kitText(id rollout.TokenID) string {
	const firstWord = 10000
	if id < firstWord {
		return fmt.Sprintf("<%d>", id)
	}
	word := (id - firstWord) / 3
	switch (id - firstWord) % 3 {
	case 0:
		return fmt.Sprintf("w%d.", word)
	case 1:
		return fmt.Sprintf("w%d", word)
	}
	return "."
}

type mergeTurn struct {
	Base       *int              `json:"base"`
	Keep       int               `json:"keep"`
	Add        []rollout.TokenID `json:"add"`
	PromptIDs  []rollout.TokenID `json:"prompt_ids"`
	Completion []rollout.TokenID `json:"completion_ids"`
	Logprobs   []float32         `json:"logprobs"`
	LP0        *int              `json:"lp0"`
	Finish     string            `json:"finish_reason"`
	Exclude    bool              `json:"exclude"`
}

// turn converts a kit turn. A seed lp0 stands for log probabilities -(lp0+k+1)/4096.
func (t mergeTurn) turn() lineage.Turn {
	out := lineage.Turn{Output: t.Completion, Logprobs: t.Logprobs, Stopped: t.Finish == "stop", Excluded: t.Exclude}
	switch {
	case t.Base == nil:
		out.Prompt.Add = t.PromptIDs
	case *t.Base < 0:
		out.Prompt = rollout.PromptIDs{Keep: t.Keep, Add: t.Add}
	default:
		out.Prompt = rollout.PromptIDs{Base: rollout.At(*t.Base), Keep: t.Keep, Add: t.Add}
	}
	if t.Logprobs == nil && t.LP0 != nil {
		out.Logprobs = make([]float32, len(t.Completion))
		for k := range out.Logprobs {
			out.Logprobs[k] = -float32(*t.LP0+k+1) / 4096
		}
	}
	return out
}

type mergeRow struct {
	InputIDs []rollout.TokenID `json:"input_ids"`
	LossMask []int             `json:"loss_mask"`
	Logprobs []float64         `json:"logprobs"`
	Spans    []mergeSpan       `json:"spans"`
	Break    string            `json:"break"`
}

type mergeSpan struct {
	Turn  int      `json:"turn"`
	From  int      `json:"from"`
	Start int      `json:"start"`
	Len   int      `json:"len"`
	Subs  [][3]int `json:"subs,omitempty"`
}

type mergeDrop struct {
	Turn   int    `json:"turn"`
	From   int    `json:"from"`
	Len    int    `json:"len"`
	Reason string `json:"reason"`
}

type mergeAnswer struct {
	Rows       []mergeRow     `json:"rows"`
	Dropped    []mergeDrop    `json:"dropped"`
	EmptyTurns []int          `json:"empty_turns"`
	Report     lineage.Report `json:"report"`
	Error      *string        `json:"error"`
}

type mergeCase struct {
	Turns []mergeTurn `json:"turns"`
}

func (c *mergeCase) merge(opts lineage.Options) (any, error) {
	if c.Turns == nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "turns"}, "a merge case lists its turns, this one has none")
	}
	turns := make([]lineage.Turn, len(c.Turns))
	for i, t := range c.Turns {
		turns[i] = t.turn()
	}
	res, err := lineage.Merge(turns, opts)
	if err != nil {
		return nil, err
	}
	ans := mergeAnswer{Rows: []mergeRow{}, Dropped: []mergeDrop{}, EmptyTurns: append([]int{}, res.EmptyTurns...), Report: res.Report}
	for k := range res.Rows {
		ans.Rows = append(ans.Rows, newMergeRow(&res.Rows[k]))
	}
	for _, d := range res.Dropped {
		ans.Dropped = append(ans.Dropped, mergeDrop(d))
	}
	return ans, nil
}

func newMergeRow(r *lineage.Row) mergeRow {
	out := mergeRow{InputIDs: r.AppendIDs(nil), Break: string(r.Break)}
	for _, m := range r.AppendMask(nil) {
		out.LossMask = append(out.LossMask, int(m))
	}
	// float64 prints the shortest decimal of the exact value; float32 would round it.
	for _, lp := range r.AppendLogprobs(nil) {
		out.Logprobs = append(out.Logprobs, float64(lp))
	}
	for _, s := range r.Spans {
		span := mergeSpan{Turn: s.Turn, From: s.From, Start: s.Start, Len: s.Len}
		for _, sub := range s.Subs {
			span.Subs = append(span.Subs, [3]int{sub.At, sub.Len, sub.EngineLen})
		}
		out.Spans = append(out.Spans, span)
	}
	return out
}

package verbs

import (
	"context"
	"encoding/json"
	"flag"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/internal/swerl"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

type seedCase struct {
	ID     string `json:"id"`
	Config struct {
		MaxContext int     `json:"max_context_len"`
		MaxInput   int     `json:"max_input_tokens"`
		HeadRatio  float64 `json:"head_ratio"`
	} `json:"config"`
	Messages []swerl.Message `json:"messages"`
	Reward   json.RawMessage `json:"reward"` // the outcome, repeated in the samples
}

type seedStep struct {
	swerl.Step
	Reward json.RawMessage `json:"reward,omitempty"`
}

type seedDefault struct {
	Response string `json:"response"`
	swerl.Sample
	Reward json.RawMessage `json:"reward,omitempty"`
}

type seedAnswer struct {
	PromptIDs   []rollout.TokenID `json:"prompt_ids"`
	ResponseIDs []rollout.TokenID `json:"response_ids"`
	LossMask    []int8            `json:"loss_mask"`
	Spans       [][2]int          `json:"assistant_spans"`
	Default     seedDefault       `json:"default_sample"`
	Count       int               `json:"n_steps"`
	Steps       []seedStep        `json:"steps"`
}

// seedParityVerb encodes conversations like swe-rl@0d034dd.
func seedParityVerb() pipe.Verb {
	return pipe.Verb{Name: "seed-parity", Help: "what swe-rl@0d034dd made of a conversation (seed_parity kit cases)", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		dir := fs.String("model", "", "model folder")
		return func() (pipe.Run, error) {
			model, err := tokenize.Load(*dir, tokenize.LoadOptions{})
			if err != nil {
				return pipe.Run{}, err
			}
			enc, err := tokenize.NewEncoder(model, tokenize.Options{Specials: "parity"})
			if err != nil {
				return pipe.Run{}, err
			}
			return pipe.Run{Lines: pipe.Cases(func(ctx context.Context, c *seedCase) (any, error) { return c.encode(ctx, model, enc) })}, nil
		}
	}}
}

func (c *seedCase) encode(ctx context.Context, model *tokenize.Model, enc *tokenize.Encoder) (any, error) {
	r := &rollout.Rollout{ID: c.ID, Messages: make([]rollout.Message, len(c.Messages))}
	for i, m := range c.Messages {
		r.Messages[i] = rollout.Message{Role: m.Role, Content: m.Content}
		if r.Messages[i].Role == rollout.RoleAssistant {
			r.Messages[i].Sampled = rollout.SampledByPolicy
			r.Turns = append(r.Turns, rollout.Turn{Message: i, Step: len(r.Turns)})
		}
	}
	if c.Config.MaxInput > 0 {
		contexts, _, err := ctxwindow.Plan(ctx, r, ctxwindow.SWERLPolicy{Budget: c.Config.MaxInput, Head: c.Config.HeadRatio}, enc.Counter(r))
		if err != nil {
			return nil, err
		}
		if r, err = ctxwindow.Apply(r, contexts); err != nil {
			return nil, err
		}
	}
	res, err := swerl.Encode(ctx, model, r, swerl.Options{MaxContext: c.Config.MaxContext})
	if err != nil {
		return nil, err
	}
	out := seedAnswer{PromptIDs: res.PromptIDs, ResponseIDs: res.ResponseIDs, LossMask: res.LossMask, Spans: pipe.Spans(res.LossMask), Count: len(res.Steps),
		Default: seedDefault{res.Response, res.Default, c.Reward},
		Steps:   make([]seedStep, len(res.Steps))}
	for i, s := range res.Steps {
		out.Steps[i] = seedStep{s, c.Reward}
	}
	return out, nil
}

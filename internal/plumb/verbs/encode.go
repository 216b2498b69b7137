package verbs

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// encodeRow is one sequence with its loss mask.
type encodeRow struct {
	InputIDs  []rollout.TokenID `json:"input_ids"`
	LossMask  []int8            `json:"loss_mask"`
	Logprobs  []float32         `json:"logprobs"`
	Source    []int32           `json:"source"`
	Turn      []int32           `json:"turn"`
	FlagBits  []int             `json:"flags"`
	FirstTurn int               `json:"first_turn"`
	LastTurn  int               `json:"last_turn"`
	Fidelity  string            `json:"fidelity"`
}

type encodeAnswer struct {
	Rows   []encodeRow     `json:"rows"`
	Report tokenize.Report `json:"report"`
}

// encodeVerb encodes rollouts in the native format as rows.
func encodeVerb() pipe.Verb {
	return pipe.Verb{Name: "encode", Help: "native rollout line to token rows with loss masks", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		dir := fs.String("model", "", "model folder")
		template := fs.String("template", "", "chat template of the folder by its name, or a file in its place")
		mode := fs.String("mode", "merged", "merged, perstep or whole")
		specials := fs.String("specials", "guard", "guard or parity")
		edges := fs.String("edges", "sampled", "sampled or document")
		by := fs.String("prompts-by", "record", "what made the prompts: record, vllm, sglang or transformers")
		drift := fs.String("drift", "fork", "drift policy of merged rows")
		window := fs.String("window", "none", "context window: none, headtail:N, tail:N, refill:N, swe-rl:N")
		return func() (pipe.Run, error) {
			model, err := modelfolder.Load(*dir, *template, "")
			if err != nil {
				return pipe.Run{}, err
			}
			o := tokenize.Options{Mode: tokenize.Mode(*mode), Specials: *specials, Edges: *edges,
				PromptsBy: *by, Drift: lineage.Options{Drift: *drift}}
			enc, err := tokenize.NewEncoder(model, o)
			if err != nil {
				return pipe.Run{}, err
			}
			policy, err := ctxwindow.Parse(*window)
			if err != nil {
				return pipe.Run{}, err
			}
			return pipe.Run{Lines: func(ctx context.Context, line []byte) (any, error) {
				var r *rollout.Rollout
				err := io.EOF
				for r, err = range jsonl.Read(bytes.NewReader(line), jsonl.Options{}) {
					break
				}
				if err != nil {
					return nil, err
				}
				contexts, _, err := ctxwindow.Plan(ctx, r, policy, enc.Counter(r))
				if err != nil {
					return nil, err
				}
				if r, err = ctxwindow.Apply(r, contexts); err != nil {
					return nil, err
				}
				answer, err := encodeLine(ctx, enc, r)
				if errors.Is(err, rollout.KindInternal) { // the input rollout is invalid, which is not an internal error
					if faults, ok := r.Validate().(interface{ Unwrap() []error }); ok {
						return nil, faults.Unwrap()[0]
					}
				}
				return answer, err
			}}, nil
		}
	}}
}

func encodeLine(ctx context.Context, enc *tokenize.Encoder, r *rollout.Rollout) (any, error) {
	seqs, report, err := enc.Encode(ctx, r)
	if err != nil {
		return nil, err
	}
	out := encodeAnswer{Rows: make([]encodeRow, 0, len(seqs)), Report: report}
	for _, seq := range seqs {
		if seq, err = lossmask.Apply(seq, lossmask.Policy{}); err != nil {
			return nil, err
		}
		row := encodeRow{InputIDs: seq.IDs, Logprobs: seq.Logprob, Source: seq.Source, Turn: seq.Turn,
			LossMask: make([]int8, seq.Len()), FlagBits: make([]int, seq.Len()), FirstTurn: seq.FirstTurn, LastTurn: seq.LastTurn, Fidelity: string(seq.Fidelity)}
		for i, w := range seq.Weight {
			if w > 0 {
				row.LossMask[i] = 1
			}
			row.FlagBits[i] = int(seq.Flags[i])
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

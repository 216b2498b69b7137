package rewards

import (
	"strconv"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/reward/weights"
)

// weightsCase is one line of the loss weights in the advantages kit.
type weightsCase struct {
	Mode             string   `json:"mode"`
	Masks            [][]int8 `json:"masks"`
	GlobalBatchSize  int      `json:"global_batch_size"`
	BatchTokens      float64  `json:"batch_num_tokens"`
	ScaleFactor      float64  `json:"loss_scale_factor"`
	MicroBatchSize   int      `json:"micro_batch_size"`
	MaxSeqLen        int      `json:"max_seq_len"`
	PromptBoundaries [][2]int `json:"prompt_boundaries"`
	RolloutIDs       []int    `json:"rollout_ids"`
	RolloutMaskSums  []int    `json:"rollout_mask_sums"`
}

func weightsLine(c *weightsCase) (any, error) {
	a, ok := weights.Preset(c.Mode)
	if !ok {
		return nil, pipe.Unsupported("loss aggregation " + c.Mode)
	}
	rows := c.rows()
	a.Sequences, a.Tokens = c.GlobalBatchSize, int(c.BatchTokens)
	if a.MicroBatch > 0 {
		a.MicroBatch = max(c.MicroBatchSize, 1)
	}
	if a.Mode == "constant" {
		if a.Divisor = c.ScaleFactor; a.CountEmpty {
			a.Divisor = float64(c.MaxSeqLen)
		}
	}
	perRow, err := weights.PerRow(rows, a)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(rows))
	for i, mask := range c.Masks {
		out[i] = make([]float64, len(mask))
		for t, m := range mask {
			if m != 0 {
				out[i][t] = perRow[i]
			}
		}
	}
	return map[string]any{"weights": out}, nil
}

func (c *weightsCase) rows() []weights.Row {
	rows := make([]weights.Row, len(c.Masks))
	for i, mask := range c.Masks {
		rows[i] = weights.Row{Length: len(mask), Rollout: strconv.Itoa(i), Prompt: "row " + strconv.Itoa(i)}
		for _, m := range mask {
			if m != 0 {
				rows[i].Trained++
			}
		}
		if i < len(c.RolloutIDs) {
			rows[i].Rollout = strconv.Itoa(c.RolloutIDs[i])
		}
		rows[i].RolloutTrained = at(c.RolloutMaskSums, i)
		for p, b := range c.PromptBoundaries {
			if i >= b[0] && i < b[1] {
				rows[i].Prompt = strconv.Itoa(p)
			}
		}
	}
	return rows
}

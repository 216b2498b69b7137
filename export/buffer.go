package export

import (
	"slices"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/rollout"
)

// buffer holds the rows of one row group, column by column.
type buffer struct {
	cols         [numColumns]pq.Values
	rows, tokens int
}

func (b *buffer) reset() {
	b.rows, b.tokens = 0, 0
	for i := range b.cols {
		b.cols[i].Reset()
	}
}

// add copies a checked row.
func (b *buffer) add(s *rollout.Sample, c Columns, status rollout.Status) {
	b.rows++
	b.tokens += s.Len()
	b.text(iSampleID, s.ID)
	b.text(iGroupID, s.Group)
	b.text(iRolloutID, s.Rollout)
	b.int(iRolloutIndex, s.RolloutIndex)
	b.int(iSampleIndex, s.SampleIndex)
	b.cols[iIsLast].Bools = append(b.cols[iIsLast].Bools, s.IsLast)
	b.int(iStepFirst, s.FirstStep)
	b.int(iStepLast, s.LastStep)
	b.int(iPromptLen, s.PromptLen)
	b.tokensOf(s, c)
	b.float(iReward, s.Reward)
	b.float(iOutcomeReward, s.OutcomeReward)
	b.optional(iStepReward, s.StepReward)
	advantage := s.Advantage
	if !c.Advantage {
		advantage = nil
	}
	b.optional(iAdvantage, advantage)
	b.text(iStatus, status.String())
	b.text(iFinishReason, s.FinishReason)
	b.textOrNull(iMaskReason, s.MaskReason)
	b.cols[iRolloutMaskSum].Longs = append(b.cols[iRolloutMaskSum].Longs, s.RolloutMaskSum)
	b.cols[iTemperature].Floats = append(b.cols[iTemperature].Floats, s.Temperature)
	b.textOrNull(iMetadata, string(s.Metadata))
}

// tokensOf copies the per-token columns. Log probabilities and advantages are
// zero where nothing is trained, whatever the sequence holds there.
func (b *buffer) tokensOf(s *rollout.Sample, c Columns) {
	n := int32(s.Len())
	length := func(i int, on bool) bool {
		if !on {
			b.cols[i].Lens = append(b.cols[i].Lens, -1)
			return false
		}
		b.cols[i].Lens = append(b.cols[i].Lens, n)
		return true
	}
	length(iInputIDs, true)
	b.cols[iInputIDs].Ints = append(b.cols[iInputIDs].Ints, s.IDs...)
	length(iLossMask, true)
	mask := slices.Grow(b.cols[iLossMask].Bytes, s.Len())
	at := len(mask)
	for _, w := range s.Weight {
		var m int8
		if w > 0 {
			m = 1
		}
		mask = append(mask, m)
	}
	b.cols[iLossMask].Bytes = mask
	row := mask[at:]
	if length(iLogprobs, c.Logprobs) {
		b.cols[iLogprobs].Floats = appendTrained(b.cols[iLogprobs].Floats, s.Logprob, row)
	}
	if length(iWeights, c.Weights) {
		b.cols[iWeights].Floats = append(b.cols[iWeights].Floats, s.Weight...)
	}
	if length(iAdvantages, c.Advantages) {
		b.cols[iAdvantages].Floats = appendTrained(b.cols[iAdvantages].Floats, s.Credit, row)
	}
	if length(iVersions, c.Versions) {
		b.cols[iVersions].Ints = append(b.cols[iVersions].Ints, s.Version...)
	}
}

// trace copies where the tokens of a checked row are from.
func (b *buffer) trace(s *rollout.Sample) {
	n := int32(s.Len())
	sources, flags := &b.cols[iSources], &b.cols[iFlags]
	sources.Lens, flags.Lens = append(sources.Lens, n), append(flags.Lens, n)
	sources.Ints = append(sources.Ints, s.Source...)
	flags.Bytes = slices.Grow(flags.Bytes, s.Len())
	for _, f := range s.Flags {
		flags.Bytes = append(flags.Bytes, int8(f))
	}
}

// appendTrained copies v where mask is 1 and puts +0 elsewhere.
func appendTrained(dst, v []float32, mask []int8) []float32 {
	at := len(dst)
	dst = append(dst, v...)
	for t, m := range mask {
		if m == 0 {
			dst[at+t] = 0
		}
	}
	return dst
}

func (b *buffer) text(i int, s string) { b.cols[i].Texts = append(b.cols[i].Texts, s) }

func (b *buffer) textOrNull(i int, s string) {
	b.text(i, s)
	b.cols[i].Nulls = append(b.cols[i].Nulls, s == "")
}

func (b *buffer) int(i, v int) { b.cols[i].Ints = append(b.cols[i].Ints, int32(v)) }

func (b *buffer) float(i int, v float64) {
	b.cols[i].Floats = append(b.cols[i].Floats, float32(v))
}

func (b *buffer) optional(i int, v *float64) {
	b.cols[i].Nulls = append(b.cols[i].Nulls, v == nil)
	if v == nil {
		b.float(i, 0)
		return
	}
	b.float(i, *v)
}

package export

import (
	"math"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/rollout"
)

// buffer holds the rows of one row group, column by column.
type buffer struct {
	cols         [numColumns]pq.Values
	rows, tokens int
	texts        [numColumns]int // bytes of the texts of each column
}

func (b *buffer) reset() {
	b.rows, b.tokens = 0, 0
	clear(b.texts[:])
	for i := range b.cols {
		b.cols[i].Reset()
	}
}

// tokens holds the ids and log probabilities of a row, one per token. lens[i] is the number of
// tokens that entry i of the row's other columns covers; nil means one token per entry.
type tokens struct {
	lens     []int32
	ids      []rollout.TokenID
	logprobs []float32
}

func tokensOf(s *rollout.Sample) *tokens { return &tokens{nil, s.IDs, s.Logprob} }

// add copies a row that has passed the checks.
func (b *buffer) add(s *rollout.Sample, t *tokens, c Columns, status rollout.Status) {
	b.rows++
	b.tokens += len(t.ids)
	b.text(iSampleID, s.ID)
	b.text(iGroupID, s.Group)
	b.text(iRolloutID, s.Rollout)
	b.int(iRolloutIndex, s.RolloutIndex)
	b.int(iSampleIndex, s.SampleIndex)
	last := 0
	if s.IsLast {
		last = 1
	}
	b.int(iIsLast, last)
	b.int(iStepFirst, s.FirstStep)
	b.int(iStepLast, s.LastStep)
	b.int(iPromptLen, s.PromptLen)
	b.perToken(s, t, c)
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

// perToken copies the per-token columns. Log probabilities and advantages are written as zero
// on untrained tokens, whatever the row holds there.
func (b *buffer) perToken(s *rollout.Sample, t *tokens, c Columns) {
	length := func(i int, on bool) bool {
		if !on {
			b.cols[i].Lens = append(b.cols[i].Lens, -1)
			return false
		}
		b.cols[i].Lens = append(b.cols[i].Lens, int32(len(t.ids)))
		return true
	}
	length(iInputIDs, true)
	ids := &b.cols[iInputIDs]
	if len(t.ids) > hugeRow && len(ids.Ints) == 0 && t.lens != nil { // the writer owns t.ids
		ids.Ints = t.ids
	} else {
		ids.Ints = append(ids.Ints, t.ids...)
	}
	length(iLossMask, true)
	mask := &b.cols[iLossMask]
	trainedRuns(s.Weight, t.lens, func(from, to int, n int32, trained bool) {
		m := int32(0)
		if trained {
			m = 1
		}
		mask.Ints, mask.Runs = append(mask.Ints, m), append(mask.Runs, n)
	})
	if length(iLogprobs, c.Logprobs) {
		lp := &b.cols[iLogprobs]
		lp.Floats = append(lp.Floats, t.logprobs...)
		at := len(lp.Floats) - len(t.logprobs)
		trainedRuns(s.Weight, t.lens, func(_, _ int, n int32, trained bool) {
			if !trained {
				clear(lp.Floats[at : at+int(n)])
			}
			at += int(n)
		})
	}
	if length(iWeights, c.Weights) {
		floatRuns(&b.cols[iWeights], s.Weight, t.lens)
	}
	if length(iAdvantages, c.Advantages) {
		to := &b.cols[iAdvantages]
		trainedRuns(s.Weight, t.lens, func(from, end int, n int32, trained bool) {
			if trained {
				floatRuns(to, s.Credit[from:end], t.counts(from, end))
			} else {
				to.Floats, to.Runs = append(to.Floats, 0), append(to.Runs, n)
			}
		})
	}
	if length(iVersions, c.Versions) {
		to := &b.cols[iVersions]
		to.Ints, to.Runs = appendRuns(to.Ints, to.Runs, s.Version, t.lens, func(v int32) int32 { return v })
	}
}

// trace copies the columns sources and flags of a row that has passed the checks.
func (b *buffer) trace(s *rollout.Sample, t *tokens) {
	n := int32(len(t.ids))
	sources, flags := &b.cols[iSources], &b.cols[iFlags]
	sources.Lens, flags.Lens = append(sources.Lens, n), append(flags.Lens, n)
	sources.Ints, sources.Runs = appendRuns(sources.Ints, sources.Runs, s.Source, t.lens, func(v int32) int32 { return v })
	flags.Ints, flags.Runs = appendRuns(flags.Ints, flags.Runs, s.Flags, t.lens, func(f rollout.Flag) int32 { return int32(f) })
}

// counts returns the token counts of entries [from, to), or nil if each entry covers one token.
func (t *tokens) counts(from, to int) []int32 {
	if t.lens == nil {
		return nil
	}
	return t.lens[from:to]
}

// trainedRuns calls visit for each maximal range of entries that are all trained or all
// untrained, with the number of tokens in it.
func trainedRuns(weights []float32, lens []int32, visit func(from, to int, n int32, trained bool)) {
	for i := 0; i < len(weights); {
		from, trained := i, weights[i] > 0
		for i++; i < len(weights) && (weights[i] > 0) == trained; i++ {
		}
		visit(from, i, count(lens, from, i), trained)
	}
}

// appendRuns merges equal neighbours of column into runs, and appends of(value) and the token
// count of each run.
func appendRuns[V comparable, T any](values []T, runs []int32, column []V, lens []int32, of func(V) T) ([]T, []int32) {
	for i := 0; i < len(column); {
		from, v := i, column[i]
		for i++; i < len(column) && column[i] == v; i++ {
		}
		values, runs = append(values, of(v)), append(runs, count(lens, from, i))
	}
	return values, runs
}

// floatRuns is appendRuns for floats, compared by bit pattern so that 0 and -0 stay distinct.
func floatRuns(to *pq.Values, column []float32, lens []int32) {
	bits := arrow.Uint32Traits.CastFromBytes(arrow.Float32Traits.CastToBytes(column))
	to.Floats, to.Runs = appendRuns(to.Floats, to.Runs, bits, lens, math.Float32frombits)
}

// count returns the number of tokens that entries [from, to) cover.
func count(lens []int32, from, to int) int32 {
	if lens == nil {
		return int32(to - from)
	}
	n := int32(0)
	for _, k := range lens[from:to] {
		n += k
	}
	return n
}

func (b *buffer) text(i int, s string) {
	b.cols[i].Texts = append(b.cols[i].Texts, s)
	b.texts[i] += len(s)
}

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

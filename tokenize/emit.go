package tokenize

import (
	"runtime"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// hugeTokens is far beyond any model's context. For a record of so many tokens, each stage leaves
// as much garbage again, which is collected before the next stage. A merged row of more than a
// quarter of hugeTokens is made as runs for every caller.
const hugeTokens = 4 << 20

// merged joins the turns along shared prefixes.
func (j *job) merged() error {
	j.render, j.replies = nil, nil // free what was rendered
	made := 0
	for i := range j.prompts {
		made += j.prompts[i].Add.Len()
	}
	if made > hugeTokens {
		j.pieces.Buf = engine.Encoding{}
		runtime.GC()
	}
	res, err := lineage.Merge(j.plan, j.opts.Drift)
	if err != nil {
		return err
	}
	j.report.Report = res.Report
	j.report.EmptyTurns -= j.report.UnknownContext + j.vacant
	if err := j.affordable(res.Report.RowTokens); err != nil {
		return err
	}
	for k, n := 0, len(res.Rows); k < n; k++ {
		row, err := j.row(&res.Rows[k])
		if err != nil {
			return err
		}
		if k == n-1 { // the last row holds all that is still needed
			res, j.encoded = nil, encoded{}
		}
		if err := j.yieldRow(row); err != nil {
			return err
		}
		if row.Lens != nil && cap(row.Tokens) <= maxFreed {
			free := j.take()
			free.ids = row.Tokens[:0]
			j.freed.Put(free)
		}
	}
	return nil
}

// row makes one merged row, as runs if the row is huge, or if the caller takes runs and there are
// no log probabilities.
func (j *job) row(row *lineage.Row) (out spool.Row, err error) {
	free := j.take()
	defer j.freed.Put(free)
	w := free.window.Of(tokens.Window{Row: row, IDs: row.AppendIDs(free.ids[:0]), Turns: j.turns, Completions: j.completions, Told: j.promptsFor})
	n, logprobs := len(w.IDs), w.Logprobs()
	free.ids = nil
	if n > j.huge || j.runs && logprobs == nil {
		out.Tokens = w.IDs
		for ok := true; ok && w.To < n; {
			if ok = out.Extend(w.Fill(w.To, min(n, w.To+j.window))); !ok {
				out = spool.Row{}
			}
		}
	}
	cols := rollout.Columns{IDs: out.Sequence.IDs, Source: out.Source, Flags: out.Flags, Turn: out.Turn, Version: out.Version}
	if out.Lens == nil {
		cols = w.Fill(0, n)
		cols.Logprob = logprobs
	} else if free.window = w.Emptied(); logprobs != nil {
		out.Logprobs, cols.Logprob = logprobs, make([]float32, len(out.Lens))
	}
	j.countSegments(row, out.Lens, cols.Source)
	out.Sequence, err = j.build(row, cols)
	return out, err
}

// countSegments counts the tokens of a row in Report.Segments. lens are the lengths of the runs in
// source, nil if source has an entry per token. Context tokens that come from no message count as
// scaffold, if the prompt is attributed.
func (j *job) countSegments(row *lineage.Row, lens, source []int32) {
	span, run, end := 0, 0, 0 // the span after the current context; the run, and its end
	for p := range row.Pieces() {
		if p.Kind != "context" {
			j.report.segment(p.Kind, len(p.IDs))
			continue
		}
		for at, to := p.Start, p.Start+len(p.IDs); at < to; {
			for row.Spans[span].Start < at {
				span++
			}
			kind, until := p.Kind, to
			if j.attributed[row.Spans[span].Turn] {
				for ; end <= at; run++ {
					n := 1
					if lens != nil {
						n = int(lens[run])
					}
					end += n
				}
				if until = min(end, to); source[run-1] < 0 {
					kind = "scaffold"
				}
			}
			j.report.segment(kind, until-at)
			at = until
		}
	}
}

// windowTokens is how many tokens of a row have columns with an entry per token at a time.
const windowTokens = 1 << 20

// promptsFor returns the prompts that give the origin of turn t's context, nil if it is unknown.
func (j *job) promptsFor(t int) []tokens.Prompt {
	switch {
	case !j.attributed[t]:
		return nil
	case j.respelt != nil && j.respelt[t].N > 0:
		return j.respelt
	}
	return j.prompts
}

// build makes the sequence of a row from its columns.
func (j *job) build(row *lineage.Row, cols rollout.Columns) (rollout.Sequence, error) {
	id := j.identity()
	repaired := false
	for _, join := range row.Joins {
		repaired = repaired || join.Kind != "exact"
	}
	for k, s := range row.Spans {
		t := &j.turns[s.Turn]
		if k == 0 {
			id.FirstTurn, id.FirstStep = s.Turn, t.Step
		}
		id.FirstTurn, id.LastTurn = min(id.FirstTurn, s.Turn), max(id.LastTurn, s.Turn)
		id.FirstStep, id.LastStep = min(id.FirstStep, t.Step), max(id.LastStep, t.Step)
		if j.recorded(s.Turn) && len(s.Subs) == 0 {
			j.report.Exact += s.Len
		}
	}
	id.Fidelity = j.fidelity(row.Spans, repaired)
	return cols.Sequence(id, 0)
}

func (j *job) identity() rollout.Identity {
	return rollout.Identity{Rollout: j.r.ID, Group: j.r.Group, FirstTurn: -1, LastTurn: -1, FirstStep: -1, LastStep: -1,
		Tokenizer: j.model.Tokenizer.Digest(), Template: j.model.TemplateDigest()}
}

func (j *job) fidelity(spans []lineage.Span, repaired bool) rollout.Fidelity {
	for _, s := range spans {
		if j.turns[s.Turn].Output == nil {
			return rollout.FidelityRendered
		}
	}
	if repaired {
		return rollout.FidelityRepaired
	}
	return rollout.FidelityCaptured
}

// maxFreed is the largest conversation whose memory the next one reuses, in tokens; in bytes of
// rendered text it is four times as much.
const maxFreed = 1 << 20

// freed is memory of an earlier conversation, free for reuse.
type freed struct {
	render.Scratch
	ids []rollout.TokenID // of merged rows

	rendered render.Memory  // of prompts
	prompt   tokens.Compact // tokens of prompts, or of the whole conversation
	window   tokens.Window  // columns of a row
}

// take returns the memory of an earlier conversation.
func (e *Encoder) take() *freed {
	free, _ := e.freed.Get().(*freed)
	if free == nil {
		free = &freed{}
	}
	return free
}

// giveBack releases the memory of the prompts to the next conversation, after the last turn is
// encoded.
func (j *job) giveBack(free *freed, prompts *tokens.PromptEncoder) {
	if j.render != nil && j.render.Memory.Len() <= 4*maxFreed {
		free.rendered, j.render.Memory = j.render.Memory, render.Memory{}
	}
	if cap(prompts.Runs.IDs) <= maxFreed {
		free.prompt = prompts.Runs.Emptied()
	}
	j.freed.Put(free)
}

package tokenize

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// skipTurn leaves out turn i, whose context is unknown.
func (j *job) skipTurn(i int, where rollout.Where) {
	j.plan[i] = lineage.Turn{Prompt: j.turns[i].Prompt}
	j.unknownContext(where)
}

// setAside leaves turn i untrained. Its recorded ids remain, since prompts of later turns may be
// stored relative to them; in later rendered prompts its message is encoded from text.
func (j *job) setAside(i int, where rollout.Where, why string) {
	t, c := &j.turns[i], &j.completions[i]
	for _, id := range t.Output {
		c.Cols.Add(id, int32(t.Message), 0)
	}
	c.Pack()
	if len(t.Output) == 0 {
		j.vacant++
	}
	j.plan[i] = lineage.Turn{Prompt: t.Prompt, Output: t.Output, Excluded: true}
	j.incomplete(where, why)
}

// incomplete reports a turn that is not trained because its record is not what was sampled.
func (j *job) incomplete(where rollout.Where, why string) {
	j.report.Incomplete++
	if j.report.FirstIncomplete == nil {
		where.Rollout = j.r.ID
		j.report.FirstIncomplete = rollout.Errorf(rollout.KindInput, where, "the record of the turn is not what was sampled, so it is not trained: %s", why)
	}
}

// unknownContext reports a turn that is not trained because the context of its tokens is unknown.
func (j *job) unknownContext(where rollout.Where) {
	j.report.UnknownContext++
	if j.report.FirstUnknown == nil {
		where.Rollout = j.r.ID
		j.report.FirstUnknown = rollout.Errorf(rollout.KindInput, where, "the record shows that the model did not see the plain history here, but not what it saw, so the turn is not trained").
			WithFix("give the turn's context, or its captured prompt ids")
	}
}

// unmarked reports replies whose author is unknown.
func (j *job) unmarked() {
	for i := range j.r.Messages {
		m := &j.r.Messages[i]
		if _, turn := j.owner[int32(i)]; turn || m.Role != rollout.RoleAssistant || m.Sampled != rollout.SampledUnknown {
			continue
		}
		j.report.Unmarked++
		if j.report.FirstUnmarked == nil {
			j.report.FirstUnmarked = rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: j.r.ID, Message: rollout.At(i)}, "the assistant's message is not marked as sampled and no turn names it, so it is context and not trained").
				WithFix("set Message.Sampled (SampledByPolicy for the policy's own), or record turns")
		}
	}
}

// checkTurn rejects recorded ids of turn i outside the vocabulary.
func (j *job) checkTurn(i int, where rollout.Where) *rollout.Error {
	t, size := &j.turns[i], j.model.Tokenizer.Vocab().Size()
	if err := checkIDs(t.Output, size, where, "output"); err != nil {
		return err
	}
	prompt := t.Prompt.Add
	if j.foreign && t.Prompt.Captured() {
		prompt, _ = j.captured(i) // promptIDs returns the error
	}
	return checkIDs(prompt, size, where, "prompt")
}

// allForeign reports whether every turn with recorded ids has one outside the vocabulary: then the
// engine served another tokenizer. Otherwise single calls were recorded wrongly.
func (j *job) allForeign() bool {
	for i := range j.turns {
		if t := &j.turns[i]; (t.Output != nil || t.Prompt.Captured()) && t.Incomplete == "" && j.checkTurn(i, rollout.Where{}) == nil {
			return false
		}
	}
	return true
}

func checkIDs(ids []rollout.TokenID, size int, where rollout.Where, what string) *rollout.Error {
	for k, id := range ids {
		if id < 0 || int(id) >= size {
			where.Token = rollout.At(k)
			return rollout.Errorf(rollout.KindInput, where, "%s id %d is outside the vocabulary of %d", what, id, size).
				WithFix("use the tokenizer the engine served")
		}
	}
	return nil
}

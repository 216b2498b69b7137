package traj

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/native"
	"github.com/turnpack/turnpack/rollout/traj/internal/places"
)

// Emit completes a rollout and yields it to the consumer. It sets origin, id, group and
// index, joins rewards, and drops duplicates. An importer sets Index to format.NoIndex if
// the data has none.
func (fr *fileReader) Emit(r *rollout.Rollout) error {
	rd, task := fr.r, fr.Task
	fr.Task = [16]byte{}
	if err := fr.Checked(nil); err != nil {
		return err
	}
	if !fr.joined && !fr.imp.own && fr.imp.Name != "native" {
		if err := native.CheckUnread(&fr.File, r); err != nil {
			return err
		}
	}
	if !fr.joined {
		if took, err := fr.collect(r); took {
			return err
		}
	}
	index := fr.count
	fr.count++
	if r.Instance == "" {
		r.Instance = fr.key
	}
	r.Notes = append(r.Notes, fr.Notes...)
	fr.Notes = nil
	if r.Origin.File == "" {
		r.Origin = rollout.Origin{File: fr.Name, Line: fr.Where.Line, Index: index, Format: cmp.Or(r.Origin.Format, fr.imp.Name)}
	}
	here := rollout.Origin{File: fr.Name, Line: fr.Where.Line, Index: index, Format: fr.imp.Name}
	if len(r.Messages) > rd.opt.Limits.Messages {
		return rollout.Errorf(rollout.KindLimit, fr.Where, "%d messages, at most %d are read", len(r.Messages), rd.opt.Limits.Messages)
	}
	if here.Format != "native" {
		if !fr.joined {
			compactPrompts(r.Turns)
			compareSampling(r)
		}
		markPromptUnknown(r)
		if err := fr.addGivenSystem(r); err != nil {
			return err
		}
		dropRepeatedIDs(r)
	}
	if rd.opt.Dedup && fr.repeats(r, here) {
		return nil
	}
	rd.registry.identify(r, fr.source.Rel, here)
	joined := rd.report.Joined
	if err := rd.join(r); err != nil {
		return err
	}
	name := r.Group
	rd.registry.tellTasksApart(r, task)
	if err := rd.registry.group(r); err != nil {
		return err
	}
	rd.report.Rollouts++
	rd.report.Formats[here.Format]++
	if rd.report.Joined > joined { // an outcome goes to one rollout: read it again
		remember(fr, nil)
	} else {
		m := places.Place{ID: r.ID, Group: r.Group, Index: r.Index}
		if rd.registry.apart(name, task) {
			m.Name, m.Task = name, task
		}
		remember(fr, &m)
	}
	for i := range r.Turns {
		if r.Turns[i].Incomplete != "" {
			rd.report.Incomplete++
		}
	}
	if !rd.yield(r, nil) {
		return errStop
	}
	return nil
}

// repeats reports whether r equals an earlier rollout, and counts it.
func (fr *fileReader) repeats(r *rollout.Rollout, here rollout.Origin) bool {
	rd, messages := fr.r, slices.Clip(r.Messages)
	for i := range r.Turns {
		if t := &r.Turns[i]; t.Message < 0 { // its ids are all that is recorded
			messages = append(messages, rollout.Message{Content: fmt.Sprint(t.Prompt, t.Output)})
		}
	}
	d := format.Digest(messages)
	first, dup := rd.seen[d]
	if !dup {
		rd.seen[d] = here
		return false
	}
	rd.report.Duplicates++
	if len(rd.report.Repeats) < maxListed {
		rd.report.Repeats = append(rd.report.Repeats, Repeat{Of: first, This: here})
	}
	return true
}

// markPromptUnknown marks the plain contexts of a record that begins with a reply as
// unknown: a model is never called without a prompt, so the record lacks it.
func markPromptUnknown(r *rollout.Rollout) {
	plain := func(t *rollout.Turn) bool {
		return t.Context.Parts == nil && !t.Context.Unknown && !t.Prompt.Captured()
	}
	if len(r.Turns) == 0 || r.Turns[0].Message != 0 || !plain(&r.Turns[0]) {
		return
	}
	r.Notes = append(r.Notes, rollout.Note{Code: "prompt_not_recorded", Text: "the record begins with a reply: what the model was asked is not in it"})
	for i := range r.Turns {
		if plain(&r.Turns[i]) {
			r.Turns[i].Context.Unknown = true
		}
	}
}

// dropRepeatedIDs clears response ids that occurred before in the run: some engines repeat
// an id.
func dropRepeatedIDs(r *rollout.Rollout) {
	if len(r.Turns) < 2 {
		return
	}
	seen, repeated := make(map[string]bool, len(r.Turns)), 0
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.ID == "" {
			continue
		}
		if seen[t.ID] {
			t.ID = ""
			repeated++
			continue
		}
		seen[t.ID] = true
	}
	if repeated > 0 {
		r.Notes = append(r.Notes, rollout.Note{Code: "response_id_repeated", Text: fmt.Sprintf("%d responses have an id that an earlier one has; they are read as responses without one", repeated)})
	}
}

// compactPrompts stores each full prompt against an earlier turn.
func compactPrompts(turns []rollout.Turn) {
	captured := 0
	for i := range turns {
		if turns[i].Prompt.Keep > 0 {
			return // already compact
		}
		if turns[i].Prompt.Captured() {
			captured++
		}
	}
	if captured < 2 {
		return
	}
	var x rollout.PromptIndex
	for i := range turns {
		turns[i].Prompt = x.Add(turns[i].Prompt.Add, turns[i].Output)
	}
}

// addGivenSystem inserts Options.System before the messages of a rollout without a system
// prompt. A recorded call is complete.
func (fr *fileReader) addGivenSystem(r *rollout.Rollout) error {
	text := fr.r.opt.System
	if text == "" || fr.OfCall() || len(r.Messages) == 0 {
		return nil
	}
	hidden := slices.IndexFunc(r.Notes, func(n rollout.Note) bool { return n.Code == format.SystemHidden })
	for i := range r.Messages {
		// Where the format hides the system prompt, what a developer says comes after it.
		if role := r.Messages[i].Role; role == rollout.RoleSystem || role == rollout.RoleDeveloper && hidden < 0 {
			return nil
		}
	}
	if strings.Contains(text, format.PolicyMark) {
		return fr.Fail(0, "Options.System", "the system prompt names %s, and the record holds no policy", format.PolicyMark)
	}
	r.Messages = slices.Insert(slices.Clip(r.Messages), 0, rollout.Message{Role: rollout.RoleSystem, Content: text})
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.Message >= 0 {
			t.Message++
		}
		if t.Context.Parts == nil {
			continue
		}
		parts := []rollout.ContextPart{{From: 0, To: 1}}
		for _, p := range t.Context.Parts {
			p.From, p.To = p.From+1, p.To+1
			if n := len(parts) - 1; n == 0 && p.Message == nil && p.From == 1 {
				parts[0].To = p.To
				continue
			}
			parts = append(parts, p)
		}
		t.Context.Parts = parts
	}
	if hidden >= 0 {
		r.Notes = slices.Delete(r.Notes, hidden, hidden+1)
	}
	for i := range r.Notes {
		if k, ok := r.Notes[i].Message.Get(); ok {
			r.Notes[i].Message = rollout.At(k + 1)
		}
	}
	r.Notes = append(r.Notes, rollout.Note{Code: "system_given", Text: "the record has no system prompt; the one given was put before its messages"})
	return nil
}

// samplingOfCall returns the sampling settings of a rollout that is one call.
func samplingOfCall(c *rollout.Rollout) *rollout.Sampling {
	s := c.Turns[0].Sampling
	if c.Temperature == nil || s != nil && s.Temperature != nil {
		return s
	}
	var own rollout.Sampling
	if s != nil {
		own = *s
	}
	own.Temperature = c.Temperature
	return &own
}

// compareSampling notes the first turn whose sampling settings differ from turn 0. If
// temperatures differ, each turn keeps its own and the rollout has none. Seeds usually
// differ.
func compareSampling(r *rollout.Rollout) {
	settings := func(i int) (s rollout.Sampling) {
		if r.Turns[i].Sampling != nil {
			s = *r.Turns[i].Sampling
		}
		return s
	}
	noted := false
	for i := 1; i < len(r.Turns); i++ {
		a, b := settings(0), settings(i)
		var differ []string
		for _, x := range [][3]string{
			{"temperature", shown(a.Temperature), shown(b.Temperature)}, {"top_p", shown(a.TopP), shown(b.TopP)},
			{"top_k", shown(a.TopK), shown(b.TopK)}, {"min_p", shown(a.MinP), shown(b.MinP)},
		} {
			if x[1] != x[2] {
				differ = append(differ, fmt.Sprintf("%s %s and %s", x[0], x[1], x[2]))
			}
		}
		if shown(a.Temperature) != shown(b.Temperature) {
			r.Temperature = nil
		}
		if differ != nil && !noted {
			noted = true
			r.Notes = append(r.Notes, rollout.Note{Code: "sampling_differs", Text: fmt.Sprintf("turns 0 and %d were sampled with other settings: %s", i, strings.Join(differ, ", "))})
		}
	}
}

func shown[T any](x *T) string {
	if x == nil {
		return "unknown"
	}
	return fmt.Sprint(*x)
}

package traj

import (
	"path/filepath"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// joinCalls makes one rollout from the recorded model calls of one run, in order. Each call
// was read from a completion log or an exchange: its request as messages, then one sampled
// reply. Every call becomes a turn whose context is exactly its request, as ranges of a
// message list in which each distinct message occurs once; a reply repeated in later
// requests remains one sampled message. Condensed, edited and forked histories thus keep
// what the model saw.
//
// Identity, tools and template variables are those of the first call. Each turn keeps its
// sampling settings; if the temperatures differ, the rollout has none and gets a note. The
// error is KindInput if a rollout is not a single call.
func joinCalls(calls []*rollout.Rollout) (*rollout.Rollout, error) {
	if len(calls) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "no calls to join")
	}
	out := *calls[0]
	out.Messages, out.Turns, out.Notes = nil, []rollout.Turn{}, nil
	var index rollout.PromptIndex
	j := format.NewCallJoin(&out)
	for i, c := range calls {
		if len(c.Turns) != 1 || c.Turns[0].Message != len(c.Messages)-1 {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: c.Origin.File, Rollout: c.ID}, "the rollout has %d turns, expected one call whose reply comes last", len(c.Turns))
		}
		t := c.Turns[0]
		t.Step = i
		t.Sampling = samplingOfCall(c)
		if n, other := format.OtherSettings(t.ID, c, &out); other && !t.Context.Unknown {
			t.Context.Unknown = true
			out.Notes = append(out.Notes, n)
		}
		prompt, err := c.PromptTokens(nil, 0)
		if err != nil {
			return nil, err
		}
		t.Prompt = index.Add(prompt, t.Output)
		j.Add(c.Messages, []rollout.Turn{t})
		for _, n := range c.Notes {
			n.Message = 0
			out.Notes = append(out.Notes, n)
		}
	}
	compareSampling(&out)
	last := calls[len(calls)-1]
	out.Outcome, out.Status, out.ExitStatus = last.Outcome, last.Status, last.ExitStatus
	return &out, nil
}

// callRun collects the calls of one run.
type callRun struct {
	folder, task string
	calls        []*rollout.Rollout
	reader       *fileReader
}

// collect takes a call if Options.JoinCalls is set, and reports whether it did. Calls
// belong together while their files are in one folder and the first user message is the
// same.
func (fr *fileReader) collect(r *rollout.Rollout) (bool, error) {
	rd := fr.r
	if !fr.Joins() {
		return false, nil
	}
	folder, task := filepath.Dir(fr.Name), ""
	for i := range r.Messages {
		if r.Messages[i].Role == rollout.RoleUser {
			task = r.Messages[i].Content
			break
		}
	}
	if run := rd.calls; run != nil && (run.folder != folder || run.task != task) {
		if err := rd.flushCalls(); err != nil {
			return true, err
		}
	}
	if rd.calls == nil {
		run := newFileReader(rd, fr.source)
		run.Where, run.joined = fr.Where, true
		run.use(fr.imp)
		rd.calls = &callRun{folder: folder, task: task, reader: run}
	}
	r.Notes = append(r.Notes, fr.Notes...)
	fr.Notes = nil
	r.Origin = rollout.Origin{File: fr.Name, Line: fr.Where.Line, Format: fr.imp.Name}
	rd.calls.calls = append(rd.calls.calls, r)
	return true, nil
}

// flushCalls emits the run collected so far.
func (rd *Reader) flushCalls() error {
	run := rd.calls
	if run == nil {
		return nil
	}
	rd.calls = nil
	r, err := joinCalls(run.calls)
	if err != nil {
		return rd.failed(err)
	}
	run.reader.Note("calls_joined", 0, "%d recorded calls were joined to one run", len(run.calls))
	if err := run.reader.Emit(r); err != nil {
		return rd.failed(run.reader.locate(err))
	}
	return nil
}

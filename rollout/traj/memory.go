package traj

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"iter"

	"github.com/turnpack/turnpack/rollout"
)

// memory is what a reading of a source tells a later one of the same input.
type memory struct {
	Report Report
	Errors []*rollout.Error // of Report
	Files  map[string]*fileMemory
}

// fileMemory are the rollouts of a file by their line, 0 where lines are no records. A
// file is mixed where a record was read by another importer than the one before, or by
// one that looks at other records too: it is read again whole.
type fileMemory struct {
	Importer int               // its place among all
	Mixed    bool              `json:",omitempty"`
	Lines    map[int][]emitted // nil = not to be passed over
}

// emitted is what a rollout changes in a Reader for those after it.
type emitted struct {
	ID    string
	Group string
	Index int
	Name  string `json:",omitempty"` // of its group in its data set, with Task
	Task  string `json:",omitempty"` // hex
}

// remember keeps a rollout, or with nil that its record must be read again.
func remember(fr *fileReader, what *emitted) {
	rd := fr.r
	if rd.kept == nil || fr.imp == nil {
		return
	}
	f := rd.kept[fr.Name]
	if f == nil {
		f = &fileMemory{Importer: fr.imp.at, Lines: map[int][]emitted{}}
		rd.kept[fr.Name] = f
	}
	if f.Mixed = f.Mixed || f.Importer != fr.imp.at || !fr.imp.Stateless || fr.joined || rd.opt.Dedup || rd.opt.JoinCalls; f.Mixed {
		f.Lines = nil
		return
	}
	line := fr.Where.Line
	before, there := f.Lines[line]
	if what == nil || there && before == nil {
		f.Lines[line] = nil
		return
	}
	f.Lines[line] = append(before, *what)
}

// skipsPast says that all rollouts of a line, or with 0 of a file, are past, and goes on
// as if they had been read.
func skipsPast(fr *fileReader, line int) bool {
	rd := fr.r
	if rd.past == nil || fr.fold != nil || line > 0 && fr.imp == nil {
		return false // the first record of a file names its importer
	}
	f := rd.before[fr.Name]
	if f == nil || f.Mixed || line > 0 && f.Importer != fr.imp.at || line == 0 && len(f.Lines) != 1 {
		return false
	}
	list := f.Lines[line]
	for _, m := range list {
		if !rd.past(m.ID) {
			return false
		}
	}
	for _, m := range list {
		rd.registry.newID(m.ID)
		rd.registry.indicesOf(m.Group).take(m.Index)
		var task [16]byte
		if n, err := hex.Decode(task[:], []byte(m.Task)); err == nil && n == len(task) {
			rd.registry.numberOf(m.Name, task)
		}
		fr.count++
	}
	return len(list) > 0
}

// Memory tells what the latest complete reading found, as JSON. The places of the
// rollouts, 200 bytes of memory for each, are told once and forgotten: of readings after
// that, RolloutsBut passes nothing over.
func (s *Source) Memory() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "traj.Source"}, "nothing was read yet").WithFix("make it with NewSource, and read all its rollouts")
	}
	m := memory{Report: *s.report, Files: s.kept}
	s.kept, s.told = nil, true
	m.Report.Errors = nil
	for _, err := range s.report.Errors {
		m.Errors = append(m.Errors, rollout.Plain(err))
	}
	return json.Marshal(&m)
}

// RolloutsBut is Rollouts for an input that an earlier Source has read, which memory is
// of: records are not decoded where past is true for all their rollouts and they can be
// told without. The Report is that of then.
func (s *Source) RolloutsBut(ctx context.Context, text []byte, past func(id string) bool) iter.Seq2[*rollout.Rollout, error] {
	var m memory
	if json.Unmarshal(text, &m) != nil {
		return s.Rollouts(ctx)
	}
	for _, err := range m.Errors {
		m.Report.Errors = append(m.Report.Errors, err)
	}
	s.mu.Lock()
	s.report, s.kept = &m.Report, m.Files
	s.mu.Unlock()
	return s.rollouts(ctx, func(r *Reader) { r.before, r.past = m.Files, past })
}

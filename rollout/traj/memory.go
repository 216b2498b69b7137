package traj

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/places"
)

// memory is what a reading of a source passes on to a later reading of the same input.
type memory struct {
	Report Report
	Errors []*rollout.Error // the errors of Report
	Files  map[string]*fileMemory
}

// fileMemory holds the places of the rollouts in a file. A file is Mixed, and read whole
// again, if a record was read by another importer than the previous one, by an importer
// that depends on other records, or out of line order.
type fileMemory struct {
	Importer int  // its index among all importers
	Mixed    bool `json:",omitempty"`
	places.List
}

// remember records the place of a rollout, nil if its record must be read again.
func remember(fr *fileReader, what *places.Place) {
	rd := fr.r
	if rd.kept == nil || fr.imp == nil {
		return
	}
	f := rd.kept[fr.Name]
	if f == nil {
		f = &fileMemory{Importer: fr.imp.at}
		rd.kept[fr.Name] = f
	}
	line := fr.Where.Line
	if f.Mixed = f.Mixed || f.Importer != fr.imp.at || !fr.imp.Stateless || fr.joined || rd.opt.Dedup || rd.opt.JoinCalls || line < f.Last; f.Mixed {
		f.List = places.List{}
		return
	}
	f.Add(line, what)
}

// skipsPast reports whether all rollouts of a line (0: of a file) are past, and if so
// continues as if they had been read. Lines must come in order.
func skipsPast(fr *fileReader, line int) bool {
	rd := fr.r
	if rd.past == nil || fr.fold != nil || line > 0 && fr.imp == nil {
		return false // the first record of a file selects its importer
	}
	f := rd.before[fr.Name]
	if f == nil || f.Mixed || line > 0 && f.Importer != fr.imp.at || line == 0 && f.Last > 0 {
		return false
	}
	list := f.Of(line)
	for _, m := range list {
		if m == nil || !rd.past(m.ID) {
			return false
		}
	}
	for _, m := range list {
		rd.registry.newID(m.ID)
		rd.registry.take(m.Group, m.Index)
		if m.Task != [16]byte{} {
			rd.registry.numberOf(m.Name, m.Task)
		}
		fr.count++
	}
	return len(list) > 0
}

// Memory returns, as JSON, what the latest complete reading found. The places of the
// rollouts, some twenty bytes of memory each, are returned once and then dropped: given a
// Memory from a later call, RolloutsBut skips nothing.
func (s *Source) Memory() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "traj.Source"}, "nothing was read yet").WithFix("make it with NewSource, and read all its rollouts")
	}
	m := memory{Report: *s.report, Files: s.kept}
	s.kept, s.memoryTaken = nil, true
	for _, f := range m.Files {
		f.Pack()
	}
	m.Report.Errors = nil
	for _, err := range s.report.Errors {
		m.Errors = append(m.Errors, rollout.Plain(err))
	}
	return json.Marshal(&m)
}

// RolloutsBut is Rollouts for an input that an earlier Source has read, whose Memory is
// text: a record is not decoded if past is true for all its rollouts and they can be
// counted without. The Report is the earlier one.
func (s *Source) RolloutsBut(ctx context.Context, text []byte, past func(id string) bool) iter.Seq2[*rollout.Rollout, error] {
	var m memory
	if json.Unmarshal(text, &m) != nil {
		return s.Rollouts(ctx)
	}
	for _, f := range m.Files {
		f.Mixed = !f.Unpack() || f.Mixed
	}
	for _, err := range m.Errors {
		m.Report.Errors = append(m.Report.Errors, err)
	}
	s.mu.Lock()
	s.report, s.memoryTaken = &m.Report, true
	s.mu.Unlock()
	return s.rollouts(ctx, func(r *Reader) {
		r.before, r.past = map[string]*fileMemory{}, past
		for name, f := range m.Files {
			own := *f
			r.before[name] = &own
		}
	})
}

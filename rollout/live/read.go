package live

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// player rebuilds a recorder's state from the records of a journal.
type player struct {
	rec     *Recorder
	orphans map[string]segment.Place // sessions whose first records are missing → place of the first record found
	ended   func(*run) error         // called for each rollout that ended, which is then dropped; nil = all are kept
	skip    map[string]bool          // sessions passed to ended
}

func (p *player) play(dir string) error {
	p.orphans, p.skip = map[string]segment.Place{}, map[string]bool{}
	if err := segment.Scan(dir, p.take); err != nil {
		return err
	}
	for id, at := range p.orphans {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{File: segment.Path(dir, at.Segment), Byte: rollout.At(int(at.Offset)), Rollout: id},
			"the session's first records are missing, and it was not delivered").WithFix("put the segments before this one back")
	}
	return nil
}

func (p *player) take(at segment.Place, body []byte) error {
	e, err := record.Decode(body)
	if err != nil {
		return err
	}
	e.From = at
	if e.Kind == record.Moved {
		return p.moved(e)
	}
	return p.apply(e)
}

// moved applies a copy of a rollout's records, which replaces all its earlier records.
func (p *player) moved(e *record.Entry) error {
	r, bodies, err := p.rec, [][]byte(nil), error(nil)
	if bodies, err = record.Parts(e.Blob); err != nil || p.skip[e.Session] {
		return err
	}
	if delete(p.orphans, e.Session); e.Session == "" {
		r.groups, r.groupsAt = nil, 0
	} else if s := r.sessions[e.Session]; s != nil {
		r.forget(map[*run]bool{s.run: true}, 0)
	}
	for i, body := range bodies {
		x, err := record.Decode(body)
		if err != nil {
			return err
		}
		x.From = e.From
		x.From.Part = i + 1
		if err := p.apply(x); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) apply(e *record.Entry) error {
	r, at := p.rec, e.From
	s := r.sessions[e.Session]
	switch e.Kind {
	case record.Group:
		return r.apply(e)
	case record.Delivered:
		for _, id := range e.Sessions {
			delete(p.orphans, id)
			r.past[id] = at.Segment
		}
		return r.apply(e)
	case record.Start:
		if e.Parent != "" && r.sessions[e.Parent] == nil {
			return p.orphan(e, at)
		}
		if s != nil {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Rollout: e.Session}, "the session begins twice")
		}
		delete(p.skip, e.Session)
		if e.Body == nil {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Rollout: e.Session}, "the start of a session says nothing of it")
		}
		return r.start(e)
	}
	if s == nil {
		return p.orphan(e, at)
	}
	if e.Body == nil && e.Kind != record.Mark {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{Rollout: e.Session}, "a %s without what it tells", e.Kind)
	}
	g := s.run
	if err := g.warm(); err != nil {
		return err
	}
	if err := g.take(e); err != nil {
		return err
	}
	r.cache.touch(g)
	if p.ended != nil && g.ending != nil {
		for id := range g.sessions {
			delete(r.sessions, id)
			p.skip[id] = true
		}
		return p.ended(g)
	}
	return nil
}

// orphan notes a record of an unknown session.
func (p *player) orphan(e *record.Entry, at segment.Place) error {
	root := cmp.Or(e.Run, e.Session)
	if _, there := p.orphans[root]; !there && !p.skip[root] {
		p.orphans[root] = at
	}
	return nil
}

// errStopped ends a reading whose consumer stopped.
var errStopped = errors.New("the consumer stopped")

// Read yields the rollouts of the journal in folder dir: those that ended, in the order of their ends, then the
// others, with a note "unfinished", in the order in which they began. Delivered rollouts whose first records
// are removed are skipped. Read changes nothing and may run while a process writes: it sees what is written. It
// holds all open rollouts in memory.
func Read(dir string) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		r := newRecorder(Options{})
		p := player{rec: r, ended: func(g *run) error {
			g.abortLost()
			r.runs = slices.DeleteFunc(r.runs, func(x *run) bool { return x == g })
			if !yield(g.snapshot(), nil) {
				return errStopped
			}
			return nil
		}}
		switch err := p.play(dir); {
		case errors.Is(err, errStopped):
			return
		case err != nil:
			yield(nil, err)
			return
		}
		for _, g := range r.runs {
			g.abortLost()
			x := g.snapshot()
			x.Notes = append(x.Notes, rollout.Note{Code: "unfinished", Text: "the journal does not tell the end of the session"})
			if !yield(x, nil) {
				return
			}
		}
	}
}

package live

import (
	"context"
	"errors"
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// compact copies what is held in the oldest segments to the end of the journal and removes
// them, while delivered sessions take more than their share of it. Each rollout is one
// record, durable before anything is removed. One caller at a time does it.
func (r *Recorder) compact(ctx context.Context) error {
	j := r.opts.Journal
	if j == nil || !r.compacts.TryLock() {
		return nil
	}
	defer r.compacts.Unlock()
	for r.due() {
		r.mu.Lock()
		first := r.firstSegment()
		var old []*run
		for _, g := range r.runs {
			if g.first == first {
				old = append(old, g)
			}
		}
		r.mu.Unlock()
		if first >= j.log.Durable() {
			return nil
		}
		for _, g := range old {
			moved, err := r.move(ctx, g)
			if err != nil || !moved {
				return err
			}
		}
		if err := r.moveGroups(ctx, first); err != nil {
			return err
		}
		r.mu.Lock()
		err, stays := r.retire(), r.firstSegment() <= first
		r.mu.Unlock()
		if err != nil || stays { // a delivery that is not durable needs it
			return err
		}
	}
	return nil
}

// due says that delivered sessions take more than their share.
func (r *Recorder) due() bool {
	j := r.opts.Journal
	all := j.Stats().Bytes
	return float64(all-r.held.Load()) > j.opts.MaxDelivered*float64(all) && j.opts.MaxDelivered < 1
}

// maxMove is the longest rollout that is copied: it is one record.
const maxMove = maxRecord / 4

// move copies all records of a run, and reports whether the first ones are not needed now.
func (r *Recorder) move(ctx context.Context, g *run) (bool, error) {
	var bodies [][]byte
	read := reader{dir: r.opts.Journal.dir}
	for {
		g.mu.Lock()
		places, last, disk := slices.Clone(g.records), g.last, g.disk
		g.mu.Unlock()
		if disk > maxMove {
			return false, nil
		}
		if err := last.Wait(ctx); err != nil {
			return false, err
		}
		for _, at := range places[len(bodies):] {
			body, err := read.body(at)
			if err != nil {
				r.mu.Lock()
				gone := r.sessions[g.id] != g.root
				r.mu.Unlock()
				if gone && errors.Is(err, segment.ErrRemoved) { // it was delivered in between
					return true, nil
				}
				return false, err
			}
			bodies = append(bodies, body)
		}
		r.mu.Lock()
		g.mu.Lock()
		if r.sessions[g.id] != g.root {
			g.mu.Unlock()
			r.mu.Unlock()
			return true, nil
		}
		if len(g.records) == len(bodies) {
			break // with both locks: no record of it, nor of its delivery, comes in between
		}
		g.mu.Unlock()
		r.mu.Unlock()
	}
	at, t, err := r.moved(g.id, bodies)
	if err == nil {
		places := map[segment.Place]segment.Place{}
		for i, old := range g.records {
			at.Part = i + 1
			places[old], g.records[i] = at, at
		}
		if g.last = t; g.content != nil {
			for _, c := range g.order {
				if c.from.Segment > 0 {
					c.from = places[c.from]
				}
			}
		}
		// As it is after a restart.
		r.runs = append(slices.DeleteFunc(r.runs, func(x *run) bool { return x == g }), g)
	}
	g.mu.Unlock()
	r.mu.Unlock()
	if err == nil {
		err = t.Wait(ctx)
	}
	if err != nil {
		return false, busy(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.first = at.Segment
	return true, nil
}

// moveGroups copies the records of all groups, where that segment has one.
func (r *Recorder) moveGroups(ctx context.Context, first int) error {
	r.mu.Lock()
	if len(r.groups) == 0 || r.groupsAt > first {
		r.mu.Unlock()
		return nil
	}
	var bodies [][]byte
	var err error
	for _, x := range r.groups {
		e := &record.Entry{Kind: record.Group, Group: x.Key, Sessions: x.Sessions, At: r.opts.Now().UnixNano()}
		var frame []byte
		if frame, err = e.Encode(0); err != nil {
			break
		}
		bodies = append(bodies, frame[segment.FrameHead:])
	}
	var at segment.Place
	var t *log.Ticket
	if err == nil {
		at, t, err = r.moved("", bodies)
	}
	r.mu.Unlock()
	if err == nil {
		err = t.Wait(ctx)
	}
	if err != nil {
		return busy(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groupsAt = at.Segment
	return nil
}

// moved records the copy of a rollout, "" = of the groups.
func (r *Recorder) moved(id string, bodies [][]byte) (segment.Place, *log.Ticket, error) {
	e := &record.Entry{Kind: record.Moved, Session: id, At: r.opts.Now().UnixNano(), Blob: record.Join(bodies)}
	frame, err := e.Encode(0)
	if err != nil {
		return segment.Place{}, nil, err
	}
	return r.opts.Journal.log.Enqueue(frame, true)
}

// busy leaves out that the journal has no room or no time now: the next delivery copies.
func busy(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return nil
	}
	return err
}

// reader reads the bodies of records, and remembers the one that holds the last part.
type reader struct {
	dir   string
	at    segment.Place
	parts [][]byte
}

func (r *reader) body(at segment.Place) ([]byte, error) {
	part := at.Part
	if at.Part = 0; part > 0 && at == r.at && part <= len(r.parts) {
		return r.parts[part-1], nil
	}
	body, err := segment.Read(r.dir, at)
	if err != nil || part == 0 {
		return body, err
	}
	e, err := record.Decode(body)
	if err != nil {
		return nil, err
	}
	if r.at = at; e.Kind == record.Moved {
		r.parts, err = record.Parts(e.Blob)
	}
	if err == nil && part > len(r.parts) {
		err = input(ErrUnknown, rollout.Where{File: segment.Path(r.dir, at.Segment)}, "the record has no part %d: %w", part, ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	return r.parts[part-1], nil
}

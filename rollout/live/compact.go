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

// compact copies the undelivered records of the oldest segments to the end of the journal and removes those
// segments, while delivered sessions take more than their share. Each rollout becomes one record, which is
// durable before anything is removed. It returns at once if another call is compacting.
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
		if err != nil || stays { // a delivery that is not yet durable needs it
			return err
		}
	}
	return nil
}

// due reports whether delivered sessions take more than their share.
func (r *Recorder) due() bool {
	j := r.opts.Journal
	all := j.Stats().Bytes
	return float64(all-r.held.Load()) > j.opts.MaxDelivered*float64(all) && j.opts.MaxDelivered < 1
}

// maxMove is the maximum size of a rollout that is copied, since it becomes one record.
const maxMove = maxRecord / 4

// move copies all records of a run, and reports whether its old records are no longer needed.
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
				if gone && errors.Is(err, segment.ErrRemoved) { // it was delivered meanwhile
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
			break // while both locks are held no record of the run and no delivery can be added
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
		// The same order as after a restart.
		r.runs = append(slices.DeleteFunc(r.runs, func(x *run) bool { return x == g }), g)
	}
	g.mu.Unlock()
	r.mu.Unlock()
	if err == nil {
		err = t.Wait(ctx)
	}
	if err != nil {
		return false, ignoreUnavailable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.first = at.Segment
	return true, nil
}

// moveGroups copies the records of all groups if segment first holds one.
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
		return ignoreUnavailable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groupsAt = at.Segment
	return nil
}

// moved records the copy of a rollout, or of the groups for id "".
func (r *Recorder) moved(id string, bodies [][]byte) (segment.Place, *log.Ticket, error) {
	e := &record.Entry{Kind: record.Moved, Session: id, At: r.opts.Now().UnixNano(), Blob: record.Join(bodies)}
	frame, err := e.Encode(0)
	if err != nil {
		return segment.Place{}, nil, err
	}
	return r.opts.Journal.log.Enqueue(frame, true)
}

// ignoreUnavailable turns ErrUnavailable into nil: the next delivery tries to copy again.
func ignoreUnavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return nil
	}
	return err
}

// reader reads the bodies of records, and caches the Moved record that it read last.
type reader struct {
	dir   string
	at    segment.Place
	parts [][]byte
}

// entry reads and decodes the record at that place.
func (r *reader) entry(at segment.Place) (*record.Entry, error) {
	body, err := r.body(at)
	if err != nil {
		return nil, err
	}
	e, err := record.Decode(body)
	if err == nil {
		e.From = at
	}
	return e, err
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

package serve

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// endLate ends a rollout that was running when the deadline closed its group.
func (q *queue) endLate(ctx context.Context, s *live.Session, digest string, e endRequest) (bool, endAnswer, error) {
	q.mu.Lock()
	at := q.names.get(e.Group).short
	q.mu.Unlock()
	calls, err := s.Calls()
	if err != nil || at.IsZero() || len(calls) == 0 || !calls[0].Began.Before(at) {
		return false, endAnswer{}, err
	}
	if err := recordEnd(ctx, s, e, 0, &rollout.Failure{Reason: reasonLate, Detail: detailLate}); err != nil {
		return true, endAnswer{}, err
	}
	err = q.deliverLate(ctx, s.ID(), digest)
	answer := endAnswer{Group: e.Group, LeftOut: detailLate}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		q.leftOut(reasonLate)
		q.keepAnswer(s.ID(), pastAnswer{digest, answer})
	}
	return true, answer, err
}

// deliverLate makes the recorder drop a rollout that is in no group.
func (q *queue) deliverLate(ctx context.Context, id, digest string) error {
	return q.recorder.Deliver(ctx, live.Batch{Key: lateKey(id), Digest: digest, Sessions: []string{id}})
}

func lateKey(id string) string { return "late/" + id }

// forgotten returns the answer for a rollout in no batch that the recorder has dropped, as long as the journal
// holds its delivery.
func (q *queue) forgotten(id, digest, group string) (answer endAnswer, ok bool, err error) {
	ending, ok := q.recorder.Delivered(lateKey(id))
	answer = endAnswer{Group: group, LeftOut: detailLate}
	q.mu.Lock()
	k := stream.Key{Group: group, Step: q.names.get(group).step}
	q.mu.Unlock()
	for delivered := !ok; delivered; k.Step++ { // groups without a batch have their step recorded only there
		_, delivered = q.recorder.Delivered(recordKey(k))
	}
	for !ok {
		if k.Step--; k.Step < 0 {
			return answer, false, nil
		}
		text, _ := q.recorder.Delivered(recordKey(k))
		var n note
		if json.Unmarshal([]byte(text), &n) != nil {
			continue // the digest of a batch, not a note
		}
		i := slices.IndexFunc(n.Sessions, func(x noted) bool { return x.ID == id })
		if ok = i >= 0; ok {
			ending, answer = n.Sessions[i].Ending, q.answer(group, i, &stream.Batch{}, n.Why)
		}
	}
	if ending != digest && ending != "" {
		err = rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id}, "it ended otherwise: %w", live.ErrConflict)
	}
	return answer, true, err
}

// Package live records rollouts while agents run: each model call with the ids that were
// sampled, their log probabilities and the exact prompt, on disk before the client is told
// that the reply has ended. It touches no network: a proxy, or an agent written in Go,
// tells it what happens.
//
//	j, err := live.OpenJournal("journal/", live.JournalOptions{})
//	rec, err := live.New(live.Options{Journal: j})
//	s, err := rec.Begin(ctx, live.Start{ID: "task-7#0", Group: "task-7"})
//	call, err := s.Begin(ctx, live.Request{Messages: messages, Prompt: ids})
//	…                                  // the intent is written: ask the engine
//	err = call.Append(ids, logprobs, version)
//	err = call.End(ctx, live.Reply{Message: reply, Usage: usage, FinishReason: "stop"})
//	…                                  // the reply is durable: tell the client
//	r, err := s.End(ctx, live.Ending{Outcome: outcome})
//
// # What is trained
//
// [Session.Rollout] gives the rollout at any moment. Each call that ended is a turn, whose
// prompt is stored against the earlier turn that shares most of it: memory and journal
// hold each id once. A call is trained if it is ok. One whose ids, log probabilities and
// usage do not agree is incomplete: kept, counted and never trained, since some engines
// drop ids of some streams. Aborted calls keep what came; they, and replies that a retry
// replaced or that nobody saw, are trained only where a later prompt goes on from all of
// them, which shows that the harness used them. A turn that is not trained says why.
//
// Subagents are sessions with a parent: their calls are turns of the parent's rollout, and
// one outcome holds for all.
//
// # What survives
//
// A [Journal] is a folder of segments, 00000001.tpj and so on. A record is mark, length,
// CRC-32C, body. What begins, a session or a call, is written to its file before Begin
// returns, which a killed process keeps, and its fsync begins at most 5 ms later; what ends
// is durable before End returns, and all that was written before it: a machine that loses
// its power forgets no call of which the client saw the end. Those that wait share an
// fsync. New goes on with what the folder holds, which after a kill is every record whose
// call had returned, and maybe the ones after that. A torn end is cut off; damage before
// the end is refused with file and byte. While the disk is full new calls fail with
// [ErrUnavailable] and the ends of those that run wait; it goes on when there is room.
// After an fsync that failed nothing is recorded any more, and what was stays. Segments
// whose sessions are all delivered ([Recorder.Deliver]) are removed, oldest first; where
// those would take more than their share ([JournalOptions].MaxDelivered), what is held in
// the oldest ones is copied to the end.
//
// Secrets have no place in a [Request]; settings and metadata that are named as headers
// with keys are not recorded. package rollout/traj reads the folder as a dump, open
// sessions with a note.
//
// # Bounds
//
// [Options] and [JournalOptions] bound sessions, calls, calls at a time, ids, memory and
// what waits for the disk. Beyond a bound is an error of rollout.KindLimit, for a service
// to answer 429.
package live

// Package live records rollouts while agents run: each model call with its sampled ids, their log probabilities
// and the exact prompt, on disk before the client learns that the reply has ended. It does no networking: a
// proxy, or an agent written in Go, reports each event to it.
//
//	j, err := live.OpenJournal("journal/", live.JournalOptions{})
//	rec, err := live.New(live.Options{Journal: j})
//	s, err := rec.Begin(ctx, live.Start{ID: "task-7#0", Group: "task-7"})
//	call, err := s.Begin(ctx, live.Request{Messages: messages, Prompt: ids})
//	…                                  // the call is on file: ask the engine
//	err = call.Append(ids, logprobs, version)
//	err = call.End(ctx, live.Reply{Message: reply, Usage: usage, FinishReason: "stop"})
//	…                                  // the reply is durable: answer the client
//	r, err := s.End(ctx, live.Ending{Outcome: outcome})
//
// # What is trained
//
// [Session.Rollout] returns the rollout at any moment. Each call that ended is a turn, whose prompt is stored
// as a difference from the earlier turn that shares the most with it: memory and journal hold each id once. A
// call in state ok is trained. A call whose ids, log probabilities and usage disagree is incomplete: kept,
// counted and never trained, since some engines drop ids of some streams. An aborted call keeps the ids that
// arrived. Aborted calls, replies replaced by a retry and replies that no client saw are trained only where a
// later prompt begins with all of their ids, which shows that the harness used them. A turn that is not trained
// holds the reason.
//
// Subagents are sessions with a parent: their calls are turns of the parent's rollout, which has one outcome.
//
// # What survives
//
// A [Journal] is a folder of segments, 00000001.tpj and so on. A record is mark, length, CRC-32C, body. The
// start of a session or a call is written to its file before Begin returns, so it survives a killed process;
// its fsync begins at most 5 ms later. An end is durable before End returns, with everything written before it:
// a power failure loses no call whose end the client saw. Concurrent callers share an fsync. New continues from
// the folder's contents, which after a kill are all records whose calls had returned, and perhaps some later
// ones. A torn end is cut off; damage before the end is refused with file and byte offset. While the disk is
// full, new calls fail with [ErrUnavailable] and the ends of running calls wait; recording resumes when there
// is space. After a failed fsync nothing more is recorded, and earlier records are kept. Segments whose
// sessions are all delivered ([Recorder.Deliver]) are removed, oldest first; if delivered sessions take more
// than their share ([JournalOptions].MaxDelivered), the undelivered records of the oldest segments are copied
// to the end of the journal.
//
// Secrets do not belong in a [Request]; settings and metadata named like credential headers are not recorded.
// Package rollout/traj reads the folder as a trajectory dump, in which open sessions have a note.
//
// # Bounds
//
// [Options] and [JournalOptions] limit sessions, calls, concurrent calls, ids, memory and the bytes queued for
// the disk. Exceeding a limit is an error of rollout.KindLimit, which a service answers with 429.
package live

// Package deliver makes batches of a recorder's rollouts, one per group, and hands them to a trainer in order,
// each exactly once, however often the service or the trainer is killed.
//
//	batches, err := stream.Open("out/", export.Options{})
//	q, err := deliver.New(deliver.Options{Recorder: rec, Stream: batches, Settings: deliver.Settings{Size: 8,
//		Rows: func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
//			_, err := pipeline.Run(ctx, turnpack.Slice(group), w)
//			return err
//		}}})
//	answer, err := q.End(ctx, "task-7#0", deliver.Ending{Group: "task-7", Resolved: &yes})
//	b, err := q.Next(ctx, 0)     // waits for a batch after number 0
//	err = q.Ack(ctx, b.Seq)      // the trainer has it
//
// [Queue.Handler] serves these three methods over HTTP.
//
// # Groups
//
// A group is complete when Size of its rollouts have ended, or at its deadline with those that have; rollouts
// of the group that end later are left out, with the reason. Rollouts that failed, that have tokens of a policy
// that is too old, or that a hook could not score belong to the group and give no rows. The next rollout of
// that name begins the group's next step. Process rewards (Options.Score) are made as soon as a rollout ends. A
// group of which no batch can be made is refused alone: its answer and [Queue.Stats] give the reason.
//
// # Once
//
// The recorder's journal holds the ends of rollouts, complete groups and acknowledgements; the stream's folder
// holds the batches. After a kill, whatever one lacks is recreated from the other: the batch of a complete
// group is made, an unacknowledged batch is handed out again, with the same bytes. A trainer that saves the
// number of its last batch with its checkpoint, and requests the batches after it, trains on each batch once.
package deliver

// Package deliver makes batches of a recorder's rollouts, one per group, and hands them to a trainer in order,
// each exactly once, however often the service or the trainer is killed. Package serve, its user, says when a
// group is complete and who is left out; the next rollout of that name begins the group's next step.
// [Queue.Handler] serves [Queue.End], [Queue.Next] and [Queue.Ack] over HTTP.
//
// The recorder's journal holds the ends of rollouts, complete groups and acknowledgements; the stream's folder
// holds the batches. After a kill, whatever one lacks is recreated from the other: the batch of a complete
// group is made, an unacknowledged batch is handed out again, with the same bytes.
package deliver

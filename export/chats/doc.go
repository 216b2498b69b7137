// Package chats writes rollouts as Parquet data sets of chats, as fine-tuning reads them:
// one row a rollout, its messages as JSON text in one column.
//
//	w, err := chats.NewWriter(file, chats.ShareGPT)
//	for … { notes, err := w.Write(r) }
//	err = w.Close()
//
// Such a set holds no token ids, no contexts and no marks of what was sampled: Write says
// what each row is without. For training on the policy's own tokens write batches
// (package export).
package chats

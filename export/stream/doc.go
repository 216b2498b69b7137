// Package stream writes batches one by one into a folder that a trainer reads while it grows:
// one file per group, complete or absent, in an order that a restart keeps.
//
//	s, err := stream.Open("out/", export.Options{})
//	b, err := s.Add(stream.Key{Group: "task-7"}, nil, func(w *export.Writer) error {
//		_, err := pipeline.Run(ctx, turnpack.Slice(group), w)
//		return err
//	})
//	err = s.WriteArrow(response, b.Seq)
//
// The folder has data/batch_000001.parquet and so on, and batches.jsonl with one line per
// batch: number, key, digest and counts. A file has the same bytes as a conversion of its group
// alone.
//
// # After a kill
//
// A batch is a transaction. Its file is written under a temporary name and flushed to disk, its
// line is appended and flushed, then the file is renamed, which completes the batch. After a
// kill before the rename there is no batch, and [Open] removes the line. After a kill later the
// batch exists, and Add of the same [Key] returns it and writes nothing. A batch that is
// refused, or for which the disk has no room, leaves nothing, and the next one can be added.
//
// Consumers may remove the files of batches they have taken; the numbers are not reused.
package stream

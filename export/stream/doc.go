// Package stream writes batches one by one into a folder that a trainer follows while it
// grows: one file a group, each there whole or not at all, in an order that a restart
// keeps.
//
//	s, err := stream.Open("out/", export.Options{})
//	b, err := s.Add(stream.Key{Group: "task-7"}, nil, func(w *export.Writer) error {
//		_, err := pipeline.Run(ctx, turnpack.Slice(group), w)
//		return err
//	})
//	err = s.WriteArrow(response, b.Seq)
//
// The folder has data/batch_000001.parquet and so on, and batches.jsonl with a line for
// each: number, key, digest and counts. A file has the bytes that one conversion of its
// group alone has.
//
// # What a kill leaves
//
// A batch is a transaction. Its file is written under another name and flushed to the
// disk, its line is appended and flushed, then the file gets its name, which is what makes
// it a batch. Killed before, there is no batch, and [Open] takes the line back; killed
// after, there is one, and Add of the same [Key] returns it and writes nothing. A batch
// that is refused, or for which the disk has no room, leaves nothing, and the next one can
// be added.
//
// Batches that were taken may be removed by their files; their numbers stay taken.
package stream

// Package export writes training batches: rows of type rollout.Sample in Parquet or Arrow files
// that trainers read. It also reads such files back.
//
// # Rows
//
// A row is one linear token sequence with its loss mask and bookkeeping, in schema version 1,
// which docs/format.md describes. Every per-token column is token-aligned: the value at
// position t belongs to token t, without a shift.
//
// # Writing
//
// [Create] writes a file under a temporary name and moves it into place on Close; [NewWriter]
// writes to any io.Writer. Write checks each row and refuses rows that would crash a trainer or
// silently mislead it. The error names the row, column, rule and remedy; [RefusedError] holds
// them as values. A refused row discards the file, so a file under its final name is always
// complete.
//
// Rows must come in order: the rollouts of a group together, and the rows of a rollout
// together. [rollout.FinishRows] prepares the rows of one rollout: it leaves out rows that
// train nothing, cuts each row after its last trained token and sets the fields that depend on
// the remaining rows.
//
//	w, err := export.Create("batch.parquet", export.Options{})
//	if err != nil {
//		return err
//	}
//	defer w.Abort()
//	for _, s := range rollout.FinishRows(rows) {
//		if err := w.Write(s); err != nil {
//			return err
//		}
//	}
//	return w.Close()
//
// # Optional columns
//
// Each of logprobs, weights, advantages, versions and advantage is present in all rows of a
// file or in none. An unused column keeps its full type and is null, so that several files load
// together. [Options] names the columns in use; by default they are those of the first row.
//
// # Reading
//
// [Open] and [NewReader] read rows back, with one row group in memory at a time.
package export

// Package export writes training batches: rows of the type rollout.Sample go
// into Parquet files that trainers read, and come back from them.
//
// # Rows
//
// One row is one linear token sequence with its loss mask and bookkeeping,
// schema version 1, described in docs/format.md. Every per-token column is
// token-aligned: the value at position t belongs to token t and nobody shifts.
//
// # Writing
//
// [Create] writes a file under a temporary name and moves it into place on
// Close; [NewWriter] writes to any io.Writer. Write checks each row and refuses
// those that would crash a trainer or mislead it in silence; the error names
// row, column, rule and remedy, and [RefusedError] gives them as values. After
// a refusal the file is dropped, so what stands under an output's name is
// always whole.
//
// Rows come in order: the rollouts of a group one after the other, the rows of
// a rollout one after the other. [rollout.FinishRows] prepares the rows of one rollout: it
// leaves out rows that train nothing, cuts each after its last trained token
// and sets what depends on the rows that remain.
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
// logprobs, weights, advantages, versions and advantage are there for all rows
// of a file or for none; an unused one keeps its full type and is null, so that
// several files load together. [Options] names them or takes those of the first
// row.
//
// # Reading
//
// [Open] and [NewReader] give rows back, one row group in memory at a time.
package export

// Package traj reads the trajectory dumps that agent harnesses write into [rollout.Rollout]
// values.
//
//	r, err := traj.Open([]string{"dumps/"}, traj.Options{})
//	for x, err := range r.All() { … }
//	fmt.Println(r.Report().Rollouts, r.Report().Skipped)
//
// The format is detected from the content, record by record; [Options.Format] overrides
// detection. Files may be plain, gzip, zstd or zip; folders, globs and standard input work
// too. JSONL and big JSON lists are streamed: one record is in memory at a time.
//
// For each assistant message, an importer says whether the policy sampled it and how that
// is known ([rollout.Sampled]). It also reads the steps, what the model saw if the dump
// says so ([rollout.Context]), how the run ended, and the recorded outcome. What a format
// does not record stays unknown: nothing is guessed. Remarks a user should know are
// [rollout.Note] values.
//
// An [Importer] reads a format of your own; [ReadAll] reads a stream, such as recorded
// exchanges ({"request": …, "response": …}) in memory, and leaves nothing to close.
//
// To add a format here, write a package below internal/format, or a file in the package of
// its harness family, with a match and a read function; add one line to the table in
// table.go and one fixture to formats_test.go. docs/formats.md has the recipe.
package traj

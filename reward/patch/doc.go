// Package patch reads, checks, applies and reverses unified diffs in memory. It
// is what the outcome scorers use to look at a model's patch without a
// repository on disk:
//
//	p, err := patch.Parse(text)            // git or plain unified diff
//	next, err := p.Apply(tree)             // tree: path → content and mode, unchanged
//	p.Touched()                            // every path it reads or writes
//	p.Reverse()                            // undoes it
//
// Parsing is done by github.com/bluekeyes/go-gitdiff. Applying is done here, by
// the rules of `git apply` without options: every hunk must match exactly, but
// may have moved. (Where git matches a last line without line end against the
// beginning of a longer text and glues lines together, this package refuses.)
// Modes and symbolic links are part of a tree. Nothing runs, and nothing is written. Time is
// bounded by hunks × lines of the file.
package patch

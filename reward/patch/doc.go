// Package patch reads, checks, applies and reverses unified diffs in memory. The outcome scorers use
// it to inspect a model's patch without a repository on disk:
//
//	p, err := patch.Parse(text)            // git or plain unified diff
//	next, err := p.Apply(tree)             // tree: path → content and mode, unchanged
//	p.Touched()                            // every path it changes, creates or removes
//	p.Reverse()                            // a patch that undoes it
//
// Parsing is done by github.com/bluekeyes/go-gitdiff. Applying is done here, by the rules of `git
// apply` without options: every hunk must match exactly, but may have moved. (Git matches a last line
// without a line end against the beginning of a longer text and joins lines; this package returns an
// error.) Modes and symbolic links are part of a tree. The package runs no commands and writes no
// files. Time is bounded by hunks × lines of the file.
package patch

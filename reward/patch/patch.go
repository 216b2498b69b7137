package patch

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/turnpack/turnpack/rollout"
)

// Values of change.Kind.
const (
	modify = "modify"
	add    = "add"
	remove = "delete"
	rename = "rename"
	copied = "copy"
)

// change is the effect of a patch on one file.
type change struct {
	Kind string // "modify", "add", "delete", "rename" or "copy"
	Old  string // path before, "" for an added file
	New  string // path after, "" for a deleted one
}

// path returns the path after the change, or before it for a deletion.
func (c change) path() string { return cmp.Or(c.New, c.Old) }

// Patch is a parsed patch. It is immutable.
type Patch struct {
	files []*gitdiff.File
}

// maxBytes bounds the text of a patch.
const maxBytes = 256 << 20

// Parse reads a patch made by git or another diff tool. Text before the first file is ignored; a
// missing line end at the end of the text is added, since model answers are often cut there. A text
// without a file, a path that leaves the repository, or a malformed hunk is an error of kind format.
func Parse(text string) (*Patch, error) {
	if len(text) > maxBytes {
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the patch has %d bytes, the limit is %d", len(text), maxBytes)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "expected a unified diff: %w", err)
	}
	if len(files) == 0 {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "expected a unified diff, found no file in it").
			WithFix("make it with git diff")
	}
	git := gitSections(text, len(files))
	for i, f := range files {
		if !git[i] { // go-gitdiff removes the prefixes of the others
			f.OldName, f.NewName = dropPrefix(f.OldName), dropPrefix(f.NewName)
			// Set the modes as git writes them, so that String returns a valid patch.
			switch {
			case f.IsNew:
				f.NewMode = 0o100644
			case f.IsDelete:
				f.OldMode = 0o100644
			}
		}
		for _, name := range []string{f.OldName, f.NewName} {
			if name != "" && !safe(name) {
				return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{Field: name}, "expected a path inside the repository, found %q", name)
			}
		}
		for _, fragment := range f.TextFragments {
			if err := fragment.Validate(); err != nil {
				return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{Field: cmp.Or(f.NewName, f.OldName)}, "hunk %s: %w", strings.TrimSpace(fragment.Header()), err)
			}
		}
	}
	return &Patch{files}, nil
}

// gitSections reports which of the n files of a valid patch have git's header.
func gitSections(text string, n int) []bool {
	const header = "diff --git "
	parts := strings.Split("\n"+strings.TrimSuffix(text, "\n"), "\n"+header)
	git := make([]bool, 0, n)
	for i, part := range parts {
		if i > 0 {
			git = append(git, true)
			part = header + part
		}
		if len(parts)-1 < n { // some are plain: all files of a part but the one with its header
			files, _, _ := gitdiff.Parse(strings.NewReader(part + "\n"))
			git = append(git, make([]bool, len(files)-min(i, 1))...)
		}
	}
	return git
}

// dropPrefix removes the prefix a/ or b/, which the parser keeps for plain diffs.
func dropPrefix(name string) string {
	if rest, ok := strings.CutPrefix(name, "a/"); ok {
		return rest
	}
	return strings.TrimPrefix(name, "b/")
}

// safe reports whether name stays inside the directory it is relative to.
func safe(name string) bool {
	return !strings.HasPrefix(name, "/") && !strings.ContainsRune(name, 0) && name != ".." &&
		path.Clean(name) == name && !strings.HasPrefix(name, "../")
}

// changes returns the change of each file, in the order of the patch.
func (p *Patch) changes() []change {
	changes := make([]change, len(p.files))
	for i, f := range p.files {
		c := change{Kind: modify, Old: f.OldName, New: f.NewName}
		switch {
		case f.IsNew:
			c.Kind, c.Old = add, ""
		case f.IsDelete:
			c.Kind, c.New = remove, ""
		case f.IsRename:
			c.Kind = rename
		case f.IsCopy:
			c.Kind = copied
		}
		changes[i] = c
	}
	return changes
}

// Touched returns every path that the patch changes, creates or removes, each once, in the order of
// the patch. The source of a copy is not included.
func (p *Patch) Touched() []string {
	var paths []string
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			paths = append(paths, name)
		}
	}
	for _, c := range p.changes() {
		if c.Kind != copied {
			add(c.Old)
		}
		add(c.New)
	}
	return paths
}

// Only returns the part of the patch that touches a path for which keep is true; nil if nothing is
// left.
func (p *Patch) Only(keep func(path string) bool) *Patch {
	var files []*gitdiff.File
	for i, c := range p.changes() {
		if c.New != "" && keep(c.New) || c.Old != "" && c.Kind != copied && keep(c.Old) {
			files = append(files, p.files[i])
		}
	}
	if files == nil {
		return nil
	}
	return &Patch{files}
}

// String returns the patch in git's format.
func (p *Patch) String() string {
	var b strings.Builder
	for _, f := range p.files {
		b.WriteString(f.String())
	}
	return b.String()
}

// Reverse returns the patch that undoes p. A copy, or a binary change without reverse data, cannot be
// undone: an error of kind input.
func (p *Patch) Reverse() (*Patch, error) {
	files := make([]*gitdiff.File, len(p.files))
	for i, f := range p.files {
		r := *f
		if f.IsCopy || f.IsBinary && f.BinaryFragment != nil && f.ReverseBinaryFragment == nil {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: cmp.Or(f.NewName, f.OldName)}, "expected a change that can be undone, found a copy or a binary change without its reverse").
				WithFix("make the patch with git diff --binary --no-renames")
		}
		r.OldName, r.NewName = f.NewName, f.OldName
		r.OldMode, r.NewMode = f.NewMode, f.OldMode
		r.IsNew, r.IsDelete = f.IsDelete, f.IsNew
		r.OldOIDPrefix, r.NewOIDPrefix = f.NewOIDPrefix, f.OldOIDPrefix
		r.BinaryFragment, r.ReverseBinaryFragment = f.ReverseBinaryFragment, f.BinaryFragment
		if !f.IsNew && !f.IsDelete && f.NewMode == 0 {
			r.OldMode, r.NewMode = f.OldMode, 0 // the index line gives an unchanged mode
		}
		r.TextFragments = make([]*gitdiff.TextFragment, len(f.TextFragments))
		for k, t := range f.TextFragments {
			r.TextFragments[k] = reverseFragment(t)
		}
		files[len(files)-1-i] = &r
	}
	return &Patch{files}, nil
}

func reverseFragment(t *gitdiff.TextFragment) *gitdiff.TextFragment {
	r := *t
	r.OldPosition, r.NewPosition = t.NewPosition, t.OldPosition
	r.OldLines, r.NewLines = t.NewLines, t.OldLines
	r.LinesAdded, r.LinesDeleted = t.LinesDeleted, t.LinesAdded
	r.Lines = make([]gitdiff.Line, 0, len(t.Lines))
	// Deletions must precede additions in every run of changes.
	var added []gitdiff.Line
	flush := func() {
		r.Lines = append(r.Lines, added...)
		added = added[:0]
	}
	for _, l := range t.Lines {
		switch l.Op {
		case gitdiff.OpAdd:
			// Goes before the additions made from deletions of the same run.
			r.Lines = append(r.Lines, gitdiff.Line{Op: gitdiff.OpDelete, Line: l.Line})
		case gitdiff.OpDelete:
			added = append(added, gitdiff.Line{Op: gitdiff.OpAdd, Line: l.Line})
		default:
			flush()
			r.Lines = append(r.Lines, l)
		}
	}
	flush()
	return &r
}

// Edit holds the lines that a patch deletes from and adds to one file, without context.
type Edit struct {
	Kind    string // "modify", "add", "delete", "rename" or "copy"
	From    string // path of the file that is renamed or copied, else ""
	Path    string // after the change, or before it for a deletion
	Deleted []string
	Added   []string // lines, white space trimmed at both ends
	// Mode is a change of mode, as in "100644 100755", or the mode of a new file that is not regular,
	// as in "100755"; else "".
	Mode string
}

// Edits returns the changed lines of every file, in the order of the patch. A binary change is one
// added line with its compressed data.
func (p *Patch) Edits() []Edit {
	edits := make([]Edit, len(p.files))
	for i, c := range p.changes() {
		e := Edit{Kind: c.Kind, Path: c.path()}
		if c.Old != e.Path {
			e.From = c.Old
		}
		for _, t := range p.files[i].TextFragments {
			for _, l := range t.Lines {
				switch l.Op {
				case gitdiff.OpDelete:
					e.Deleted = append(e.Deleted, strings.TrimSpace(l.Line))
				case gitdiff.OpAdd:
					e.Added = append(e.Added, strings.TrimSpace(l.Line))
				}
			}
		}
		if b := p.files[i].BinaryFragment; b != nil {
			e.Added = append(e.Added, "binary "+string(b.RawData))
		}
		m, err := modesOf(p.files[i])
		switch {
		case err != nil:
			e.Mode = fmt.Sprintf("%o %o", p.files[i].OldMode, p.files[i].NewMode)
		case c.Kind == add && m.after != regular:
			e.Mode = gitMode(m.after)
		case c.Kind != add && c.Kind != remove && m.hasNew && m.before != m.after:
			e.Mode = gitMode(m.before) + " " + gitMode(m.after)
		}
		edits[i] = e
	}
	return edits
}

package patch

import (
	"bytes"
	"crypto/sha1" // for git object ids, not for security
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/turnpack/turnpack/rollout"
)

// Apply returns a copy of tree with the patch applied, completely or not at all: a missing file or a
// hunk that fits nowhere is an error of kind input that names the file or the hunk. Renames and copies
// read the tree as it was before the patch, whatever else the patch does to their source; several
// changes of one file are applied one after another.
//
// A patch that names no mode keeps the mode of a file, and adds regular files. As in git, a patch for
// an executable applies to a file that is not executable, but a patch for a link does not apply to a
// file.
func (p *Patch) Apply(tree Tree) (Tree, error) {
	w := work{before: tree, deletedOrRenamed: map[string]bool{}, removed: map[string]bool{}, written: Tree{}}
	changes := p.changes()
	for _, c := range changes {
		if c.Kind == remove || c.Kind == rename {
			w.deletedOrRenamed[c.Old] = true
		}
	}
	for i, c := range changes {
		if err := w.apply(p.files[i], c); err != nil {
			return nil, err
		}
	}
	next := maps.Clone(tree)
	if next == nil {
		next = Tree{}
	}
	for name := range w.removed {
		delete(next, name)
	}
	maps.Copy(next, w.written)
	if err := w.checkCollisions(next); err != nil {
		return nil, err
	}
	return next, nil
}

// work is the state of a patch being applied.
type work struct {
	before           Tree
	deletedOrRenamed map[string]bool // paths that any change of the patch deletes or renames
	removed          map[string]bool
	written          Tree
}

// checkCollisions returns an error if a written path is below a file or a link, or is a directory.
func (w *work) checkCollisions(next Tree) error {
	if len(w.written) == 0 {
		return nil
	}
	dirs := map[string]bool{}
	for name := range next {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.written)) {
		if dirs[name] {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "the patch makes a file where the repository has a directory")
		}
		if err := next.checkPath(name); err != nil {
			return err
		}
	}
	return nil
}

// source returns the file that a change starts from.
func (w *work) source(c change) (f File, exists bool) {
	if c.Kind != rename && c.Kind != copied {
		if f, exists = w.written[c.Old]; exists || w.removed[c.Old] {
			return f, exists
		}
	}
	f, exists = w.before[c.Old]
	return f, exists
}

// modes holds the modes that a patch states for a file; hasBefore and hasNew are false where it states
// none.
type modes struct {
	before, after     string
	hasBefore, hasNew bool
}

func modesOf(f *gitdiff.File) (m modes, err error) {
	for _, x := range []struct {
		mode os.FileMode
		to   *string
		has  *bool
	}{{f.OldMode, &m.before, &m.hasBefore}, {f.NewMode, &m.after, &m.hasNew}} {
		if x.mode == 0 {
			continue
		}
		if *x.to, *x.has = modeOf(x.mode); !*x.has {
			return m, fmt.Errorf("the mode %o is not one of a file or a link", x.mode)
		}
	}
	return m, nil
}

// exists reports whether a file of that name exists, so that a change cannot create it.
func (w *work) exists(name string) bool {
	_, written := w.written[name]
	_, there := w.before[name]
	return written || there && !w.deletedOrRenamed[name]
}

func (w *work) apply(f *gitdiff.File, c change) error {
	fail := func(format string, args ...any) error {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: c.path()}, format, args...).
			WithFix("make the patch against the same commit")
	}
	m, err := modesOf(f)
	if err != nil {
		return fail("%w", err)
	}
	before, exists := File{}, false
	if c.Kind != add {
		before, exists = w.source(c)
	}
	if exists && m.hasBefore && (m.before == link) != (before.Mode == link) {
		return fail("the patch is for a file of mode %s, found mode %s", gitMode(m.before), gitMode(before.Mode))
	}
	switch {
	case c.Kind == add:
		if w.exists(c.New) {
			return fail("the patch adds a file that exists already")
		}
	case !exists:
		return fail("the patch changes %q, which does not exist", c.Old)
	case c.New != c.Old && c.Kind != remove:
		if w.exists(c.New) {
			return fail("the patch moves %q onto a file that exists already", c.Old)
		}
	}
	after := before
	if m.hasNew {
		after.Mode = m.after
	}
	switch {
	case f.IsBinary && f.BinaryFragment == nil:
		return fail("binary change without data")
	case f.IsBinary:
		after.Content, err = applyBinary(before.Content, f)
	default:
		after.Content, err = applyText(before.Content, f.TextFragments)
	}
	if err != nil {
		return fail("%w", err)
	}
	if c.Kind == remove {
		if after.Content != "" {
			return fail("the patch deletes a file of which lines are left")
		}
		delete(w.written, c.Old)
		w.removed[c.Old] = true
		return nil
	}
	if c.Kind == rename {
		w.removed[c.Old] = true
	}
	w.written[c.New] = after
	return nil
}

// maxBinaryBytes bounds what a compressed binary change may unpack to.
const maxBinaryBytes = 64 << 20

// applyBinary applies a binary change, only to the content that it was made from: a literal change
// would replace any other content too.
func applyBinary(before string, f *gitdiff.File) (string, error) {
	if id := f.OldOIDPrefix; !f.IsNew && !strings.HasPrefix(blobID(before, len(id)), id) {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{}, "the binary change is one of another content, whose id is %s", id)
	}
	var out bytes.Buffer
	err := gitdiff.Apply(&out, strings.NewReader(before), f, gitdiff.WithMaxBinaryFragmentBytes(maxBinaryBytes))
	return out.String(), err
}

// blobID returns git's id of a content: SHA-1, or SHA-256 if an id of n digits is too long for SHA-1.
func blobID(content string, n int) string {
	var h hash.Hash = sha1.New()
	if n > 2*sha1.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00%s", len(content), content)
	return hex.EncodeToString(h.Sum(nil))
}

// line is a line of a file while hunks are applied.
type line struct {
	text string
	done bool // written by a hunk, context included: no other hunk may match it
}

// applyText applies the hunks in order, each at the place nearest to the one in its header where it
// matches exactly.
func applyText(before string, hunks []*gitdiff.TextFragment) (string, error) {
	if len(hunks) == 0 {
		return before, nil
	}
	var lines []line
	for text := range strings.Lines(before) {
		lines = append(lines, line{text: text})
	}
	for _, h := range hunks {
		var old []string
		var next []line
		for _, l := range h.Lines {
			if l.Old() {
				old = append(old, l.Line)
			}
			if l.New() {
				next = append(next, line{l.Line, true})
			}
		}
		at, ok := place(lines, old, h)
		if !ok {
			return "", rollout.Errorf(rollout.KindInput, rollout.Where{Line: int(min(h.OldPosition, math.MaxInt32))}, "hunk %s does not match the file", strings.TrimSpace(h.Header()))
		}
		lines = slices.Replace(lines, at, at+len(old), next...)
	}
	var b strings.Builder
	for i, l := range lines {
		// Only the last line may lack a line end.
		if i < len(lines)-1 && !strings.HasSuffix(l.text, "\n") {
			return "", rollout.Errorf(rollout.KindInput, rollout.Where{Line: i + 1}, "the patch leaves a line without its end in the middle of the file")
		}
		b.WriteString(l.text)
	}
	return b.String(), nil
}

// place returns the line at which a hunk applies. A hunk at the first line must match at the beginning
// of the file, and a hunk without trailing context at the end, since its context was cut by the end of
// the file; any other hunk may have moved.
func place(lines []line, old []string, h *gitdiff.TextFragment) (int, bool) {
	last := len(lines) - len(old)
	if last < 0 {
		return 0, false
	}
	atStart := h.OldPosition <= 1
	atEnd := h.TrailingContext == 0
	matches := func(at int) bool {
		if atStart && at != 0 || atEnd && at != last {
			return false
		}
		for i, text := range old {
			if l := lines[at+i]; l.done || l.text != text {
				return false
			}
		}
		return true
	}
	hint := int(min(max(h.NewPosition-1, 0), int64(last)))
	for distance := 0; distance <= len(lines); distance++ {
		if at := hint + distance; at <= last && matches(at) {
			return at, true
		}
		if at := hint - distance; distance > 0 && at >= 0 && matches(at) {
			return at, true
		}
	}
	return 0, false
}

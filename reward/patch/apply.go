package patch

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/turnpack/turnpack/rollout"
)

// Tree is a repository in memory: slash-separated path → content. Every verb
// that takes one leaves it as it is.
type Tree map[string]string

// Apply returns tree with the patch applied. All or nothing: any file that is
// missing, any hunk without a place is an error of kind input that names both.
func (p *Patch) Apply(tree Tree) (Tree, error) {
	next := maps.Clone(tree)
	if next == nil {
		next = Tree{}
	}
	for i, c := range p.Changes() {
		if err := applyFile(next, p.files[i], c); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func applyFile(tree Tree, f *gitdiff.File, c Change) error {
	fail := func(format string, args ...any) error {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: c.Path()}, format, args...).
			WithFix("make the patch against the same commit")
	}
	before, exists := tree[c.Old]
	switch {
	case c.Kind == Add:
		if _, there := tree[c.New]; there {
			return fail("the patch adds a file that exists already")
		}
	case !exists:
		return fail("the patch changes %q, which does not exist", c.Old)
	case c.New != c.Old && c.Kind != Delete:
		if _, there := tree[c.New]; there {
			return fail("the patch moves %q onto a file that exists already", c.Old)
		}
	}
	after := before
	var err error
	switch {
	case f.IsBinary && f.BinaryFragment == nil:
		return fail("binary change without data")
	case f.IsBinary:
		after, err = applyBinary(before, f)
	default:
		after, err = applyText(before, f.TextFragments)
	}
	if err != nil {
		return fail("%w", err)
	}
	if c.Kind == Delete {
		if after != "" {
			return fail("the patch deletes a file of which lines are left")
		}
		delete(tree, c.Old)
		return nil
	}
	if c.Kind == Rename {
		delete(tree, c.Old)
	}
	tree[c.New] = after
	return nil
}

// maxBinaryBytes bounds what a compressed binary change may unpack to.
const maxBinaryBytes = 64 << 20

func applyBinary(before string, f *gitdiff.File) (string, error) {
	var out bytes.Buffer
	err := gitdiff.Apply(&out, strings.NewReader(before), f, gitdiff.WithMaxBinaryFragmentBytes(maxBinaryBytes))
	return out.String(), err
}

// line is a line of a file that hunks are being applied to.
type line struct {
	text string
	done bool // written by a hunk, context included: no other hunk may match it
}

// applyText applies the hunks in order. Each goes where it fits exactly,
// nearest to where its header says.
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
		// A line that lost its end must be the last one.
		if i < len(lines)-1 && !strings.HasSuffix(l.text, "\n") {
			return "", rollout.Errorf(rollout.KindInput, rollout.Where{Line: i + 1}, "the patch leaves a line without its end in the middle of the file")
		}
		b.WriteString(l.text)
	}
	return b.String(), nil
}

// place finds where a hunk applies. A hunk at the first line must match at the
// beginning and one without trailing context at the end, since its context ends
// there because the file does; any other may have moved.
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

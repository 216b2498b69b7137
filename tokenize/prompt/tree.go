package prompt

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Tree holds the checkpoints of one rollout. It is safe for concurrent use.
type Tree struct {
	w  *writer
	mu sync.Mutex
	// root precedes all prompts.
	root          *node
	conversations map[uint64][]*node // by the hash of the messages of their prompts
	clock         uint64
	report        Report

	learning sync.Mutex
	learned  int        // turns of the record learnt so far
	pending  []*pending // the latest prompts without a reply
}

// node is a checkpoint. It holds what its prompt and reply add to a path from the root. All fields
// but next, gone and used are constant.
type node struct {
	base  *node
	after bool // it continues base's reply, else a cut in base's prompt
	start int  // byte of the path at which its own text begins
	kept  int  // number of ids in the path before its own
	text  string
	ids   []rollout.TokenID
	// End of the prompt and start of the reply, in the path.
	prompt, promptIDs int
	showing
	told     *rollout.Message
	declared string // reason of a kept prompt, "" for others

	next []*node
	gone bool   // dropped from the tree
	used uint64 // the clock when it was last continued from
}

func (n *node) end() int { return n.start + len(n.text) }

// path returns the first count ids of the path to the end of n.
func (n *node) path(count int) []rollout.TokenID {
	out := make([]rollout.TokenID, count, count+count/8+64)
	for ; n != nil && count > 0; n = n.base {
		if count > n.kept {
			copy(out[n.kept:count], n.ids)
			count = n.kept
		}
	}
	return out
}

// point is a place in a tree from which a prompt can continue.
type point struct {
	node  *node
	at    int  // offset in the path, in bytes
	ids   int  // the same in ids
	reply bool // after the reply of node
	holds bool // the last reply of the request is before it
}

// pointsFor returns the points from which a rendered request can continue, judged by its text and the
// origin of the text. Points after its last reply come first, then deeper ones; at the same depth a
// cut, which needs no proof, comes first, then the newest.
func (t *Tree) pointsFor(c *continuation, last int) []point {
	t.mu.Lock()
	defer t.mu.Unlock()
	points := []point{{node: t.root}}
	t.descend(t.root, c, last, false, &points)
	slices.Reverse(points)
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Or(order(b.holds, a.holds), cmp.Compare(b.at, a.at), order(a.reply, b.reply))
	})
	return points
}

// order compares booleans, false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// descend adds the points of n and the nodes below it. holds says that the path before n has the
// reply that is message last.
func (t *Tree) descend(n *node, c *continuation, last int, holds bool, points *[]point) {
	text := c.text.Text
	same := n.start + render.CommonText(n.text[:n.prompt-n.start], text[min(n.start, len(text)):])
	same = render.CommonOrigin(n.fields, c.text.Fields, n.since, same)
	// Whether text is a control token depends on the text after it.
	k := len(n.cuts)
	for k > 0 && n.cuts[k-1].at+t.w.added.Longest > same {
		k--
	}
	switch {
	case same == n.prompt && len(text) == n.prompt && n != t.root:
		*points = append(*points, point{n, n.prompt, n.promptIDs, false, holds})
	case k > 0:
		*points = append(*points, point{n, n.cuts[k-1].at, n.cuts[k-1].ids, false, holds})
	}
	reply := same == n.prompt && strings.HasPrefix(text[n.prompt:], n.text[n.prompt-n.start:]) && c.ownReply(n.prompt, n.end(), int32(n.messages))
	with := holds || n.messages == last && n != t.root
	if reply && n != t.root {
		*points = append(*points, point{n, n.end(), n.kept + len(n.ids), true, with})
	}
	for _, child := range n.next {
		if child.declared != "" { // its ids do not spell its text
			continue
		}
		switch {
		case child.after && reply:
			t.descend(child, c, last, with, points)
		case !child.after && child.start <= same:
			t.descend(child, c, last, holds, points)
		}
	}
}

// add adds n, a checkpoint made of a, to the tree.
func (t *Tree) add(a *pending, n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clock++
	n.used = t.clock
	if first := a.first; first != nil { // the first reply's checkpoint holds the prompt
		n.base, n.after, n.start, n.kept, n.since = first, false, first.prompt, first.promptIDs, first.prompt
		n.text, n.ids, n.fields, n.cuts = strings.Clone(n.text[len(a.text):]), slices.Clone(n.ids[len(a.ids):]), nil, nil
	} else {
		t.report.count(a)
	}
	a.first = cmp.Or(a.first, n)
	t.pending = slices.DeleteFunc(t.pending, func(o *pending) bool { return o == a })
	for at := n.base; at.gone; at = at.base {
		t.link(at)
	}
	t.link(n)
	for x := n.base; x != nil; x = x.base {
		x.used = max(x.used, t.clock)
	}
	t.shrink(n)
}

func (t *Tree) link(n *node) {
	n.gone = false
	n.base.next = append(n.base.next, n)
	t.conversations[n.conversation] = append(t.conversations[n.conversation], n)
	t.report.Checkpoints++
	t.report.Tokens += len(n.ids)
}

func (t *Tree) unlink(n *node) {
	is := func(o *node) bool { return o == n }
	n.gone = true
	n.base.next = slices.DeleteFunc(n.base.next, is)
	if same := slices.DeleteFunc(t.conversations[n.conversation], is); len(same) > 0 {
		t.conversations[n.conversation] = same
	} else {
		delete(t.conversations, n.conversation)
	}
	t.report.Checkpoints--
	t.report.Tokens -= len(n.ids)
	t.report.LetGo++
}

// shrink drops checkpoints until the limits hold again: leaves, least recently used first, the
// newest one last.
func (t *Tree) shrink(newest *node) {
	for t.report.Checkpoints > t.w.opts.MaxCheckpoints || t.report.Tokens > t.w.opts.MaxTokens {
		oldest := newest
		for _, same := range t.conversations {
			for _, n := range same {
				if len(n.next) == 0 && n.used < oldest.used {
					oldest = n
				}
			}
		}
		t.unlink(oldest)
		if oldest == newest {
			return
		}
	}
}

// Report returns the counts of the tree so far.
func (t *Tree) Report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out Report
	out.Add(t.report)
	return out
}

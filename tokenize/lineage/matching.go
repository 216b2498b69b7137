package lineage

import "cmp"

// matching chooses the landings from which rows continue: as many as can be matched with prompts
// and, among those choices, the cheapest.
//
// It is a minimum-cost flow. Every turn sends one unit to one of its landings, at the landing's
// price; from there the unit runs down the tree, at no cost, to a prompt. Turns are added one by
// one, each along a cheapest path in the residual flow: onto a landing with a free prompt below, or
// in place of another turn, which moves on or loses its successor. This keeps the flow at minimum
// cost, in any order (successive shortest paths). It begins with the exact joins, which cost
// nothing and are as many as possible.
//
// Which unit goes to which prompt is left open, so that a path through the tree takes a few steps
// instead of one for each pair.
type matching struct {
	*repairs
	held   []landing // by turn: where its row continues; node none if the row ends
	first  []int32   // by node: a turn that holds it
	next   []int32   // by turn: the next turn that holds the same node
	flow   []int32   // by node: units that enter it from its parent
	open   *openStarts
	closed []bool // by node: no unit below can leave, and none of them has a cost

	search  int     // number of the current search
	since   int     // number of the first search since the flow changed
	steps   []step  // by turn: how a search reached it
	reached []label // by node: the least label at which a search reached all units below
	queue   []int32 // turns to move
	regions []int32 // nodes below which the search reached turns
	costly  bool    // a turn in regions pays for its landing
}

// label is the cost of a path and its length. Of the cheapest paths the shortest is taken: it uses
// no part of the tree twice.
type label struct {
	search     int
	cost, hops int
}

// better reports whether a is better than b. Labels of searches before the last change of the flow
// do not count. Labels of later searches do, although these found nothing: what they reached at a
// lower label need not be visited again.
func (c *matching) better(a, b label) bool {
	return b.search < c.since || cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.hops, b.hops)) < 0
}

// step says which turn takes which landing so that another turn leaves its own.
type step struct {
	label
	by     int32
	takes  landing
	queued bool
}

func newMatching(r *repairs, heads []int32) *matching {
	n, nodes := len(r.turns), len(r.trie.nodes)
	c := &matching{repairs: r, open: newOpenStarts(r.merge, heads), held: make([]landing, n), first: filled(nodes, none), next: filled(n, none), flow: make([]int32, nodes),
		closed: make([]bool, nodes), since: 1, steps: make([]step, n), reached: make([]label, nodes)}
	for i := range r.turns {
		t := &r.turns[i]
		c.held[i].node = none
		if r.succ[i] != none {
			c.hold(int32(i), t.end())
			c.flow[t.full]--
		}
		if r.pred[i] != none {
			c.flow[t.prompt]++
		}
	}
	r.sumUp(c.flow)
	return c
}

func (c *matching) hold(i int32, l landing) {
	c.held[i] = l
	c.next[i], c.first[l.node] = c.first[l.node], i
}

func (c *matching) leave(i int32) {
	at := &c.first[c.held[i].node]
	for *at != i {
		at = &c.next[*at]
	}
	*at = c.next[i]
	c.held[i].node = none
}

// exit is the end of a path: turn i takes a landing that has room for it, or its row ends.
type exit struct {
	label
	i     int32
	takes landing // node none: the row of i ends
	start int     // the open start that the unit takes
}

// add finds turn i, a row end, its place in the flow.
func (c *matching) add(i int32) {
	c.search++
	c.steps[i] = step{label: label{search: c.search}, by: none}
	c.queue, c.regions, c.costly = append(c.queue[:0], i), c.regions[:0], false
	moved := exit{i: none}
	ended := exit{label: c.steps[i].label, i: i, takes: landing{node: none}}
	for q := 0; q < len(c.queue); q++ {
		k := c.queue[q]
		c.steps[k].queued = false
		so := c.steps[k].label
		if c.better(so, ended.label) {
			ended.label, ended.i = so, k
		}
		for _, l := range c.of(k) {
			if l == c.held[k] {
				continue
			}
			way := label{c.search, so.cost + c.price(l), so.hops + 1}
			// No path that continues from here, or takes a later landing, costs less than moved:
			// the flow so far is of minimum cost.
			if !c.better(way, moved.label) {
				break
			}
			if c.past(l.node, way) {
				continue
			}
			top, start, ok := c.room(l.node)
			if ok {
				moved = exit{way, k, l, start}
				break
			}
			c.regions = append(c.regions, top)
			c.reach(top, step{label: way, by: k, takes: l})
		}
	}
	switch {
	case moved.i != none:
		c.since = c.search + 1
		c.shift(moved.takes.node, c.turns[c.open.turns[moved.start]].prompt)
		c.open.take(moved.start)
		c.move(moved)
	case ended.i != i:
		c.since = c.search + 1
		c.move(ended)
	case !c.costly:
		c.close()
	}
}

// close marks what a search reached without finding an exit: it can never be used.
func (c *matching) close() {
	for _, top := range c.regions {
		for at := c.pre.in[top]; at <= c.pre.last[top]; at++ {
			x := c.pre.nodes[at]
			if c.closed[x] {
				at = c.pre.last[x]
			}
			c.closed[x] = true
		}
	}
}

// room looks for an open start to which a unit landing on node x could run. If there is none it
// returns the node below which all units block it.
func (c *matching) room(x int32) (top int32, start int, ok bool) {
	for {
		if start, ok = c.open.first(x); ok || c.flow[x] == 0 {
			return x, start, ok
		}
		x = c.trie.nodes[x].parent // replaces a unit that enters here
	}
}

// past reports that a path to all units below node x is useless: it, or a better one, was searched
// before.
func (c *matching) past(x int32, way label) bool {
	switch {
	case c.closed[x]:
		return true
	case c.better(way, c.reached[x]):
		return false
	}
	c.costly = c.costly || c.reached[x].search != c.search // an earlier search left it open because of the cost
	return true
}

// reach takes step s to all units below node top, one of which must move.
func (c *matching) reach(top int32, s step) {
	for at := c.pre.in[top]; at <= c.pre.last[top]; at++ {
		x := c.pre.nodes[at]
		if c.past(x, s.label) {
			at = c.pre.last[x]
			continue
		}
		c.reached[x] = s.label
		for k := c.first[x]; k != none; k = c.next[k] {
			saved := c.price(c.held[k])
			c.costly = c.costly || saved > 0
			to := s
			to.cost -= saved
			if !c.better(to.label, c.steps[k].label) {
				continue
			}
			if to.queued = true; !c.steps[k].queued {
				c.queue = append(c.queue, k)
			}
			c.steps[k] = to
		}
	}
}

// move makes the moves of the path that ends with e, the last one first.
func (c *matching) move(e exit) {
	k, takes := e.i, e.takes
	for {
		s := &c.steps[k]
		if s.by != none {
			c.shift(s.takes.node, c.held[k].node)
			c.leave(k)
		}
		if takes.node != none {
			c.hold(k, takes)
		}
		if s.by == none {
			return
		}
		k, takes = s.by, s.takes
	}
}

// shift lets a unit that lands on node x replace one that ran from node y.
func (c *matching) shift(x, y int32) {
	for ; !c.pre.holds(x, y); x = c.trie.nodes[x].parent {
		c.flow[x]--
	}
	for ; y != x; y = c.trie.nodes[y].parent {
		c.flow[y]++
	}
}

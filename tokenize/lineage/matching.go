package lineage

import "cmp"

// matching chooses the landings from which rows go on: the most that prompts can
// be found for and, among those, the cheapest.
//
// It is a flow of least cost. Every turn sends one unit to one of its landings,
// at the landing's price; from there it runs down the tree, for nothing, to a
// prompt. Turns are added one by one, each along a cheapest way in what the flow
// so far leaves open: onto a landing with a free prompt below, or in place of
// another turn, which moves on or loses its successor. Adding in this manner
// keeps the flow of least cost, whatever the order (successive shortest paths).
// It begins with the exact joins, which cost nothing and are the most there can
// be of their kind.
//
// Which unit goes to which prompt is left open, so that a way through the tree
// takes a few steps instead of one for each pair.
type matching struct {
	*repairs
	held   []landing // by turn: where its row goes on; node none where it ends
	first  []int32   // by node: a turn that holds it
	next   []int32   // by turn: the next that holds the same
	flow   []int32   // by node: units that enter it from its parent
	open   *openStarts
	closed []bool // by node: no unit below it can leave, and all are there for nothing

	search  int     // number of the search at hand
	since   int     // number of the first search since the flow changed
	steps   []step  // by turn: how a search reached it
	reached []label // by node: the least at which a search reached all below
	queue   []int32 // turns to move
	regions []int32 // nodes below which the search reached turns
	costly  bool    // one of them pays for its landing
}

// label is the cost of a way and its length. Of the cheapest ways the shortest
// is taken: it uses no part of the tree twice.
type label struct {
	search     int
	cost, hops int
}

// better says whether a improves on b. Labels of searches before the last change
// of the flow do not count. Those of searches since then do, in vain as they
// were: what they reached for less need not be looked at again.
func (c *matching) better(a, b label) bool {
	return b.search < c.since || cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.hops, b.hops)) < 0
}

// step says which turn takes which landing so that another leaves its own.
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

// exit is how a way ends: turn i takes a landing that has room for it, or ends
// its row.
type exit struct {
	label
	i     int32
	takes landing // node none: it ends its row
	start int     // the open start below takes
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
			// No way from here on lowers the cost: what is in place is of least cost.
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

// close marks what a search reached in vain: it can never be of use.
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

// room looks for an open start that a unit landing on node x could run to. Where
// there is none it returns the node below which all units are in its way.
func (c *matching) room(x int32) (top int32, start int, ok bool) {
	for {
		if start, ok = c.open.first(x); ok || c.flow[x] == 0 {
			return x, start, ok
		}
		x = c.trie.nodes[x].parent // takes the place of a unit that enters here
	}
}

// past says that a way to all units below node x is of no use: it was gone, or a
// better one.
func (c *matching) past(x int32, way label) bool {
	switch {
	case c.closed[x]:
		return true
	case c.better(way, c.reached[x]):
		return false
	}
	c.costly = c.costly || c.reached[x].search != c.search // an earlier search left it open for that
	return true
}

// reach takes step s to all units below node top: one of them has to give way.
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

// move makes the moves of the way that ends with e, the last first.
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

// shift lets a unit that lands on node x run where one ran from node y.
func (c *matching) shift(x, y int32) {
	for ; !c.pre.holds(x, y); x = c.trie.nodes[x].parent {
		c.flow[x]--
	}
	for ; y != x; y = c.trie.nodes[y].parent {
		c.flow[y]++
	}
}

package serve

import "time"

// maxNames is the minimum number of group names remembered, those used last.
const maxNames = 50_000

// names remembers the next step of groups by name. A forgotten name resumes at a step above those of all
// forgotten names, so that no key repeats.
type names struct {
	most        int
	now, before map[string]name
	floor       int // above the steps of the forgotten names
}

type name struct {
	step  int       // next step of the group
	short time.Time // when a deadline last closed the group; zero = never
}

func newNames(most int) *names { return &names{most: most, now: map[string]name{}} }

func (n *names) get(group string) name {
	if x, ok := n.now[group]; ok {
		return x
	}
	if x, ok := n.before[group]; ok {
		return x
	}
	return name{step: n.floor}
}

// set changes the entry of a group.
func (n *names) set(group string, change func(*name)) {
	x := n.get(group)
	change(&x)
	if n.now[group] = x; len(n.now) < n.most {
		return
	}
	for _, old := range n.before {
		n.floor = max(n.floor, old.step)
	}
	n.now, n.before = map[string]name{}, n.now
}

// atLeast makes the group continue at that step, or a later one.
func (n *names) atLeast(group string, step int) {
	n.set(group, func(x *name) { x.step = max(x.step, step) })
}

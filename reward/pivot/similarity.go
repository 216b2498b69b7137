package pivot

// ratio returns the similarity of two texts as Python's difflib.SequenceMatcher(None, a, b).ratio()
// does: 2·M / T, where M is the number of characters in matching blocks and T the number in both
// texts, and 1 for two empty texts. It applies the automatic junk rule: if b has 200 characters or
// more, characters more frequent than 1 % + 1 do not start a match. The result depends on the order of
// a and b.
func ratio(a, b []rune) float64 {
	if len(a)+len(b) == 0 {
		return 1
	}
	m := newMatcher(a, b)
	return 2 * float64(m.matches()) / float64(len(a)+len(b))
}

type matcher struct {
	a, b []rune
	// where holds the positions of each character of b that may start a match.
	where map[rune][]int
	// runs holds, for the current row of a and the previous one, the length of the match that ends at
	// each position of b; touched lists the positions that are not zero.
	runs, next             []int
	touched, nextIsTouched []int
}

// junkFrom is the least length of b at which frequent characters are ignored.
const junkFrom = 200

func newMatcher(a, b []rune) *matcher {
	m := &matcher{a: a, b: b, where: make(map[rune][]int), runs: make([]int, len(b)+1), next: make([]int, len(b)+1)}
	for j, r := range b {
		m.where[r] = append(m.where[r], j)
	}
	if n := len(b); n >= junkFrom {
		for r, at := range m.where {
			if len(at) > n/100+1 {
				delete(m.where, r)
			}
		}
	}
	return m
}

// matches returns the total length of the matching blocks: the longest block, then recursively those
// to its left and right.
func (m *matcher) matches() int {
	type window struct{ alo, ahi, blo, bhi int }
	todo := []window{{0, len(m.a), 0, len(m.b)}}
	total := 0
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		i, j, size := m.longest(w.alo, w.ahi, w.blo, w.bhi)
		if size == 0 {
			continue
		}
		total += size
		if w.alo < i && w.blo < j {
			todo = append(todo, window{w.alo, i, w.blo, j})
		}
		if i+size < w.ahi && j+size < w.bhi {
			todo = append(todo, window{i + size, w.ahi, j + size, w.bhi})
		}
	}
	return total
}

// longest returns the longest matching block in a[alo:ahi], b[blo:bhi], the earliest in a, then in b,
// extended over characters that may not start a match.
func (m *matcher) longest(alo, ahi, blo, bhi int) (besti, bestj, size int) {
	besti, bestj = alo, blo
	for i := alo; i < ahi; i++ {
		for _, j := range m.where[m.a[i]] {
			if j < blo {
				continue
			}
			if j >= bhi {
				break
			}
			k := 1
			if j > 0 {
				k = m.runs[j-1] + 1
			}
			m.next[j] = k
			m.nextIsTouched = append(m.nextIsTouched, j)
			if k > size {
				besti, bestj, size = i-k+1, j-k+1, k
			}
		}
		for _, j := range m.touched {
			m.runs[j] = 0
		}
		m.runs, m.next = m.next, m.runs
		m.touched, m.nextIsTouched = m.nextIsTouched, m.touched[:0]
	}
	for _, j := range m.touched {
		m.runs[j] = 0
	}
	m.touched = m.touched[:0]
	for besti > alo && bestj > blo && m.a[besti-1] == m.b[bestj-1] {
		besti, bestj, size = besti-1, bestj-1, size+1
	}
	for besti+size < ahi && bestj+size < bhi && m.a[besti+size] == m.b[bestj+size] {
		size++
	}
	return besti, bestj, size
}

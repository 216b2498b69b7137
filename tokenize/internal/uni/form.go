package uni

const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	countL, countV, countT             = 19, 21, 28
	countS                             = countL * countV * countT
)

// Char is one character of a normal form. Change is what the reference's
// alignment needs to know: 1 for a character put in, 0 for a replaced one, −n
// for one that also swallows the n characters after it.
type Char struct {
	R      rune
	Change int
}

type pending struct {
	Char
	class uint8
}

// Decompose appends NFD (compat: NFKD) of text to dst.
func (t *Tables) Decompose(dst []Char, text []byte, compat bool) []Char {
	var marks []pending
	flush := func() {
		sortMarks(marks)
		for _, p := range marks {
			dst = append(dst, p.Char)
		}
		marks = marks[:0]
	}
	push := func(r rune, change int) {
		class := t.ccc[r]
		if class == 0 {
			flush()
			dst = append(dst, Char{r, change})
			return
		}
		marks = append(marks, pending{Char{r, change}, class})
	}
	for i := 0; i < len(text); {
		r, size := DecodeRune(text[i:])
		i += size
		if r < 0xC0 && !compat || r < 0x80 {
			flush()
			dst = append(dst, Char{r, 0})
			continue
		}
		d := t.nfd[r]
		if compat {
			if k, ok := t.nfkd[r]; ok {
				d = k
			}
		}
		switch {
		case r >= hangulS && r < hangulS+countS:
			s := r - hangulS
			push(hangulL+s/(countV*countT), 0)
			push(hangulV+s%(countV*countT)/countT, 1)
			if s%countT != 0 {
				push(hangulT+s%countT, 1)
			}
		case d == nil:
			push(r, 0)
		default:
			for k, c := range d {
				push(c, min(k, 1))
			}
		}
	}
	flush()
	return dst
}

// firstJoining is the first character that can be the second of a pair.
const firstJoining = 0x300

func (t *Tables) pair(a, b rune) (rune, bool) {
	if b < firstJoining {
		return 0, false
	}
	if a >= hangulL && a < hangulL+countL && b >= hangulV && b < hangulV+countV {
		return hangulS + ((a-hangulL)*countV+(b-hangulV))*countT, true
	}
	if a >= hangulS && a < hangulS+countS && (a-hangulS)%countT == 0 && b > hangulT && b < hangulT+countT {
		return a + (b - hangulT), true
	}
	c, ok := t.pairs[[2]rune{a, b}]
	return c, ok
}

// Recompose turns NFD characters into NFC in place. Marks that follow a base
// and do not join it come after it, in order, with the changes they had.
func (t *Tables) Recompose(d []Char) []Char {
	out := d[:0]
	base := -1 // index in out of the last starter
	var last uint8
	for _, c := range d {
		class := t.ccc[c.R]
		if base >= 0 {
			if blocked := last != 0 && last >= class; !blocked {
				if r, ok := t.pair(out[base].R, c.R); ok {
					out[base].R = r
					out[base].Change += c.Change - 1
					continue
				}
			}
		}
		out = append(out, c)
		if class == 0 {
			base, last = len(out)-1, 0
		} else if base >= 0 {
			last = class
		}
	}
	return out
}

func sortMarks(m []pending) {
	if len(m) < 2 {
		return
	}
	if len(m) <= 16 {
		for i := 1; i < len(m); i++ {
			for k := i; k > 0 && m[k].class < m[k-1].class; k-- {
				m[k], m[k-1] = m[k-1], m[k]
			}
		}
		return
	}
	// counting sort by class: linear whatever the number of marks
	var start [257]int
	for _, p := range m {
		start[int(p.class)+1]++
	}
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	tmp := make([]pending, len(m))
	for _, p := range m {
		tmp[start[p.class]] = p
		start[p.class]++
	}
	copy(m, tmp)
}

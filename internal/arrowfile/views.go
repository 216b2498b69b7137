package arrowfile

import (
	"encoding/binary"
	"errors"
)

// maxInline is the greatest length of a text that a view holds itself.
const maxInline = 12

// views reads the views of a and the buffers to which they point. Each view takes 16 bytes:
// its length, then either the text, or its first 4 bytes, the number of a buffer and the
// offset there.
func (b *batch) views(a *series) (err error) {
	if a.data, err = b.nextBuffer(16 * a.n); err != nil {
		return err
	}
	more, err := b.moreBuffers()
	if err != nil {
		return err
	}
	for range more {
		text, err := b.nextBuffer(0)
		if err != nil {
			return err
		}
		a.texts = append(a.texts, text)
	}
	for i := range a.n {
		n, k, at := a.view(i)
		if !bit(a.valid, i) || n >= 0 && n <= maxInline {
			continue
		}
		if n < 0 || k < 0 || k >= len(a.texts) || at < 0 || n > len(a.texts[k])-at {
			return errors.New("a view points outside its buffers")
		}
	}
	return nil
}

// moreBuffers returns how many buffers of texts follow the views of the next column.
func (b *batch) moreBuffers() (int, error) {
	if b.extra >= b.extras.n {
		return 0, errShort
	}
	more := b.extras.int64(b.extra, 0)
	if b.extra++; more < 0 || more > int64(b.buffers.n) {
		return 0, errShort
	}
	return int(more), nil
}

func (a *series) view(i int) (n, buffer, at int) {
	number := func(at int) int { return int(int32(binary.LittleEndian.Uint32(a.data[16*i+at:]))) }
	return number(0), number(8), number(12)
}

// text returns value i of a column of texts or bytes.
func (a *series) text(i int) []byte {
	if a.f.id != typeTextView && a.f.id != typeBytesView {
		return a.data[a.end(i):a.end(i+1)]
	}
	n, buffer, at := a.view(i)
	if n <= maxInline {
		return a.data[16*i+4:][:n]
	}
	return a.texts[buffer][at : at+n]
}

// listViews reads the offsets and the lengths of lists, which may overlap, and the column of
// their elements.
func (b *batch) listViews(a *series) error {
	need := 4 * a.n
	if a.wide {
		need *= 2
	}
	var err error
	if a.ends, err = b.nextBuffer(need); err != nil {
		return err
	}
	if a.data, err = b.nextBuffer(need); err != nil {
		return err
	}
	need = 0
	for i := range a.n {
		from, to := a.span(i)
		if !bit(a.valid, i) {
			continue
		}
		if from < 0 || to < from {
			return errors.New("the offsets contradict each other")
		}
		need = max(need, to)
	}
	return b.kids(a, need)
}

// span returns where the elements of list i are.
func (a *series) span(i int) (from, to int) {
	if a.f.id != typeListView && a.f.id != typeBigListView {
		return a.end(i), a.end(i + 1)
	}
	return a.end(i), a.end(i) + a.offset(a.data, i)
}

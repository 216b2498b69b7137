package value

// Arena makes values that lie side by side in memory, in the order in which they
// are made: what is read for the first time then waits for fewer lines of it.
type Arena struct {
	fields  slab[Field]
	strs    slab[Str]
	dicts   slab[Dict]
	entries slab[entry]
	lists   slab[List]
	items   slab[Value]
}

// Field stores a Field and sets its part.
func (a *Arena) Field(f Field) *Field {
	p := &a.fields.take(1)[0]
	*p = f
	p.place()
	return p
}

// Str returns a string that comes from f.
func (a *Arena) Str(s string, f *Field) *Str {
	p := &a.strs.take(1)[0]
	p.S, p.F = s, f
	return p
}

// Dict returns an empty dict with room for n entries.
func (a *Arena) Dict(n int, f *Field) *Dict {
	p := &a.dicts.take(1)[0]
	p.entries, p.F = a.entries.take(n)[:0], f
	return p
}

// List returns a list of n items that are still to be set.
func (a *Arena) List(n int, f *Field) *List {
	p := &a.lists.take(1)[0]
	p.Items, p.F = a.items.take(n), f
	return p
}

// slab cuts slices out of larger ones.
type slab[T any] struct {
	free []T
	size int // of the slice before
}

func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.size = min(max(4, 2*s.size), 256)
		s.free = make([]T, max(n, s.size))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

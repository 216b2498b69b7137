package value

// Limits bounds what the operations of one run may build and do. Sizes are checked before memory is allocated. Each
// run has its own Limits, which counts what was used; with Work and Memory 0 it only counts. It also keeps the first
// failure of the run: after one, operations may return anything, as long as they terminate.
type Limits struct {
	Bytes    int // of any string
	Items    int // of any list
	IntBytes int // of any integer
	Depth    int // nesting of values that are printed or compared

	// Work and Memory bound the whole run: units of about a nanosecond, and bytes of everything allocated, even if
	// freed. Operations draw on them by the size of what they read and write.
	Work, Memory int64

	Err *Fault // the first failure

	work, made int64
}

// StrSize is the approximate memory in bytes of a string in a list, without its text.
const StrSize = 64

// StepWork is the work of one statement, pass of a loop, or visited item.
const StepWork = 50

// Spend counts work and reports whether the run may continue. Exhausting Work or Memory is a failure.
func (l *Limits) Spend(work int) bool {
	l.work += int64(work)
	return l.work <= l.Work && l.Err == nil || l.check()
}

// Make counts bytes that are about to be allocated, and reports whether the run may continue, as Spend does.
func (l *Limits) Make(bytes int) bool {
	l.made += int64(bytes)
	return l.Spend(bytes) && l.made <= l.Memory || l.check()
}

// check reports whether there was no failure, after recording one if Work or Memory is exhausted.
func (l *Limits) check() bool {
	switch {
	case l.Memory > 0 && l.made > l.Memory:
		l.Failf(Limit, "the template made more than %d bytes of values and text", l.Memory)
	case l.Work > 0 && l.work > l.Work:
		l.Failf(Limit, "the template did more than %d units of work (%d for a statement, 1 for a byte)", l.Work, StepWork)
	}
	return l.Err == nil
}

// Text counts n bytes of a string that is about to be made, and reports whether it may be made.
func (l *Limits) Text(n int) bool {
	if n > l.Bytes {
		l.Failf(Limit, "string of %d bytes, more than %d", n, l.Bytes)
	}
	return l.Make(n)
}

// Item counts one more string for a list of n items, and reports whether it may be made.
func (l *Limits) Item(n int) bool {
	if n >= l.Items {
		l.Failf(Limit, "list of more than %d items", l.Items)
	}
	return l.Make(StrSize)
}

// Used returns the work and the memory counted so far.
func (l *Limits) Used() (work, memory int64) { return l.work, l.made }

// Scan counts the work of reading n bytes once.
func (l *Limits) Scan(n int) bool { return l.Spend(n/2 + 1) }

// Integer counts the work and memory of computing with an integer: its text, its parts, or a fraction of it. It
// counts nothing for integers of 64 bits and for other values.
func (l *Limits) Integer(v Value) bool {
	i, ok := v.(*Int)
	if !ok || i.Big == nil {
		return true
	}
	n := i.Big.BitLen() / 8
	return l.Make(16*n+64) && l.Product(n, n)
}

// Float counts the work and memory of converting f to an integer or to its digits.
func (l *Limits) Float(f float64) bool { return -1<<63 < f && f < 1<<63 || l.Make(2<<10) }

// numbers counts the work of comparing n and m, which copies integers.
func (l *Limits) numbers(n, m Number) {
	for _, k := range [...]Number{n, m} {
		if k.B != nil {
			l.Make(k.B.BitLen() / 4)
		}
	}
}

// Digits counts the work and memory of parsing a number of n digits.
func (l *Limits) Digits(n int) bool { return l.Make(16*n) && l.Product(n, n) }

// Product counts the work of multiplying or dividing integers of a and b bytes.
func (l *Limits) Product(a, b int) bool { return l.Spend(a + b + a*b/64) }

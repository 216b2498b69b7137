package turnpack

import (
	"sync"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// heldTokens is how many tokens of the rows of one rollout wait as they are until
// the rollout is encoded; rows beyond wait as bytes, heldRowBytes of them in memory
// and the others in a temporary file.
const (
	heldTokens   = 1 << 19
	heldRowBytes = 1 << 20
)

// heldLimit is how many bytes of rows of later groups wait in memory; what comes
// beyond waits in a temporary file.
const heldLimit = 4 << 20

// hugeRow is the length from which on any row is held as runs: beyond any model's context.
const hugeRow = 1 << 20

// runWriter is a Sink that takes rows as runs, as *export.Writer does. It keeps neither
// ids nor log probabilities.
type runWriter interface {
	WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error
}

// rolloutRows are the rows of one rollout, in order. They wait until the last is
// made: it may fail, and each row says how many tokens all of them train.
type rolloutRows struct {
	rows    spool.Queue
	n       int
	all     int64 // tokens of all rows
	trained int64
}

// add keeps a row that rollout.FinishRows has settled alone.
func (q *rolloutRows) add(s spool.Row, spools *spools) error {
	q.n++
	q.all += int64(s.Len())
	q.trained += int64(s.Trained())
	q.rows.Tokens, q.rows.Prefixes, q.rows.Open = spools.tokens, spools.prefixes, spools.open
	return q.rows.Add(s)
}

// each gives the rows as rollout.FinishRows settles them together, and forgets them.
func (q *rolloutRows) each(emit func(spool.Row) error) error {
	i := 0
	return q.rows.Each(func(s spool.Row) error {
		s.SampleIndex, s.IsLast = i, i == q.n-1
		s.ID, s.RolloutMaskSum = rollout.SampleID(s.Rollout, i), q.trained
		i++
		return emit(s)
	})
}

// spools makes those of single rollouts.
type spools struct {
	dir    string
	tokens int // heldTokens, but for tests
	bytes  int64
	// prefixes says that the rows of a rollout begin as the one before.
	prefixes bool

	mu     sync.Mutex
	opened []*spool.Spool
}

func (s *spools) open() *spool.Spool {
	one := spool.New(s.dir, s.bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, one)
	return one
}

// close removes what rollouts left that were never written.
func (s *spools) close() {
	for _, one := range s.opened {
		one.Close()
	}
}

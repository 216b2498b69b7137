package slime

import (
	"archive/zip"
	"bufio"
	"cmp"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/rowsteps"
	"github.com/turnpack/turnpack/rollout"
)

// Options says how a file is written.
type Options struct {
	// Export holds the rules that rows are checked by, and Force; its other options are
	// ignored.
	Export export.Options
	// Step is the rollout_id of the file, slime's number of the training step.
	Step int
	// Rollouts is slime's --global-batch-size. slime fails on a step with fewer rollouts and
	// drops rollouts beyond a multiple of it. The file is therefore filled up to the next
	// multiple with removed samples that train nothing, like those that slime's coding agent
	// leaves for an aborted rollout: two ids 0, mask 0, reward and advantage 0. They count in
	// the mean over rollouts. 0 adds none.
	Rollouts int
	// ByRollout gives all samples of a rollout the same index: the slime of OpenClaw-RL
	// compares rollouts by index, while slime itself compares them by rollout_id.
	ByRollout bool
}

// Write writes rows to the file path, which appears complete or not at all.
func Write(path string, rows []rollout.Sample, o Options) error {
	f, err := atomic.Create(path, o.Export.Force)
	if err != nil {
		return err
	}
	if err := write(f, rows, o); err != nil {
		return errors.Join(atomic.Locate(rollout.Where{File: path}, err), f.Abort())
	}
	return f.Commit()
}

// writer is the state of a file that is being written.
type writer struct {
	o        Options
	logprobs bool // whether samples have log probabilities
	p        *pickler
	n        int // number of samples
	count    int // number of rollouts
	groups   int
	group    string
	rollout  string
	first    int // index of the current rollout's first sample
}

func write(f io.Writer, rows []rollout.Sample, o Options) error {
	check, err := export.NewChecker(o.Export)
	if err != nil {
		return err
	}
	if o.Rollouts < 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "slime.Options.Rollouts"}, "found %d, expected 0 (fill nothing) or more", o.Rollouts)
	}
	archive := zip.NewWriter(f)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	part := func(name, text string, method uint16) (io.Writer, error) {
		e, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.WriteString(e, text)
		}
		return e, err
	}
	_, err1 := part("archive/version", "3\n", zip.Store)
	_, err2 := part("archive/byteorder", "little", zip.Store)
	e, err := part("archive/data.pkl", "", zip.Deflate)
	if err = errors.Join(err1, err2, err); err != nil {
		return err
	}
	w := &writer{o: o, p: &pickler{w: bufio.NewWriterSize(e, 1<<16), memo: map[string]int{}}}
	if c := o.Export.Columns; c != nil {
		w.logprobs = c.Logprobs
	} else {
		w.logprobs = len(rows) > 0 && rows[0].Logprob != nil
	}
	w.p.op(0x80, 2, '}', '(')
	w.p.text("rollout_id")
	w.p.int(int64(o.Step))
	w.p.text("samples")
	w.p.op(']', '(')
	for _, s := range rows {
		if err := check.Check(&s); err != nil {
			return err
		}
		if err := w.row(&s); err != nil {
			return err
		}
	}
	if err := check.End(); err != nil {
		return err
	}
	w.fill()
	w.p.op('e', 'u', '.')
	if err := w.p.w.Flush(); err != nil { // the writer keeps its first error
		return err
	}
	return archive.Close()
}

// row adds a sample.
func (w *writer) row(s *rollout.Sample) error {
	if w.n == 0 || s.Group != w.group {
		w.group, w.groups = s.Group, w.groups+1
	}
	if w.n == 0 || s.Rollout != w.rollout {
		w.rollout, w.first = s.Rollout, w.n
		w.count++
	}
	steps, err := rowsteps.Read(s.Metadata)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: s.Rollout, Field: col.Metadata}, "the steps of row %s cannot be read: %w", s.ID, err)
	}
	w.next()
	w.sample(s, steps)
	w.n++
	return nil
}

// next starts the next batch of the list if the current one is full.
func (w *writer) next() {
	if w.n > 0 && w.n%batch == 0 {
		w.p.op('e', '(')
	}
}

// fill adds removed samples until slime drops no rollout.
func (w *writer) fill() {
	if w.o.Rollouts == 0 {
		return
	}
	p := w.p
	for ; w.count == 0 || w.count%w.o.Rollouts != 0; w.count++ {
		w.next()
		w.head(w.groups, w.n, w.n, 1)
		p.key("response").word("")
		p.key("tokens").list(2, func(int) { p.int(0) })
		p.key("reward").float(0)
		p.key("loss_mask").list(1, func(int) { p.int(0) })
		w.logprobList(1, func(int) { p.float(0) })
		p.key("remove_sample").bool(true)
		p.key("status").word(rollout.StatusAborted.String())
		p.key("metadata").op('}', '(')
		p.key("advantage").float(0)
		p.op('u', 'u')
		w.n++
	}
}

// head starts a sample.
func (w *writer) head(group, index, rolloutID, response int) {
	w.p.op('}', '(')
	w.p.key("group_index").int(int64(group))
	w.p.key("index").int(int64(index))
	w.p.key("rollout_id").int(int64(rolloutID))
	w.p.key("response_length").int(int64(response))
	w.p.key("prompt").word("")
}

// logprobList writes the log probabilities of a response of n tokens, or None if the file has
// none.
func (w *writer) logprobList(n int, item func(i int)) {
	if w.p.key("rollout_log_probs"); w.logprobs {
		w.p.list(n, item)
	} else {
		w.p.none()
	}
}

func (w *writer) sample(s *rollout.Sample, steps []rowsteps.Step) {
	p := w.p
	response, index := s.Weight[s.PromptLen:], w.n
	if w.o.ByRollout {
		index = w.first
	}
	w.head(w.groups-1, index, w.first, len(response))
	p.key("tokens").list(len(s.IDs), func(i int) { p.int(int64(s.IDs[i])) })
	p.key("response").word("")
	p.key("reward").float(float64(float32(s.Reward)))
	p.key("loss_mask").list(len(response), func(i int) {
		if response[i] > 0 {
			p.int(1)
			return
		}
		p.int(0)
	})
	w.logprobList(len(response), func(i int) {
		if response[i] > 0 {
			p.float(float64(s.Logprob[s.PromptLen+i]))
			return
		}
		p.float(0)
	})
	p.key("remove_sample").bool(false)
	p.key("status").word(cmp.Or(s.Status, w.o.Export.UnknownStatus).String())
	p.key("metadata").op('}', '(')
	if s.Advantage != nil {
		p.key("advantage").float(float64(float32(*s.Advantage)))
	}
	p.key("sample_id").text(s.ID)
	p.key("group_id").text(s.Group)
	if len(steps) > 0 {
		w.steps(s, steps)
	}
	p.op('u', 'u')
}

// steps writes the input of OpenClaw-RL's step_wise estimator for a sample: the scores that
// steps are compared by, and the spans of their tokens in the response. step_advantages is the
// estimator's expected result.
func (w *writer) steps(s *rollout.Sample, steps []rowsteps.Step) {
	p := w.p
	numbers := func(key string, of func(rowsteps.Step) float64) {
		p.key(key).list(len(steps), func(i int) { p.float(of(steps[i])) })
	}
	p.key("step_wise").op('}', '(')
	p.key("step_indices").list(len(steps), func(i int) { p.int(int64(steps[i].Step)) })
	p.key("step_token_spans").list(len(steps), func(i int) {
		p.list(2, func(end int) { p.int(int64([2]int{steps[i].From, steps[i].To}[end] - s.PromptLen)) })
	})
	numbers("step_scores", func(x rowsteps.Step) float64 { return x.Score })
	numbers("step_scores_with_outcome", func(x rowsteps.Step) float64 { return x.Value })
	numbers("step_advantages", func(x rowsteps.Step) float64 { return x.Advantage })
	p.key("outcome_reward").float(s.OutcomeReward)
	p.op('u')
}

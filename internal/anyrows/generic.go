package anyrows

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/internal/pickle"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// names holds the names of the columns in a file from any writer; "" means missing.
type names struct {
	ids, prompt, response, mask, labels, logprobs, train, advantages                   string
	sources, flags, segments                                                           string
	id, group, rollout, reward, advantage, status, finish, promptLen, response1, whole string
}

// namesOf finds the columns by their usual names; the first name that exists is taken.
func namesOf(has func(string) bool) names {
	first := func(names ...string) string {
		for _, name := range names {
			if has(name) {
				return name
			}
		}
		return ""
	}
	n := names{
		ids:        first("input_ids", "tokens", "token_ids"),
		prompt:     first("prompt_ids", "prompt_token_ids", "prompts"),
		response:   first("response_ids", "completion_ids", "responses", "response_token_ids"),
		mask:       first("loss_mask", "loss_masks", "response_mask", "completion_mask", "env_mask", "assistant_masks", "mask"),
		labels:     first("labels"),
		logprobs:   first("logprobs", "rollout_logprobs", "rollout_log_probs", "response_logprobs", "old_log_probs", "inference_logprobs"),
		train:      first("train_logprobs", "trainer_logprobs", "recomputed_logprobs", "old_log_probs"),
		advantages: first("advantages"),
		sources:    first(col.Sources),
		flags:      first(col.Flags),
		segments:   first("seq_start_id"),
		id:         first("sample_id", "id"),
		group:      first("group_id", "uid", "instance_id", "group_index", "prompt_id"),
		rollout:    first("rollout_id", "trajectory_id", "session_id"),
		reward:     first("reward", "rewards", "reward_score", "score", "total_reward"),
		advantage:  first("advantage"),
		status:     first("status"),
		finish:     first("finish_reason", "stop_reason", "stop_reasons"),
		promptLen:  first("prompt_len", "prompt_length"),
		response1:  first("response_length"),
		whole:      first(col.RolloutMaskSum),
	}
	if n.train == n.logprobs { // old_log_probs are a trainer's only beside recorded ones, as in verl
		n.train = ""
	}
	return n
}

func (n names) String() string {
	var out []string
	for _, s := range []string{n.ids, n.prompt, n.response, n.mask, n.labels, n.logprobs} {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func (n names) complete() bool { return n.ids != "" || n.prompt != "" && n.response != "" }

func noIDs(where rollout.Where, what string) error {
	return rollout.Errorf(rollout.KindFormat, where, "%s has no token ids", what).
		WithFix("give a file with input_ids (or tokens, or prompt_ids and response_ids) and a loss mask")
}

// row builds a row from its cells.
func (n names) row(c cells) (*Row, error) {
	r := &Row{PromptLen: -1}
	ids := c.numbers(n.ids)
	response := -1
	if n.ids == "" || ids == nil {
		prompt, answer := c.numbers(n.prompt), c.numbers(n.response)
		ids = append(append([]float64{}, prompt...), answer...)
		r.PromptLen, response = len(prompt), len(answer)
	}
	r.IDs = make([]rollout.TokenID, 0, len(ids))
	for t, v := range ids {
		if v != math.Trunc(v) || v > math.MaxInt32 || v < math.MinInt32 {
			return nil, fmt.Errorf("token %d has id %v, which is no 32-bit integer", t, v)
		}
		r.IDs = append(r.IDs, rollout.TokenID(v))
	}
	if at := len(ids) - len(c.numbers(n.response)); at > 0 && at < len(ids) && slices.Equal(c.numbers(n.response), ids[at:]) {
		r.PromptLen = at // the response stands beside all ids, as in verl's batches
	}
	if v := c.number(n.promptLen); v != nil {
		r.PromptLen = int(*v)
	}
	if v := c.number(n.response1); v != nil {
		response = int(*v)
		r.PromptLen = len(r.IDs) - response
	}
	place := func(v []float64, name string) []float64 {
		switch {
		case v == nil || len(v) == len(r.IDs):
			return v
		case response >= 0:
			return r.padPrompt(v, name, response)
		case r.PromptLen >= 0 && len(v) == len(r.IDs)-r.PromptLen:
			return r.padPrompt(v, name, len(v))
		}
		return v // the audit rule "lengths" reports it
	}
	mask := c.numbers(n.mask)
	if mask == nil && n.labels != "" {
		for _, l := range c.numbers(n.labels) {
			m := 1.0
			if l < 0 {
				m = 0
			}
			mask = append(mask, m)
		}
	}
	if starts := c.numbers(n.segments); starts != nil {
		mask = unshift(mask, starts)
	}
	r.Mask = place(mask, n.mask)
	if sources, flags := c.numbers(n.sources), c.numbers(n.flags); len(sources) == len(r.IDs) && len(flags) == len(r.IDs) && len(r.IDs) > 0 {
		for t := range sources {
			r.Sources, r.Flags = append(r.Sources, int32(sources[t])), append(r.Flags, rollout.Flag(flags[t]))
		}
	}
	r.Logprobs, r.Advantages = place(c.numbers(n.logprobs), n.logprobs), place(c.numbers(n.advantages), n.advantages)
	r.TrainLogprobs = place(c.numbers(n.train), n.train)
	r.ID, r.Group, r.Rollout = c.text(n.id), c.text(n.group), c.text(n.rollout)
	r.Status, r.FinishReason = c.text(n.status), c.text(n.finish)
	r.Reward, r.Advantage, r.Whole = c.number(n.reward), c.number(n.advantage), c.number(n.whole)
	return r, nil
}

// unshift moves the mask of a Megatron pack, which is aligned to labels, to the tokens: one
// position later inside each segment.
func unshift(mask, starts []float64) []float64 {
	out := make([]float64, len(mask))
	copy(out[min(1, len(out)):], mask)
	for _, s := range starts {
		if t := int(s); t >= 0 && t < len(out) {
			out[t] = 0
		}
	}
	return out
}

// textSource reads rows that are given as JSON objects.
type textSource struct {
	// read returns the text of the next row and its place, or io.EOF after the last.
	read   func() (text []byte, where rollout.Where, err error)
	file   *os.File
	names  names                  // of all rows; if empty, each row is searched
	single func(name string) bool // see cells.single
	finish func(r *Row, c cells)  // fills the fields that names does not cover; may be nil
	doc    jsonscan.Doc
}

func (s *textSource) close() error { return s.file.Close() }

// cells returns the cells of the next row.
func (s *textSource) cells() (cells, rollout.Where, error) {
	text, where, err := s.read()
	if err != nil {
		return cells{}, where, err
	}
	v, err := s.doc.Parse(text, jsonscan.Options{NonFinite: true})
	if err == nil && v.Kind() != jsonscan.Object {
		err = fmt.Errorf("found %s", v.Kind())
	}
	if err != nil {
		return cells{}, where, rollout.Errorf(rollout.KindFormat, where, "not a JSON object: %v", err).WithFix("give one row a line")
	}
	return cells{v, s.single}, where, nil
}

// column returns one column of the next row, or nil if the row lacks it.
func (s *textSource) column(name string) ([]float64, error) {
	c, _, err := s.cells()
	if err != nil {
		return nil, err
	}
	return c.numbers(name), nil
}

func (s *textSource) next() (*Row, error) {
	c, where, err := s.cells()
	if err != nil {
		return nil, err
	}
	n := s.names
	if !n.complete() {
		if n = namesOf(func(name string) bool { return c.v.Get(name).Kind() != jsonscan.Absent }); !n.complete() {
			return nil, noIDs(where, "the row")
		}
	}
	r, err := n.row(c)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, where, "%v", err)
	}
	if s.finish != nil {
		s.finish(r, c)
	}
	return r, nil
}

// newParquet reads a Parquet file from any writer.
func newParquet(p *pqread.File, f *os.File, where rollout.Where) (*textSource, error) {
	n := namesOf(func(name string) bool { _, ok := p.Leaf(name); return ok })
	if !n.complete() {
		return nil, noIDs(where, "the file")
	}
	rows := pqread.NewRows(p, 0)
	return &textSource{file: f, names: n, single: func(name string) bool {
		leaf, _ := p.Leaf(name)
		return leaf.Type == pqread.Float
	}, read: func() ([]byte, rollout.Where, error) {
		text, err := rows.Next()
		if where.Line = rows.Row(); err != nil && err != io.EOF {
			err = rollout.Errorf(rollout.KindFormat, where, "%v", err).WithFix("the file is damaged: write it again")
		}
		return text, where, err
	}}, nil
}

// newLines reads JSON Lines.
func newLines(f *os.File, where rollout.Where) *textSource {
	r := bufio.NewReaderSize(f, 1<<20)
	return &textSource{file: f, read: func() ([]byte, rollout.Where, error) {
		for {
			line, err := r.ReadBytes('\n')
			if len(line) == 0 && err == io.EOF {
				return nil, where, io.EOF
			}
			if len(line) == 0 && err != nil {
				return nil, where, rollout.Errorf(rollout.KindInput, where, "read: %w", err)
			}
			where.Line++
			if line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\ufeff")); len(line) > 0 {
				return line, where, nil
			}
		}
	}}
}

// newSlime reads the samples of a torch.save file, whose masks cover the response. Classes
// named in the pickle are never instantiated.
func newSlime(f *os.File, size int64, where rollout.Where) (*textSource, error) {
	v, bytes, err := pickle.Torch(f, size)
	top, _ := v.(map[any]any)
	samples, ok := top["samples"].(*[]any)
	if err == nil && !ok {
		err = errors.New("it holds no list of samples")
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, where, "%v", err).WithFix("give a file written by torch.save with slime's debug rollout data")
	}
	var text []byte
	left := max(1<<24, 16*bytes) // bytes of JSON that the remaining samples may take
	return &textSource{file: f, finish: finishSlime, read: func() ([]byte, rollout.Where, error) {
		if where.Line == len(*samples) {
			return nil, where, io.EOF
		}
		var err error
		if text, err = pickle.AppendJSON(text[:0], (*samples)[where.Line], left); err != nil {
			err = rollout.Errorf(rollout.KindFormat, where, "sample %d: %v", where.Line, err)
		}
		left -= len(text)
		where.Line++
		return text, where, err
	}}, nil
}

// finishSlime sets what slime stores in a sample besides its columns.
func finishSlime(r *Row, c cells) {
	meta := cells{v: c.v.Get("metadata")}
	r.ID = meta.text("sample_id")
	r.Advantage = cmp.Or(meta.number("advantage"), r.Advantage)
	if r.Mask == nil { // slime then trains the whole response
		r.Mask = make([]float64, len(r.IDs))
		for t := max(0, r.PromptLen); t < len(r.Mask); t++ {
			r.Mask[t] = 1
		}
	}
	if removed, _ := c.v.Get("remove_sample").Bool(); removed {
		clear(r.Mask)
	}
}

// cells holds the values of one row.
type cells struct {
	v jsonscan.Value
	// single reports whether a column holds 32-bit floats, written as their shortest text; nil
	// means that none does.
	single func(name string) bool
}

// get returns the value of a column, absent for "".
func (c cells) get(name string) (v jsonscan.Value) {
	if name != "" {
		v = c.v.Get(name)
	}
	return v
}

// numbers returns the numbers and booleans of a list, or nil if it is missing or null. Other
// elements are NaN.
func (c cells) numbers(name string) []float64 {
	list := c.get(name)
	if list.Kind() != jsonscan.Array {
		return nil
	}
	single := c.single != nil && c.single(name)
	out := make([]float64, 0, list.Len())
	for _, v := range list.Items() {
		x, ok := number(v, single)
		switch set, truth := v.Bool(); {
		case truth && set:
			x = 1
		case !ok && !truth:
			x = math.NaN()
		}
		out = append(out, x)
	}
	return out
}

// number returns a number of the row, or nil if it is missing.
func (c cells) number(name string) *float64 {
	x, ok := number(c.get(name), c.single != nil && c.single(name))
	if !ok {
		return nil
	}
	return &x
}

// number returns the value of a JSON number, or of NaN and the infinities.
func number(v jsonscan.Value, single bool) (float64, bool) {
	if v.Kind() != jsonscan.Number {
		return 0, false
	}
	bits := 64
	if single {
		bits = 32
	}
	x, err := strconv.ParseFloat(string(v.Raw()), bits)
	return x, err == nil
}

// text returns a text or a number of the row, or "" if it is missing.
func (c cells) text(name string) string {
	v := c.get(name)
	if v.Kind() == jsonscan.Number {
		return string(v.Raw()) // a float64 would join ids beyond 2^53
	}
	s, _ := v.Text()
	return s
}

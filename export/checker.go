package export

import (
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// Checker checks rows in order against the rules of the schema, for writers of other formats.
// It must not be used concurrently.
type Checker struct {
	opts    Options
	columns Columns
	started bool
	order   order
	trained int // number of trained tokens in the last row
}

// NewChecker returns a checker. Only the options about rows matter; those about the file's
// encoding are ignored.
func NewChecker(o Options) (*Checker, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Checker{opts: o}, nil
}

// Check checks the next row and sets Sample.ID if it is empty.
func (c *Checker) Check(s *rollout.Sample) error {
	m, err := c.checkRow(s)
	if err != nil {
		return err
	}
	c.trained = m.trained
	return c.order.add(s, m.trained)
}

// checkRow applies the rules that concern a single row.
func (c *Checker) checkRow(s *rollout.Sample) (maskFacts, error) {
	if s.ID == "" {
		s.ID = rollout.SampleID(s.Rollout, s.SampleIndex)
	}
	if !c.started {
		c.start(s)
	}
	m, err := c.opts.check(s, c.columns)
	if err != nil {
		return m, err
	}
	return m, c.checkDigests(s)
}

// End checks that the last rollout is complete. Call it after the last row.
func (c *Checker) End() error { return c.order.end() }

// start takes the optional columns and the digests from the first row where the options leave
// them open.
func (c *Checker) start(s *rollout.Sample) {
	c.started = true
	c.columns = ColumnsOf(s)
	c.columns.Weights = c.columns.Weights || c.opts.Weighted
	if c.opts.Columns != nil {
		c.columns = *c.opts.Columns
	}
	if c.opts.Tokenizer == "" {
		c.opts.Tokenizer = s.Tokenizer
	}
	if c.opts.Template == "" {
		c.opts.Template = s.Template
	}
}

func (c *Checker) checkDigests(s *rollout.Sample) error {
	for _, d := range []struct{ what, file, row string }{
		{metaTokenizer, c.opts.Tokenizer, s.Tokenizer}, {metaTemplate, c.opts.Template, s.Template},
	} {
		if d.row != "" && d.row != d.file {
			return refuse(s, col.InputIDs, ruleIdentity, -1, "write one file per tokenizer and template", "%s is %s and the file has %q", d.what, d.row, d.file)
		}
	}
	return nil
}

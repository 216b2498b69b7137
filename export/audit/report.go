package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/rollout"
)

// Finding is one place that breaks a rule.
type Finding struct {
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Row    int    `json:"row"` // from 0, −1 = the whole file
	Sample string `json:"sample,omitempty"`
	Column string `json:"column,omitempty"`
	Token  int    `json:"token"` // from 0, −1 = the whole row
	Tokens int    `json:"tokens,omitempty"`
	Text   string `json:"text"`
}

// Where returns the place as text.
func (f *Finding) Where() string {
	var parts []string
	if f.Row >= 0 {
		parts = append(parts, fmt.Sprintf("row %d", f.Row))
	}
	if f.Sample != "" {
		parts = append(parts, fmt.Sprintf("(%s)", f.Sample))
	}
	if f.Token >= 0 {
		parts = append(parts, fmt.Sprintf("token %d", f.Token))
	}
	return strings.Join(parts, " ")
}

// Group holds the findings of one rule.
type Group struct {
	Rule     string    `json:"rule"`
	Severity Severity  `json:"severity"`
	Title    string    `json:"title"`
	Harm     string    `json:"harm"`
	Fix      string    `json:"fix"`
	Rows     int       `json:"rows"`   // rows (or groups, or files) that break the rule
	Tokens   int       `json:"tokens"` // tokens that break the rule
	Examples []Finding `json:"examples"`
}

// File describes one audited file.
type File struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Rows   int    `json:"rows"`
}

// Report is the result of an audit.
type Report struct {
	Files   []File `json:"files"`
	Rows    int    `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Trained int64  `json:"trained_tokens"`
	Model   bool   `json:"model"` // whether a Model was given
	// Drift compares a trainer's log probabilities with the recorded ones; nil if no row has
	// both.
	Drift    *Drift  `json:"logprob_drift,omitempty"`
	Findings []Group `json:"findings"`
}

// Worst returns the highest severity found, or 0 without findings.
func (r *Report) Worst() Severity {
	var worst Severity
	for _, g := range r.Findings {
		worst = max(worst, g.Severity)
	}
	return worst
}

// JSON writes the report as one indented object.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Table writes the report as text for people.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s: %s, %d rows\n", rollout.Printable(f.Path), rollout.Printable(f.Format), f.Rows)
	}
	share := 0.0
	if r.Tokens > 0 {
		share = 100 * float64(r.Trained) / float64(r.Tokens)
	}
	fmt.Fprintf(&b, "%d rows, %d tokens, %d trained (%.1f%%)\n", r.Rows, r.Tokens, r.Trained, share)
	if d := r.Drift; d != nil {
		fmt.Fprintf(&b, "log probabilities, the trainer's against those recorded: mean difference %.2g, %.1f%% of %d trained tokens off by more than %g, at most %.2g\n", d.Mean, 100*d.Share(), d.Tokens, anyrows.ApartBound, d.Largest)
	}
	if !r.Model {
		b.WriteString("without a model folder: headers, stop tokens and control tokens are not looked at\n")
	}
	if len(r.Findings) == 0 {
		b.WriteString("no findings\n")
	} else {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "\nSEVERITY\tRULE\tROWS\tTOKENS\tWHAT")
		for _, g := range r.Findings {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", g.Severity, g.Rule, g.Rows, g.Tokens, g.Title)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, g := range r.Findings {
			fmt.Fprintf(&b, "\n%s: %s\n  harm: %s\n  fix:  %s\n", g.Rule, g.Title, g.Harm, g.Fix)
			for _, f := range g.Examples {
				fmt.Fprintf(&b, "  %s %s: %s\n", rollout.Printable(f.File), rollout.Printable(f.Where()), rollout.Printable(f.Text))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// collector groups findings by rule.
type collector struct {
	keep   int // examples per rule
	groups map[string]*Group
	last   map[string][2]any // file and row of the rule's last finding
}

func (c *collector) add(f Finding) {
	g := c.groups[f.Rule]
	if g == nil {
		i := slices.IndexFunc(rules(), func(r rule) bool { return r.ID == f.Rule })
		rule := rules()[i]
		g = &Group{Rule: f.Rule, Severity: rule.Severity, Title: rule.Title, Harm: rule.Harm, Fix: rule.Fix}
		c.groups[f.Rule] = g
	}
	g.Tokens += f.Tokens
	at := [2]any{f.File, f.Row}
	if f.Row < 0 || c.last[f.Rule] != at {
		g.Rows++
		if len(g.Examples) < c.keep {
			g.Examples = append(g.Examples, f)
		}
	}
	c.last[f.Rule] = at
}

func (c *collector) sorted() []Group {
	out := []Group{}
	for _, r := range rules() {
		if g := c.groups[r.ID]; g != nil {
			out = append(out, *g)
		}
	}
	slices.SortStableFunc(out, func(a, b Group) int { return int(b.Severity) - int(a.Severity) })
	return out
}

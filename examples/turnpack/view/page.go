package view

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

//go:embed assets
var assets embed.FS

// maxPage is the largest page in bytes; browsers fail or slow down beyond it.
const maxPage = 384 << 20

// maxFindings is the number of places that a page marks per rule. The totals of rows and
// tokens are exact.
const maxFindings = 2000

// builder writes a page in two passes over the rows: scan for each row, then begin, write
// for each row, and end.
type builder struct {
	model   *tokenize.Model
	spell   *tokens.Speller
	cut     *tokens.Boundaries
	head    head
	used    map[rollout.TokenID]int // id → number on the page
	out     *bufio.Writer
	written int64
	at      int // rows written
	// trace returns the tracer of a row, or nil. trace is nil if no dumps are known.
	trace func(*rollout.Sample) *tokens.Tracer
}

// head is the part of the page that is known without opening a row.
type head struct {
	Title    string        `json:"title"`
	Note     string        `json:"note"` // what a file of another program lacks, or that the set is incomplete
	From     int           `json:"from"` // row of the file that is row 0 of the page
	Rows     []rowHead     `json:"rows"`
	Report   *report       `json:"report,omitempty"`
	Findings []audit.Group `json:"findings"`
	Audited  bool          `json:"audited"`
	Vocab    int           `json:"vocab"` // number of entries in the vocabulary block
}

// rowHead is an entry in the list of rows.
type rowHead struct {
	ID         string   `json:"id"`
	Group      string   `json:"group"`
	Rollout    string   `json:"rollout"`
	Tokens     int      `json:"tokens"`
	Trained    int      `json:"trained"`
	FirstStep  int      `json:"first"`
	LastStep   int      `json:"last"`
	Reward     *float64 `json:"reward"` // null if NaN or infinite
	Outcome    *float64 `json:"outcome"`
	StepReward *float64 `json:"step"`
	Advantage  *float64 `json:"adv"`
	Status     string   `json:"status"`
	Finish     string   `json:"finish"`
	MaskReason string   `json:"masked"`
	// Drift is the mean difference between the trainer's log probabilities and the
	// recorded ones. Beyond is the share of trained tokens where it exceeds 0.001.
	Drift  *float64 `json:"drift,omitempty"`
	Beyond *float64 `json:"beyond,omitempty"`
}

// newBuilder returns a builder for a page of rows made with model. from is the index in
// the file of the first row.
func newBuilder(model *tokenize.Model, title string, from int) *builder {
	return &builder{model: model, spell: tokens.NewSpeller(model.Tokenizer), cut: tokens.NewBoundaries(model),
		used: map[rollout.TokenID]int{}, head: head{Title: title, From: from, Rows: []rowHead{}, Findings: []audit.Group{}}}
}

// scan collects the facts of the next row. d is the drift that a trainer measured, or
// nil.
func (b *builder) scan(s *rollout.Sample, d *audit.Drift) {
	b.cut.Learn(s.IDs)
	for _, id := range s.IDs {
		b.used[id] = 0
	}
	row := rowHead{ID: s.ID, Group: s.Group, Rollout: s.Rollout, Tokens: s.Len(), Trained: s.Trained(),
		FirstStep: s.FirstStep, LastStep: s.LastStep, Reward: finite(&s.Reward), Outcome: finite(&s.OutcomeReward), StepReward: finite(s.StepReward),
		Advantage: finite(s.Advantage), Status: s.Status.String(), Finish: s.FinishReason, MaskReason: s.MaskReason}
	if d != nil {
		row.Drift, row.Beyond = finite(&d.Mean), new(d.Share())
	}
	b.head.Rows = append(b.head.Rows, row)
}

// finite returns v, or nil if v is NaN or infinite, which JSON cannot hold.
func finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// findings adds the audit findings about the file and about rows on the page.
func (b *builder) findings(all []audit.Group) {
	b.head.Audited = true
	for _, g := range all {
		places := []audit.Finding{}
		for _, f := range g.Examples {
			if f.Row >= 0 && (f.Row < b.head.From || f.Row >= b.head.From+len(b.head.Rows)) {
				continue
			}
			if f.Row < 0 && f.Sample != "" {
				f.Text = f.Sample + ": " + f.Text
			}
			places = append(places, audit.Finding{Row: f.Row, Token: f.Token, Text: f.Text})
		}
		g.Examples = places
		b.head.Findings = append(b.head.Findings, g)
	}
}

// begin writes the page up to its first row.
func (b *builder) begin(w io.Writer) error {
	b.out = bufio.NewWriterSize(w, 1<<20)
	vocab, err := b.vocabulary()
	if err != nil {
		return err
	}
	b.head.Vocab = len(b.used)
	data, err := json.Marshal(b.head) // Marshal escapes <, >, & and the line separators
	if err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{}, "head of the page: %w", err)
	}
	style, script := asset("page.css"), script()
	page := asset("page.html")
	top, _, _ := strings.Cut(page, "<!--rows-->")
	top = strings.NewReplacer("{{title}}", html.EscapeString(b.head.Title), "{{style}}", style,
		"{{policy}}", fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'", hash(script), hash(style))).Replace(top)
	return b.print(top, block("head", "application/json", string(data)), block("vocab", "text/plain", vocab))
}

// write writes the next row.
func (b *builder) write(ctx context.Context, s *rollout.Sample) error {
	data, err := b.row(ctx, s)
	if err != nil {
		return err
	}
	b.at++
	return b.print(block(fmt.Sprintf("row-%d", b.at-1), "text/plain", data))
}

// end writes the rest of the page.
func (b *builder) end() error {
	_, rest, _ := strings.Cut(asset("page.html"), "<!--rows-->")
	if err := b.print(strings.Replace(rest, "{{script}}", script(), 1)); err != nil {
		return err
	}
	return b.out.Flush()
}

func (b *builder) print(parts ...string) error {
	for _, p := range parts {
		b.written += int64(len(p))
		if b.written > maxPage {
			return rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the page is larger than %d MiB after %d of %d rows", maxPage>>20, b.at, len(b.head.Rows)).
				WithFix("show fewer rows with --rows FROM:TO")
		}
		if _, err := b.out.WriteString(p); err != nil {
			return err
		}
	}
	return nil
}

// block returns a script element that holds data.
func block(id, kind, data string) string {
	return fmt.Sprintf("<script type=%q id=%q>%s</script>\n", kind, id, data)
}

// script returns the JavaScript of the page: all files in one scope.
func script() string {
	var b strings.Builder
	for _, name := range []string{"data.js", "lines.js", "charts.js", "list.js", "row.js", "main.js"} {
		b.WriteString(asset(name))
	}
	return "\"use strict\";\n(() => {\n" + b.String() + "})();\n"
}

func asset(name string) string {
	b, _ := assets.ReadFile("assets/" + name) // cannot fail: the tests read every asset
	return string(b)
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

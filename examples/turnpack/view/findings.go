package view

import (
	"github.com/turnpack/turnpack/export/audit"
)

// maxFindings is how many places of one rule a page marks; the number of rows
// and tokens that it strikes is told in full.
const maxFindings = 2000

// Finding is what one rule says against the batch.
type Finding struct {
	Rule     string  `json:"rule"`
	Severity string  `json:"severity"`
	Title    string  `json:"title"`
	Harm     string  `json:"harm"`
	Fix      string  `json:"fix"`
	Rows     int     `json:"rows"`
	Tokens   int     `json:"tokens"`
	Places   []Place `json:"places"`
}

// Place is where a rule strikes.
type Place struct {
	Row   int    `json:"row"`   // 0-based row of the file, −1 = the whole file
	Token int    `json:"token"` // −1 = the whole row
	Text  string `json:"text"`
}

func findingsOf(r *audit.Report) []Finding {
	var out []Finding
	for _, g := range r.Findings {
		f := Finding{Rule: g.Rule, Severity: g.Severity.String(), Title: g.Title, Harm: g.Harm, Fix: g.Fix, Rows: g.Rows, Tokens: g.Tokens}
		for _, e := range g.Examples {
			p := Place{Row: e.Row, Token: e.Token, Text: e.Text}
			if e.Row < 0 && e.Sample != "" {
				p.Text = e.Sample + ": " + e.Text
			}
			f.Places = append(f.Places, p)
		}
		out = append(out, f)
	}
	return out
}

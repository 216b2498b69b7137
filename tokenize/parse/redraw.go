package parse

import "strings"

// Drift is where a reply that is rendered again differs from what was sampled: the
// next prompt then holds tokens that the policy did not sample.
type Drift struct {
	At       int    // the first byte that differs
	Sampled  string // what stands there, at most 40 bytes
	Rendered string
	Why      string // "white space", "the reasoning is not written", "a malformed call", "order", "a call", or "text"
}

// Redraw renders a reply again and compares it with the sampled text, both without
// the stop token. write gives what the template writes for the message after the
// generation prompt. A nil Drift says that they are equal.
func Redraw(sampled string, r Reply, write func(Reply) (string, error)) (*Drift, error) {
	rendered, err := write(r)
	if err != nil || rendered == sampled {
		return nil, err
	}
	at := 0
	for at < min(len(sampled), len(rendered)) && sampled[at] == rendered[at] {
		at++
	}
	d := &Drift{At: at, Sampled: excerpt(sampled[at:]), Rendered: excerpt(rendered[at:]), Why: "text"}
	m := &r.Message
	switch {
	case squeezed(sampled) == squeezed(rendered):
		d.Why = "white space"
	case m.Reasoning != "" && !strings.Contains(rendered, m.Reasoning):
		d.Why = "the reasoning is not written"
	case has(r.Faults, faultCall):
		d.Why = "a malformed call"
	case has(r.Faults, faultOrder):
		d.Why = "order"
	case len(m.ToolCalls) > 0 && at >= strings.LastIndex(sampled, m.Content)+len(m.Content):
		d.Why = "a call"
	}
	return d, nil
}

func has(faults []Fault, k FaultKind) bool {
	for _, f := range faults {
		if f.Kind == k {
			return true
		}
	}
	return false
}

func excerpt(s string) string { return s[:min(40, len(s))] }

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

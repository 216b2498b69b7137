package tokenize

import "github.com/turnpack/turnpack/tokenize/lineage"

// Report says what encoding one rollout did.
type Report struct {
	lineage.Report
	// Captured and Rendered count sampled tokens whose ids are recorded, or encoded from text.
	Captured int `json:"captured_tokens"`
	Rendered int `json:"rendered_tokens"`
	// Exact counts trained tokens whose own ids and whole context are those the engine recorded.
	Exact int `json:"exact_tokens"`
	// Unattributed counts turns with messages whose captured prompt could not be attributed to
	// them, because it spells another text than the rendered prompt or because none could be
	// rendered (no template, one that fails, an unknown context). The tokens of such a prompt have
	// source -1.
	Unattributed int `json:"unattributed_turns"`
	// LostReasoning, LostContent and LostCalls count rendered completions in which the template
	// left out reasoning or text that the policy sampled, in part or whole, or some of its tool
	// calls (gpt-oss's template writes only the first).
	LostReasoning int `json:"lost_reasoning_turns"`
	LostContent   int `json:"lost_content_turns"`
	LostCalls     int `json:"lost_call_turns"`
	// OpenReasoning counts completions from text that follow a generation prompt which opened
	// reasoning and that do not close it: the record left the reasoning out, or the engine had
	// other template variables. Rows with them teach the model to answer inside the reasoning
	// block. In whole rows the template closes the block.
	OpenReasoning int `json:"open_reasoning_turns"`
	// Unwritten counts parts of messages that the template left out although the messages were
	// shown and the policy did not sample them: an unknown role, a second system message, tool
	// results under a template without tools. UnwrittenAt lists the first 100.
	Unwritten   int         `json:"unwritten_messages"`
	UnwrittenAt []Unwritten `json:"unwritten_at,omitempty"`
	// UnknownContext counts turns left untrained because the record shows that the model did not
	// see the plain history, but not what it saw. FirstUnknown locates the first.
	UnknownContext int   `json:"unknown_context_turns"`
	FirstUnknown   error `json:"-"`
	// Incomplete counts turns left untrained because their record is not what was sampled
	// (rollout.Turn.Incomplete). FirstIncomplete locates the first.
	Incomplete      int   `json:"incomplete_turns"`
	FirstIncomplete error `json:"-"`
	// Unmarked counts assistant messages that belong to no turn and do not say who wrote them
	// (rollout.SampledUnknown): they are context. FirstUnmarked locates the first.
	Unmarked      int   `json:"unmarked_replies"`
	FirstUnmarked error `json:"-"`
	// Segments counts the tokens of merged rows by kind, such as scaffold.
	Segments map[string]int `json:"segment_tokens,omitempty"`
}

// Add adds o to r.
func (r *Report) Add(o Report) {
	r.Report.Add(o.Report)
	r.Captured += o.Captured
	r.Rendered += o.Rendered
	r.Exact += o.Exact
	r.Unattributed += o.Unattributed
	r.LostReasoning += o.LostReasoning
	r.LostContent += o.LostContent
	r.LostCalls += o.LostCalls
	r.OpenReasoning += o.OpenReasoning
	r.reportUnwritten(o.UnwrittenAt...)
	r.Unwritten += o.Unwritten - len(o.UnwrittenAt)
	r.UnknownContext += o.UnknownContext
	if r.FirstUnknown == nil {
		r.FirstUnknown = o.FirstUnknown
	}
	r.Unmarked += o.Unmarked
	if r.FirstUnmarked == nil {
		r.FirstUnmarked = o.FirstUnmarked
	}
	r.Incomplete += o.Incomplete
	if r.FirstIncomplete == nil {
		r.FirstIncomplete = o.FirstIncomplete
	}
	for kind, n := range o.Segments {
		r.segment(kind, n)
	}
}

// Fidelity returns the share of sampled tokens, 0…1, that are trained exactly as the engine
// recorded them, context included. Rendered completions do not count as exact. Without sampled
// tokens it is 1.
func (r Report) Fidelity() float64 {
	if r.Sampled == 0 {
		return 1
	}
	return float64(r.Exact) / float64(r.Sampled)
}

func (r *Report) segment(kind string, n int) {
	if r.Segments == nil {
		r.Segments = map[string]int{}
	}
	r.Segments[kind] += n
}

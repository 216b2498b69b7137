package certify

import "github.com/turnpack/turnpack/tokenize"

// Needed lists the properties without which rows of a mode are wrong rather
// than merely more: what ends a reply, and, where each reply is rendered after
// its own prompt, what begins one.
func Needed(m tokenize.Mode) []Property {
	if m == tokenize.Whole {
		return []Property{StopToken}
	}
	return []Property{StopToken, GenerationPrompt}
}

// Missing returns the needed properties of a mode that fail, for rollouts with tools
// or without.
func (c *Certificate) Missing(m tokenize.Mode) []Property {
	var out []Property
	for _, p := range Needed(m) {
		if c.Verdict(p) == Fails || c.ToolUse != nil && c.ToolUse.Verdict(p) == Fails {
			out = append(out, p)
		}
	}
	return out
}

// advice says what a property that fails means for rows, and what to do.
var advice = map[Property]string{
	AppendOnly:       "rows fork at such turns and nothing is lost; a template that keeps the history makes fewer rows",
	GenerationPrompt: "where a reply begins is guessed; use the template that the engine served, which writes a generation prompt",
	StopToken:        "name the token that ends a reply in generation_config.json (eos_token_id), or use a template that writes one",
	ReasoningKept:    "later turns are trained without it, as the model saw them if the engine used this template",
	ReasoningWritten: "record the engine's token ids, or use a template that writes reasoning; rows from text count it as lost",
	ToolCalls:        "record the engine's token ids, or use a template with tools; rollouts with tool calls are refused otherwise",
	Arguments:        "record the engine's token ids, or use a template that writes arguments as JSON; calls are trained as the template writes them",
	Names:            "make merged or per-step rows, or leave the names of replies out",
	ToolRunsApart:    "nothing to do; the results stand one after the other, as the model saw them",
	SystemRole:       "put it into the first user message if the model saw it there; the report lists what was left out",
	NothingInjected:  "record the system message that the engine used, if it was another one",
	NoClock:          "set the clock to the day of the rollouts (tokenize.Options.Now)",
	ContentVerbatim:  "nothing to do; replies are trained as recorded, contexts are as the template writes them",
}

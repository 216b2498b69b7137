package certify

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize"
)

// Needed returns the properties without which rows of a mode are wrong, rather than just more: the
// end of a reply and, in modes that render each reply after its own prompt, its beginning.
func Needed(m tokenize.Mode) []Property {
	if m == tokenize.Whole {
		return []Property{stopToken}
	}
	return []Property{stopToken, generationPrompt}
}

// Missing returns the needed properties of a mode that fail, for rollouts with tools or without, or
// that cannot be seen since the template refuses the probe.
func (c *Certificate) Missing(m tokenize.Mode) []Property {
	var out []Property
	for _, p := range Needed(m) {
		seen := []Verdict{c.Verdict(p)}
		if c.ToolUse != nil {
			seen = append(seen, c.ToolUse.Verdict(p))
		}
		if slices.Contains(seen, Fails) || slices.Contains(seen, NotApplicable) {
			out = append(out, p)
		}
	}
	return out
}

// advice says what a failing property means for rows, and what to do.
var advice = map[Property]string{
	appendOnly:       "rows fork at such turns and nothing is lost; a template that keeps the history makes fewer rows",
	generationPrompt: "where a reply begins is guessed; use the template that the engine served, which writes a generation prompt",
	stopToken:        "name the token that ends a reply in generation_config.json (eos_token_id), or use a template that writes one",
	reasoningKept:    "later turns are trained without it, as the model saw them if the engine used this template",
	reasoningWritten: "record the engine's token ids, or use a template that writes reasoning; rows from text count it as lost",
	toolCalls:        "record the engine's token ids, or use a template with tools; rollouts with tool calls are refused otherwise",
	arguments:        "record the engine's token ids, or use a template that writes arguments as JSON; calls are trained as the template writes them",
	names:            "make merged or per-step rows, or leave the names of replies out",
	toolRunsApart:    "nothing to do; the results stand one after the other, as the model saw them",
	systemRole:       "put it into the first user message if the model saw it there; the report lists what was left out",
	nothingInjected:  "record the system message that the engine used, if it was another one",
	noClock:          "set the clock to the day of the rollouts (tokenize.Options.Now)",
	contentVerbatim:  "nothing to do; replies are trained as recorded, contexts are as the template writes them",
}

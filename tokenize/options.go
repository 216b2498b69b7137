package tokenize

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Mode says how turns become sequences.
type Mode string

// The modes.
const (
	// Merged joins turns along shared prefixes: the fewest rows in which every sampled token
	// appears once, in the context the model saw. The default.
	Merged Mode = "merged"
	// PerStep makes one sequence per turn (dynamic history).
	PerStep Mode = "perstep"
	// Whole makes one sequence of the whole conversation, rendered once.
	Whole Mode = "whole"
)

// Values of Options.Edges and Options.Specials that the code compares with.
const (
	edgesDocument  = "document"
	specialsParity = "parity"
)

// Options configures an Encoder. The zero value is the right default: merged rows, guarded special
// tokens, completions cut from their prompts, prompts rendered as by the engine that recorded them,
// no drift repair.
type Options struct {
	Mode Mode // "" = Merged

	// Specials says which occurrences of added tokens count: "guard", also "", or "parity".
	//
	// guard honours an added token only where the template wrote it and, for tokens that are not
	// special (<think>, <tool_call>), where the policy itself wrote it into content or reasoning
	// that it sampled. Text of users, tools, tool schemas, names, arguments and a rollout's
	// template variables never makes one. A known role (user, tool, …) counts as the template's
	// text, so <|{{ role }}|> can be a token. What the vocabulary spells by itself, as Gemma's does
	// with runs of white space, is text even if it is also an added token. A combining mark after a
	// token that is matched in normalized text changes the token's last character, as in Hugging
	// Face tokenizers: text can hide such a token.
	//
	// parity honours every occurrence, as transformers' tokenize=True does, injections included.
	Specials string

	// Edges says whether tokens may cross from a prompt into a completion. "sampled", also "", cuts
	// the text where a completion begins, since the model sampled it after the generation prompt;
	// "document" encodes the rendered conversation as one document.
	Edges string

	// PromptsBy names the system that made the rollouts' prompts, since systems pass messages to
	// the chat template in different ways: "vllm", "sglang", "transformers" (apply_chat_template
	// with the messages as recorded), or "record", also "", for the system that the rollout names
	// (metadata "engine", or a "model" as LiteLLM writes it, "hosted_vllm/…"), vLLM if it names
	// none. The systems differ in two things:
	//
	//   - The arguments of a tool call: vLLM and SGLang parse the JSON text of the API, so that the
	//     template sees an object; transformers passes on what is recorded, and most templates
	//     escape recorded text once more.
	//   - Several text parts of one message: vLLM joins them with a line feed, SGLang with a space,
	//     unless the template loops over the parts itself; transformers never joins them.
	//
	// The sampled text is the same for all of them: a reply of several text parts is trained
	// without anything between them.
	PromptsBy string

	// Drift is the policy for captured ids that are not repeated exactly by later prompts; only
	// Merged uses it. Text may be left nil.
	Drift lineage.Options
	// Kwargs are template variables (enable_thinking, …) as JSON values; a rollout's own
	// TemplateKwargs take precedence.
	Kwargs map[string]json.RawMessage
	// Now is the time for templates that print a date. The zero value is the Unix epoch, so that
	// output does not depend on when it is made.
	Now time.Time
}

// render returns the options of rendering.
func (o *Options) render() render.Options {
	return render.Options{By: render.SystemNamed(o.PromptsBy), Kwargs: o.Kwargs, Now: o.Now, Whole: o.Mode == Whole}
}

// named returns o with empty options replaced by the names of their defaults.
func (o Options) named() Options {
	o.Mode, o.Specials = cmp.Or(o.Mode, Merged), cmp.Or(o.Specials, "guard")
	o.Edges, o.PromptsBy = cmp.Or(o.Edges, "sampled"), cmp.Or(o.PromptsBy, "record")
	return o
}

// Validate returns all faults of o, joined.
func (o Options) Validate() error {
	f := faults.List{Of: "tokenize.Options."}
	faults.Word(&f, "Mode", o.Mode, Merged, PerStep, Whole)
	faults.Word(&f, "Specials", o.Specials, "guard", specialsParity)
	faults.Word(&f, "Edges", o.Edges, "sampled", edgesDocument)
	faults.Word(&f, "PromptsBy", o.PromptsBy, "record", "vllm", "sglang", "transformers")
	if o.Edges == edgesDocument && o.Mode != PerStep && o.Mode != Whole {
		f.Add("Edges", "found %q, which lets tokens cross turns, and merged rows cannot hold such tokens: use PerStep or Whole", o.Edges)
	}
	for k, v := range o.Kwargs {
		if !json.Valid(v) {
			f.Add("Kwargs", "%q is not a JSON value: %.40s", k, v)
		}
	}
	if o.Drift.Text == nil {
		o.Drift.Text = func(rollout.TokenID) string { return "" }
	}
	f.Join(o.Drift.Validate())
	return f.Err()
}

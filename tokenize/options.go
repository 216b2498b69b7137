package tokenize

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/turnpack/turnpack/internal/enum"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Mode says how turns become sequences.
type Mode uint8

// The modes.
const (
	// Merged joins turns along shared prefixes: the fewest rows in which every
	// sampled token stands once, in the context the model saw.
	Merged Mode = iota
	// PerStep makes one sequence per turn (dynamic history).
	PerStep
	// Whole makes one sequence of the whole conversation, rendered once.
	Whole
)

var modeNames = []string{"merged", "perstep", "whole"}

// String returns the name used on command lines.
func (m Mode) String() string { return enum.Name(modeNames, m, "mode") }

// ParseMode reads a name that String wrote.
func ParseMode(s string) (Mode, error) { return enum.Parse[Mode](modeNames, s, "mode") }

// Edges says whether tokens may cross from a prompt into a completion.
type Edges uint8

// The rules.
const (
	// EdgesSampled cuts the text where a completion begins: the model sampled it
	// after the generation prompt, so no token spans both.
	EdgesSampled Edges = iota
	// EdgesDocument encodes the rendered conversation as one document.
	EdgesDocument
)

var edgesNames = []string{"sampled", "document"}

// String returns the name used on command lines.
func (e Edges) String() string { return enum.Name(edgesNames, e, "edges") }

// ParseEdges reads a name that String wrote.
func ParseEdges(s string) (Edges, error) { return enum.Parse[Edges](edgesNames, s, "edges") }

// PromptsBy names the system that made the prompts of the rollouts, whose way of
// handing messages to the chat template is taken. They differ in two things:
//
//   - The arguments of a tool call: vLLM and SGLang parse the JSON text of the wire,
//     so that the template sees an object; transformers hands on what is recorded,
//     which most templates escape once more where it is text.
//   - Several text parts of one message: vLLM joins them with a line feed, SGLang with
//     a space, unless the template loops over the parts itself; transformers never
//     joins them.
//
// What the policy sampled is the same for all of them: a reply of several text parts
// is trained without anything between them.
type PromptsBy uint8

// The systems.
const (
	// PromptsByRecord takes the system that the rollout names: metadata "engine"
	// ("vllm", "sglang", "transformers"), or a "model" as LiteLLM writes it
	// ("hosted_vllm/…"). It is vLLM where neither says so.
	PromptsByRecord PromptsBy = iota
	PromptsByVLLM
	PromptsBySGLang
	// PromptsByTransformers is apply_chat_template with the messages as recorded.
	PromptsByTransformers
)

var promptsByNames = []string{"record", "vllm", "sglang", "transformers"}

// String returns the name used on command lines.
func (p PromptsBy) String() string { return enum.Name(promptsByNames, p, "prompts by") }

// ParsePromptsBy reads a name that String wrote.
func ParsePromptsBy(s string) (PromptsBy, error) {
	return enum.Parse[PromptsBy](promptsByNames, s, "prompts by")
}

// Specials says which occurrences of added tokens count.
type Specials uint8

// The rules.
const (
	// SpecialsGuard honours an added token only where the template wrote it and,
	// for tokens that are not special (<think>, <tool_call>), where the policy
	// itself wrote it into content or reasoning that it sampled. Text of users,
	// tools, tool schemas, names, arguments and a rollout's template variables never
	// makes one. A role with a meaning of its own (user, tool, …) is of the template's
	// frame: <|{{ role }}|> can be a token. What the vocabulary spells by itself, as Gemma's does with runs of
	// white space, is text even where it is an added token, too. A combining
	// mark after a token that is looked for in normalized text makes another
	// character of its end, as in Hugging Face tokenizers: text can hide such a token.
	SpecialsGuard Specials = iota
	// SpecialsParity honours every occurrence, as transformers' tokenize=True does,
	// injections included.
	SpecialsParity
)

var specialsNames = []string{"guard", "parity"}

// String returns the name used on command lines.
func (s Specials) String() string { return enum.Name(specialsNames, s, "specials") }

// ParseSpecials reads a name that String wrote.
func ParseSpecials(s string) (Specials, error) {
	return enum.Parse[Specials](specialsNames, s, "specials")
}

// Options chooses how an Encoder works. The zero value is the right default:
// merged rows, guarded special tokens, sampled edges, prompts as the engine that
// recorded them makes them, no drift repair.
type Options struct {
	Mode     Mode
	Specials Specials
	Edges    Edges
	// PromptsBy is the system whose way of handing messages to the template is taken.
	PromptsBy PromptsBy
	// Drift is the policy for captured ids that do not repeat exactly; only
	// Merged uses it. Text may be left nil.
	Drift lineage.Options
	// Kwargs are template variables (enable_thinking, …) as JSON values; a
	// rollout's own TemplateKwargs win.
	Kwargs map[string]json.RawMessage
	// Now is the clock of templates that print a date. The zero value is the Unix
	// epoch, so that output does not depend on when it is made.
	Now time.Time
}

// render are the options of rendering.
func (o *Options) render() render.Options {
	return render.Options{By: render.System(o.PromptsBy), Kwargs: o.Kwargs, Now: o.Now, Whole: o.Mode == Whole}
}

// Validate reports all faults of o.
func (o Options) Validate() error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tokenize.Options." + field}, format, args...))
	}
	if o.Mode > Whole {
		fault("Mode", "value %d is none of Merged, PerStep, Whole", o.Mode)
	}
	if o.Specials > SpecialsParity {
		fault("Specials", "value %d is none of the known rules", o.Specials)
	}
	if o.Edges > EdgesDocument {
		fault("Edges", "value %d is none of the known rules", o.Edges)
	}
	if o.PromptsBy > PromptsByTransformers {
		fault("PromptsBy", "value %d is none of the known systems", o.PromptsBy)
	}
	if o.Mode == Merged && o.Edges == EdgesDocument {
		fault("Edges", "EdgesDocument lets tokens cross turns, which merged rows cannot hold: use PerStep or Whole")
	}
	for k, v := range o.Kwargs {
		if !json.Valid(v) {
			fault("Kwargs", "%q is not a JSON value: %.40s", k, v)
		}
	}
	if o.Drift.Text == nil {
		o.Drift.Text = func(rollout.TokenID) string { return "" }
	}
	return errors.Join(append(errs, o.Drift.Validate())...)
}

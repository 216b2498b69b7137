package verbs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
)

// importVerb reads dumps and prints one line of facts per trajectory, in the normal form
// of the trajectories kit. A failure gets its own line.
func importVerb() pipe.Verb {
	return pipe.Verb{Name: "import", Help: "dump files -> one line of facts per trajectory", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		format := fs.String("format", "auto", "importer to use; auto tells by content")
		root := fs.String("root", "", "folder that ids are relative to; default: paths as given, below a folder called trajectories if there is one")
		to := fs.String("to", "facts", "what to print: facts, or the rollouts as native, chat or atif; with --parquet chat or sharegpt")
		set := fs.String("parquet", "", "write the rollouts to this Parquet file, as --to chat or sharegpt, and print the failures alone")
		neighbours := fs.Bool("neighbours", false, "also read files beside a trajectory (patch.diff, results.jsonl)")
		rewards := fs.String("rewards", "", "files or folders of outcomes to join, separated by commas")
		groupBy := fs.String("group-by", "", "group key: instance, file, prompt, none or metadata:<key>; default: the data's own")
		dedup := fs.Bool("dedup", false, "pass over rollouts equal to an earlier one")
		joinCalls := fs.Bool("join-calls", false, "make one rollout of the recorded calls in a folder")
		return func() (pipe.Run, error) {
			opt := traj.Options{Format: *format, Alone: !*neighbours, GroupBy: *groupBy, Dedup: *dedup, JoinCalls: *joinCalls}
			if *rewards != "" {
				x, err := traj.LoadRewards(strings.Split(*rewards, ","))
				if err != nil {
					return pipe.Run{}, err
				}
				opt.Rewards = []*traj.Rewards{x}
			}
			if err := opt.Validate(); err != nil {
				return pipe.Run{}, err
			}
			if *set != "" {
				return writeSet(opt, *root, *set, *to)
			}
			form, ok := importForms[*to]
			if !ok {
				return pipe.Run{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--to"}, "found %q, expected facts, native, chat or atif", *to)
			}
			return pipe.Run{Files: func(ctx context.Context, paths []string, emit func(any) error) error {
				return importFiles(ctx, opt, form, *root, paths, emit)
			}}, nil
		}
	}}
}

// importForms convert a rollout to the value to print.
var importForms = map[string]func(r *rollout.Rollout, root string) (any, error){
	"facts": func(r *rollout.Rollout, root string) (any, error) { return factsOf(r, root), nil },
	"native": func(r *rollout.Rollout, _ string) (any, error) {
		b, err := jsonl.Append(nil, r)
		return json.RawMessage(b), err
	},
	"chat": func(r *rollout.Rollout, _ string) (any, error) {
		b, _, err := traj.AppendChat(nil, r)
		return json.RawMessage(b), err
	},
	"atif": func(r *rollout.Rollout, _ string) (any, error) {
		b, _, err := traj.AppendATIF(nil, r)
		return json.RawMessage(b), err
	},
}

func importFiles(ctx context.Context, opt traj.Options, form func(*rollout.Rollout, string) (any, error), root string, paths []string, emit func(any) error) error {
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	r, err := traj.Open(paths, opt)
	if err != nil {
		return err
	}
	reported := 0
	failures := func() error {
		for ; reported < len(r.Report().Errors); reported++ {
			if err := emit(importFailure(r.Report().Errors[reported], root)); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	for out, err := range r.All() {
		if err := cmp.Or(failures(), err); err != nil {
			return err
		}
		line, err := form(out, root)
		if err != nil {
			line = importFailure(err, root)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
	return failures()
}

func importFailure(err error, root string) pipe.Failure {
	f := pipe.FailureOf(err)
	f.ID = new(string)
	if e, ok := errors.AsType[*rollout.Error](err); ok {
		*f.ID = shownPath(e.Where.File, root)
		if e.Where.Line > 0 {
			*f.ID += ":" + strconv.Itoa(e.Where.Line)
		}
	}
	return f
}

// shownPath returns path relative to root, with slashes.
func shownPath(path, root string) string {
	slashed := filepath.ToSlash(filepath.Clean(path))
	if root != "" {
		if rel, err := filepath.Rel(root, path); err == nil && !strings.HasPrefix(rel, "..") {
			return filepath.ToSlash(rel)
		}
		return slashed
	}
	if i := strings.LastIndex(slashed, "trajectories/"); i >= 0 && (i == 0 || slashed[i-1] == '/') {
		return slashed[i+len("trajectories/"):]
	}
	return slashed
}

// facts has the fields of the kit's expected.jsonl, followed by some additional ones.
type facts struct {
	ID         string            `json:"id"`
	Format     string            `json:"format"`
	TrajID     string            `json:"traj_id"`
	NMessages  int               `json:"n_messages"`
	Roles      string            `json:"roles"`
	Content    []string          `json:"content_sha256"`
	Null       []int             `json:"null_content"`
	Images     int               `json:"images"`
	Reasoning  map[string]string `json:"reasoning_sha256"`
	ToolCalls  []callFacts       `json:"tool_calls"`
	Sampled    []int             `json:"sampled_messages"`
	Steps      int               `json:"steps"`
	ExitStatus *string           `json:"exit_status"`
	Reward     *float64          `json:"reward"`
	Resolved   *bool             `json:"resolved"`
	Submission *string           `json:"submission_sha256"`
	Tokens     *tokenFacts       `json:"tokens"`
	Chars      int               `json:"chars"`
	MaxChars   int               `json:"max_message_chars"`
	Extra      map[string]any    `json:"extra,omitempty"`

	Group   string   `json:"group"`
	Index   int      `json:"index"`
	Status  string   `json:"status"`
	Reasons []string `json:"sampled_reasons"`
	Notes   []string `json:"notes"`
	// Tools and Contexts are digests of the tool definitions and of the context of each
	// turn, null if unknown; see contextDigest.
	Tools    []string  `json:"tools_sha256"`
	Contexts []*string `json:"contexts_sha256"`
}

type callFacts struct {
	Message   int     `json:"msg"`
	Name      string  `json:"name"`
	Digest    string  `json:"arguments_sha256"`
	Arguments *string `json:"arguments,omitempty"`
	Invalid   bool    `json:"invalid_json,omitempty"`
}

type tokenFacts struct {
	Turns     int `json:"turns"`
	Prompt    int `json:"prompt"`
	Generated int `json:"generated"`
	Logprobs  int `json:"logprobs"`
}

func digestText(s string) string {
	d := sha256.Sum256([]byte(s))
	return hex.EncodeToString(d[:])
}

// shownArguments is the length up to which arguments are printed in full.
const shownArguments = 2000

func factsOf(r *rollout.Rollout, root string) facts {
	f := facts{
		ID: shownPath(r.Origin.File, root) + "#" + strconv.Itoa(r.Origin.Index), Format: r.Origin.Format, TrajID: r.ID,
		NMessages: len(r.Messages), Content: []string{}, Null: []int{}, Reasoning: map[string]string{}, ToolCalls: []callFacts{}, Sampled: []int{},
		Reward: r.Outcome.Reward, Resolved: r.Outcome.Resolved,
		Group: r.Group, Index: r.Index, Status: r.Status.String(), Reasons: []string{}, Notes: []string{}, Tools: []string{}, Contexts: []*string{},
	}
	roles := make([]string, len(r.Messages))
	for i := range r.Messages {
		m := &r.Messages[i]
		roles[i] = string(m.Role)
		f.Content = append(f.Content, digestText(m.Content))
		if m.NoContent {
			f.Null = append(f.Null, i)
		}
		for _, p := range m.Parts {
			if traj.IsImage(p) {
				f.Images++
			}
		}
		if m.Reasoning != "" {
			f.Reasoning[strconv.Itoa(i)] = digestText(m.Reasoning)
		}
		for _, c := range m.ToolCalls {
			f.ToolCalls = append(f.ToolCalls, callFactsOf(i, c))
		}
		if m.Role == rollout.RoleAssistant {
			f.Reasons = append(f.Reasons, m.Sampled.String())
			if m.Sampled == rollout.SampledByPolicy {
				f.Sampled = append(f.Sampled, i)
			}
		}
		n := utf8.RuneCountInString(m.Content)
		f.Chars += n
		f.MaxChars = max(f.MaxChars, n)
	}
	f.Roles, f.Steps = strings.Join(roles, ","), len(f.Sampled)
	if r.ExitStatus != "" {
		f.ExitStatus = &r.ExitStatus
	}
	if s := r.Outcome.Submission; s != nil {
		d := digestText(*s)
		f.Submission = &d
	}
	f.Tokens = tokenFactsOf(r)
	if r.Origin.Format == "swe-agent" {
		f.Extra = map[string]any{"trajectory_len": r.Metadata["trajectory_len"], "demo_messages": r.Metadata["demo_messages"]}
	}
	for _, n := range r.Notes {
		f.Notes = append(f.Notes, n.Code)
	}
	for _, t := range r.Tools {
		canonical, _ := canonicalJSON(string(t))
		f.Tools = append(f.Tools, digestText(canonical))
	}
	for _, t := range rollout.TurnsOf(r) {
		f.Contexts = append(f.Contexts, contextDigest(r, &t))
	}
	return f
}

// contextDigest returns the SHA-256 of the context of a turn as a JSON list: role, text
// and calls of each message, each call with its name and canonical arguments. It returns
// nil if the context is unknown.
func contextDigest(r *rollout.Rollout, t *rollout.Turn) *string {
	if t.Context.Unknown || t.Message < 0 {
		return nil
	}
	parts := t.Context.Parts
	if parts == nil {
		parts = []rollout.ContextPart{{From: 0, To: t.Message}}
	}
	shown := []any{}
	add := func(m *rollout.Message) {
		if m.Role == rollout.RoleExit {
			return
		}
		calls := []any{}
		for _, c := range m.ToolCalls {
			arguments, _ := canonicalJSON(c.Arguments)
			calls = append(calls, []any{c.Name, arguments})
		}
		shown = append(shown, []any{string(m.Role), m.Content, calls})
	}
	for _, p := range parts {
		if p.Message != nil {
			add(p.Message)
			continue
		}
		for k := p.From; k < p.To; k++ {
			add(&r.Messages[k])
		}
	}
	d := digestText(canonical(shown))
	return &d
}

func tokenFactsOf(r *rollout.Rollout) *tokenFacts {
	var t tokenFacts
	for i := range r.Turns {
		turn := &r.Turns[i]
		if !turn.Prompt.Captured() && turn.Output == nil {
			continue
		}
		t.Turns++
		if ids, err := r.PromptTokens(nil, i); err == nil {
			t.Prompt += len(ids)
		}
		t.Generated += len(turn.Output)
		t.Logprobs += len(turn.Logprobs)
	}
	for _, n := range r.Notes {
		if n.Code == "empty_tokens" {
			t.Turns++
		}
	}
	if t.Turns == 0 {
		return nil
	}
	return &t
}

func callFactsOf(i int, c rollout.ToolCall) callFacts {
	f := callFacts{Message: i, Name: c.Name}
	canonical, ok := canonicalJSON(c.Arguments)
	f.Invalid = !ok
	f.Digest = digestText(canonical)
	if utf8.RuneCountInString(canonical) <= shownArguments {
		f.Arguments = &canonical
	}
	return f
}

// canonicalJSON rewrites JSON with keys sorted by code point, without white space, with
// the fewest escapes and with unchanged number literals. It returns text that is not JSON
// unchanged, and false.
func canonicalJSON(src string) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(src))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || !json.Valid([]byte(src)) {
		return src, false
	}
	return canonical(v), true
}

// lineEnds undoes the escapes of line separators that encoding/json writes with any
// options.
var lineEnds = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// canonical encodes a decoded JSON value.
func canonical(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail: v was decoded from JSON
	return lineEnds.Replace(strings.TrimSuffix(b.String(), "\n"))
}

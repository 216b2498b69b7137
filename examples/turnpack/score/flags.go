package score

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// config is a parsed command line.
type config struct {
	judge   openai.Options
	options prm.Options
	coef    *float64 // of the mean step score, nil = 1

	in      []string
	format  string
	out     string
	journal string
	summary string
	every   time.Duration // between progress lines off a terminal
}

// list is a flag that may be given several times or hold commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*l = append(*l, part)
		}
	}
	return nil
}

const usage = `score --judge URL --model NAME [flags] [FILES]

Scores every step of every rollout with an LLM judge. API keys come from the
environment (--key-env). With --journal, the same command goes on where a
stopped one was. Exit status 0: every step has a score, 1: some have none, 2:
the command line is wrong or the run failed.`

// parse reads the command line. done says that the command ends with code.
func parse(args []string, stdout, stderr io.Writer) (_ *config, code int, done bool) {
	var (
		c                                        config
		endpoints, in                            list
		rule, scale, method, commandLess, submit string
		preset, systemFile, userFile, rubricKey  string
		temperature, topP, coef                  optional
		structured                               bool
		pattern, field                           string
	)
	fs := cli.New("score", usage)
	fs.Var(&endpoints, "judge", "base `URL` of an OpenAI-compatible server, such as http://host:8000/v1; again or with commas for several")
	fs.StringVar(&c.judge.Model, "model", "", "`name` of the judge model")
	fs.StringVar(&c.judge.KeyEnv, "key-env", "", "environment `variable` with the API key (default TURNPACK_JUDGE_KEY)")
	fs.Var(&in, "in", "rollouts or dumps to read: `paths`, or - for standard input")
	fs.StringVar(&c.format, "format", "", "dump format (default: told by content)")
	fs.StringVar(&c.out, "out", "-", "`file` for the scored rollouts, native JSONL; - for standard output")
	fs.StringVar(&c.journal, "journal", "", "`file` that keeps the votes, so that a stopped run resumes")
	fs.StringVar(&c.summary, "summary", "", "`file` for the summary as JSON")
	fs.IntVar(&c.options.Votes, "votes", 3, "votes per step")
	fs.StringVar(&rule, "rule", "boxed-first", "where the vote stands in the answer: boxed-first, boxed-last, tail, regex, json")
	fs.StringVar(&pattern, "pattern", "", "RE2 expression of --rule regex; group `score` or 1 holds the number")
	fs.StringVar(&field, "field", "", "dotted path of --rule json (default score)")
	fs.StringVar(&scale, "scale", "sign", "numbers that are votes: sign (-1, 1), ternary (-1, 0, 1), or MIN:MAX")
	fs.StringVar(&method, "aggregate", "mean_valid", "mean_valid, mean_all or majority (stops early)")
	fs.IntVar(&c.options.Aggregate.Quorum, "quorum", 1, "least number of valid votes for a score")
	fs.Int64Var(&c.options.Seed, "seed", 0, "base of all vote seeds")
	fs.StringVar(&preset, "prompt", "default", "limits of the prompt sections: default or swe-rl")
	fs.StringVar(&systemFile, "system-file", "", "`file` with another system prompt (text/template over prm.View)")
	fs.StringVar(&userFile, "user-file", "", "`file` with another user prompt")
	fs.StringVar(&rubricKey, "rubric-key", "", "metadata `key` whose text is shown as rubric")
	fs.StringVar(&commandLess, "command-less", "judge", "steps without a command: judge, skip or neutral")
	fs.StringVar(&submit, "submit", "judge", "steps that hand in the work: judge, skip or neutral")
	fs.Var(&temperature, "temperature", "sampling temperature (default: the server's)")
	fs.Var(&topP, "top-p", "sampling top-p (default: the server's)")
	fs.IntVar(&c.judge.MaxTokens, "max-tokens", 0, "longest answer (default: the server's)")
	fs.BoolVar(&structured, "structured", false, "ask for JSON by schema; implies --rule json")
	fs.BoolVar(&c.judge.OneByOne, "one-by-one", false, "one request per vote even where the server draws several")
	fs.IntVar(&c.judge.Concurrency, "concurrency", 64, "requests in flight")
	fs.DurationVar(&c.judge.Timeout, "timeout", 2*time.Minute, "of one request")
	fs.DurationVar(&c.judge.Patience, "patience", 10*time.Minute, "of one vote, all tries and waits included")
	fs.IntVar(&c.judge.Retries, "retries", 5, "further tries after a failure; 0 none")
	fs.IntVar(&c.options.StopAfter, "stop-after", 100, "end the run after this many failed votes in a row; 0 never")
	fs.Float64Var(&c.judge.Price.Prompt, "price-prompt", 0, "price of a million prompt tokens")
	fs.Float64Var(&c.judge.Price.Completion, "price-completion", 0, "price of a million completion tokens")
	fs.Var(&coef, "coef", "weight of the mean step score in the summary's rewards (default 1)")
	fs.DurationVar(&c.every, "progress", 30*time.Second, "time between progress lines off a terminal; 0 none")
	files, code, done := cli.Parse(fs, args, stdout, stderr)
	if done {
		return nil, code, true
	}
	c.in = append(in, files...)
	if len(c.in) == 0 {
		c.in = []string{"-"}
	}
	c.judge.Endpoints = endpoints
	c.judge.Temperature, c.judge.TopP, c.coef = temperature.value, topP.value, coef.value
	c.options.Concurrency = c.judge.Concurrency
	if structured {
		rule = "json"
	}
	bounds := c.bounds()
	if c.judge.Retries == 0 {
		c.judge.Retries = -1 // 0 is the client's default
	}
	err := errors.Join(bounds,
		c.rule(rule, pattern, field, scale),
		c.prompt(preset, systemFile, userFile, rubricKey),
		set(&c.options.Steps.CommandLess, "command-less", commandLess),
		set(&c.options.Steps.Submit, "submit", submit),
	)
	var merr error
	c.options.Aggregate.Method, merr = prm.ParseMethod(method)
	if structured {
		c.judge.Schema = voteSchema(field)
	}
	if err = errors.Join(err, merr); err == nil {
		err = errors.Join(c.judge.Validate(), c.options.Validate(), c.scale().Validate())
	}
	if err != nil {
		return nil, cli.Mistake(fs, stderr, err), true
	}
	return &c, 0, false
}

// bounds refuses zeros, which the options underneath take for their defaults.
func (c *config) bounds() error {
	var faults []error
	for _, f := range []struct {
		flag string
		ok   bool
		is   any
		want string
	}{
		{"votes", c.options.Votes > 0, c.options.Votes, "1 or more"},
		{"concurrency", c.judge.Concurrency > 0, c.judge.Concurrency, "1 or more"},
		{"retries", c.judge.Retries >= -1, c.judge.Retries, "0 (none) or more"},
		{"timeout", c.judge.Timeout > 0, c.judge.Timeout, "a time above 0, such as 2m"},
		{"patience", c.judge.Patience > 0, c.judge.Patience, "a time above 0, such as 10m"},
	} {
		if !f.ok {
			faults = append(faults, wrong(f.flag, fmt.Sprint(f.is), f.want))
		}
	}
	return errors.Join(faults...)
}

func wrong(flagName, found, expected string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--" + flagName}, "found %q, expected %s", found, expected)
}

func (c *config) rule(name, pattern, field, scale string) error {
	kind, err := prm.ParseRuleKind(name)
	if err != nil {
		return err
	}
	c.options.Rule = prm.Rule{Kind: kind, Pattern: pattern, Field: field}
	if kind == prm.Regex && c.options.Prompt.Verdict == "" {
		c.options.Prompt.Verdict = "End your answer with a mark in a form that this expression matches: " + pattern
	}
	switch lo, hi, isRange := strings.Cut(scale, ":"); {
	case scale == "sign":
		c.options.Rule.Scale = prm.Sign()
	case scale == "ternary":
		c.options.Rule.Scale = prm.Ternary()
	case isRange:
		min, err1 := strconv.ParseFloat(lo, 64)
		max, err2 := strconv.ParseFloat(hi, 64)
		if err1 != nil || err2 != nil || !(min < max) {
			return wrong("scale", scale, "MIN:MAX with MIN below MAX")
		}
		c.options.Rule.Scale = prm.Range(min, max)
	default:
		return wrong("scale", scale, "sign, ternary or MIN:MAX")
	}
	return nil
}

func (c *config) prompt(preset, systemFile, userFile, rubricKey string) error {
	p := &c.options.Prompt
	switch preset {
	case "default":
	case "swe-rl":
		p.Limits = prm.SWERL().Limits
	default:
		return wrong("prompt", preset, "default or swe-rl")
	}
	for _, f := range []struct {
		path string
		to   *string
	}{{systemFile, &p.System}, {userFile, &p.User}} {
		if f.path == "" {
			continue
		}
		b, err := os.ReadFile(f.path)
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: f.path}, "read a prompt: %w", err)
		}
		*f.to = string(b)
	}
	if rubricKey != "" {
		p.Rubric = func(r *rollout.Rollout) string { return text(r.Metadata[rubricKey]) }
	}
	return nil
}

func set(to *prm.Policy, flagName, name string) error {
	switch name {
	case "judge":
		*to = prm.PolicyAsk
	case "skip":
		*to = prm.PolicySkip
	case "neutral":
		*to = prm.PolicyNeutral
	default:
		return wrong(flagName, name, "judge, skip or neutral")
	}
	return nil
}

// optional is a float flag that may be absent.
type optional struct{ value *float64 }

func (o *optional) String() string {
	if o.value == nil {
		return ""
	}
	return strconv.FormatFloat(*o.value, 'g', -1, 64)
}

func (o *optional) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return err
	}
	o.value = &v
	return nil
}

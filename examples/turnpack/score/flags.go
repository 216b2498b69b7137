package score

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// Cmd is the command score.
type Cmd struct {
	Files []string `arg:"" optional:"" name:"dumps" help:"Rollouts or dumps to read, as with --in."`

	Judge   []string `help:"Base URL of an OpenAI-compatible server, such as http://host:8000/v1; again or with commas for several." placeholder:"URL"`
	Model   string   `help:"Name of the judge model." placeholder:"NAME"`
	KeyEnv  string   `name:"key-env" help:"Environment variable with the API key (default TURNPACK_JUDGE_KEY)." placeholder:"VARIABLE"`
	In      []string `help:"Rollouts or dumps to read: a path, again for more, or - for standard input." sep:"none" placeholder:"PATH"`
	Format  string   `help:"Dump format (default: detected by content)."`
	Out     string   `help:"File for the scored rollouts, native JSONL; replaced once all are scored; - for standard output." default:"-" placeholder:"FILE"`
	Journal string   `help:"File that keeps the votes, so that a stopped run resumes." placeholder:"FILE"`
	Summary string   `help:"File for the summary as JSON." placeholder:"FILE"`

	Votes     int    `help:"Votes per step." default:"3" placeholder:"N"`
	Rule      string `help:"Where the vote is in the answer: boxed-first, boxed-last, tail, regex, json." default:"boxed-first"`
	Pattern   string `help:"RE2 expression of --rule regex; group score or 1 holds the number."`
	Field     string `help:"Dotted path of --rule json (default score)."`
	Scale     string `help:"Numbers that are votes: sign (-1, 1), ternary (-1, 0, 1), or MIN:MAX." default:"sign"`
	Aggregate string `help:"One of mean_valid, mean_all or majority (stops early)." default:"mean_valid"`
	Quorum    int    `help:"Least number of valid votes for a score." default:"1" placeholder:"N"`
	Seed      int64  `help:"Base of all vote seeds." default:"0" placeholder:"N"`

	Prompt      string `help:"Limits of the prompt sections: default or swe-rl." enum:"default,swe-rl" default:"default"`
	SystemFile  string `name:"system-file" help:"File with another system prompt (text/template over prm.View)." placeholder:"FILE"`
	UserFile    string `name:"user-file" help:"File with another user prompt." placeholder:"FILE"`
	IssueKey    string `name:"issue-key" help:"Metadata key whose text is the task (default, and without that key: problem_statement where it is there, else the first user message)." placeholder:"KEY"`
	RubricKey   string `name:"rubric-key" help:"Metadata key whose text is shown as rubric." placeholder:"KEY"`
	CommandLess string `name:"command-less" help:"Steps without a command: judge, skip or neutral." enum:"judge,skip,neutral" default:"judge"`
	Submit      string `help:"Steps that submit the work: judge, skip or neutral." enum:"judge,skip,neutral" default:"judge"`

	Temperature *float64 `help:"Sampling temperature (default: the server's)." placeholder:"NUMBER"`
	TopP        *float64 `name:"top-p" help:"Sampling top-p (default: the server's)." placeholder:"NUMBER"`
	MaxTokens   int      `name:"max-tokens" help:"Longest answer (default: the server's)." placeholder:"N"`
	Structured  bool     `help:"Ask for JSON by schema; implies --rule json."`
	OneByOne    bool     `name:"one-by-one" help:"One request per vote even where the server draws several."`

	Concurrency     int           `help:"Requests in flight." default:"64" placeholder:"N"`
	Timeout         time.Duration `help:"Time of one request." default:"2m"`
	Patience        time.Duration `help:"Time of one vote, all tries and waits included." default:"10m"`
	Retries         int           `help:"Further tries after a failure; 0 or -1 none." default:"5" placeholder:"N"`
	StopAfter       int           `name:"stop-after" help:"End the run after this many failed votes in a row; 0 never." default:"100" placeholder:"N"`
	PricePrompt     float64       `name:"price-prompt" help:"Price of a million prompt tokens."`
	PriceCompletion float64       `name:"price-completion" help:"Price of a million completion tokens."`
	Coef            float64       `help:"Weight of the mean step score in the summary's rewards." default:"1" placeholder:"NUMBER"`
	Progress        time.Duration `help:"Time between progress lines if the output is not a terminal; 0 none." default:"30s"`

	judge   openai.Options
	options prm.Options
}

// Help returns the long help text.
func (*Cmd) Help() string {
	return `Scores every step of every rollout with an LLM judge. API keys come from the environment (--key-env). With --journal, the same command goes on where a stopped one was. Exit status 0: every step has a score, 1: some have none, 2: the command line is wrong or the run failed.`
}

// Faults reads the flags and reports all that are wrong.
func (c *Cmd) Faults() error {
	if c.In = append(parts(c.In), c.Files...); len(c.In) == 0 {
		c.In = []string{"-"}
	}
	c.judge = openai.Options{Endpoints: parts(c.Judge), Model: c.Model, KeyEnv: c.KeyEnv, Temperature: c.Temperature, TopP: c.TopP, MaxTokens: c.MaxTokens,
		OneByOne: c.OneByOne, Concurrency: c.Concurrency, Timeout: c.Timeout, Patience: c.Patience, Retries: c.Retries}
	c.judge.Price.Prompt, c.judge.Price.Completion = c.PricePrompt, c.PriceCompletion
	if c.Retries == 0 {
		c.judge.Retries = -1 // none; the client reads 0 as its default
	}
	if c.Structured {
		c.Rule, c.judge.Schema = "json", voteSchema(strings.Split(cmp.Or(c.Field, "score"), "."))
	}
	c.options = prm.Options{Votes: c.Votes, Seed: c.Seed, StopAfter: c.StopAfter, Concurrency: c.Concurrency,
		Aggregate: prm.Aggregate{Method: c.Aggregate, Quorum: c.Quorum}, Steps: prm.StepOptions{CommandLess: c.CommandLess, Submit: c.Submit},
		Rule: prm.Rule{Kind: c.Rule, Pattern: c.Pattern, Field: c.Field}}
	if err := errors.Join(c.checkBounds(), c.readScale(), c.prompt()); err != nil {
		return err
	}
	return errors.Join(c.judge.Validate(), c.options.Validate())
}

// parts returns the values of a flag, trimmed, without empty ones.
func parts(values []string) (out []string) {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// checkBounds refuses zeros, which the client and the scorer would read as "use the default",
// a summary that could not be written once all votes are paid for, and files that would take
// the place of others that the run reads or writes.
func (c *Cmd) checkBounds() error {
	var faults []error
	var taken []string // paths of --in, --journal, --out and --summary
	for _, path := range append(slices.Clone(c.In), c.Journal, c.Out, c.Summary) {
		abs, _ := filepath.Abs(path) // fails without a working folder alone
		taken = append(taken, abs)
	}
	n := len(taken) - 2
	for _, b := range []struct {
		flag string
		ok   bool
		is   any
		want string
	}{
		{"judge", len(c.judge.Endpoints) > 0, strings.Join(c.Judge, ","), "the base URL of a server, such as http://host:8000/v1"},
		{"model", c.Model != "", c.Model, "the name of the judge model"},
		{"votes", c.Votes > 0, c.Votes, "1 or more"},
		{"concurrency", c.Concurrency > 0, c.Concurrency, "1 or more"},
		{"retries", c.Retries >= -1, c.Retries, "0 or -1 (none), or more"},
		{"out", c.Out == "-" || !slices.Contains(taken[:n], taken[n]), c.Out, "another file than the journal and those that are read"},
		{"summary", c.Summary == "" || !slices.Contains(taken[:n+1], taken[n+1]), c.Summary, "another file than those of --out, --journal and --in"},
		{"summary", c.Summary == "" || folder(filepath.Dir(c.Summary)) && !folder(c.Summary), c.Summary, "the path of a file in a folder that exists"},
		{"timeout", c.Timeout > 0, c.Timeout, "a time above 0, such as 2m"},
		{"coef", c.Coef-c.Coef == 0, c.Coef, "a finite number"},
		{"patience", c.Patience > 0, c.Patience, "a time above 0, such as 10m"},
	} {
		if !b.ok {
			faults = append(faults, wrong(b.flag, fmt.Sprint(b.is), b.want))
		}
	}
	return errors.Join(faults...)
}

func folder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func wrong(flagName, found, expected string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--" + flagName}, "found %q, expected %s", found, expected)
}

// readScale reads --scale, the numbers that count as votes.
func (c *Cmd) readScale() error {
	to := &c.options.Rule.Scale
	switch lo, hi, isRange := strings.Cut(c.Scale, ":"); {
	case c.Scale == "sign":
		to.Values = []float64{-1, 1}
	case c.Scale == "ternary":
		to.Values = []float64{-1, 0, 1}
	case isRange:
		var err1, err2 error
		to.Min, err1 = strconv.ParseFloat(lo, 64)
		to.Max, err2 = strconv.ParseFloat(hi, 64)
		if err1 != nil || err2 != nil || !(to.Min < to.Max) {
			return wrong("scale", c.Scale, "MIN:MAX with MIN below MAX")
		}
	default:
		return wrong("scale", c.Scale, "sign, ternary or MIN:MAX")
	}
	return nil
}

func (c *Cmd) prompt() error {
	p := &c.options.Prompt
	if c.Prompt == "swe-rl" {
		p.Limits = prm.SWERL().Limits
	}
	if c.Rule == "regex" {
		p.Verdict = "End your answer with a mark in a form that this expression matches: " + c.Pattern
	}
	for _, f := range []struct {
		path string
		to   *string
	}{{c.SystemFile, &p.System}, {c.UserFile, &p.User}} {
		if f.path == "" {
			continue
		}
		b, err := os.ReadFile(f.path)
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: f.path}, "read a prompt: %w", err)
		}
		*f.to = string(b)
	}
	if c.IssueKey != "" {
		p.Issue = func(r *rollout.Rollout) string { return text(r.Metadata[c.IssueKey]) }
	}
	if c.RubricKey != "" {
		p.Rubric = func(r *rollout.Rollout) string { return text(r.Metadata[c.RubricKey]) }
	}
	return nil
}

package agent

import (
	"cmp"
	"context"
	_ "embed" // for the templates
	"io"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// Config holds the texts for the policy and the limits of its steps. Texts are chat templates, except System,
// which is used literally.
type Config struct {
	System      string
	Instance    string // variable: task
	Observation string // variables: output.returncode and output.output
	FormatError string // variable: actions, a list with one element per command found
	// FirstBlock runs the first of several commands of a reply, and answers a reply without a command by an
	// observation of return code −1, as swe-rl@0d034dd does.
	FirstBlock bool

	StepLimit int           // replies; default 20
	Dir       string        // of the repository; default sandbox.DefaultDir
	Timeout   time.Duration // of a command; default 180 s
	Env       map[string]string
}

var (
	//go:embed templates/system.txt
	systemText string
	//go:embed templates/instance.jinja
	instanceText string
	//go:embed templates/observation.jinja
	observationText string
	//go:embed templates/format_error.jinja
	formatErrorText string
	//go:embed templates/tools.txt
	toolsText string
)

// defaultConfig returns the defaults of zero fields.
func defaultConfig() Config {
	return Config{
		System: systemText, Instance: instanceText, Observation: observationText, FormatError: formatErrorText,
		StepLimit: 20, Dir: sandbox.DefaultDir, Timeout: sandbox.DefaultTimeout,
		Env: map[string]string{"PAGER": "cat", "MANPAGER": "cat", "LESS": "-R", "PIP_PROGRESS_BAR": "off", "TQDM_DISABLE": "1"},
	}
}

func (c Config) with(d Config) Config {
	c.System, c.Instance = cmp.Or(c.System, d.System), cmp.Or(c.Instance, d.Instance)
	c.Observation, c.FormatError = cmp.Or(c.Observation, d.Observation), cmp.Or(c.FormatError, d.FormatError)
	c.StepLimit, c.Dir, c.Timeout = cmp.Or(c.StepLimit, d.StepLimit), cmp.Or(c.Dir, d.Dir), cmp.Or(c.Timeout, d.Timeout)
	if c.Env == nil {
		c.Env = d.Env
	}
	return c
}

// ReadConfig reads a swebench.yaml of mini-SWE-agent as used by swe-rl. Fields missing from the file are zero.
// It sets FirstBlock, as swe-rl does.
func ReadConfig(r io.Reader) (Config, error) {
	var file struct {
		Agent struct {
			System      string `yaml:"system_template"`
			Instance    string `yaml:"instance_template"`
			Observation string `yaml:"action_observation_template"`
			FormatError string `yaml:"format_error_template"`
			StepLimit   int    `yaml:"step_limit"`
		} `yaml:"agent"`
		Environment struct {
			Dir     string            `yaml:"cwd"`
			Timeout float64           `yaml:"timeout"`
			Env     map[string]string `yaml:"env"`
		} `yaml:"environment"`
	}
	if err := yaml.NewDecoder(r).Decode(&file); err != nil {
		return Config{}, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the agent's configuration: %w", err)
	}
	a, e := file.Agent, file.Environment
	return Config{System: a.System, Instance: a.Instance, Observation: a.Observation, FormatError: a.FormatError, FirstBlock: true,
		StepLimit: a.StepLimit, Dir: e.Dir, Timeout: time.Duration(e.Timeout * float64(time.Second)), Env: e.Env}, nil
}

// templates are the compiled templates of a Config.
type templates struct {
	system                        string
	instance, observation, format *chat.Template
}

func (c *Config) compile() (t templates, err error) {
	t.system = c.System
	for _, x := range []struct {
		name, text string
		to         **chat.Template
	}{{"instance", c.Instance, &t.instance}, {"observation", c.Observation, &t.observation}, {"format error", c.FormatError, &t.format}} {
		if *x.to, err = chat.Compile(x.text, chat.Options{Name: "the agent's " + x.name + " template"}); err != nil {
			return t, err
		}
	}
	return t, nil
}

func render(ctx context.Context, t *chat.Template, vars ...chat.Member) (string, error) {
	out, err := t.RenderVars(ctx, chat.Object(vars...), chat.Input{})
	if err != nil {
		return "", err
	}
	return out.Text, nil
}

// opening returns the first messages of an attempt.
func (t *templates) opening(ctx context.Context, h harness, task string) ([]rollout.Message, error) {
	text, err := render(ctx, t.instance, chat.Member{Key: "task", Value: chat.String(task)}, chat.Member{Key: "tools", Value: chat.Bool(h.tools() != nil)})
	system := t.system
	if h.tools() != nil && system == systemText {
		system = toolsText
	}
	return []rollout.Message{{Role: rollout.RoleSystem, Content: system}, {Role: rollout.RoleUser, Content: text}}, err
}

// observe returns what the policy reads of a result.
func (t *templates) observe(ctx context.Context, d actionResult) (string, error) {
	return render(ctx, t.observation, chat.Member{Key: "output", Value: chat.Object(
		chat.Member{Key: "returncode", Value: chat.Int(int64(d.code))}, chat.Member{Key: "output", Value: chat.String(d.output)})})
}

// formatError returns the answer to a reply with no command, or with several; fault is their number, or a
// sentence to return as it is.
func (t *templates) formatError(ctx context.Context, c *Config, fault string) (string, error) {
	n, err := strconv.Atoi(fault)
	if err != nil {
		return fault, nil
	}
	if c.FirstBlock {
		return t.observe(ctx, actionResult{code: -1, output: "No valid bash command found in response."})
	}
	actions := make([]chat.Value, n)
	for i := range actions {
		actions[i] = chat.String("")
	}
	text, err := render(ctx, t.format, chat.Member{Key: "actions", Value: chat.List(actions...)})
	return strings.TrimRight(text, "\n"), err
}

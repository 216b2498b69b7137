// Command selfplay plays self-play SWE-RL on a repository: see README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/reward/ssr/play"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "selfplay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var o play.Options
	var passing, changed, failing int
	fs := flag.NewFlagSet("selfplay", flag.ContinueOnError)
	fs.SetOutput(out)
	repo := fs.String("repo", "", "`folder` of a git repository without changes")
	fs.StringVar(&o.Tests, "tests", "", "`command` that runs its tests, told to injectors")
	api := fs.String("api-base", "", "base `URL` of the policy's server, with /v1")
	name := fs.String("model-name", "policy", "`name` of the policy there")
	temperature := fs.Float64("temperature", 1, "of sampling")
	most := fs.Int("max-tokens", 4096, "of a reply")
	scripted := fs.String("scripted", "", "`file` of replies in place of a policy")
	model := fs.String("model", "", "Hugging Face model `folder` for the rows (default: the embedded model, for trying)")
	to := fs.String("out", "", "`folder` to write; its bugs.jsonl is gone on with")
	strategies := fs.String("strategies", "removal,history,direct", "of injectors")
	fs.IntVar(&o.Proposals, "proposals", 4, "injectors of each strategy")
	fs.IntVar(&o.Attempts, "attempts", 8, "solvers of each bug")
	fs.IntVar(&o.Steps, "step-limit", 20, "of a rollout")
	fs.IntVar(&o.Workers, "max-concurrent", 8, "rollouts at one time")
	fs.IntVar(&o.Number, "round", 1, "`number` of the round")
	seed := fs.Int64("seed", 0, "of sampling")
	fs.IntVar(&passing, "min-passing-tests", 4, "the suite must have more tests")
	fs.IntVar(&changed, "min-changed-files", 2, "least files of a bug")
	fs.IntVar(&failing, "min-failing-tests", 1, "least tests that a bug breaks")
	timeout := fs.Duration("test-timeout", 90*time.Second, "of a run of the tests")
	repeats := fs.Int("repeats", 3, "runs of the original tests that find flaky ones")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *repo == "" || *to == "" || (*api == "") == (*scripted == "") || fs.NArg() > 0 {
		return errors.New("--repo, --out and one of --api-base and --scripted are needed, and nothing beside flags")
	}
	o.Settings = ssr.Settings{MinPassingTests: &passing, MinChangedFiles: &changed, MinFailingTests: &failing}
	for s := range strings.SplitSeq(*strategies, ",") {
		o.Strategies = append(o.Strategies, play.Strategy(s))
	}
	if *scripted != "" {
		s, err := readScript(*scripted)
		if err != nil {
			return err
		}
		o.Policy = s.answer
	} else {
		client, err := openai.New(openai.Options{Endpoints: []string{*api}, Model: *name, Temperature: temperature, MaxTokens: *most, OneByOne: true, KeyEnv: "POLICY_API_KEY", Concurrency: o.Workers})
		if err != nil {
			return err
		}
		defer client.Close()
		o.Policy = served(client, *seed)
	}
	m, err := embedded.Model()
	if *model != "" {
		m, err = tokenize.Load(*model, tokenize.LoadOptions{})
	}
	if err != nil {
		return err
	}
	o.Count = func(text string) int {
		var e engine.Encoding
		if m.Tokenizer.Encode(&e, text, engine.EncodeOptions{}) != nil {
			return 0
		}
		return len(e.IDs)
	}
	if err := os.MkdirAll(*to, 0o755); err != nil {
		return err
	}
	if o.Store, err = play.OpenStore(filepath.Join(*to, "bugs.jsonl")); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "selfplay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r, err := open(ctx, *repo, work, *timeout, *repeats)
	if err != nil {
		return err
	}
	result, err := play.Round(ctx, r, o)
	if err != nil {
		return err
	}
	if err := o.Store.Save(); err != nil {
		return err
	}
	if err := write(ctx, filepath.Join(*to, fmt.Sprintf("round%d", o.Number)), m, result); err != nil {
		return err
	}
	x := result.Metrics
	fmt.Fprintf(out, "%d proposals: %d accepted (%d known), %d malformed, %v failed a check, %d lost\n%d attempts, %d solved; bugs by order %v; gibberish %.1f%%; flaky tests %v\n",
		x.Proposals, x.Accepted, x.Duplicates, x.Malformed, x.FailedAt, x.Lost, x.Attempts, x.Solved, x.ByOrder, 100*x.Gibberish, x.Flaky)
	for _, b := range o.Store.Bugs() {
		fmt.Fprintf(out, "bug %.8s order %d difficulty %.2f breaks %d tests\n", b.Fingerprint, b.Order, b.Difficulty(), len(b.Broken))
	}
	return nil
}

// open makes an image of a folder for the local driver. With containers, take another
// driver and the name of an image that has the repository.
func open(ctx context.Context, dir, work string, timeout time.Duration, repeats int) (*play.Repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	image := filepath.Join(work, "repo")
	if text, err := exec.CommandContext(ctx, "cp", "-a", dir, image).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy %s: %w: %s", dir, err, text)
	}
	files, err := patch.ReadDir(image)
	if err != nil {
		return nil, err
	}
	driver, err := local.New(local.Options{Root: work})
	if err != nil {
		return nil, err
	}
	return play.Open(ctx, play.Repository{Name: filepath.Base(dir), Provider: sandbox.On(driver), Image: "repo", Files: files, TestTimeout: timeout, Repeats: repeats})
}

// write makes the files of a round: rollouts, rows under the recipe, and metrics.
func write(ctx context.Context, dir string, m *tokenize.Model, result *play.Result) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text []byte
	for _, r := range result.Rollouts {
		if text, err = jsonl.Append(text, r); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	if err := os.WriteFile(filepath.Join(dir, "rollouts.jsonl"), text, 0o644); err != nil {
		return err
	}
	metrics, err := json.MarshalIndent(result.Metrics, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "metrics.json"), append(metrics, '\n'), 0o644); err != nil {
		return err
	}
	pipeline, err := turnpack.Pipeline{Model: m}.With(recipe.SSR())
	if err != nil {
		return err
	}
	rows, err := export.Create(filepath.Join(dir, "rows.parquet"), export.Options{Force: true, Metadata: map[string]string{"recipe": recipe.SSR().Name}})
	if err != nil {
		return err
	}
	if _, err := pipeline.Run(ctx, turnpack.Slice(result.Rollouts), rows); err != nil {
		return errors.Join(err, rows.Abort())
	}
	return rows.Close()
}

// script answers with replies from a file: lines {"when": PATTERN, "replies": […]}. The
// first line whose pattern (path.Match) matches a rollout's id without its round answers;
// ids are inject/STRATEGY/NUMBER and solve/BUG/ATTEMPT.
type script []struct {
	When    string   `json:"when"`
	Replies []string `json:"replies"`
}

func readScript(name string) (script, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s script
	for dec := json.NewDecoder(f); ; {
		s = append(s, script{{}}...)
		if err := dec.Decode(&s[len(s)-1]); err == io.EOF {
			return s[:len(s)-1], nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, reply %d: %w", name, len(s), err)
		}
	}
}

// answer gives the reply of a step.
func (s script) answer(_ context.Context, ask play.Ask) (play.Answer, error) {
	_, id, _ := strings.Cut(ask.Rollout, "/")
	for _, line := range s {
		if ok, err := filepath.Match(line.When, id); err == nil && ok && ask.Step < len(line.Replies) {
			return play.Answer{Text: line.Replies[ask.Step]}, nil
		}
	}
	return play.Answer{}, fmt.Errorf("the script has no reply for step %d of %s", ask.Step, id)
}

// served asks a server with the chat API.
func served(client *openai.Client, seed int64) func(context.Context, play.Ask) (play.Answer, error) {
	return func(ctx context.Context, ask play.Ask) (play.Answer, error) {
		r := prm.Request{ID: prm.VoteID{Rollout: ask.Rollout, Step: ask.Step}}
		r.Seed = prm.Seed(seed, r.ID)
		for _, m := range ask.Messages {
			r.Messages = append(r.Messages, prm.Message{Role: m.Role, Content: m.Content})
		}
		reply, err := client.Judge(ctx, r)
		return play.Answer{Text: reply.Text, Tokens: reply.CompletionTokens}, err
	}
}

// Command selfplay runs self-play SWE-RL on a repository: see README.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/reward/ssr/play"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	proxied "github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/container"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/exact"
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

// game holds the flags and the state of a game.
type game struct {
	play.Options
	repo, dir, image, driver, root, pool, out, model string
	api, kind, name, scripted                        string
	temperature                                      float64
	most, rounds, repeats                            int
	exact                                            bool
	timeout                                          time.Duration
}

func parse(args []string, out io.Writer) (game, error) {
	var g game
	var passing, changed, failing int
	fs := flag.NewFlagSet("selfplay", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&g.repo, "repo", "", "`folder` of a git repository without changes")
	fs.StringVar(&g.Tests, "tests", "", "`command` that runs its tests, told to injectors")
	fs.StringVar(&g.driver, "driver", "local", "sandbox driver: local (copies of --repo on this machine), docker, podman or apptainer, which need --image")
	fs.StringVar(&g.pool, "pool", "", "base `URL` of a pool of sandboxes (swerl serve-pool) in place of a driver, with --image")
	fs.StringVar(&g.image, "image", "", "`name` of an image that holds the repository at the same commit")
	fs.StringVar(&g.dir, "dir", sandbox.DefaultDir, "`folder` of the repository in the image")
	fs.StringVar(&g.root, "root", "", "with apptainer, `folder` of .sif files")
	fs.StringVar(&g.api, "api-base", "", "base `URL` of the policy's engine, with or without /v1; several with commas")
	fs.StringVar(&g.kind, "engine", "vllm", "kind of engine: vllm, sglang; others of OpenAI's shape as vllm")
	fs.StringVar(&g.name, "model-name", "policy", "`name` of the policy there")
	fs.BoolVar(&g.exact, "exact", false, "make prompts here, with the ids that were sampled; needs --model")
	fs.StringVar(&g.Agent.Harness, "harness", "", "tool calls by the schemas of "+strings.Join(agent.Harnesses(), ", ")+" (default: text with bash blocks)")
	fs.Float64Var(&g.temperature, "temperature", 1, "sampling temperature")
	fs.IntVar(&g.most, "max-tokens", 4096, "tokens of a reply")
	fs.StringVar(&g.scripted, "scripted", "", "`file` of replies in place of a policy")
	fs.StringVar(&g.model, "model", "", "Hugging Face model `folder` for the rows (default: the embedded model, for trying)")
	fs.StringVar(&g.out, "out", "", "`folder` to write; a run continues from its bugs.jsonl and complete rounds")
	strategies := fs.String("strategies", "removal,history,direct", "strategies of injectors")
	fs.IntVar(&g.Proposals, "proposals", 4, "injectors of each strategy")
	fs.IntVar(&g.Attempts, "attempts", 8, "solvers of each bug")
	fs.IntVar(&g.Replay, "replay", 0, "bugs of bugs.jsonl that solvers try again each round, beside those that are proposed again")
	fs.IntVar(&g.Agent.Config.StepLimit, "step-limit", 20, "replies of a rollout")
	fs.DurationVar(&g.Agent.Config.Timeout, "command-timeout", 3*time.Minute, "`time` of a command")
	fs.DurationVar(&g.Agent.Timeout, "timeout", 30*time.Minute, "`time` of a rollout")
	fs.IntVar(&g.Workers, "max-concurrent", 8, "rollouts that run at a time")
	fs.IntVar(&g.Number, "round", 1, "`number` of the first round")
	fs.IntVar(&g.rounds, "rounds", 1, "rounds to play, each with the bugs of those before")
	fs.IntVar(&passing, "min-passing-tests", 4, "the suite must have more tests")
	fs.IntVar(&changed, "min-changed-files", 2, "least files of a bug")
	fs.IntVar(&failing, "min-failing-tests", 1, "least tests that a bug breaks")
	fs.DurationVar(&g.timeout, "test-timeout", 90*time.Second, "`time` of a run of the tests")
	fs.IntVar(&g.repeats, "repeats", 3, "runs of the original tests that find flaky ones")
	if err := fs.Parse(args); err != nil {
		return g, err
	}
	g.Settings = ssr.Settings{MinPassingTests: &passing, MinChangedFiles: &changed, MinFailingTests: &failing}
	for s := range strings.SplitSeq(*strategies, ",") {
		g.Strategies = append(g.Strategies, play.Strategy(s))
	}
	switch elsewhere := g.driver != "local" || g.pool != ""; {
	case g.repo == "" || g.out == "" || (g.api == "") == (g.scripted == "") || fs.NArg() > 0:
		return g, errors.New("--repo, --out and one of --api-base and --scripted are needed, and nothing beside flags")
	case elsewhere != (g.image != ""):
		return g, errors.New("--image goes with --pool, or a --driver other than local")
	case g.exact && (g.model == "" || g.api == ""):
		return g, errors.New("--exact needs --model and --api-base")
	case g.rounds < 1 || g.most < 1 || !(g.temperature >= 0):
		return g, errors.New("--rounds and --max-tokens must be above 0, --temperature not below")
	}
	return g, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	g, err := parse(args, out)
	if err != nil {
		return err
	}
	m, err := embedded.Model()
	if g.model != "" {
		m, err = tokenize.Load(g.model, tokenize.LoadOptions{})
	}
	if err != nil {
		return err
	}
	policy, err := g.policy(m)
	if err != nil {
		return err
	}
	g.Agent.Model = policy
	g.Count = func(text string) int {
		var e engine.Encoding
		if m.Tokenizer.Encode(&e, text, engine.EncodeOptions{}) != nil {
			return 0
		}
		return len(e.IDs)
	}
	if err := os.MkdirAll(g.out, 0o755); err != nil {
		return err
	}
	if err := g.openStore(); err != nil {
		return err
	}
	journal, err := live.OpenJournal(filepath.Join(g.out, "journal"), live.JournalOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if g.Recorder, err = live.New(live.Options{Journal: journal}); err != nil {
		return err
	}
	if err := agent.Abandon(ctx, g.Recorder); err != nil {
		return err
	}
	work, _, err := atomic.TempFolder("", "selfplay-") // removes the copies of runs that were killed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Remove()) }()
	r, err := g.open(ctx, work.Path)
	if err != nil {
		return err
	}
	for range g.rounds {
		if err := g.round(ctx, m, r, out); err != nil {
			return err
		}
		g.Number++
	}
	for _, b := range g.Store.Bugs() {
		fmt.Fprintf(out, "bug %.8s order %d difficulty %.2f breaks %d tests\n", b.Fingerprint, b.Order, b.Difficulty(), len(b.Broken))
	}
	return nil
}

// round plays one round, unless its files exist.
func (g *game) round(ctx context.Context, m *tokenize.Model, r *play.Repository, out io.Writer) error {
	dir := filepath.Join(g.out, fmt.Sprintf("round%d", g.Number))
	if complete(dir) {
		fmt.Fprintf(out, "round %d is there\n", g.Number)
		return nil
	}
	result, err := play.Round(ctx, r, g.Options)
	if err != nil {
		return err
	}
	if err := write(ctx, dir, m, result, g.Store); err != nil {
		return err
	}
	if err := g.takeBugs(dir); err != nil {
		return err
	}
	for _, id := range result.Sessions { // the files hold them, so the journal can drop them
		if err := g.Recorder.Deliver(ctx, live.Batch{Key: id, Digest: id, Sessions: []string{id}}); err != nil {
			return err
		}
	}
	x := result.Metrics
	fmt.Fprintf(out, "round %d: %d proposals: %d accepted (%d known), %d malformed, %v failed a check, %d lost\n%d attempts, %d solved; bugs by order %v; gibberish %.1f%%; flaky tests %v\n",
		g.Number, x.Proposals, x.Accepted, x.Duplicates, x.Malformed, x.FailedAt, x.Lost, x.Attempts, x.Solved, x.ByOrder, 100*x.Gibberish, x.Flaky)
	return nil
}

// policy returns the model that plays.
func (g *game) policy(m *tokenize.Model) (agent.Model, error) {
	if g.scripted != "" {
		return readScript(g.scripted)
	}
	var servers []proxied.Options
	for url := range strings.SplitSeq(g.api, ",") {
		servers = append(servers, proxied.Options{URL: strings.TrimSpace(url), Kind: g.kind, Key: os.Getenv("POLICY_API_KEY")})
	}
	pool, err := proxied.NewPool(servers...)
	if err != nil {
		return nil, err
	}
	e := agent.Engine{Engine: pool, Fields: map[string]json.RawMessage{}}
	for name, value := range map[string]any{"model": g.name, "temperature": g.temperature, "max_tokens": g.most} {
		if e.Fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if g.exact {
		if e.Exact, err = exact.New(m, exact.Options{}); err != nil {
			return nil, err
		}
	}
	temperature := float32(g.temperature)
	g.Agent.Sampling = &rollout.Sampling{Temperature: &temperature}
	return e, nil
}

// open returns the repository: an image built from a folder for the local driver, or an
// existing image.
func (g *game) open(ctx context.Context, work string) (*play.Repository, error) {
	dir, err := filepath.Abs(g.repo)
	if err != nil {
		return nil, err
	}
	r := play.Repository{Name: filepath.Base(dir), Image: g.image, Dir: g.dir, TestTimeout: g.timeout, Repeats: g.repeats}
	switch {
	case g.pool != "":
		c, err := swerl.NewClient(swerl.ClientOptions{URL: g.pool})
		if err != nil {
			return nil, err
		}
		r.Provider = c
	case g.driver == "local":
		r.Image = "repo"
		if text, err := exec.CommandContext(ctx, "cp", "-a", dir, filepath.Join(work, r.Image)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("copy %s: %w: %s", dir, err, text)
		}
		dir = filepath.Join(work, r.Image)
		d, err := local.New(local.Options{Root: work, NoLogin: true})
		if err != nil {
			return nil, err
		}
		r.Provider = sandbox.On(d)
	default:
		d, err := container.New(container.Options{Engine: g.driver, Root: g.root})
		if err != nil {
			return nil, err
		}
		r.Provider = sandbox.On(d)
	}
	if r.Files, err = patch.ReadDir(dir); err != nil {
		return nil, err
	}
	opened, err := play.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	head, err := exec.CommandContext(ctx, "git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("git rev-parse HEAD in %s: %w", g.repo, err)
	}
	if commit := strings.TrimSpace(string(head)); commit != opened.Commit() {
		return nil, fmt.Errorf("the image %s is at commit %s, %s at %s: they must be at the same", g.image, opened.Commit(), g.repo, commit)
	}
	return opened, nil
}

// metricsFile is written last: if it exists, the round is complete. The bugs are in the
// folder of the round until then, so that a round that is played anew counts once.
const metricsFile, bugsFile = "metrics.json", "bugs.jsonl"

func complete(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, metricsFile))
	return err == nil
}

// takeBugs moves the bugs of a complete round to where the next one reads them.
func (g *game) takeBugs(dir string) error {
	return os.Rename(filepath.Join(dir, bugsFile), filepath.Join(g.out, bugsFile))
}

// openStore opens the store, with the bugs of a complete round whose run was killed before it moved them.
func (g *game) openStore() error {
	left, err := fs.Glob(os.DirFS(g.out), "round*/"+bugsFile)
	if err != nil {
		return err
	}
	for _, name := range left {
		if dir := filepath.Join(g.out, filepath.Dir(name)); complete(dir) {
			if err := g.takeBugs(dir); err != nil {
				return err
			}
		}
	}
	g.Store, err = play.OpenStore(filepath.Join(g.out, bugsFile))
	return err
}

// write writes the files of a round: rollouts, rows by the recipe, the bugs and metrics.
func write(ctx context.Context, dir string, m *tokenize.Model, result *play.Result, store *play.Store) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	for _, r := range result.Rollouts {
		if err := jsonl.Write(&text, r); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "rollouts.jsonl"), text.Bytes(), 0o644); err != nil {
		return err
	}
	how, err := recipe.Named("ssr")
	if err != nil {
		return err
	}
	pipeline, err := turnpack.Pipeline{Model: m}.With(how)
	if err != nil {
		return err
	}
	rows, err := export.Create(filepath.Join(dir, "rows.parquet"), export.Options{Force: true, Metadata: map[string]string{"recipe": how.Name}})
	if err != nil {
		return err
	}
	report, err := pipeline.Run(ctx, turnpack.Slice(result.Rollouts), rows)
	if err != nil || report.Rows == 0 { // for example, no rewards differ
		err = errors.Join(err, rows.Abort())
	} else {
		err = rows.Close()
	}
	if err != nil {
		return err
	}
	if err := store.Save(filepath.Join(dir, bugsFile)); err != nil {
		return err
	}
	metrics, err := json.MarshalIndent(result.Metrics, "", "  ")
	if err != nil {
		return err
	}
	return atomic.WriteFile(filepath.Join(dir, metricsFile), append(metrics, '\n'), true)
}

// script answers with replies from a file of lines {"when": PATTERN, "replies": […]}. The
// first line whose pattern (filepath.Match) matches the rollout id without its round
// answers. Ids are inject/STRATEGY/NUMBER and solve/BUG/ATTEMPT.
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

// Reply returns the scripted reply of a step.
func (s script) Reply(_ context.Context, r agent.Request) (live.Reply, error) {
	_, id, _ := strings.Cut(r.Session, "/")
	for _, line := range s {
		if ok, err := filepath.Match(line.When, id); err == nil && ok && r.Step < len(line.Replies) {
			return live.Reply{Message: &rollout.Message{Content: line.Replies[r.Step]}}, nil
		}
	}
	return live.Reply{}, fmt.Errorf("the script has no reply for step %d of %s", r.Step, id)
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/ahead"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/place"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/examples/turnpack/internal/step"
	"github.com/turnpack/turnpack/examples/turnpack/internal/weigh"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

type convertCmd struct {
	Model    string   `help:"Model folder: tokenizer.json and a chat template; not needed for dumps with the engine's token ids of every turn." type:"path"`
	Template string   `help:"Chat template of the folder by its name, or a file in its place (with a dot or a slash). Default: tool_use, if there is one, for rollouts with tools, else the default template." placeholder:"NAME|FILE"`
	In       []string `help:"Dump file or folder; again for more, which may follow as arguments." sep:"none" type:"path"`
	More     []string `arg:"" optional:"" name:"dumps" help:"Dump files or folders." type:"path"`
	Out      string   `help:"Output folder, or s3://BUCKET/PREFIX; a batch of one file is batch.parquet in it." default:"batch"`
	Force    bool     `help:"Replace an output that exists."`

	Format  string   `help:"Dump format; auto looks at the content." default:"auto" group:"Reading:"`
	OnError string   `help:"What to do with bad records: report and skip leave them out and list them, with exit status 3 and 0; stop ends the run at the first." enum:"report,skip,stop" default:"report" group:"Reading:"`
	GroupBy string   `help:"Group key: auto (recorded group, else task instance), instance, file, prompt, none, or metadata:KEY." default:"auto" group:"Reading:"`
	Join    bool     `help:"Make one rollout of the recorded model calls in a folder (completion logs, wire exchanges)." name:"join-calls" group:"Reading:"`
	Dedup   bool     `help:"Leave out rollouts that equal an earlier one." group:"Reading:"`
	System  string   `help:"File with the system prompt of rollouts that record none (native ones and recorded calls are complete); {policy} in it stands for the policy that a tau2-bench file holds." type:"path" placeholder:"FILE" group:"Reading:"`
	Rewards []string `help:"File of recorded results to join, again for more: results.jsonl, evaluation reports, CSV or JSONL." sep:"none" type:"path" group:"Reading:"`

	Mode        string `help:"Rows: merged, perstep (dynamic history) or whole." enum:"merged,perstep,whole" default:"merged" group:"Rows:"`
	Specials    string `help:"Added tokens in recorded text: guard or parity." enum:"guard,parity" default:"guard" group:"Rows:"`
	Edges       string `help:"Token edges: sampled or document." enum:"sampled,document" default:"sampled" group:"Rows:"`
	PromptsBy   string `help:"What made the recorded prompts: vllm, sglang, transformers (arguments and text parts as recorded), or record: what the record names, else vllm." enum:"record,vllm,sglang,transformers" default:"record" name:"prompts-by" group:"Rows:"`
	Drift       string `help:"Drift policy of merged rows: fork, splice, realign, auto or refuse." enum:"fork,splice,realign,auto,refuse" default:"fork" group:"Rows:"`
	MaxDrop     int    `help:"With --drift realign or auto: most sampled tokens that one repair gives up; 0 = 8, -1 = none." name:"max-drop-tokens" group:"Rows:"`
	MaxSub      int    `help:"With --drift splice or auto: most tokens that one repair respells; 0 = 64, -1 = none." name:"max-sub-tokens" group:"Rows:"`
	StopRewrite bool   `help:"With drift splice or auto: join turns even if the template writes another token for a sampled stop token (gpt-oss)." group:"Rows:"`
	Window      string `help:"Context window: none, headtail:N, tail:N, refill:N or swe-rl:N (N tokens)." default:"none" group:"Rows:"`
	MaxTokens   int    `help:"Mask rows longer than this; 0 = no limit." group:"Rows:"`
	NoReasoning bool   `help:"Do not train reasoning." group:"Rows:"`

	templateFlags `embed:"" group:"Rows:"`

	Estimator string  `help:"Advantage estimator: a preset name, or none for rows without advantages." default:"grpo" group:"Rewards:"`
	Scale     string  `help:"Outcome to reward: signed, binary, partial, recorded, or auto: signed where a verdict is recorded, else the recorded number." enum:"auto,signed,binary,partial,recorded" default:"auto" group:"Rewards:"`
	StepCoef  float64 `help:"Coefficient of the mean step score." group:"Rewards:"`

	InvalidCall       shape.Optional `help:"Advantage of sampled messages with an invalid tool call, such as -5." name:"invalid-call-advantage" placeholder:"NUMBER" group:"Rewards:"`
	MalformedThinking shape.Optional `help:"Advantage of sampled messages with malformed reasoning, such as -5." name:"malformed-thinking-advantage" placeholder:"NUMBER" group:"Rewards:"`
	Detect            string         `help:"What counts as invalid or malformed: all (unknown tools, arguments that are no JSON object or break the tool's schema, calls left in the text, unpaired reasoning markers) or nemotron, the rule of NeMo RL." enum:"all,nemotron" default:"all" group:"Rewards:"`

	Temperature   float32 `help:"Sampling temperature of turns that record none; 0 = 1. vLLM takes that of generation_config.json where a request has none." group:"Output:"`
	UnknownStatus string  `help:"Status of rollouts whose dump does not say how they ended, nor that a limit cut the last reply; aborted and failed ones are left out. refuse ends the run." enum:"refuse,completed,truncated,aborted,failed" default:"completed" group:"Output:"`
	Engine        string  `help:"Tokenizer engine." enum:"bpe,hf" default:"bpe" group:"Running:"`
	Workers       int     `help:"Parallel encoders; 0 = one per processor." group:"Running:"`
	DryRun        bool    `help:"Do everything but write." group:"Running:"`
	JSON          bool    `help:"Print the summary as JSON." name:"json" group:"Running:"`
	Quiet         bool    `help:"No progress bar." group:"Running:"`

	outputFlags `embed:"" group:"Output:"`
	shape.Flags `embed:""`

	MinFidelity float64 `help:"Fail when a smaller share of sampled tokens is trained exactly as the engine recorded them; tokens rendered from text are not." default:"0" group:"Running:"`
	MaxStopLoss float64 `help:"Fail when a larger share of stop tokens is lost to drift repairs." default:"1" group:"Running:"`
}

// Run converts the dumps and prints the summary.
func (c *convertCmd) Run(p *cli.Program) error {
	in := append(c.In, c.More...)
	// Each input is digested before it is read: what is added between is in the batch and not in
	// its record, so that the same run later says that the input has changed.
	others, err := c.inputs(c.Rewards, c.System)
	if err != nil {
		return err
	}
	dumps, err := c.readerOptions()
	if err != nil {
		return err
	}
	out := c.Out
	if c.Force { // what is there spares nothing
		out = ""
	}
	inputs := sync.OnceValues(func() ([]input, error) {
		found, err := c.inputs(in, "")
		return append(found, others...), err
	})
	src, err := ahead.New(p.Ctx, in, dumps, out, func() { _, _ = inputs() })
	if err != nil {
		return err
	}
	defer src.Stop()
	var model *tokenize.Model // nil: only recorded ids are used
	if c.Model != "" {
		if model, err = modelfolder.Load(c.Model, c.Template, c.Engine); err != nil {
			return err
		}
	}
	s, err := c.writeBatch(p, model, src, inputs)
	if err != nil || s == nil {
		return errors.Join(err, noRewardMatched(src.Report()))
	}
	if c.JSON {
		err = p.JSON(s)
	} else {
		err = s.table(p.Out)
	}
	return errors.Join(err, c.leftOutError(s))
}

// leftOutError returns an error with exit code 3 if records or files were left out, unless
// --on-error skip accepts that.
func (c *convertCmd) leftOutError(s *summary) error {
	if s.LeftOut+s.Unread == 0 || c.OnError == "skip" {
		return nil
	}
	var what []string
	if s.LeftOut > 0 {
		what = append(what, fmt.Sprintf("%s of %s records were left out and listed", cli.Number(s.LeftOut), cli.Number(s.Read)))
	}
	if s.Unread > 0 {
		what = append(what, fmt.Sprintf("%s files of the folders were not read and are listed", cli.Number(s.Unread)))
	}
	return &cli.ExitError{Code: exitLeftOut, Err: errors.New(strings.Join(what, ", ") + ": mend them or move them away, or accept that with --on-error skip (exit status 0); --on-error stop ends at the first bad record")}
}

// noRewardMatched returns an error if rewards were given and none matches a rollout.
func noRewardMatched(r *traj.Report) error {
	if r.Joined > 0 || r.UnmatchedCount == 0 || r.UnrewardedCount == 0 {
		return nil // no rollout was read: other code reports that
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--rewards"}, "none of %d rewards names a rollout: %s", r.UnmatchedCount, cli.FirstOf(r.Unmatched)).
		WithFix("rollouts are %s", cli.FirstOf(r.Unrewarded))
}

// writeBatch writes the batch to --out. It returns no summary if the same run has already made
// the batch.
func (c *convertCmd) writeBatch(p *cli.Program, model *tokenize.Model, src *ahead.Source, inputs func() ([]input, error)) (*summary, error) {
	if c.DryRun {
		s, _, err := c.convert(p, model, src, "")
		return s.read(src.Source, c), err
	}
	dst, err := place.Open(p.Ctx, c.Out, p.Err)
	if err != nil {
		return nil, err
	}
	defer dst.Close() //nolint:errcheck // what it holds is whole or the run has failed
	found, err := inputs()
	if err != nil {
		return nil, err
	}
	rec, err := c.record(model, found)
	if err != nil {
		return nil, err
	}
	if c.source = rec.source(); c.oneFile() {
		c.marker = filepath.Join(dst.Dir(), rec.marker())
		_, err := os.Lstat(c.marker)
		c.unrecordedRun = err == nil
	}
	if !c.Force {
		made, err := rec.complete(dst)
		if err != nil {
			return nil, err
		}
		if made != nil {
			// A run that was killed just after it named its record leaves its marker and the record's temporary name.
			_ = dst.Remove(rec.marker())
			cli.Sweep(p.Err, dst.Dir(), cli.RecordName)
			return nil, c.nothingToDo(p, made, dst)
		}
	}
	s, files, err := c.convert(p, model, src, dst.Dir())
	if err != nil {
		if _, cut := os.Stat(filepath.Join(dst.Join(""), shard.ProgressName)); cut == nil && p.Ctx.Err() != nil {
			fmt.Fprintln(p.Err, "the shards that are done stay: the same command goes on from there")
		}
		return nil, err
	}
	s.read(src.Source, c)
	if c.Force {
		if err := replace(dst, files); err != nil {
			return nil, err
		}
	}
	if err := rec.finish(dst.Dir(), files, *s, c.Force); err != nil {
		return nil, err
	}
	c.removeMarker()
	s.Output = dst.Join(s.Output)
	return s, dst.Publish(files, rec.marker())
}

// nothingToDo reports that the batch is already complete.
func (c *convertCmd) nothingToDo(p *cli.Program, made *record, dst place.Place) error {
	var err error
	if c.JSON {
		made.Summary.Output, made.Summary.Complete = dst.String(), true
		err = p.JSON(&made.Summary)
	} else {
		_, err = fmt.Fprintf(p.Out, "%s is already complete: %s rows, %s trained tokens, same options and input%s. Nothing to do; --force makes it again.\n",
			rollout.Printable(dst.String()), cli.Number(made.Summary.Rows), cli.Number(made.Summary.Trained), cli.LeftOut(made.Summary.Target))
	}
	return errors.Join(err, c.leftOutError(&made.Summary))
}

// convert writes the batch into dir, or nothing on a dry run. It returns the summary,
// whose output path is relative to dir, and the files written.
func (c *convertCmd) convert(p *cli.Program, model *tokenize.Model, src turnpack.Source, dir string) (*summary, []string, error) {
	pipe, err := c.pipeline(p.Ctx, model)
	if err != nil {
		return nil, nil, err
	}
	weights, err := weigh.New(c.Weights, c.GroupsPerStep)
	if err != nil {
		return nil, nil, err
	}
	trainer, rules, err := c.target(model, weights)
	if err != nil {
		return nil, nil, err
	}
	done := func() {}
	if !c.Quiet && !c.JSON {
		pipe.Progress, done = progress(p.Err)
	}
	start := time.Now()
	opts := c.exportOptions(model)
	if opts.Metadata, err = c.recipeMetadata(&pipe); err != nil {
		return nil, nil, err
	}
	opts.Metadata = c.outputFlags.metadata(opts.Metadata)
	off := pipe.Shaping.OffPolicy // a target decides itself which weights its rows have
	opts.Weighted = off != nil && off.Weights != nil && c.Target == "none"
	if weights != nil {
		unweighed := rules
		unweighed.MeanOverRollouts = nil
		counted, err := target.New(c.Target, unweighed)
		if err == nil {
			err = weights.Count(p.Ctx, pipe, src, counted)
		}
		if err != nil {
			done()
			return nil, nil, err
		}
		if c.Target == "none" { // a target decides itself which columns its rows have
			opts.Columns = weights.Columns()
		}
	}
	dst, undo, err := c.destination(dir, trainer, rules, opts, weights, p.Err)
	if err != nil {
		undo()
		return nil, nil, err
	}
	report, err := pipe.Run(p.Ctx, src, dst.resumable())
	done()
	if err != nil {
		err = c.adviseSkipping(nameIncompleteTurns(err, &report))
	} else if err = errors.Join(c.checkDriftLimits(report), noRowError(report)); err != nil {
		err = errors.Join(err, dst.discard())
	} else {
		err = nameIncompleteTurns(dst.Close(), &report) // Close may refuse a row of the last group
	}
	if err != nil {
		err = errors.Join(err, dst.fail(p.Ctx.Err() != nil))
		undo()
		return nil, nil, err
	}
	if dst.groups != nil {
		left := dst.groups.LeftOut
		report.Rows, report.Tokens, report.Trained = report.Rows-left.Rows, report.Tokens-left.Tokens, report.Trained-left.Trained
	}
	s := summarize(report, time.Since(start), dst.name)
	s.Target = trainer.Dropped
	if dst.set != nil && c.steps() {
		s.StepRollouts = step.Of(dst.set.Manifest())
	}
	s.undated, s.idsAlone = model != nil && c.undated(model), model == nil
	return s, dst.files(), nil
}

// destination creates the sink for files under dir, or one that writes nothing on a dry
// run. undo removes the folders created for it that are empty again.
func (c *convertCmd) destination(dir string, t *target.Target, o target.Options, opts export.Options, w *weigh.Weigher, errOut io.Writer) (dst output, undo func(), err error) {
	undo = func() {}
	if c.DryRun {
		dst, err = c.openDryRun(t, opts, w)
		return dst, undo, err
	}
	made, err := place.MakeFolder(dir)
	undo = func() { c.removeMarker(); made() }
	if err == nil {
		cli.Sweep(errOut, dir, "")
		dst, err = c.open(dir, t, o, opts, w)
	}
	if err == nil && c.marker != "" {
		if err = atomic.WriteFile(c.marker, nil, true); err != nil {
			err = errors.Join(err, dst.Abort())
		}
	}
	return dst, undo, err
}

// removeMarker removes the marker file when a run ends.
func (c *convertCmd) removeMarker() {
	_ = os.Remove(c.marker) // may be ""; if the marker stays, the same run may replace its own batch
}

// noRowError returns an error for a run that would write no row.
func noRowError(r turnpack.Report) error {
	if r.Rows > 0 {
		return nil
	}
	why := cli.Counts(r.WithoutRows)
	if len(r.Skips) > 0 {
		why += "; the first: " + r.Skips[0].Error.Error()
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "no rollout gave a row: %s", why)
}

// adviseSkipping adds to the error of a single record the flag that continues without it.
func (c *convertCmd) adviseSkipping(err error) error {
	e, ok := errors.AsType[*rollout.Error](err)
	if !ok || c.OnError != "stop" || e.Where.Rollout == "" && e.Where.Line == 0 {
		return err
	}
	return fmt.Errorf("%w\n--on-error report or skip leaves such records out and lists them", err)
}

// nameIncompleteTurns adds to an error about a missing column which turns lack it; they are often
// turns of another rollout.
func nameIncompleteTurns(err error, r *turnpack.Report) error {
	refused, ok := errors.AsType[*export.RefusedError](err)
	if !ok {
		return err
	}
	for _, c := range droppedColumns(r) {
		if c.name == refused.Column {
			err = fmt.Errorf("%w\n%s; without it the others keep the column", err, c.why())
		}
	}
	return err
}

// checkDriftLimits returns an error if drift exceeds the limits that the user set.
func (c *convertCmd) checkDriftLimits(r turnpack.Report) error {
	e := &r.Encode
	var errs []error
	if f := e.Fidelity(); f < c.MinFidelity {
		errs = append(errs, rollout.Errorf(rollout.KindDrift, rollout.Where{Field: "--min-fidelity"},
			"%s of %s sampled tokens are trained exactly as recorded, a share of %.4f where %g is the least (%s were rendered from text, %s given up, %s trained after a respelling)",
			cli.Number(e.Exact), cli.Number(e.Sampled), f, c.MinFidelity, cli.Number(e.Rendered), cli.Number(e.Dropped), cli.Number(e.SubContext)).
			WithFix("record the engine's token ids, choose --drift fork, or lower the share"))
	}
	if s := e.StopLossShare(); s > c.MaxStopLoss {
		errs = append(errs, rollout.Errorf(rollout.KindDrift, rollout.Where{Field: "--max-stop-loss"},
			"%s of %s stop tokens are lost, a share of %.4f where %g is the most", cli.Number(e.StopsLost), cli.Number(e.Stops), s, c.MaxStopLoss).
			WithFix("choose --drift fork or splice, which lose none, or raise the share"))
	}
	if c.StepCoef != 0 && r.Overview.Judged == 0 && r.Read > 0 {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--step-coef"}, "no step of the %s rollouts has a score", cli.Number(r.Rollouts)).WithFix("score them (turnpack score), or leave it out"))
	}
	return errors.Join(errs...)
}

// progress returns functions that draw and finish a bar on a terminal, and that do
// nothing elsewhere.
func progress(w io.Writer) (func(turnpack.Progress), func()) {
	if !cli.Terminal(w) {
		return nil, func() {}
	}
	columns := cli.Columns(w)
	narrow := columns > 0 && columns < 72 // a bar that wraps would leave a line each time it is drawn
	bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(w), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(!narrow),
		progressbar.OptionShowCount(), progressbar.OptionSetDescription("reading rewards"), progressbar.OptionClearOnFinish())
	pass := 1
	return func(p turnpack.Progress) {
		if p.Pass != pass {
			pass = p.Pass
			bar.Reset()
			bar.ChangeMax(p.Total)
		}
		if pass == 2 && narrow {
			bar.Describe("encoding")
		} else if pass == 2 {
			bar.Describe(fmt.Sprintf("encoding, %s tokens", cli.Number(p.Tokens)))
		}
		_ = bar.Set(p.Done) // ignored: a bar that cannot be drawn does not stop the run
	}, func() { _ = bar.Finish() }
}

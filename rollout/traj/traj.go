package traj

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/outcomes"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// Limits bounds what is read. Zero fields mean the defaults.
type Limits struct {
	ValueBytes int   // longest JSON value (a line, a list element, a file), default 1 GiB
	Depth      int   // deepest nesting, default 512
	Messages   int   // messages of one rollout, default 1,000,000
	FileBytes  int64 // decompressed bytes of one file or archive member, default 64 GiB
	Ratio      int64 // ratio of decompressed to compressed size beyond 64 MiB, default 500
	Members    int   // members of one archive, default 1,000,000
	Folders    int   // depth of folders below a named one, default 64
}

// Options configures Open. The zero value is a good default.
type Options struct {
	// Format is the name of the importer to use; "" or "auto" detects it from the content.
	Format string
	// OnError says whether the first failure ends the stream, or failures are skipped,
	// counted and listed in the Report with their locations.
	OnError rollout.OnError
	Limits  Limits
	// Alone reads each file by itself: files beside it, such as patch.diff or
	// results.jsonl, are not read, but for those that tell what a model saw.
	Alone bool
	// GroupBy overrides the group key: "" as in the data, "instance", "file", "prompt"
	// (equal messages before the first sampled one, or equal ids where there are none),
	// "none" (each its own) or "metadata:<key>".
	GroupBy string
	// Dedup skips rollouts whose roles, texts and arguments, and ids of turns without a
	// message, equal those of an earlier one; the Report lists them.
	Dedup bool
	// JoinCalls makes one rollout of the recorded calls in a folder (completion logs,
	// exchanges) that share the first user message, in the order of their files: one turn
	// per call, with the call's request as its context. By default each call is a rollout
	// of its own.
	JoinCalls bool
	// Rewards are outcomes recorded elsewhere.
	Rewards []*Rewards
	// System is a system prompt for rollouts that record none, inserted before their
	// messages; "" inserts none. {policy} in it is replaced by the policy that a tau2-bench
	// file holds. Recorded calls and native rollouts are not changed.
	System string
	// Except is a file or folder below a named folder that is not read, such as the output of
	// the job; "" = none.
	Except string
	// Importers read your own formats. They are asked in order, before the built-in ones,
	// and Format may name one.
	Importers []Importer
	// Stdin is read for the path "-"; nil means os.Stdin.
	Stdin io.Reader
}

// groupKeys are the values of GroupBy apart from "metadata:<key>".
var groupKeys = []string{"", "instance", "file", "prompt", "none"}

// Validate reports every option that is out of range.
func (o Options) Validate() error {
	var errs []error
	known := Formats()
	if slices.Contains(o.Rewards, nil) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Rewards"}, "one is nil, expected those of LoadRewards"))
	}
	for i, x := range o.Importers {
		at := rollout.Where{Field: "Options.Importers/" + strconv.Itoa(i)}
		switch {
		case x.Name == "" || x.Match == nil || x.Read == nil:
			errs = append(errs, rollout.Errorf(rollout.KindInput, at, "an importer needs Name, Match and Read"))
		case x.Name == "auto" || slices.Contains(known, x.Name):
			errs = append(errs, rollout.Errorf(rollout.KindInput, at, "the name %q is taken", x.Name))
		}
		known = append(known, x.Name)
	}
	if o.Format != "" && o.Format != "auto" && !slices.Contains(known, o.Format) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Format"}, "no format %q, expected one of %s", o.Format, strings.Join(known, ", ")))
	}
	if o.OnError > rollout.OnErrorStop {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.OnError"}, "value %d is neither OnErrorSkip nor OnErrorStop", o.OnError))
	}
	if key, ok := strings.CutPrefix(o.GroupBy, "metadata:"); !slices.Contains(groupKeys, o.GroupBy) && (!ok || key == "") {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.GroupBy"}, "found %q, expected instance, file, prompt, none or metadata:<key>", o.GroupBy))
	}
	l := o.Limits
	for name, v := range map[string]int64{"ValueBytes": int64(l.ValueBytes), "Depth": int64(l.Depth), "Messages": int64(l.Messages), "FileBytes": l.FileBytes, "Ratio": l.Ratio, "Members": int64(l.Members), "Folders": int64(l.Folders)} {
		if v < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Limits." + name}, "limit is %d, expected 0 (default) or more", v))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// Reader streams rollouts from dumps. It is not safe for concurrent use; the rollouts it
// yields belong to the caller.
type Reader struct {
	opt    Options
	walk   source.Walker
	paths  []string
	single *source.File

	report      Report
	registry    registry
	seen        map[[16]byte]rollout.Origin
	calls       *callRun                   // the run of calls being collected
	events      *eventFiles                // the folder of events being collected
	joined      map[*outcomes.Entry]string // outcome → id of the rollout that took it
	memory      format.Memory              // shared by the importers
	unread      unread                     // files in folders, not read
	yieldErrors bool                       // skipped failures are yielded too
	yield       func(*rollout.Rollout, error) bool

	kept   map[string]*fileMemory // by file name; nil = nothing is kept
	before map[string]*fileMemory // places from an earlier reading
	past   func(id string) bool
}

// Open returns a Reader of paths: files, folders (walked in lexical order), globs, and "-"
// for standard input. A file that several paths lead to is read once. Files may be
// compressed with gzip or zstd; zip archives are read member by member. Nothing is read
// before All is ranged over.
func Open(paths []string, opt Options) (*Reader, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "no files to read").WithFix("name a file, a folder, a pattern or - for standard input")
	}
	return newReader(paths, opt), nil
}

// NewReader returns a Reader of one stream, which may be compressed. name is used in
// errors; its extension marks JSONL.
func NewReader(r io.Reader, name string, opt Options) (*Reader, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: name}, "expected a stream to read, found nil")
	}
	out := newReader(nil, opt)
	out.single = out.walk.Reader(name, r)
	return out, nil
}

func newReader(paths []string, opt Options) *Reader {
	r := &Reader{opt: opt, paths: paths, registry: newRegistry(opt.GroupBy), memory: format.Memory{}, seen: map[[16]byte]rollout.Origin{}, joined: map[*outcomes.Entry]string{}}
	l := opt.Limits
	r.walk = source.Walker{
		Limits:  source.Limits{FileBytes: cmp.Or(l.FileBytes, 64<<30), Ratio: cmp.Or(l.Ratio, 500), Members: cmp.Or(l.Members, 1_000_000), Depth: cmp.Or(l.Folders, 64)},
		Stdin:   opt.Stdin,
		Ignored: r.ignore,
	}
	if opt.Except != "" {
		r.walk.Except, _ = filepath.Abs(opt.Except) // fails without a working folder, where no path is relative
	}
	if r.walk.Stdin == nil {
		r.walk.Stdin = os.Stdin
	}
	r.opt.Limits.Messages = cmp.Or(l.Messages, 1_000_000)
	r.report.Formats = map[string]int{}
	return r
}

// All yields every rollout and, last, the error that ended the stream, if any: with
// OnErrorStop the first failure, with OnErrorSkip, which puts failures into the Report,
// only an error after which nothing can be read.
func (r *Reader) All() iter.Seq2[*rollout.Rollout, error] { return r.run }

// Report returns what has been read so far; Unmatched and Unread are filled at the end.
func (r *Reader) Report() *Report {
	return &r.report
}

var errStop = errors.New("the consumer stopped")

func (r *Reader) run(yield func(*rollout.Rollout, error) bool) {
	r.yield = yield
	if err := r.readAll(); err != nil && !errors.Is(err, errStop) {
		yield(nil, err)
	}
}

func (r *Reader) readAll() error {
	defer r.unmatched()
	defer r.unreadFiles()
	names := strings.Join(r.paths, ", ")
	if r.single != nil {
		names = r.single.Name
		if err := r.file(r.single); err != nil {
			return err
		}
	}
	for f, err := range r.walk.Files(r.paths) {
		if err == nil {
			err = r.file(f)
		} else {
			err = r.failed(err)
		}
		if err != nil {
			return err
		}
	}
	if err := r.flush(); err != nil {
		return err
	}
	if r.report.Rollouts+r.report.Skipped+r.report.Duplicates > 0 {
		return nil
	}
	e := rollout.Errorf(rollout.KindInput, rollout.Where{File: names}, "no rollout found, files read: %d", r.report.Files)
	if len(r.report.Ignored) > 0 {
		return e.WithFix(noneFix+"; the first file passed over is %s: %s", r.report.Ignored[0].Path, r.report.Ignored[0].Why)
	}
	return e.WithFix(noneFix)
}

const noneFix = "name dumps that hold records, or a folder of .json, .jsonl, .ndjson, .traj, .eval, .tpj, .parquet, .arrow, .pt, .pkl or .zip files, compressed or not"

// flush emits the rollouts that were collected over several files.
func (r *Reader) flush() error {
	if err := r.flushEvents(); err != nil {
		return err
	}
	return r.flushCalls()
}

// failed counts a failure and returns nil with OnErrorSkip; errStop if the consumer
// stopped.
func (r *Reader) failed(err error) error {
	if errors.Is(err, errStop) || r.opt.OnError == rollout.OnErrorStop {
		return err
	}
	r.report.skip(err)
	if r.yieldErrors && !r.yield(nil, err) {
		return errStop
	}
	return nil
}

func (r *Reader) file(f *source.File) error {
	if err := r.leaveEvents(f.Name); err != nil {
		return err
	}
	r.report.Files++
	fr := newFileReader(r, f)
	if skipsPast(fr, 0) {
		return nil
	}
	if err := fr.run(); err != nil {
		return r.failed(err)
	}
	if len(fr.unrecognized) > 0 {
		r.ignore(f.Name, fr.unrecognized[0].Msg)
	}
	return nil
}

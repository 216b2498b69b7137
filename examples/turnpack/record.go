package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/place"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

// record describes how a batch was made. A later run with the same record has nothing to
// do.
type record struct {
	Version   int            `json:"version"`
	Options   map[string]any `json:"options"` // flag → value
	Tokenizer string         `json:"tokenizer"`
	Template  string         `json:"template"`
	Inputs    []input        `json:"inputs"`
	Files     []shard.File   `json:"files"`
	Summary   summary        `json:"summary"` // without times and paths
}

// input is a path that was read.
type input struct {
	Path   string `json:"path"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	System bool   `json:"system,omitempty"` // the file of --system
}

// record returns the record of this run, without its results.
func (c *convertCmd) record(model *tokenize.Model, inputs []input) (*record, error) {
	r := &record{Version: 1, Options: map[string]any{}, Inputs: inputs}
	if model != nil {
		r.Tokenizer, r.Template = model.Tokenizer.Digest(), model.TemplateDigest()
	}
	decides := *c
	// These only name places or change how a run proceeds, not its result.
	decides.Model, decides.Template, decides.In, decides.More, decides.Out, decides.Rewards, decides.System = "", "", nil, nil, "", nil, ""
	decides.OnError = "" // --on-error does not change the rows of a run that succeeds
	decides.Force, decides.Workers, decides.DryRun, decides.JSON, decides.Quiet = false, 0, false, false, false
	text, err := json.Marshal(decides)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &r.Options); err != nil {
		return nil, err
	}
	maps.DeleteFunc(r.Options, func(_ string, v any) bool { return v == nil || v == "" || v == false || v == 0.0 })
	return r, nil
}

// inputs returns the inputs at paths and system, the file of --system or "". There are none on a
// dry run, which has no record.
func (c *convertCmd) inputs(paths []string, system string) (found []input, err error) {
	out, err := filepath.Abs(c.Out) // absolute like the paths of --in, which may contain it
	if err != nil || c.DryRun {
		return nil, err
	}
	if system != "" {
		paths = append(slices.Clone(paths), system)
	}
	for _, path := range paths {
		if rel, err := filepath.Rel(path, out); err == nil && filepath.IsLocal(rel) && (rel == "." || holdsOther(out)) {
			return nil, cli.Mistake(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--out"}, "what lies in %s is not read as input, and it holds more than a batch", out).WithFix("choose a folder of its own"))
		}
		p, err := traj.Fingerprint(path, out)
		if err != nil {
			return nil, err
		}
		found = append(found, input{path, p.Files, p.Bytes, p.SHA256, path == system})
	}
	return found, nil
}

// holdsOther reports whether a folder holds files that are not hidden, and no batch that is complete
// or begun.
func holdsOther(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name()[0] != '.' }) && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".turnpack.") || e.Name() == shard.ProgressName
	})
}

// source returns a digest of everything that determines the batch, and of the build.
func (r *record) source() string {
	made := []any{r.Version, r.Options, r.Tokenizer, r.Template}
	for _, in := range r.Inputs {
		made = append(made, in.SHA256)
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		made = append(made, b.Main.Version)
		for _, s := range b.Settings {
			if strings.HasPrefix(s.Key, "vcs.") {
				made = append(made, s.Value)
			}
		}
	}
	text, _ := json.Marshal(made) // cannot fail: strings, numbers and maps of them
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// marker returns the name of the file that exists next to a batch of one file while it is
// written, and in an object store while a batch is sent. By that name, a later identical run
// recognizes what a killed run left.
func (r *record) marker() string { return ".turnpack." + r.source()[:12] + ".begun" }

// differs lists in words how the run that made a batch differs from r.
func (r *record) differs(made *record) []string {
	var out []string
	keys := maps.Clone(r.Options)
	maps.Copy(keys, made.Options)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was, is := made.Options[key], r.Options[key]; !reflect.DeepEqual(was, is) {
			out = append(out, fmt.Sprintf("%s was %s, is %s", flagName(key), value(was), value(is)))
		}
	}
	if r.Tokenizer != made.Tokenizer {
		out = append(out, "--model has another tokenizer")
	}
	if r.Template != made.Template {
		out = append(out, "--model or --template gives another chat template")
	}
	if len(r.Inputs) != len(made.Inputs) {
		return append(out, fmt.Sprintf("--in and --rewards named %d paths, now %d", len(made.Inputs), len(r.Inputs)))
	}
	for i, is := range r.Inputs {
		was := made.Inputs[i]
		switch {
		case is.SHA256 == was.SHA256:
		case is.Files != was.Files || is.Bytes != was.Bytes:
			out = append(out, fmt.Sprintf("%s held %s bytes in %d files, now %s in %d", is.Path, cli.Number(was.Bytes), was.Files, cli.Number(is.Bytes), is.Files))
		default:
			out = append(out, is.Path+" has other contents")
		}
	}
	return out
}

// flagName returns the flag of a field: GroupBy is --group-by.
func flagName(field string) string {
	var b strings.Builder
	for _, r := range field {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return "-" + b.String()
}

func value(v any) string {
	if v == nil || v == "" {
		return "unset"
	}
	return fmt.Sprint(v)
}

// complete returns the record of the batch at dst if the same run made it, and nil if
// there is no batch. It returns an error if another run made the batch or if a file has
// changed.
func (r *record) complete(dst place.Place) (*record, error) {
	text, err := dst.Read(cli.RecordName)
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, dst.Vacant(r.marker())
	}
	where := rollout.Where{File: dst.String()}
	made := &record{}
	if err := json.Unmarshal(text, made); err != nil || made.Version != r.Version {
		return nil, rollout.Errorf(rollout.KindFormat, where, "%s cannot be read, so nothing tells what made the batch", cli.RecordName).WithFix("choose another --out, or replace the batch with --force")
	}
	if d := r.differs(made); len(d) > 0 {
		return nil, rollout.Errorf(rollout.KindInput, where, "another run made the batch that is there: %s", strings.Join(d, "; ")).
			WithFix("choose another --out, or replace the batch with --force")
	}
	for _, f := range made.Files {
		same, err := dst.Holds(f)
		if err != nil {
			return nil, err
		}
		if !same {
			return nil, rollout.Errorf(rollout.KindInput, where, "this run made the batch before, but %s is missing or was changed", f.File).WithFix("make it again with --force")
		}
	}
	return made, nil
}

// replace removes the record of an earlier run at dst and its unchanged files that are not among
// files. A trainer would otherwise still read them.
func replace(dst place.Place, files []string) error {
	var made record
	text, err := dst.Read(cli.RecordName)
	if err != nil || json.Unmarshal(text, &made) != nil {
		return err // without a record, nobody knows who made the files there
	}
	if err := dst.Remove(cli.RecordName); err != nil { // first: a batch that is being replaced is not complete
		return err
	}
	for _, f := range made.Files {
		if slices.Contains(files, f.File) || !filepath.IsLocal(filepath.FromSlash(f.File)) {
			continue
		}
		if same, err := dst.Holds(f); err != nil || !same {
			continue
		}
		if err := dst.Remove(f.File); err != nil {
			return err
		}
	}
	return nil
}

// finish adds files and summary to the record and writes it to dir. Without force, it
// keeps the record of another run that wrote there at the same time.
func (r *record) finish(dir string, files []string, s summary, force bool) error {
	s.Seconds, s.TokensPerSec, s.Output = 0, 0, ""
	r.Summary = s
	for _, name := range files {
		f, err := place.Digest(dir, name)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, f)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomic.WriteFile(filepath.Join(dir, cli.RecordName), append(text, '\n'), force)
}

package shard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// DataFolder holds the shards, and nothing else, unless Options.Name is set.
const DataFolder = "data"

// Names of the files beside the data folder.
const (
	ManifestName = "manifest.json"
	ProgressName = "progress.json"
	journalName  = "journal"
	stateName    = "state.json"
	lockName     = ".turnpack.lock"
)

// Manifest describes a complete folder.
type Manifest struct {
	SchemaVersion string  `json:"schema_version"`
	Tokenizer     string  `json:"tokenizer,omitempty"`
	Template      string  `json:"template,omitempty"`
	Estimator     string  `json:"estimator,omitempty"`
	Columns       string  `json:"columns"` // optional columns in use, separated by commas
	Source        string  `json:"source,omitempty"`
	Options       string  `json:"options"` // digest of the options that affect the bytes
	Rows          int     `json:"rows"`
	Rollouts      int     `json:"rollouts"`
	Groups        int     `json:"groups"`
	Tokens        int64   `json:"tokens"`
	Trained       int64   `json:"trained_tokens"`
	Shards        []Shard `json:"shards"`
}

// Shard describes one file, or the files that a Maker writes together.
type Shard struct {
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"` // hex
	Others   []File `json:"others,omitempty"`
	Rows     int    `json:"rows"`
	Rollouts int    `json:"rollouts"`
	Groups   int    `json:"groups"`
	Tokens   int64  `json:"tokens"`
	Trained  int64  `json:"trained_tokens"`
	First    string `json:"first_sample"`
	Last     string `json:"last_sample"`
	Length   Range  `json:"length"`
	Reward   Range  `json:"reward"`
	// Temperature is nil in sets of earlier versions.
	Temperature *Range `json:"temperature,omitempty"`
	// Versions are the policy versions of the trained tokens, -1 = unknown. It is nil if no row
	// has versions, and in sets of earlier versions.
	Versions *Range `json:"versions,omitempty"`
	// Input is a checksum of the input rows, by which a later run recognises the same input.
	Input string `json:"input_crc32c"`
}

// File is one file of a set. Its name is relative to the folder.
type File struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hex
}

// Files returns all files of the shard; the first is s.File.
func (s *Shard) Files() []File {
	return append([]File{{s.File, s.Bytes, s.SHA256}}, s.Others...)
}

// Range is a minimum and a maximum.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

func (r *Range) add(v float64, first bool) {
	if first {
		r.Min, r.Max = v, v
		return
	}
	r.Min, r.Max = min(r.Min, v), max(r.Max, v)
}

// progress is the state of an unfinished folder.
type progress struct {
	Source  string  `json:"source,omitempty"`
	Options string  `json:"options"`
	Columns string  `json:"columns"`
	Shards  []Shard `json:"shards"`
	// Making says that a Maker was writing the files of the next shard.
	Making bool `json:"making,omitempty"`
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{File: path}, "%v", err)
	}
	return atomic.WriteFile(path, append(data, '\n'), true)
}

// readJSON decodes the file path into v. found is false if the file does not exist.
func readJSON(path string, v any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "read: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, rollout.Errorf(rollout.KindFormat, rollout.Where{File: path}, "not the JSON it should be: %v", err).
			WithFix("start again in another folder, or with Options.Force")
	}
	return true, nil
}

// Read returns the manifest of a complete folder.
func Read(dir string) (*Manifest, error) {
	m := &Manifest{}
	found, err := readJSON(filepath.Join(dir, ManifestName), m)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "there is no %s: %w", ManifestName, export.ErrUnfinished).
			WithFix("run the job again with the same input and options; it goes on where it stopped")
	}
	return m, nil
}

// Verify compares every shard of a complete folder with the manifest and returns all faults,
// joined.
func Verify(dir string) error {
	m, err := Read(dir)
	if err != nil {
		return err
	}
	var faults []error
	for _, s := range m.Shards {
		faults = append(faults, s.verify(dir))
	}
	return errors.Join(faults...)
}

func (s *Shard) verify(dir string) error {
	for _, f := range s.Files() {
		is, err := digest(dir, f.File)
		if err != nil {
			return err
		}
		if is != f {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: filepath.Join(dir, f.File)}, "%d bytes with SHA-256 %s, the manifest says %d and %s", is.Bytes, is.SHA256, f.Bytes, f.SHA256).
				WithFix("write the set again")
		}
	}
	return nil
}

// digest returns the description of a file in the folder.
func digest(dir, name string) (File, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	where := rollout.Where{File: path}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return File{}, rollout.Errorf(rollout.KindFormat, where, "a shard lies outside its folder")
	}
	n, sum, err := atomic.Digest(path)
	if err != nil {
		return File{}, rollout.Errorf(rollout.KindInput, where, "read: %w", err)
	}
	return File{name, n, sum}, nil
}

// Unfinished returns an error that wraps export.ErrUnfinished if the file path belongs to a set
// whose writer is running or was killed: its folder, or one of the two above it, holds a
// progress file and no manifest.
func Unfinished(path string) error {
	dir := filepath.Dir(path)
	for range 3 {
		var p progress
		if _, err := readJSON(filepath.Join(dir, ProgressName), &p); err == nil && p.Options != "" {
			if _, err := os.Lstat(filepath.Join(dir, ManifestName)); errors.Is(err, fs.ErrNotExist) {
				return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "%w: %d of its shards are done", export.ErrUnfinished, len(p.Shards)).
					WithFix("run the job that writes %s again with the same input and options; it goes on where it stopped", dir)
			}
			return nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return nil
}

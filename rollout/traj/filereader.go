package traj

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// fileReader reads one file.
type fileReader struct {
	format.File // the view that importers get
	r           *Reader
	source      *source.File
	doc         jsonscan.Doc
	imp         *importer     // importer of the latest record
	fold        format.Folder // not nil while the whole file is read as one rollout
	count       int           // rollouts emitted
	lined       bool
	listed      bool   // the file holds several events
	rows        bool   // its records are rows of a table
	key         string // key of the current record in a table of records
	joined      bool   // emits a run of joined calls
	// unrecognized holds errors about values before the first record, if the user did not
	// name the file.
	unrecognized []*rollout.Error
}

// newFileReader returns a reader of f for r.
func newFileReader(r *Reader, f *source.File) *fileReader {
	fr := &fileReader{r: r, source: f, File: format.File{
		Name: f.Name, Path: f.Path, Where: rollout.Where{File: f.Name}, OfFile: format.Memory{}, OfReader: r.memory,
		Settings: format.Settings{Depth: r.opt.Limits.Depth, Messages: r.opt.Limits.Messages, Alone: r.opt.Alone, JoinCalls: r.opt.JoinCalls, System: r.opt.System},
	}}
	fr.Host = fr
	return fr
}

// use makes imp the importer for the following records.
func (fr *fileReader) use(imp *importer) { fr.imp, fr.Importer = imp, &imp.Importer }

// Reads records that the file at path was read beside a dump.
func (fr *fileReader) Reads(path string) { fr.r.reads(path) }

// run reads the file; an error ends the reading of this file.
func (fr *fileReader) run() error {
	switch fr.source.Ext() {
	case ".eval":
		return fr.archive()
	case ".pt":
		return readTorch(fr)
	case ".pkl":
		return readSkyRL(fr)
	case ".bin":
		if strings.HasPrefix(filepath.Base(fr.Name), "rank_") {
			return rollout.Errorf(rollout.KindFormat, fr.Where, "found packed micro-batches of prime-rl, which do not tell which rollout a token is of").
				WithFix("name its token_exports/step_*/rank_*.jsonl, or results.jsonl of the rollouts")
		}
	case live.Extension:
		return fr.journal()
	}
	if kind := tableKind(fr); kind != "" {
		return readTable(fr, kind)
	}
	in, err := fr.source.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return fr.stream(in)
}

func (fr *fileReader) stream(in io.Reader) error {
	ext := fr.source.Ext()
	values, err := source.NewValues(in, ext == ".jsonl" || ext == ".ndjson", fr.r.opt.Limits.ValueBytes)
	if err != nil {
		return fr.locate(err)
	}
	fr.lined = values.Lined()
	if values.Empty && !fr.source.Named {
		fr.r.ignore(fr.Name, emptyFile)
	}
	for {
		v, err := values.Next()
		if err == io.EOF {
			return fr.finish()
		}
		fr.Where = rollout.Where{File: fr.Name}
		if fr.lined {
			fr.Where.Line = v.Line
		}
		if v.Begins {
			if ferr := fr.Failed(fr.finish()); ferr != nil {
				return ferr
			}
		}
		if err == nil && fr.lined && skipsPast(fr, v.Line) {
			continue
		}
		if err == nil {
			fr.InList = v.InList
			err = fr.value(v)
			if errors.Is(err, errIgnored) {
				return nil
			}
		} else if values.Failed() {
			return fr.locate(err)
		}
		switch {
		case err == nil:
			continue
		case v.EndsList():
			return fr.locate(err)
		}
		if err = fr.Failed(err); err != nil {
			return err
		}
	}
}

// Failed handles the failure of one record; if there is none, it returns nil.
func (fr *fileReader) Failed(err error) error {
	if err = fr.Checked(err); err == nil || errors.Is(err, errIgnored) {
		return err
	}
	err = fr.locate(err)
	remember(fr, nil)
	if fr.fold == nil {
		fr.Notes, fr.Task = nil, [16]byte{} // notes and task of the failed record
	} else if !errors.Is(err, errStop) {
		fr.Note("event_skipped", 0, "%s", err)
	}
	return fr.r.failed(err)
}

// locate adds file and line to an error that lacks them.
func (fr *fileReader) locate(err error) error {
	if e, ok := errors.AsType[*rollout.Error](err); ok {
		return rollout.In(e, rollout.Where{File: fr.Name, Line: fr.Where.Line})
	}
	return err
}

func (fr *fileReader) finish() error {
	if fr.fold == nil {
		return nil
	}
	f := fr.fold
	fr.fold = nil
	return fr.Checked(f.Finish())
}

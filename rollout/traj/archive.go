package traj

import (
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/inspect"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/native"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// sampleChunk matches the members of a sample that a log stores in a folder of its own.
var sampleChunk = regexp.MustCompile(`_epoch_\d+/(sample|metadata|skeleton|(messages|events|calls|attachments)/\w+)\.json$`)

// archive reads a .eval file: first header.json, which applies to all samples, then the
// samples in the order of their member names.
func (fr *fileReader) archive() error {
	if fr.Path != fr.Name || !strings.EqualFold(filepath.Ext(fr.Name), ".eval") {
		return rollout.Errorf(rollout.KindInput, fr.Where, "an .eval archive cannot be read from a stream or another archive").WithFix("unpack it, and name the file itself")
	}
	a, err := fr.r.walk.OpenArchive(fr.source)
	if err != nil {
		return err
	}
	defer a.Close()
	sample := inspect.Sample()
	fr.use(&importer{Importer: sample})
	names := a.Names()
	// A log that was cut off has no header, only the start of the journal.
	for _, name := range []string{"header.json", "_journal/start.json"} {
		if i := slices.Index(names, name); i >= 0 {
			if err := fr.member(a, i, func(v format.Value) error { inspect.ReadHeader(&fr.File, v); return nil }); err != nil {
				return err
			}
			break
		}
	}
	for i, name := range names {
		if !strings.HasPrefix(name, "samples/") {
			continue
		}
		var err error
		switch {
		case sampleChunk.MatchString(name):
			if path.Base(name) != "sample.json" {
				continue
			}
			err = rollout.Errorf(rollout.KindFormat, rollout.Where{File: fr.Name + "!" + name}, "the sample is stored in chunks, expected one member").
				WithFix("write the log as .json or .eval with whole samples")
		case strings.HasSuffix(name, ".json"):
			err = fr.member(a, i, func(v format.Value) error { return fr.Checked(sample.Read(&fr.File, v)) })
		}
		if err = fr.Failed(err); err != nil {
			return err
		}
	}
	return nil
}

// member passes the one value of an archive member to use.
func (fr *fileReader) member(a *source.Archive, i int, use func(v format.Value) error) error {
	in, err := a.Open(i)
	if err != nil {
		return err
	}
	defer in.Close()
	fr.Where = rollout.Where{File: fr.Name + "!" + a.Names()[i]}
	values, err := source.NewValues(in, false, fr.r.opt.Limits.ValueBytes)
	if err != nil {
		return fr.locate(err)
	}
	text, err := values.Next()
	if err == io.EOF {
		return rollout.Errorf(rollout.KindFormat, fr.Where, "the member holds no object")
	}
	if err != nil {
		return fr.locate(err)
	}
	v, err := fr.parse(text.Text, text)
	if err != nil {
		return fr.syntax(err, text)
	}
	if err := use(v); err != nil {
		return err
	}
	if _, err := values.Next(); err != io.EOF {
		return rollout.Errorf(rollout.KindFormat, fr.Where, "expected the end after the value, found more")
	}
	return nil
}

// journals holds the folders of live journals that were read.
type journals map[string]bool

// journal reads the folder that contains a segment of a live journal, once: sessions
// continue across segments.
func (fr *fileReader) journal() error {
	if fr.Path != fr.Name || filepath.Ext(fr.Name) != live.Extension {
		return rollout.Errorf(rollout.KindInput, fr.Where, "a journal cannot be read from a stream, an archive or a compressed file").WithFix("unpack it, and name its folder")
	}
	read := format.Remembered[journals](fr.OfReader)
	dir := filepath.Dir(fr.Path)
	if (*read)[dir] {
		return nil
	}
	if *read == nil {
		*read = journals{}
	}
	(*read)[dir] = true
	fr.use(&importer{Importer: native.Journal()})
	for r, err := range live.Read(dir) {
		if err == nil {
			err = fr.Emit(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

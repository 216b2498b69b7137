package traj

import (
	"bytes"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/openhands"
)

// eventName matches the event files in an OpenHands conversation's folder:
// events/event-00012-<id>.json (agent SDK, base_state.json beside the folder) or
// events/12.json (V0). The files of a folder are one rollout, in the order of their
// numbers. V0 also keeps pages of events, event_cache/0-25.json.
var eventName = regexp.MustCompile(`^(?:event-)?(\d+)(?:-.*)?\.json$`)

const pageFolder = "event_cache"

// eventFile is one event, held until the folder is complete.
type eventFile struct {
	number int
	reader *fileReader
	text   []byte
}

// eventFiles collects the events of the current folder.
type eventFiles struct {
	folder string
	sdk    bool
	pages  bool // the files are pages of events
	files  []eventFile
}

// collectEvent takes an event that is a file of its own, and reports whether it did. A
// second event shows that the file is a list of events; the first one is then taken back
// and read as a record.
func (fr *fileReader) collectEvent(v format.Value) (bool, error) {
	rd := fr.r
	name := filepath.ToSlash(fr.Name)
	pages := path.Base(path.Dir(name)) == pageFolder
	if e := rd.events; e != nil && !pages && e.files[len(e.files)-1].reader == fr {
		first := e.files[len(e.files)-1]
		if e.files = e.files[:len(e.files)-1]; len(e.files) == 0 {
			rd.events = nil
		}
		fr.listed = true
		var d jsonscan.Doc
		before, err := d.Parse(first.text, jsonscan.Options{Depth: rd.opt.Limits.Depth, NonFinite: true})
		if err != nil {
			return true, err
		}
		return false, fr.record(before)
	}
	sdk := openhands.IsSDKEvent(v, &fr.File)
	if !pages && (fr.listed || fr.InList) || !sdk && (v.Kind() != jsonscan.Object || !openhands.IsEvent(v)) {
		return false, nil
	}
	if f := rd.opt.Format; f != "" && f != "auto" && !strings.HasPrefix(f, "openhands") {
		return false, nil
	}
	match := eventName.FindStringSubmatch(path.Base(name))
	if match == nil {
		return false, nil
	}
	number, err := strconv.Atoi(match[1])
	if err != nil {
		return false, nil
	}
	if rd.events == nil {
		rd.events = &eventFiles{folder: path.Dir(name), sdk: sdk, pages: pages}
	}
	rd.events.files = append(rd.events.files, eventFile{number, fr, bytes.Clone(v.Raw())})
	return true, nil
}

// leaveEvents ends the folder of events if the named file is in another folder. Pages hold
// only full pages of the events beside them, so they are ignored if the events follow.
func (rd *Reader) leaveEvents(name string) error {
	folder := path.Dir(filepath.ToSlash(name))
	if rd.events == nil || rd.events.folder == folder {
		return nil
	}
	if rd.events.pages && folder == path.Join(path.Dir(rd.events.folder), "events") {
		for _, page := range rd.events.readers() {
			rd.reads(page.Name)
			rd.ignore(page.Name, "pages of the events in the folder beside it")
		}
		rd.events = nil
		return nil
	}
	return rd.flushEvents()
}

// readers returns the readers of the files, each once.
func (e *eventFiles) readers() []*fileReader {
	var out []*fileReader
	for _, f := range e.files {
		if len(out) == 0 || out[len(out)-1] != f.reader {
			out = append(out, f.reader)
		}
	}
	return out
}

// flushEvents reads the events collected so far as one rollout.
func (rd *Reader) flushEvents() error {
	e := rd.events
	if e == nil {
		return nil
	}
	rd.events = nil
	slices.SortStableFunc(e.files, func(a, b eventFile) int { return a.number - b.number })
	// The first file of the folder identifies the rollout.
	fr := newFileReader(rd, e.files[0].reader.source)
	imp := openhands.Events()
	if e.sdk {
		imp = openhands.SDKEvents()
	}
	fr.use(&importer{Importer: imp})
	f := imp.Fold(&fr.File)
	for _, x := range e.files {
		fr.Where.File = x.reader.Name
		v, err := fr.doc.Parse(x.text, jsonscan.Options{Depth: rd.opt.Limits.Depth, NonFinite: true})
		if err == nil {
			err = fr.Checked(f.Add(v))
		}
		if err != nil {
			err = fr.locate(err)
			fr.Note("event_skipped", 0, "%s", err)
			if err = rd.failed(err); err != nil {
				return err
			}
		}
	}
	fr.Where.File = fr.Name
	if err := fr.Checked(openhands.ReadBaseState(f)); err != nil {
		return rd.failed(err)
	}
	if err := fr.Checked(f.Finish()); err != nil {
		return rd.failed(fr.locate(err))
	}
	return nil
}

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
	"github.com/turnpack/turnpack/rollout"
)

// OpenHands keeps a conversation as a folder with one file an event:
// events/event-00012-<id>.json (the agent SDK, base_state.json beside the
// folder) or events/12.json (V0). The files of a folder are one rollout, in the
// order of their numbers. V0 also keeps pages of them, event_cache/0-25.json.
var eventName = regexp.MustCompile(`^(?:event-)?(\d+)(?:-.*)?\.json$`)

const pageFolder = "event_cache"

// eventFile is one event, kept until the folder is complete.
type eventFile struct {
	number int
	reader *fileReader
	text   []byte
}

// eventFiles are the events of the folder being read.
type eventFiles struct {
	folder string
	sdk    bool
	pages  bool // its files are pages of events
	files  []eventFile
}

// collectEvent takes an event that is a file of its own and reports whether it
// did. A second event of the same file shows that the file is a list of them,
// and gives the first one back.
func (j *fileReader) collectEvent(v value) (bool, error) {
	rd := j.r
	name := filepath.ToSlash(j.file.Name)
	pages := path.Base(path.Dir(name)) == pageFolder
	if e := rd.events; e != nil && !pages && e.files[len(e.files)-1].reader == j {
		first := e.files[len(e.files)-1]
		if e.files = e.files[:len(e.files)-1]; len(e.files) == 0 {
			rd.events = nil
		}
		j.listed = true
		var d jsonscan.Doc
		before, err := d.Parse(first.text, jsonscan.Options{Depth: rd.opt.Limits.Depth, NonFinite: true})
		if err != nil {
			return true, err
		}
		return false, j.record(before)
	}
	sdk := isSDKEvent(v, j)
	if !pages && (j.listed || j.inList) || !sdk && (v.Kind() != jsonscan.Object || !isEvent(v)) {
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
	rd.events.files = append(rd.events.files, eventFile{number, j, bytes.Clone(v.Raw())})
	return true, nil
}

// leaveEvents closes the folder of events when a file lies elsewhere. Pages hold
// the full ones of the events beside them only, so the events count.
func (rd *Reader) leaveEvents(name string) error {
	folder := path.Dir(filepath.ToSlash(name))
	if rd.events == nil || rd.events.folder == folder {
		return nil
	}
	if rd.events.pages && folder == path.Join(path.Dir(rd.events.folder), "events") {
		for _, page := range rd.events.readers() {
			rd.reads(page.file.Name)
			rd.ignore(page.file.Name, "pages of the events in the folder beside it")
		}
		rd.events = nil
		return nil
	}
	return rd.flushEvents()
}

// readers lists the readers of the files, each once.
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
	// The first file of the folder stands for the rollout.
	j := &fileReader{r: rd, file: e.files[0].reader.file, where: rollout.Where{File: e.files[0].reader.file.Name}}
	fold, name := foldEvents, "openhands-events"
	if e.sdk {
		fold, name = foldSDKEvents, "openhands-sdk-events"
	}
	j.imp = &importer{name: name}
	f := fold(j)
	for _, x := range e.files {
		j.where.File = x.reader.file.Name
		v, err := j.doc.Parse(x.text, jsonscan.Options{Depth: rd.opt.Limits.Depth, NonFinite: true})
		if err == nil {
			err = f.add(v)
		}
		if err != nil {
			err = j.locate(err)
			j.note("event_skipped", 0, "%s", err)
			if err = rd.failed(err); err != nil {
				return err
			}
		}
	}
	j.where.File = j.file.Name
	if run, ok := f.(*sdkRun); ok {
		if err := run.baseState(); err != nil {
			return rd.failed(err)
		}
	}
	if err := f.finish(); err != nil {
		return rd.failed(j.locate(err))
	}
	return nil
}

// baseState takes over what base_state.json beside the folder of events tells.
func (x *sdkRun) baseState() error {
	if x.j.r.opt.Alone {
		return nil
	}
	v, err := x.j.neighbourJSON(filepath.Join("..", "base_state.json"))
	if err != nil || v.Kind() == jsonscan.Absent {
		return err
	}
	if id := v.Get("id").String(); id != "" {
		x.r.ID = id
	}
	x.r.ExitStatus = v.Get("execution_status").String()
	switch x.r.ExitStatus {
	case "finished":
		x.r.Status = rollout.StatusCompleted
	case "error":
		x.r.Status = rollout.StatusFailed
	case "stuck":
		x.r.Status = rollout.StatusAborted
	}
	x.r.Temperature = temperature(v.Path("agent", "llm", "temperature"))
	if err := x.j.templateKwargs(x.r, v.Path("agent", "llm")); err != nil {
		return err
	}
	if m := v.Path("agent", "llm", "model"); !m.IsNull() {
		keep(&x.r.Metadata, "model", m)
	}
	return nil
}

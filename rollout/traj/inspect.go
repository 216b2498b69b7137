package traj

import (
	"io"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// inspect_ai writes a log per evaluation: one JSON object with samples, or the
// same as a zip archive (.eval) with one member per sample. Epochs of a sample
// are a group.

func isInspect(v value, _ *fileReader) bool {
	return v.Get("eval").Kind() == jsonscan.Object && v.Get("version").Kind() == jsonscan.Number &&
		(v.Get("samples").Kind() == jsonscan.Array || v.Get("status").Kind() == jsonscan.String)
}

func isInspectSample(v value, _ *fileReader) bool {
	return v.Get("epoch").Kind() == jsonscan.Number && v.Get("messages").Kind() == jsonscan.Array &&
		v.Get("target").Kind() != jsonscan.Absent && v.Get("input").Kind() != jsonscan.Absent
}

// readInspect reads a log. One that is longer than a line arrives as its head,
// then sample by sample.
func readInspect(j *fileReader, v value) error {
	if v.Get("eval").Kind() == jsonscan.Absent {
		return j.inspectSample(j.log, v)
	}
	j.log = inspectLog(v)
	for _, s := range v.Get("samples").Items() {
		if err := j.inspectSample(j.log, s); err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

func readInspectSample(j *fileReader, v value) error { return j.inspectSample(j.log, v) }

// inspectFacts are what the samples of a log share.
type inspectFacts struct {
	run, task, model string
}

func inspectLog(v value) inspectFacts {
	e := v.Get("eval")
	return inspectFacts{run: firstID(e, "eval_id", "run_id"), task: e.Get("task").String(), model: e.Get("model").String()}
}

func (j *fileReader) inspectSample(log inspectFacts, v value) error {
	id := identifier(v.Get("id"))
	epoch := v.Get("epoch")
	r := &rollout.Rollout{Instance: id, Index: noIndex}
	if id != "" {
		r.Group = strings.TrimPrefix(log.task+"/sample-"+id, "/")
		r.ID = strings.TrimPrefix(log.run+"/"+id+"/"+identifier(epoch), "/")
	}
	if n, ok := epoch.Int(); ok && n >= 1 {
		r.Index = n - 1
	}
	x := inspectRun{j: j, r: r, refs: j.inspectRefs(v)}
	if err := x.messages(v.Get("messages")); err != nil {
		return err
	}
	if err := x.events(v); err != nil {
		return err
	}
	if err := j.objectOrNothing(v.Get("scores"), 0, "/scores"); err != nil {
		return err
	}
	score := v.Get("score") // of the first version
	for _, s := range v.Get("scores").Members() {
		score = s
		break
	}
	r.Outcome.Reward = scoreOf(score.Get("value"))
	if x := score.Get("value"); r.Outcome.Reward == nil && !x.IsNull() {
		j.note("outcome_unreadable", 0, "the score %.40s is no number and no word that stands for one; no reward was taken", x.Raw())
	}
	r.Outcome.Reason = score.Get("explanation").String()
	j.inspectEnding(r, v)
	if log.model != "" {
		keepText(&r.Metadata, "model", log.model)
	}
	j.leftover(r, v, "id", "epoch", "input", "target", "messages", "output", "score", "scores", "events", "attachments", "message_pool", "events_data", "transcript", "store", "error", "limit", "model_usage", "uuid")
	j.noteParts(r)
	j.orphans(r)
	return j.emit(r)
}

func (j *fileReader) inspectEnding(r *rollout.Rollout, v value) {
	stop := firstChoice(v.Get("output")).Get("stop_reason").String()
	lastEnded(r, stop) // where no event tells of the call
	switch {
	case v.Get("invalidation").Kind() == jsonscan.Object:
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: "invalidated", Detail: v.Path("invalidation", "reason").String()}
	case v.Get("error").Kind() == jsonscan.Object:
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: "sample_error", Detail: v.Path("error", "message").String()}
	case v.Get("limit").Kind() == jsonscan.Object:
		r.Status = rollout.StatusTruncated
		if v.Path("limit", "type").Is("operator") { // a person stopped it
			r.Status = rollout.StatusAborted
		}
		r.Outcome.Reason = strings.TrimSpace("limit: " + v.Path("limit", "type").String())
	case stop == "stop":
		r.Status = rollout.StatusCompleted
	case stop == "max_tokens" || stop == "model_length":
		r.Status = rollout.StatusTruncated
	}
}

// inspectMessage is a chat message whose reasoning is a part of the content.
func (j *fileReader) inspectMessage(x value, i int) (rollout.Message, error) {
	m, err := j.chatMessage(x, i)
	if err != nil {
		return m, err
	}
	var thinking []string
	var parts []rollout.Part
	for _, p := range m.Parts {
		if p.Type != "reasoning" {
			parts = append(parts, p)
		}
	}
	for _, p := range x.Get("content").Items() {
		if s, ok := p.Get("reasoning").Text(); ok && p.Get("type").Is("reasoning") {
			if redacted, _ := p.Get("redacted").Bool(); redacted {
				j.redacted(i)
				continue
			}
			thinking = append(thinking, s)
		}
	}
	if m.Parts != nil {
		m.Parts = parts
		m.Content = rollout.JoinText(parts)
		if plainParts(parts) && m.Role == rollout.RoleAssistant {
			m.Parts = nil
		}
	}
	if m.Reasoning == "" {
		m.Reasoning = strings.Join(thinking, "\n")
	}
	if m.Role == rollout.RoleTool && m.Content == "" && x.Get("error").Kind() == jsonscan.Object {
		j.note("error_beside_content", rollout.At(i), "the content is empty and the error that the model was shown stands beside it; it is kept aside, not rendered")
	}
	if f, ok := x.Get("function").Text(); ok && m.Role == rollout.RoleTool {
		m.Name = f
	}
	for _, c := range m.ToolCalls {
		if _, unread := c.Extra["parse_error"]; unread {
			j.note("arguments_unread", rollout.At(i), "the arguments of the call of %q could not be parsed when they came; those recorded are not the text that the model wrote", c.Name)
		}
	}
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		if s := x.Get("source"); !s.IsNull() && !s.Is("generate") {
			m.Sampled = rollout.SampledPrefilled
		}
	}
	drop(&m.Extra, "id", "source", "model", "function")
	return m, nil
}

// scoreWords are the words that stand for a score; only those in small letters
// may be written otherwise.
var scoreWords = map[string]float64{"C": 1, "I": 0, "P": 0.5, "N": 0, "yes": 1, "true": 1, "no": 0, "false": 0}

// scoreOf is the number of a score, as inspect_ai's value_to_float counts it: a
// number, also one written as text, or a word that stands for one. Anything else
// has none.
func scoreOf(v value) *float64 {
	word := v.String()
	switch v.Kind() {
	case jsonscan.Number:
		return number(v)
	case jsonscan.Bool:
		word = string(v.Raw())
	}
	for _, w := range []string{word, strings.ToLower(word)} {
		if f, ok := scoreWords[w]; ok {
			return &f
		}
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return &f
	}
	return nil
}

// sampleChunk matches what some logs keep of a sample in a folder of its own.
var sampleChunk = regexp.MustCompile(`_epoch_\d+/(sample|metadata|skeleton|(messages|events|calls|attachments)/\w+)\.json$`)

// archive reads a .eval file: header.json for the facts all share, then the
// samples in the order of their member names.
func (j *fileReader) archive() error {
	if j.file.Path != j.file.Name || !strings.EqualFold(filepath.Ext(j.file.Name), ".eval") {
		return rollout.Errorf(rollout.KindInput, j.where, "an .eval archive cannot be read from a stream or another archive").WithFix("unpack it, and name the file itself")
	}
	a, err := j.r.walk.OpenArchive(j.file)
	if err != nil {
		return err
	}
	defer a.Close()
	j.imp = &importer{name: "inspect-ai", match: isInspectSample, read: readInspectSample}
	var log inspectFacts
	names := a.Names()
	// A log that was cut off has no header yet, only the journal's start.
	for _, name := range []string{"header.json", "_journal/start.json"} {
		if i := slices.Index(names, name); i >= 0 {
			if err := j.member(a, i, func(v value) error { log = inspectLog(v); return nil }); err != nil {
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
			err = rollout.Errorf(rollout.KindFormat, rollout.Where{File: j.file.Name + "!" + name}, "the sample is stored in chunks, expected one member").
				WithFix("write the log as .json or .eval with whole samples")
		case strings.HasSuffix(name, ".json"):
			err = j.member(a, i, func(v value) error { return j.inspectSample(log, v) })
		}
		if err != nil {
			if err = j.failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// member parses one archive member, which is one value.
func (j *fileReader) member(a *source.Archive, i int, use func(v value) error) error {
	in, err := a.Open(i)
	if err != nil {
		return err
	}
	defer in.Close()
	j.where = rollout.Where{File: j.file.Name + "!" + a.Names()[i]}
	values, err := source.NewValues(in, false, j.r.opt.Limits.ValueBytes, j.r.opt.hold)
	if err != nil {
		return j.locate(err)
	}
	defer values.Close()
	text, err := values.Next()
	if err == io.EOF {
		return rollout.Errorf(rollout.KindFormat, j.where, "the member holds no object")
	}
	if err != nil {
		return j.locate(err)
	}
	v, err := j.parse(text.Text, text)
	if err != nil {
		return j.syntax(err, text)
	}
	if err := use(v); err != nil {
		return err
	}
	if err := j.reread(); err != nil {
		return err
	}
	if _, err := values.Next(); err != io.EOF {
		return rollout.Errorf(rollout.KindFormat, j.where, "expected the end after the value, found more")
	}
	return nil
}

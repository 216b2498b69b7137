package inspect

import (
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Log reads a log that is one object.
func Log() format.Importer {
	return format.Importer{Name: "inspect-ai", Match: matchLog, Read: readLog}
}

func matchLog(v format.Value, _ *format.File) bool {
	return v.Get("eval").Kind() == jsonscan.Object && v.Get("version").Kind() == jsonscan.Number &&
		(v.Get("samples").Kind() == jsonscan.Array || v.Get("status").Kind() == jsonscan.String)
}

// Sample reads one sample of the log whose head was read before.
func Sample() format.Importer {
	return format.Importer{Name: "inspect-ai", Match: matchSample, Read: readSample}
}

func matchSample(v format.Value, _ *format.File) bool {
	return v.Get("epoch").Kind() == jsonscan.Number && v.Get("messages").Kind() == jsonscan.Array &&
		v.Get("target").Kind() != jsonscan.Absent && v.Get("input").Kind() != jsonscan.Absent
}

// readLog reads a log. A log longer than one line arrives as its head, followed by its
// samples.
func readLog(in *format.File, v format.Value) error {
	if v.Get("eval").Kind() == jsonscan.Absent {
		return readSample(in, v)
	}
	ReadHeader(in, v)
	for _, s := range v.Get("samples").Items() {
		if err := in.Failed(readSample(in, s)); err != nil {
			return err
		}
	}
	return nil
}

// logFacts holds what the samples of a log share.
type logFacts struct {
	run, task, model string
}

// ReadHeader stores the part of a log's head that applies to the samples that follow.
func ReadHeader(in *format.File, v format.Value) {
	e := v.Get("eval")
	*format.Remembered[logFacts](in.OfFile) = logFacts{run: format.FirstID(e, "eval_id", "run_id"), task: e.Get("task").String(), model: e.Get("model").String()}
}

func readSample(in *format.File, v format.Value) error {
	log := format.Remembered[logFacts](in.OfFile)
	id := format.Identifier(v.Get("id"))
	epoch := v.Get("epoch")
	r := &rollout.Rollout{Instance: id, Index: format.NoIndex}
	if id != "" {
		r.Group = strings.TrimPrefix(log.task+"/sample-"+id, "/")
		r.ID = strings.TrimPrefix(log.run+"/"+id+"/"+format.Identifier(epoch), "/")
	}
	if n, ok := epoch.Int(); ok && n >= 1 {
		r.Index = n - 1
	}
	x := sampleRun{in: in, r: r, refs: attachmentsOf(in, v)}
	if err := x.messages(v.Get("messages")); err != nil {
		return err
	}
	if err := x.events(v); err != nil {
		return err
	}
	x.loseErrors()
	in.ObjectOrNull(v.Get("scores"), 0, "/scores")
	score := v.Get("score") // first version
	for _, s := range v.Get("scores").Members() {
		score = s
		break
	}
	r.Outcome.Reward = scoreOf(score.Get("value"))
	if x := score.Get("value"); r.Outcome.Reward == nil && !x.IsNull() {
		in.Note("outcome_unreadable", 0, "the score %.40s is no number and no word that stands for one; no reward was taken", x.Raw())
	}
	r.Outcome.Reason = score.Get("explanation").String()
	ending(in, r, v)
	if log.model != "" {
		format.KeepText(&r.Metadata, "model", log.model)
	}
	in.Leftover(r, v, "id", "epoch", "input", "target", "messages", "output", "score", "scores", "events", "attachments", "message_pool", "events_data", "transcript", "store", "error", "limit", "model_usage", "uuid")
	in.NoteParts(r)
	in.UnlinkResults(r)
	return in.Emit(r)
}

func ending(in *format.File, r *rollout.Rollout, v format.Value) {
	stop := format.FirstChoice(v.Get("output")).Get("stop_reason").String()
	format.EndLast(r, stop) // for logs without an event of the call
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
	case stop == "stop", stop == "tool_calls" && v.Get("scores").Len() > 0: // ended by its submit call
		r.Status = rollout.StatusCompleted
	case stop == "max_tokens" || stop == "model_length":
		r.Status = rollout.StatusTruncated
	}
}

// readMessage reads a chat message whose reasoning is a part of the content.
func readMessage(in *format.File, x format.Value, i int) (rollout.Message, error) {
	m, err := in.ChatMessage(x, i)
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
			if p.Get("redacted").True() || s == "" { // at most a summary is recorded
				in.NoteRedacted(i)
				continue
			}
			thinking = append(thinking, s)
		}
	}
	if m.Parts != nil {
		m.Parts = parts
		m.Content = rollout.JoinText(parts)
		if format.PlainParts(parts) && m.Role == rollout.RoleAssistant {
			m.Parts = nil
		}
	}
	if m.Reasoning == "" {
		m.Reasoning = strings.Join(thinking, "\n")
	}
	if failed(&m) {
		in.Note("error_beside_content", rollout.At(i), "the model was shown the error that stands beside the content, in words that depend on its provider; it is kept aside, not rendered")
	}
	if f, ok := x.Get("function").Text(); ok && m.Role == rollout.RoleTool {
		m.Name = f
	}
	for _, c := range m.ToolCalls {
		if _, unread := c.Extra["parse_error"]; unread {
			in.Note("arguments_unread", rollout.At(i), "the arguments of the call of %q could not be parsed when they came; those recorded are not the text that the model wrote", c.Name)
		}
	}
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		if s := x.Get("source"); !s.IsNull() && !s.Is("generate") {
			m.Sampled = rollout.SampledPrefilled
		}
	}
	format.Drop(&m.Extra, "id", "source", "model", "function")
	return m, nil
}

// scoreWords are the words with a score; only the lower-case ones may be in any case.
var scoreWords = map[string]float64{"C": 1, "I": 0, "P": 0.5, "N": 0, "yes": 1, "true": 1, "no": 0, "false": 0}

// scoreOf returns the number of a score, as inspect_ai's value_to_float does: a number, a
// number as text, or a word of scoreWords; nil for anything else.
func scoreOf(v format.Value) *float64 {
	word := v.String()
	switch v.Kind() {
	case jsonscan.Number:
		return format.Number(v)
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

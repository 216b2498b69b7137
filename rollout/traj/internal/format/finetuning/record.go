package finetuning

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// applyTrainFlag handles marks that a reply is not to be trained. They give no reason, so
// Sampled becomes unknown.
func applyTrainFlag(in *format.File, m *rollout.Message, v format.Value, i int) {
	skip := v.Get("train_detail").Len() > 0 // axolotl: marks for parts of the text
	for _, key := range []string{"weight", "train", "training", "loss"} {
		b, said := v.Get(key).Bool()
		f, number := v.Get(key).Float()
		skip = skip || said && !b || number && f == 0
	}
	if m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledByPolicy && skip {
		m.Sampled = rollout.SampledUnknown
		in.Note("not_to_train", rollout.At(i), "the set marks this reply as not to be trained and does not say why")
	}
}

// opinion reads the label of an unpaired preference: label of TRL, kto_tag of
// LLaMA-Factory.
func opinion(in *format.File, r *rollout.Rollout, v format.Value) {
	for _, key := range opinionKeys {
		if label := v.Get(key); label.Kind() == jsonscan.Bool && r.Outcome.Resolved == nil {
			r.Outcome.Resolved = format.Boolean(label)
			in.Note("label_as_outcome", 0, "the label of an unpaired preference is read as resolved: somebody's opinion, not a test")
		}
	}
}

var opinionKeys = []string{"label", "kto_tag"}

// bodyOf returns the value of the first key that is present.
func bodyOf(x format.Value, keys ...string) format.Value {
	for _, key := range keys {
		if b := x.Get(key); b.Kind() != jsonscan.Absent {
			return b
		}
	}
	return format.Value{}
}

// systemKeys are keys of a system prompt beside the messages.
var systemKeys = []string{"system", "system_prompt", "instructions"}

// systemPrompt inserts the system prompt beside the messages before them, and reports
// whether it did. If the messages begin with one, or the task repeats the text, nothing is
// inserted; of several that differ the first one counts.
func systemPrompt(in *format.File, r *rollout.Rollout, v format.Value) (added bool, err error) {
	for _, key := range systemKeys {
		x := v.Get(key)
		if x.IsNull() || x.Is("") || x.Kind() == jsonscan.Array && x.Len() == 0 {
			continue
		}
		m := rollout.Message{Role: rollout.RoleSystem}
		if err := in.Content(&m, x, 0); err != nil {
			w := in.Where
			w.Field = "/" + key
			return false, rollout.Errorf(rollout.KindFormat, w, "found %s, expected the text of a system prompt", x.Kind()).WithFix("mend the field, or take the record out")
		}
		if format.PlainParts(m.Parts) {
			m.Parts = nil
		}
		if len(r.Messages) == 0 {
			r.Messages, added = []rollout.Message{m}, true
			continue
		}
		switch first := &r.Messages[0]; {
		case first.Content == m.Content:
		case added:
			in.Note("system_differs", 0, "the key %q holds another system prompt than a key read before it; the first counts", key)
		case first.Role == rollout.RoleSystem || first.Role == rollout.RoleDeveloper:
			in.Note("system_differs", 0, "the key %q holds another system prompt than the messages begin with; the messages count", key)
		case key == "instructions" && first.Role == rollout.RoleUser && strings.Contains(first.Content, m.Content):
		default:
			r.Messages, added = slices.Insert(r.Messages, 0, m), true
		}
	}
	return added, nil
}

// mediaKeys are columns of images, videos and sounds, with the placeholder for one in a
// text.
var mediaKeys = []struct{ key, mark string }{
	{"images", "<image>"}, {"image", "<image>"}, {"videos", "<video>"}, {"video", "<video>"}, {"audios", "<audio>"}, {"audio", "<audio>"},
}

// media refuses a record with images, videos or sounds in a column beside the messages: the
// text alone is not what the model saw.
func media(in *format.File, r *rollout.Rollout, v format.Value) {
	for _, c := range mediaKeys {
		x := v.Get(c.key)
		held := 0
		for _, item := range x.Items() {
			if !item.IsNull() && !(item.Kind() == jsonscan.Array && item.Len() == 0) {
				held++
			}
		}
		if x.IsNull() || x.Is("") || x.Kind() == jsonscan.Array && held == 0 {
			continue
		}
		for i := range r.Messages {
			if strings.Contains(r.Messages[i].Content, c.mark) {
				in.Wrong(in.Fail(rollout.At(i), "/"+c.key, "the column %q holds what %s stands for, which is no text", c.key, c.mark))
			}
		}
		if x.Kind() == jsonscan.Array && strings.HasSuffix(c.key, "s") {
			in.Wrong(in.Fail(0, "/"+c.key, "the column %q holds %d items that the model saw and that are no text", c.key, held))
		}
	}
}

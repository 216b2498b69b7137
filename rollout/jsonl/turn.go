package jsonl

import (
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

var turnObject = func() *object[rollout.Turn] {
	extra := func(t *rollout.Turn) *raws { return &t.Extra }
	o := newObject(extra,
		value("id", func(t *rollout.Turn) *string { return &t.ID }, names),
		field[rollout.Turn]{key: "message", own: true,
			read: func(d *decoder, t *rollout.Turn, v jsonscan.Value, at string) bool {
				if !v.IsNull() {
					t.Message = d.integer(v, at)
				}
				return true
			},
			write: func(e *encoder, t *rollout.Turn, _ string) bool {
				if t.Message >= 0 {
					e.key("message")
					e.int(int64(t.Message))
				}
				return true
			}},
		always("step", func(t *rollout.Turn) *int { return &t.Step }, integers),
		field[rollout.Turn]{key: "context", own: true, read: readContext, write: writeContext},
		field[rollout.Turn]{key: "prompt_ids", own: true, read: readPrompt, write: writePrompt},
		column("output_ids", func(t *rollout.Turn) *[]rollout.TokenID { return &t.Output }, (*decoder).ids,
			func(e *encoder, id rollout.TokenID, _ string) { e.int(int64(id)) }),
		column("logprobs", func(t *rollout.Turn) *[]float32 { return &t.Logprobs }, (*decoder).logprobs, float32s.write),
		column("train_logprobs", func(t *rollout.Turn) *[]float32 { return &t.TrainLogprobs }, (*decoder).logprobs, float32s.write),
		filled("finish_reason", func(t *rollout.Turn) *string { return &t.FinishReason }),
		filled("stop_string", func(t *rollout.Turn) *string { return &t.StopString }),
		field[rollout.Turn]{key: "version", own: true, read: readVersion, write: writeVersion},
		inner("sampling", true, func(t *rollout.Turn) *rollout.Sampling {
			t.Sampling = &rollout.Sampling{}
			return t.Sampling
		}, func(t *rollout.Turn) *rollout.Sampling { return t.Sampling }, newObject(nil,
			pointer("temperature", func(s *rollout.Sampling) **float32 { return &s.Temperature }, float32s),
			pointer("top_p", func(s *rollout.Sampling) **float32 { return &s.TopP }, float32s),
			pointer("min_p", func(s *rollout.Sampling) **float32 { return &s.MinP }, float32s),
			pointer("top_k", func(s *rollout.Sampling) **int32 { return &s.TopK }, int32s),
			pointer("seed", func(s *rollout.Sampling) **int64 { return &s.Seed }, int64s),
		), extra),
		filled("incomplete", func(t *rollout.Turn) *string { return &t.Incomplete }),
		filled("agent", func(t *rollout.Turn) *string { return &t.Agent }),
	)
	o.done = func(d *decoder, v jsonscan.Value, t *rollout.Turn) {
		if t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
			d.fail(rollout.KindInput, v.Get("logprobs"), "/logprobs", "found %d logprobs for %d output_ids, expected one each", len(t.Logprobs), len(t.Output))
			return
		}
		if t.TrainLogprobs != nil && len(t.TrainLogprobs) != len(t.Output) {
			d.fail(rollout.KindInput, v.Get("train_logprobs"), "/train_logprobs", "found %d train_logprobs for %d output_ids, expected one each", len(t.TrainLogprobs), len(t.Output))
			return
		}
		if v.Get("prompt_ids").Kind() != jsonscan.Array {
			// A prompt stored against another turn is kept as it is. Using it as a base for
			// plain prompts would need its expansion, which costs what it saves.
			d.prompts.Add(nil, nil)
			return
		}
		t.Prompt = d.prompts.Add(t.Prompt.Add, t.Output)
	}
	return o
}()

// column is a list with one entry per token; null means absent.
func column[V any](key string, of func(*rollout.Turn) *[]V, read func(*decoder, jsonscan.Value, string) []V, write func(e *encoder, x V, at string)) field[rollout.Turn] {
	return field[rollout.Turn]{key: key, own: true,
		read: func(d *decoder, t *rollout.Turn, v jsonscan.Value, at string) bool {
			if !v.IsNull() {
				*of(t) = read(d, v, at)
			}
			return true
		},
		write: func(e *encoder, t *rollout.Turn, at string) bool {
			values := *of(t)
			if values == nil {
				return true
			}
			if t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
				e.fail("/logprobs", "%d logprobs for %d output ids", len(t.Logprobs), len(t.Output))
			}
			e.key(key)
			e.list(len(values), func(i int) { write(e, values[i], at) })
			return true
		}}
}

// readPrompt reads a prompt stored against an earlier turn, or plain ids, which are stored
// against one once the turn is read.
func readPrompt(d *decoder, t *rollout.Turn, v jsonscan.Value, at string) bool {
	switch v.Kind() {
	case jsonscan.Array:
		t.Prompt.Add = d.ids(v, at)
	case jsonscan.Null:
	default:
		promptObject.read(d, v, at, &t.Prompt)
	}
	return true
}

func writePrompt(e *encoder, t *rollout.Turn, at string) bool {
	if t.Prompt.Captured() {
		e.key("prompt_ids")
		promptObject.put(e, &t.Prompt, at)
	}
	return true
}

var promptObject = func() *object[rollout.PromptIDs] {
	o := newObject(nil,
		field[rollout.PromptIDs]{key: "base",
			read: func(d *decoder, p *rollout.PromptIDs, v jsonscan.Value, at string) bool {
				if v.IsNull() {
					return true
				}
				turn, _ := d.where.Turn.Get()
				b := d.integer(v, at)
				if b < -1 || b >= turn {
					d.fail(rollout.KindInput, v, at, "base is turn %d, expected an earlier turn than %d, or -1", b, turn)
				}
				p.Base = rollout.At(b)
				return true
			},
			write: func(e *encoder, p *rollout.PromptIDs, _ string) bool {
				if b, ok := p.Base.Get(); ok {
					e.key("base")
					e.int(int64(b))
					e.key("keep")
					e.int(int64(p.Keep))
				}
				return true
			}},
		field[rollout.PromptIDs]{key: "keep", read: func(d *decoder, p *rollout.PromptIDs, v jsonscan.Value, at string) bool {
			if p.Keep = d.integer(v, at); p.Keep < 0 {
				d.fail(rollout.KindInput, v, at, "keep is %d, expected 0 or more", p.Keep)
			}
			return true
		}},
		field[rollout.PromptIDs]{key: "add",
			read: func(d *decoder, p *rollout.PromptIDs, v jsonscan.Value, at string) bool {
				if v.Kind() != jsonscan.Array || v.Len() > 0 {
					p.Add = d.ids(v, at)
				}
				return true
			},
			write: func(e *encoder, p *rollout.PromptIDs, _ string) bool {
				e.key("add")
				e.list(len(p.Add), func(i int) { e.int(int64(p.Add[i])) })
				return true
			}},
	)
	o.done = func(d *decoder, v jsonscan.Value, p *rollout.PromptIDs) {
		if p.Keep > 0 && p.Base == 0 {
			d.fail(rollout.KindInput, v, "", "keep is %d without a base", p.Keep)
		}
	}
	return o
}()

// readVersion reads one policy version, or a list of runs: pairs of output token index and
// version.
func readVersion(d *decoder, t *rollout.Turn, v jsonscan.Value, at string) bool {
	if v.IsNull() || v.Is("") {
		return true
	}
	if v.Kind() != jsonscan.Array {
		if n := d.int32(v, at); n != -1 { // rows use -1 for no version
			t.Version = &n
		}
		return true
	}
	d.list(v, at, d.lim.Tokens, func(i int, m jsonscan.Value) {
		item := at + "/" + strconv.Itoa(i)
		if m.Kind() != jsonscan.Array || m.Len() != 2 {
			d.want(m, item, "a pair of output token and version")
			return
		}
		var run rollout.VersionRun
		for k, x := range m.Items() {
			if k == 0 {
				run.From = d.integer(x, item+"/0")
			} else {
				run.Version = d.int32(x, item+"/1")
			}
		}
		t.Versions = append(t.Versions, run)
	})
	if len(t.Versions) == 0 || d.err != nil {
		return true
	}
	if from := t.Versions[0].From; from != 0 {
		d.fail(rollout.KindInput, v, at+"/0", "the first run begins at output token %d, expected 0", from)
	}
	first := t.Versions[0].Version
	t.Version = &first
	if len(t.Versions) == 1 {
		t.Versions = nil
	}
	return true
}

func writeVersion(e *encoder, t *rollout.Turn, _ string) bool {
	switch {
	case t.Versions != nil:
		e.key("version")
		e.list(len(t.Versions), func(i int) {
			run := t.Versions[i]
			e.list(2, func(k int) { e.int([]int64{int64(run.From), int64(run.Version)}[k]) })
		})
	case t.Version != nil:
		e.key("version")
		e.int(int64(*t.Version))
	}
	return true
}

func readContext(d *decoder, t *rollout.Turn, v jsonscan.Value, at string) bool {
	switch {
	case v.IsNull():
	case v.Is("unknown"):
		t.Context.Unknown = true
	case v.Kind() == jsonscan.String:
		d.fail(rollout.KindFormat, v, at, "found %q, expected \"unknown\" or a list of parts", v.String())
	default:
		t.Context.Parts = []rollout.ContextPart{}
		contextParts.read(d, t, v, at)
	}
	return true
}

func writeContext(e *encoder, t *rollout.Turn, at string) bool {
	if !t.Context.Unknown {
		return contextParts.write(e, t, at)
	}
	e.key("context")
	e.b = append(e.b, `"unknown"`...)
	if t.Context.Parts != nil {
		e.fail(at, "the context is unknown and has parts")
	}
	return true
}

var contextParts = list("context", func(t *rollout.Turn) *[]rollout.ContextPart { return &t.Context.Parts }, func(l *Limits) int { return l.Messages }, newObject(nil,
	always("from", func(p *rollout.ContextPart) *int { return &p.From }, integers),
	always("to", func(p *rollout.ContextPart) *int { return &p.To }, integers),
	pointer("message", func(p *rollout.ContextPart) **rollout.Message { return &p.Message }, codec[rollout.Message]{
		func(d *decoder, v jsonscan.Value, at string) (m rollout.Message) {
			messageObject.read(d, v, at, &m)
			return m
		},
		func(e *encoder, m rollout.Message, at string) { messageObject.put(e, &m, at) }}),
))

// Package kept keeps the rollouts of a small input for a second reading.
package kept

import (
	"encoding/json"
	"iter"

	"github.com/turnpack/turnpack/rollout"
)

// Limit is the approximate number of bytes of rollouts kept.
const Limit = 64 << 20

// Rollouts holds the rollouts of an input, or none if they exceed the limit.
type Rollouts struct {
	Limit int64 // bytes, < 0 = keep none; 0 = 64 MiB

	held []*rollout.Rollout
	size int64
	over bool
}

// Add keeps r, or drops all rollouts if r exceeds the limit.
func (k *Rollouts) Add(r *rollout.Rollout) {
	if k.over {
		return
	}
	most := k.Limit
	if most == 0 {
		most = Limit
	}
	if k.size += Size(r); k.size > most {
		k.held, k.over = nil, true
		return
	}
	k.held = append(k.held, r)
}

// All yields the rollouts and releases each, or returns nil if none are kept.
func (k *Rollouts) All() iter.Seq2[*rollout.Rollout, error] {
	if k.held == nil {
		return nil
	}
	return func(yield func(*rollout.Rollout, error) bool) {
		for i, r := range k.held {
			k.held[i] = nil
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Size returns the approximate memory of r in bytes.
func Size(r *rollout.Rollout) int64 {
	n := 1024 + mapped(r.Extra) + mapped(r.Metadata) + mapped(r.TemplateKwargs) + 128*len(r.Notes)
	for _, t := range r.Tools {
		n += len(t)
	}
	for i := range r.Messages {
		n += written(&r.Messages[i])
	}
	for i := range r.Turns {
		t := &r.Turns[i]
		n += 512 + 4*(len(t.Prompt.Add)+len(t.Output)+len(t.Logprobs)) + mapped(t.Extra)
		for _, p := range t.Context.Parts {
			n += 32
			if p.Message != nil {
				n += written(p.Message)
			}
		}
	}
	for _, s := range r.Steps {
		n += 128
		for _, v := range s.Votes {
			n += 128 + len(v.Text)
		}
	}
	return int64(n)
}

func written(m *rollout.Message) int {
	n := 256 + len(m.Content) + len(m.Reasoning) + mapped(m.Extra)
	for _, p := range m.Parts {
		n += 128 + len(p.Text) + len(p.Raw)
	}
	for i := range m.ToolCalls {
		n += 128 + len(m.ToolCalls[i].Arguments)
	}
	return n
}

func mapped(m map[string]json.RawMessage) (n int) {
	for k, v := range m {
		n += 64 + len(k) + len(v)
	}
	return n
}

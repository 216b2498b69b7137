package tokens

import (
	"context"

	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Facts returns what the audit rules need to know about a model.
func Facts(ctx context.Context, m *tokenize.Model) (*audit.Model, error) {
	header, err := m.GenerationPrompt(ctx)
	if err != nil {
		return nil, err
	}
	f := &audit.Model{Vocab: m.Tokenizer.Vocab().Size(), Special: map[rollout.TokenID]bool{}, Stops: m.Stops(), Decode: m.Tokenizer.Decode}
	for _, a := range m.Tokenizer.Vocab().Added() {
		if a.Special {
			f.Special[a.ID] = true
		}
	}
	if len(header) > 0 {
		f.Headers = [][]rollout.TokenID{header}
	}
	f.Inside, err = marks(ctx, m)
	return f, err
}

// marks returns the control tokens that the template writes within replies: of reasoning,
// channels and tool calls. It skips probe replies that the template refuses.
func marks(ctx context.Context, m *tokenize.Model) (map[rollout.TokenID]bool, error) {
	e, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.PerStep})
	if err != nil {
		return nil, err
	}
	out := map[rollout.TokenID]bool{}
	call := []rollout.ToolCall{{ID: "call00001", Name: "look", Arguments: `{"at": "x"}`, ArgumentsText: true}}
	tool := []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}`)}
	for _, r := range []rollout.Rollout{
		{Messages: []rollout.Message{{Content: "Yes.", Reasoning: "It is."}}},
		{Messages: []rollout.Message{{Reasoning: "I look.", ToolCalls: call}}, Tools: tool},
		{Messages: []rollout.Message{{NoContent: true, ToolCalls: call}}, Tools: tool},
	} {
		reply := &r.Messages[0]
		reply.Role, reply.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		r.ID, r.Messages = "marks", []rollout.Message{{Role: rollout.RoleUser, Content: "Is it?"}, *reply}
		r.Turns = []rollout.Turn{{Message: 1}}
		rows, _, err := e.Encode(ctx, &r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue
		}
		for _, row := range rows {
			for t, flag := range row.Flags {
				if flag&(rollout.FlagSampled|rollout.FlagSpecial|rollout.FlagStop) == rollout.FlagSampled|rollout.FlagSpecial {
					out[row.IDs[t]] = true
				}
			}
		}
	}
	return out, nil
}

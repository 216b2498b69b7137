package rollout_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func sound() *rollout.Rollout {
	return &rollout.Rollout{
		ID: "r",
		Messages: []rollout.Message{
			{Role: rollout.RoleUser, Content: "q"},
			{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, ToolCalls: []rollout.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}},
			{Role: rollout.RoleTool, ToolCallID: "c", Content: "out"},
			{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "a"},
		},
		Turns: []rollout.Turn{
			{ID: "1", Message: 1, Prompt: rollout.PromptIDs{Add: []int32{1, 2}}, Output: []int32{3}, Logprobs: []float32{-1}},
			{ID: "2", Message: 3, Step: 1, Prompt: rollout.PromptIDs{Base: rollout.At(0), Keep: 3, Add: []int32{4}}, Output: []int32{5}},
		},
		Status: rollout.StatusCompleted,
	}
}

func TestValidateFindsEachFault(t *testing.T) {
	no, yes, inf := false, true, math.Inf(1)
	hot := float32(-1)
	require.NoError(t, sound().Validate())
	for _, c := range []struct {
		fault string // text that the error must contain
		plant func(r *rollout.Rollout)
	}{
		{"has no id", func(r *rollout.Rollout) { r.ID = "" }},
		{"index is -1", func(r *rollout.Rollout) { r.Index = -1 }},
		{"message 2: the message has no role", func(r *rollout.Rollout) { r.Messages[2].Role = "" }},
		{"marked sampled", func(r *rollout.Rollout) { r.Messages[0].Sampled = rollout.SampledByPolicy }},
		{"NoContent is set", func(r *rollout.Rollout) { r.Messages[0].NoContent = true }},
		{"not the text of Parts", func(r *rollout.Rollout) { r.Messages[0].Parts = []rollout.Part{{Type: "text", Text: "x"}} }},
		{"has tool calls", func(r *rollout.Rollout) { r.Messages[0].ToolCalls = []rollout.ToolCall{{Name: "f"}} }},
		{"the tool call has no name", func(r *rollout.Rollout) { r.Messages[1].ToolCalls[0].Name = "" }},
		{"arguments are not JSON", func(r *rollout.Rollout) { r.Messages[1].ToolCalls[0].Arguments = "{" }},
		{`have the id "c"`, func(r *rollout.Rollout) {
			r.Messages[1].ToolCalls = append(r.Messages[1].ToolCalls, r.Messages[1].ToolCalls[0])
		}},
		{"answers call \"d\", which no earlier message made", func(r *rollout.Rollout) { r.Messages[2].ToolCallID = "d" }},
		{"names message 9 of 4", func(r *rollout.Rollout) { r.Turns[1].Message = 9 }},
		{"neither a message nor output ids", func(r *rollout.Rollout) { r.Turns[1] = rollout.Turn{Message: -1} }},
		{"expected assistant", func(r *rollout.Rollout) { r.Turns[1].Message = 2 }},
		{"already that of turn 0", func(r *rollout.Rollout) { r.Turns[1].Message = 1 }},
		{"same response id", func(r *rollout.Rollout) { r.Turns[1].ID = "1" }},
		{"step is -1", func(r *rollout.Rollout) { r.Turns[1].Step = -1 }},
		{"turn 1: policy version -2 is negative", func(r *rollout.Rollout) { r.Turns[1].Version = new(int32(-2)) }},
		{"/version: Version is not that of the first", func(r *rollout.Rollout) { r.Turns[1].Versions = []rollout.VersionRun{{Version: 1}} }},
		{"run 1 begins at output token 1 of 1", func(r *rollout.Rollout) {
			r.Turns[1].Version, r.Turns[1].Versions = new(int32(1)), []rollout.VersionRun{{Version: 1}, {From: 1, Version: 2}}
		}},
		{"run 1 begins at output token 0, expected 1 or later", func(r *rollout.Rollout) {
			r.Turns[1].Version, r.Turns[1].Versions = new(int32(1)), []rollout.VersionRun{{Version: 1}, {Version: 2}}
		}},
		{"/sampling/temperature: temperature -1", func(r *rollout.Rollout) { r.Turns[1].Sampling = &rollout.Sampling{Temperature: &hot} }},
		{"reward 1e+39 is not a finite number of 32 bits", func(r *rollout.Rollout) { r.Outcome.Reward = new(1e39) }},
		{"score 1e+39 is not a finite number of 32 bits", func(r *rollout.Rollout) { r.Steps = []rollout.StepScore{{Score: new(1e39)}} }},
		{"outside the 3 messages before the turn", func(r *rollout.Rollout) {
			r.Turns[1].Context.Parts = []rollout.ContextPart{{From: 0, To: 4}}
		}},
		{"unknown and has parts", func(r *rollout.Rollout) {
			r.Turns[1].Context = rollout.Context{Unknown: true, Parts: []rollout.ContextPart{{From: 0, To: 1}}}
		}},
		{"stored against turn 1, expected an earlier one", func(r *rollout.Rollout) { r.Turns[1].Prompt.Base = rollout.At(1) }},
		{"keeps 4 ids of turn 0, which has 3", func(r *rollout.Rollout) { r.Turns[1].Prompt.Keep = 4 }},
		{"keeps 3 ids of no turn", func(r *rollout.Rollout) { r.Turns[1].Prompt.Base = 0 }},
		{"token id -5", func(r *rollout.Rollout) { r.Turns[1].Output[0] = -5 }},
		{"output ids are empty", func(r *rollout.Rollout) { r.Turns[1].Output = []int32{} }},
		{"2 logprobs for 1 output ids", func(r *rollout.Rollout) { r.Turns[0].Logprobs = []float32{-1, -1} }},
		{"logprob 0.5", func(r *rollout.Rollout) { r.Turns[0].Logprobs[0] = 0.5 }},
		{"logprob NaN", func(r *rollout.Rollout) { r.Turns[0].Logprobs[0] = float32(math.NaN()) }},
		{"logprob -Inf at position 0 is not in (-inf, 0]", func(r *rollout.Rollout) { r.Turns[0].Logprobs[0] = float32(math.Inf(-1)) }},
		{`/id: "\xff" is not valid UTF-8`, func(r *rollout.Rollout) { r.ID = "\xff" }},
		{`/group: "g\xff" is not valid UTF-8`, func(r *rollout.Rollout) { r.Group = "g\xff" }},
		{`/instance: "i\xff" is not valid UTF-8`, func(r *rollout.Rollout) { r.Instance = "i\xff" }},
		{`turn 1: "\xc3" is not valid UTF-8`, func(r *rollout.Rollout) { r.Turns[1].FinishReason = "\xc3" }},
		{"step is 4294967296", func(r *rollout.Rollout) { r.Turns[1].Step = 1 << 32 }},
		{"verdict(77) is no verdict", func(r *rollout.Rollout) { r.Outcome.Verdict = 77 }},
		{"sampled(77) is no reason of sampled", func(r *rollout.Rollout) { r.Messages[0].Sampled = 77 }},
		{"status(9) is no status", func(r *rollout.Rollout) { r.Status = 9 }},
		{"/metadata/x: the value is not JSON", func(r *rollout.Rollout) { r.Metadata = map[string]json.RawMessage{"x": json.RawMessage("{")} }},
		{"/metadata/x: the value is not JSON", func(r *rollout.Rollout) { r.Metadata = map[string]json.RawMessage{"x": json.RawMessage("\"\xff\"")} }},
		{"a failure (infra_error) is recorded", func(r *rollout.Rollout) { r.Failure = &rollout.Failure{Reason: "infra_error"} }},
		{"resolved is false and the verdict is resolved", func(r *rollout.Rollout) {
			r.Outcome = rollout.Outcome{Resolved: &no, Verdict: rollout.VerdictResolved}
		}},
		{"resolved is true and the verdict is no_patch", func(r *rollout.Rollout) {
			r.Outcome = rollout.Outcome{Resolved: &yes, Verdict: rollout.VerdictNoPatch}
		}},
		{"reward +Inf", func(r *rollout.Rollout) { r.Outcome.Reward = &inf }},
		{"temperature -1", func(r *rollout.Rollout) { r.Temperature = &hot }},
		{"step 3 is scored twice", func(r *rollout.Rollout) { r.Steps = []rollout.StepScore{{Step: 3}, {Step: 3}} }},
		{"step 2 is scored, and no turn is of it: those of the rollout are steps 0 to 1, counted from 0", func(r *rollout.Rollout) {
			r.Steps = []rollout.StepScore{{Step: 1}, {Step: 2}}
		}},
		{"step 0 is scored, and the rollout has no turn", func(r *rollout.Rollout) {
			r.Turns, r.Steps = []rollout.Turn{}, []rollout.StepScore{{Step: 0}}
		}},
		{"score +Inf", func(r *rollout.Rollout) { r.Steps = []rollout.StepScore{{Score: &inf}} }},
		{"tool definition is not JSON", func(r *rollout.Rollout) { r.Tools = []json.RawMessage{json.RawMessage("x")} }},
	} {
		r := sound()
		c.plant(r)
		err := r.Validate()
		require.ErrorIs(t, err, rollout.KindInput, c.fault)
		require.ErrorContains(t, err, c.fault)
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	r := sound()
	r.ID, r.Messages[2].ToolCallID, r.Turns[1].Message = "", "zz", 1
	require.Equal(t, 3, strings.Count(r.Validate().Error(), "\n")+1)
}

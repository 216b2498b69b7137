package format

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// MarkReplies sets Sampled of every assistant message.
func MarkReplies(messages []rollout.Message, why rollout.Sampled) {
	for i := range messages {
		if messages[i].Role == rollout.RoleAssistant {
			messages[i].Sampled = why
		}
	}
}

// TurnsOf returns one turn, with a step of its own, for each sampled message.
func TurnsOf(messages []rollout.Message) []rollout.Turn {
	sampled := func(m *rollout.Message) bool {
		return m.Role == rollout.RoleAssistant && m.Sampled == rollout.SampledByPolicy
	}
	n := 0
	for i := range messages {
		if sampled(&messages[i]) {
			n++
		}
	}
	out := make([]rollout.Turn, 0, n) // turns are large: growing would copy them often
	for i := range messages {
		if sampled(&messages[i]) {
			out = append(out, rollout.Turn{Message: i, Step: len(out)})
		}
	}
	return out
}

// statuses maps the exit statuses of harnesses. Others stay unknown.
var statuses = map[string]rollout.Status{
	"submitted": rollout.StatusCompleted, "Submitted": rollout.StatusCompleted,
	"end_turn": rollout.StatusCompleted, "stop": rollout.StatusCompleted, "stop_sequence": rollout.StatusCompleted,
	"LimitsExceeded": rollout.StatusTruncated, "max_steps": rollout.StatusTruncated, "max_tokens": rollout.StatusTruncated,
	"length": rollout.StatusTruncated, "exit_cost": rollout.StatusTruncated, "exit_context": rollout.StatusTruncated,
	"exit_total_execution_time": rollout.StatusTruncated, "exit_command_timeout": rollout.StatusTruncated,
	"exit_format": rollout.StatusTruncated, "RepeatedFormatError": rollout.StatusTruncated, "TimeExceeded": rollout.StatusTruncated, "ContextWindowExceededError": rollout.StatusTruncated, "model_context_window_exceeded": rollout.StatusTruncated,
	"exit_command": rollout.StatusCompleted, "exit_forfeit": rollout.StatusCompleted, // the policy's own choice
	// early_exit of SWE-agent 0.x means that the environment died; SWE-agent repeats such a
	// run.
	"early_exit": rollout.StatusFailed, "exit_environment_error": rollout.StatusFailed, "exit_api": rollout.StatusFailed, "exit_error": rollout.StatusFailed,
	"UserInterruption": rollout.StatusAborted, "abort": rollout.StatusAborted,
}

// StatusOf returns the status for an exit status. SWE-agent submits the current state when
// a run ends early: "submitted (exit_cost)" ended because of its cost.
func StatusOf(word string) rollout.Status {
	if early, ok := strings.CutPrefix(word, "submitted ("); ok {
		word = strings.TrimSuffix(early, ")")
	}
	return statuses[word]
}

// FirstChoice returns the first choice of a chat completion.
func FirstChoice(response Value) Value {
	return response.Get("choices").First()
}

// ReasoningOf returns the readable reasoning of a completion's message.
func ReasoningOf(m Value) string {
	for _, key := range []string{"reasoning_content", "reasoning", "thinking", "reasoning_details"} {
		if s, _ := Thinking(m.Get(key)); s != "" {
			return s
		}
	}
	return ""
}

// ReplyEnds are the finish reasons of the chat and Messages APIs.
var ReplyEnds = []string{"stop", "length", "tool_calls", "function_call", "content_filter", "end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "eos", "eos_token"}

// AppendRange adds message k to the parts of a context, extending the last range if k
// follows it.
func AppendRange(parts []rollout.ContextPart, k int) []rollout.ContextPart {
	if n := len(parts); n > 0 && parts[n-1].Message == nil && parts[n-1].To == k {
		parts[n-1].To++
		return parts
	}
	return append(parts, rollout.ContextPart{From: k, To: k + 1})
}

// Shown returns the context of message at that saw exactly the list; nil is the plain
// history.
func Shown(list []int, at int) []rollout.ContextPart {
	parts := []rollout.ContextPart{}
	for _, k := range list {
		parts = AppendRange(parts, k)
	}
	if len(list) == at && (at == 0 || len(parts) == 1 && parts[0].From == 0) {
		return nil
	}
	return parts
}

// EndLast sets the finish reason of the turn whose reply is the last message, if it has
// none.
func EndLast(r *rollout.Rollout, why string) {
	n := len(r.Turns) - 1
	if n >= 0 && r.Turns[n].Message == len(r.Messages)-1 && r.Turns[n].FinishReason == "" {
		r.Turns[n].FinishReason = why
	}
}

// StopString returns the stop string that ended a choice, as vLLM and SGLang report it; a
// number there is a token, and gateways put other APIs' finish reasons there.
func StopString(choice Value) string {
	for _, v := range []Value{choice.Get("stop_reason"), choice.Get("matched_stop"), choice.Path("provider_specific_fields", "stop_reason")} {
		if s, ok := v.Text(); ok && s != "" && !slices.Contains(ReplyEnds, s) {
			return s
		}
	}
	return ""
}

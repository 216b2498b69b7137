package rollout

import "encoding/json"

// Rollout is what happened in one attempt at one task: the messages, the model calls and
// how it ended. It is never edited after reading; functions return new values.
type Rollout struct {
	ID       string // unique within a batch
	Group    string // GRPO group: rollouts of the same prompt or task share it
	Index    int    // 0-based index inside its group
	Instance string // task instance id, the key that joins rewards and reports; "" unknown

	Messages []Message
	Tools    []Tool
	// Turns are the model calls in recorded order. nil means that the dump has none;
	// TurnsOf then derives one turn per sampled assistant message.
	Turns []Turn

	Outcome    Outcome
	Status     Status
	ExitStatus string   // the harness's own exit status, "" unknown
	Failure    *Failure // set when something other than the policy went wrong
	Steps      []StepScore

	// Temperature is the sampling temperature, nil unknown; a turn's own takes precedence
	// (see TemperatureAt).
	Temperature *float32
	// TemplateKwargs are chat-template variables the engine was called with.
	TemplateKwargs map[string]json.RawMessage
	// Metadata holds the user's values, copied to the exported row.
	Metadata map[string]json.RawMessage
	// Notes are remarks of importers about the record that a user should know.
	Notes  []Note
	Origin Origin
	// Extra holds recorded keys without a field of their own (native format only); those of
	// a nested object are under its key.
	Extra map[string]json.RawMessage
}

// Origin says where a rollout was read.
type Origin struct {
	File   string
	Line   int    // 1-based line of a JSONL file, 0 otherwise
	Index  int    // 0-based index of the rollout among those of the file
	Format string // importer name
}

// Note is one remark of an importer: a stable code and a sentence.
type Note struct {
	Code    string `json:"code"`
	Message Index  `json:"-"`
	Text    string `json:"text"`
}

// NoteUnknownCall is the note code for tool results that answer calls which no message
// made. Validate accepts them then: the recorder saw what a harness sent, and holds the ids
// that the model saw.
const NoteUnknownCall = "unknown_call"

// Turn is one model call.
type Turn struct {
	ID string // response id, "" unknown
	// Message is the index of the assistant message that holds the completion, −1
	// when only token ids were recorded.
	Message int
	// Step is the 0-based agent step; several turns may share one step.
	Step int
	// Context is what the model saw.
	Context Context
	// Prompt and Output are the engine's own token ids; Output nil means not
	// captured. An empty recorded list counts as absent.
	Prompt PromptIDs
	Output []TokenID
	// Logprobs has one natural-log probability per Output token, or is nil.
	Logprobs []float32
	// TrainLogprobs has the log probabilities of the same tokens under the policy being
	// trained, or is nil if no trainer recorded them.
	TrainLogprobs []float32
	FinishReason  string // stop, length, tool_calls, abort, …; "" unknown
	// StopString is the requested stop text that ended the reply; no stop token was sampled
	// then. "" if no stop text ended it.
	StopString string
	// Version is the policy version that sampled the turn, nil unknown. If the weights
	// changed within the turn, Versions has the runs and Version is that of the first.
	Version *int32
	// Versions are the runs of policy versions over Output, by ascending From, the first
	// from 0; nil = Version holds for the whole turn.
	Versions []VersionRun
	// Sampling holds the sampling settings requested of the engine, nil unknown.
	Sampling *Sampling
	// Incomplete says why the recorded tokens are not what was sampled (usage counts other
	// tokens than the ids recorded, log probabilities are not numbers); "" = they are. An
	// incomplete turn is context for later turns and is never trained.
	Incomplete string
	Agent      string // name of the calling agent, "" if there is only one
	// Extra holds recorded keys without a field of their own: unknown keys of the native
	// format, and what a dump records about the commands of a turn (step_debug of swe-rl).
	Extra map[string]json.RawMessage
}

// LimitReached reports whether a finish reason, in the words of any engine, says that a limit on
// tokens cut the reply.
func LimitReached(reason string) bool {
	switch reason {
	case "length", "limit", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return true
	}
	return false
}

// VersionRun is a run of output tokens sampled by one policy version, from token From of
// Turn.Output (0-based) to the next run.
type VersionRun struct {
	From    int
	Version int32
}

// AppendVersions appends the policy versions of output tokens [from, from+n) to dst, −1
// where no version is recorded.
func (t *Turn) AppendVersions(dst []int32, from, n int) []int32 {
	version, runs := int32(-1), t.Versions
	if t.Version != nil {
		version = *t.Version
	}
	for k := from; k < from+n; k++ {
		for len(runs) > 0 && runs[0].From <= k {
			version, runs = runs[0].Version, runs[1:]
		}
		dst = append(dst, version)
	}
	return dst
}

// Sampling holds the settings of a call that affect what is sampled; nil fields were not
// recorded.
type Sampling struct {
	Temperature *float32 // 0 = greedy
	TopP        *float32 // (0, 1]
	TopK        *int32   // −1 or 0 = off, as in engines
	MinP        *float32 // [0, 1]
	Seed        *int64
}

// TemperatureAt returns the temperature that turn i of TurnsOf(r) was sampled with: the
// turn's own, else the rollout's, or nil if neither is recorded.
func (r *Rollout) TemperatureAt(i int) *float32 {
	if r == nil {
		return nil
	}
	if i >= 0 && i < len(r.Turns) {
		if s := r.Turns[i].Sampling; s != nil && s.Temperature != nil {
			return s.Temperature
		}
	}
	return r.Temperature
}

// PromptIDs stores a captured prompt against an earlier turn, so that the turns of a
// growing conversation need memory for the distinct ids only: the full ids (prompt and
// output) of turn Base, cut to Keep, followed by Add. The zero value means not captured.
type PromptIDs struct {
	Base Index // earlier turn; not set if Keep is 0
	Keep int
	Add  []TokenID
}

// Captured reports whether the prompt was recorded.
func (p PromptIDs) Captured() bool { return p.Keep > 0 || len(p.Add) > 0 }

// Context says which messages the model saw at a turn.
type Context struct {
	// Parts lists what the model saw, in order; nil means every message before the turn's
	// own except exit messages.
	Parts []ContextPart
	// Unknown is true when the record proves that the model did not see the plain history,
	// but does not say what it saw instead.
	Unknown bool
}

// ContextPart is the half-open range [From, To) of Rollout.Messages or, if Message is set,
// a message shown in place of that range: an omission note, a shortened observation, a
// summary.
type ContextPart struct {
	From, To int
	Message  *Message
}

// Status says how a rollout ended, in the terms of the trainers.
type Status uint8

// The statuses. The zero value is unknown: the dump does not say.
const (
	StatusUnknown   Status = iota
	StatusCompleted        // the policy ended it
	StatusTruncated        // a token, step or time limit ended it
	StatusAborted          // it was stopped from outside
	StatusFailed           // the infrastructure failed
)

var statusNames = []string{"unknown", "completed", "truncated", "aborted", "failed"}

// String returns the name used in files.
func (s Status) String() string { return enumName(statusNames, int(s), "status") }

// MarshalText writes the name used in files.
func (s Status) MarshalText() ([]byte, error) { return enumText(statusNames, int(s), "status") }

// UnmarshalText reads a name written by MarshalText.
func (s *Status) UnmarshalText(b []byte) error { return enumParse(statusNames, b, "status", s) }

// Failure says what went wrong outside the policy's control.
type Failure struct {
	Reason string `json:"reason"` // short stable word, for example infra_error
	Detail string `json:"detail,omitempty"`
}

// Outcome is what was recorded about success. Unknown values stay nil: a format without an
// outcome is never read as success or failure.
type Outcome struct {
	Resolved   *bool
	Reward     *float64 // recorded scalar, in the recorder's own scale
	Verdict    Verdict
	Reason     string  // why, in the recorder's words
	Submission *string // patch or answer text; "" is a recorded empty one
}

// Verdict is the category of a graded outcome.
type Verdict uint8

// The verdicts. Those after VerdictGraded count as unresolved and name the reason, except
// VerdictInfraError and VerdictOOM, which say nothing about the policy.
const (
	VerdictUnknown Verdict = iota
	VerdictResolved
	VerdictUnresolved
	VerdictGraded // a scalar grade without a yes or no
	VerdictNoPatch
	VerdictApplyFailed
	VerdictResetFailed
	VerdictNoMarkers
	VerdictTestsError
	VerdictTestsTimeout
	VerdictAgentTimeout
	VerdictInfraError
	VerdictOOM
)

var verdictNames = []string{"unknown", "resolved", "unresolved", "graded", "no_patch", "apply_failed", "reset_failed", "no_markers", "tests_error", "tests_timeout", "agent_timeout", "infra_error", "oom"}

// String returns the name used in files.
func (v Verdict) String() string { return enumName(verdictNames, int(v), "verdict") }

// MarshalText writes the name used in files.
func (v Verdict) MarshalText() ([]byte, error) { return enumText(verdictNames, int(v), "verdict") }

// UnmarshalText reads a name written by MarshalText.
func (v *Verdict) UnmarshalText(b []byte) error { return enumParse(verdictNames, b, "verdict", v) }

// Infra reports whether the verdict is about the infrastructure, not the policy. Such a
// rollout has no reward and is left out of the statistics.
func (v Verdict) Infra() bool { return v == VerdictInfraError || v == VerdictOOM }

// Reward is the scored outcome of one rollout.
type Reward struct {
	// Total is the value to train on: Outcome + coefficient × mean step score.
	Total   float64
	Outcome float64
	Step    *float64 // mean step score of the rollout, nil = not computed
	Verdict Verdict
	Reason  string
	// Excluded says why the rollout has no reward and is left out of the statistics, "" if
	// it is included.
	Excluded string
}

// StepScore is one process-reward score, keyed by step.
type StepScore struct {
	Step  int      `json:"step"`            // 0-based agent step
	Score *float64 `json:"score,omitempty"` // nil = not computed; Reason says why
	Votes []Vote   `json:"votes,omitempty"` // raw votes, in order
	// Reason says why Score is nil or how Score was decided.
	Reason string `json:"reason,omitempty"`
	// Extra holds recorded keys without a field of their own (native format only).
	Extra map[string]json.RawMessage `json:"-"`
}

// Vote is one answer of a judge.
type Vote struct {
	Text   string   `json:"text,omitempty"`
	Score  *float64 `json:"score,omitempty"` // nil = not parsed, or the call failed
	Error  string   `json:"error,omitempty"`
	Millis int64    `json:"latency_ms,omitempty"`
	Tokens int      `json:"tokens,omitempty"`
}

// TurnsOf returns r.Turns or, if the dump recorded none, one turn per assistant message
// sampled by the policy, each a step of its own with the plain history as context. The
// result must not be changed.
func TurnsOf(r *Rollout) []Turn {
	if r == nil {
		return nil
	}
	if r.Turns != nil {
		return r.Turns
	}
	var turns []Turn
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == RoleAssistant && m.Sampled == SampledByPolicy {
			turns = append(turns, Turn{Message: i, Step: len(turns)})
		}
	}
	return turns
}

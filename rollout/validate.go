package rollout

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Validate reports every fault of r at once (errors.Join of located KindInput errors): a
// missing id, messages without a role, sampled marks on messages that no policy can sample,
// tool results without a call (see NoteUnknownCall), duplicate ids, turns and contexts that
// point outside, token columns of unequal length, values that no row can hold (log
// probabilities and scores that are not finite, bytes that are not UTF-8, metadata that is
// not JSON) and a status that contradicts the outcome. It never changes r.
func (r *Rollout) Validate() error {
	if r == nil {
		return nilRollout()
	}
	v := validator{r: r}
	v.run()
	return errors.Join(v.errs...)
}

type validator struct {
	r     *Rollout
	errs  []error
	calls bool // results of unknown calls are accepted
}

// fault records a fault without a fix.
func (v *validator) fault(w Where, format string, args ...any) { v.fixable("", w, format, args...) }

// fixable records a fault with a suggested fix.
func (v *validator) fixable(fix string, w Where, format string, args ...any) {
	w.Rollout = v.r.ID
	v.errs = append(v.errs, Errorf(KindInput, w, format, args...).WithFix("%s", fix))
}

func (v *validator) run() {
	r := v.r
	if r.ID == "" {
		v.fault(Where{Field: "/id"}, "the rollout has no id")
	}
	v.text(Where{Field: "/id"}, r.ID)
	v.text(Where{Field: "/group"}, r.Group)
	v.text(Where{Field: "/instance"}, r.Instance)
	if r.Index < 0 {
		v.fault(Where{Field: "/index"}, "index is %d, expected 0 or more", r.Index)
	}
	v.messages()
	v.turns()
	v.ending()
}

// text checks a string that is written to rows as text.
func (v *validator) text(at Where, s string) {
	if !utf8.ValidString(s) {
		v.fault(at, "%.40q is not valid UTF-8", s)
	}
}

func (v *validator) messages() {
	calls := map[string]bool{}
	v.calls = slices.ContainsFunc(v.r.Notes, func(n Note) bool { return n.Code == NoteUnknownCall })
	for i := range v.r.Messages {
		v.message(i, calls)
	}
}

func (v *validator) message(i int, calls map[string]bool) {
	m, at := &v.r.Messages[i], Where{Message: At(i)}
	if m.Role == "" {
		v.fault(at, "the message has no role")
	}
	if m.Role != RoleAssistant && m.Sampled == SampledByPolicy {
		v.fault(at, "a message of role %q is marked sampled, only an assistant's can be", m.Role)
	}
	if m.Sampled > SampledOtherAgent {
		v.fault(at, "%v is no reason of sampled", m.Sampled)
	}
	if m.NoContent && (m.Content != "" || m.Parts != nil) {
		v.fault(at, "NoContent is set on a message with content")
	}
	if m.Parts != nil && JoinText(m.Parts) != m.Content {
		v.fault(at, "Content is not the text of Parts")
	}
	if len(m.ToolCalls) > 0 && m.Role != RoleAssistant {
		v.fault(at, "a message of role %q has tool calls", m.Role)
	}
	own := map[string]bool{}
	for k, c := range m.ToolCalls {
		w := at
		w.Field = "/tool_calls/" + strconv.Itoa(k)
		if c.Name == "" {
			v.fault(w, "the tool call has no name")
		}
		if !c.ArgumentsText && c.Arguments != "" && !json.Valid([]byte(c.Arguments)) {
			v.fault(w, "the arguments are not JSON and not marked as text")
		}
		if c.ID != "" && own[c.ID] {
			v.fault(w, "two calls of one message have the id %q", c.ID)
		}
		own[c.ID], calls[c.ID] = true, true
	}
	if m.Role == RoleTool && m.ToolCallID != "" && !calls[m.ToolCallID] && !v.calls {
		v.fixable("record the call, or take the tool_call_id away where none was made", at, "the tool result answers call %q, which no earlier message made", m.ToolCallID)
	}
}

func (v *validator) turns() {
	owner := map[int]int{}
	ids := map[string]int{}
	full := make([]int, len(v.r.Turns))
	for i := range v.r.Turns {
		t, at := &v.r.Turns[i], Where{Turn: At(i)}
		switch {
		case t.Message < -1 || t.Message >= len(v.r.Messages):
			v.fault(at, "the turn names message %d of %d", t.Message, len(v.r.Messages))
		case t.Message == -1 && t.Output == nil:
			v.fixable("take the turn out where nothing was sampled, and let the rollout's status say how it ended", at, "the turn has neither a message nor output ids")
		case t.Message >= 0:
			if role := v.r.Messages[t.Message].Role; role != RoleAssistant {
				v.fault(at, "the turn's message %d has role %q, expected assistant", t.Message, role)
			}
			if j, dup := owner[t.Message]; dup {
				v.fault(at, "message %d is already that of turn %d", t.Message, j)
			}
			owner[t.Message] = i
		}
		if j, dup := ids[t.ID]; dup && t.ID != "" {
			v.fault(at, "turn %d has the same response id %q", j, t.ID)
		}
		ids[t.ID] = i
		if t.Step < 0 || t.Step > math.MaxInt32 {
			v.fault(at, "step is %d, expected 0 to %d", t.Step, math.MaxInt32)
		}
		v.text(at, t.FinishReason)
		if t.Version != nil && *t.Version < 0 {
			v.fault(at, "policy version %d is negative, expected none where it is not known", *t.Version)
		}
		v.text(at, t.Incomplete)
		v.context(t, at)
		v.tokens(i, t, at, full)
		v.versions(t, at)
		v.sampling(t.Sampling, at)
	}
}

func (v *validator) context(t *Turn, at Where) {
	at.Field = "/context"
	if t.Context.Unknown && t.Context.Parts != nil {
		v.fault(at, "the context is unknown and has parts")
	}
	end := len(v.r.Messages)
	if t.Message >= 0 && t.Message < end {
		end = t.Message
	}
	for _, p := range t.Context.Parts {
		if p.From < 0 || p.To < p.From || p.To > end {
			v.fault(at, "range [%d, %d) is outside the %d messages before the turn", p.From, p.To, end)
		}
		if p.Message != nil && p.Message.Role == "" {
			v.fault(at, "a message shown in place has no role")
		}
	}
}

func (v *validator) tokens(i int, t *Turn, at Where, full []int) {
	p := &t.Prompt
	base, ok := p.Base.Get()
	switch {
	case p.Keep < 0 || p.Keep > 0 && !ok:
		v.fault(at, "the prompt keeps %d ids of no turn", p.Keep)
	case ok && base >= i:
		v.fault(at, "the prompt is stored against turn %d, expected an earlier one", base)
	case ok && p.Keep > full[base]:
		v.fault(at, "the prompt keeps %d ids of turn %d, which has %d", p.Keep, base, full[base])
	}
	full[i] = max(p.Keep, 0) + len(p.Add) + len(t.Output)
	for _, ids := range [][]TokenID{p.Add, t.Output} {
		for k, id := range ids {
			if id < 0 {
				v.fault(at, "token id %d at position %d is negative", id, k)
				break
			}
		}
	}
	if t.Output != nil && len(t.Output) == 0 {
		v.fault(at, "output ids are empty, expected nil when none were captured")
	}
	if t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
		v.fault(at, "%d logprobs for %d output ids", len(t.Logprobs), len(t.Output))
	}
	if t.TrainLogprobs != nil && len(t.TrainLogprobs) != len(t.Output) {
		v.fault(at, "%d train_logprobs for %d output ids", len(t.TrainLogprobs), len(t.Output))
	}
	for _, list := range [][]float32{t.Logprobs, t.TrainLogprobs} {
		for k, lp := range list {
			if !(lp <= 0 && lp >= -math.MaxFloat32) {
				v.fault(at, "logprob %g at position %d is not in (-inf, 0]", lp, k)
				break
			}
		}
	}
}

func (v *validator) versions(t *Turn, at Where) {
	if t.Versions == nil {
		return
	}
	at.Field = "/version"
	if t.Version == nil || len(t.Versions) == 0 || *t.Version != t.Versions[0].Version {
		v.fault(at, "Version is not that of the first of %d runs", len(t.Versions))
	}
	next := 0
	for i, run := range t.Versions {
		switch {
		case i == 0 && run.From != 0:
			v.fault(at, "the first run begins at output token %d, expected 0", run.From)
		case i > 0 && run.From < next:
			v.fault(at, "run %d begins at output token %d, expected %d or later", i, run.From, next)
		case run.From >= len(t.Output):
			v.fault(at, "run %d begins at output token %d of %d", i, run.From, len(t.Output))
		case run.Version < 0:
			v.fault(at, "policy version %d of run %d is negative", run.Version, i)
		}
		next = run.From + 1
	}
}

func (v *validator) sampling(s *Sampling, at Where) {
	if s == nil {
		return
	}
	for _, x := range []struct {
		key   string
		value *float32
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}, {"min_p", s.MinP}} {
		if x.value != nil && !(*x.value >= 0 && *x.value <= math.MaxFloat32) {
			at.Field = "/sampling/" + x.key
			v.fault(at, "%s %g is not a finite number >= 0", x.key, *x.value)
		}
	}
}

func (v *validator) ending() {
	r, o := v.r, &v.r.Outcome
	if r.Status > StatusFailed {
		v.fault(Where{Field: "/status"}, "%v is no status", r.Status)
	}
	if o.Verdict > VerdictOOM {
		v.fault(Where{Field: "/outcome/verdict"}, "%v is no verdict", o.Verdict)
	}
	if r.Status == StatusCompleted && r.Failure != nil {
		v.fault(Where{Field: "/status"}, "status is completed and a failure (%s) is recorded", r.Failure.Reason)
	}
	if o.Resolved != nil && o.Verdict != VerdictUnknown && o.Verdict != VerdictGraded && *o.Resolved != (o.Verdict == VerdictResolved) {
		v.fault(Where{Field: "/outcome"}, "resolved is %t and the verdict is %s", *o.Resolved, o.Verdict)
	}
	if o.Reward != nil && !finite32(*o.Reward) {
		v.fault(Where{Field: "/outcome/reward"}, "reward %g is not a finite number of 32 bits, as rows hold it", *o.Reward)
	}
	if t := r.Temperature; t != nil && !(*t >= 0 && *t < math.MaxFloat32) {
		v.fault(Where{Field: "/temperature"}, "temperature %g is not a finite number >= 0", *t)
	}
	v.scores()
	for i, t := range r.Tools {
		if !json.Valid(t) {
			v.fault(Where{Field: "/tools/" + strconv.Itoa(i)}, "the tool definition is not JSON")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		if m := r.Metadata[key]; m != nil && !(json.Valid(m) && utf8.Valid(m)) {
			v.fault(Where{Field: "/metadata/" + key}, "the value is not JSON")
		}
	}
}

// scores checks the scored steps. A score without a turn would enter the comparison of
// steps without a token to train, and scores of steps counted from 1 would all be shifted.
func (v *validator) scores() {
	r := v.r
	if len(r.Steps) == 0 {
		return
	}
	first, last, turns := math.MaxInt, -1, map[int]bool{}
	for _, t := range TurnsOf(r) {
		turns[t.Step], first, last = true, min(first, t.Step), max(last, t.Step)
	}
	seen := map[int]bool{}
	for i, s := range r.Steps {
		w := Where{Field: "/steps/" + strconv.Itoa(i)}
		switch {
		case s.Step < 0:
			v.fault(w, "step is %d, expected 0 or more", s.Step)
		case seen[s.Step]:
			v.fault(w, "step %d is scored twice", s.Step)
		case turns[s.Step]:
		case last < 0:
			v.fault(w, "step %d is scored, and the rollout has no turn", s.Step)
		default:
			v.fault(w, "step %d is scored, and no turn is of it: those of the rollout are steps %d to %d, counted from 0", s.Step, first, last)
		}
		seen[s.Step] = true
		if s.Score != nil && !finite32(*s.Score) {
			v.fault(w, "score %g is not a finite number of 32 bits, as rows hold it", *s.Score)
		}
	}
}

func finite32(x float64) bool {
	f := float32(x)
	return f-f == 0
}

package ctxwindow

import (
	"context"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Session is the window of one live rollout: messages are appended as they arrive, and each call of
// the model is fitted into the budget, given the cuts of earlier calls. The contexts are those that
// Plan gives the finished rollout under the same policy, so Refill makes as few rows live as in a
// plan.
//
// A session counts each message a bounded number of times, however long the rollout grows, except
// that HeadTail and Tail count the plain history before each call. It is not safe for concurrent
// use.
type Session struct {
	policy   Policy
	strategy Strategy
	history  *History
	messages int // of the rollout, exit records included
	report   Report
	last     rollout.Context // of the latest call
	at       int             // message number of that call's reply
}

// NewSession returns the window of a rollout without messages.
func NewSession(policy Policy, counter Counter) (*Session, error) {
	if policy == nil || counter == nil {
		return nil, fault("", "a window needs a policy and a counter").WithFix("use None{} for no window")
	}
	if err := policy.Validate(); err != nil {
		return nil, err
	}
	return &Session{policy: policy, history: newHistory(&rollout.Rollout{}, counter)}, nil
}

// Append adds messages in the order in which they join the rollout: the task, then the reply and
// the observations of each call. The messages are copied, but not what they point to, which must
// not change. An exit record counts as a message of the rollout and is shown to no call.
func (s *Session) Append(messages ...rollout.Message) {
	if s.history == nil { // Fit refuses a session that NewSession did not make
		return
	}
	for i := range messages {
		s.history.append(&messages[i], s.messages)
		s.messages++
	}
}

// Fit returns what a call made now sees. Its Context names messages by their number in the rollout:
// it is the context of the turn whose reply is appended next. A call that is repeated, after an
// error or not, is fitted as before. Earlier cuts survive an error of the counter, an error of the
// summarizer, and an error of kind limit, which says that no shortening fits the budget.
func (s *Session) Fit(ctx context.Context) (Fitted, error) {
	if s.history == nil {
		return Fitted{}, zero.Value("ctxwindow.Session", "NewSession")
	}
	if s.strategy == nil {
		s.strategy = s.policy.Start(s.history)
	}
	n := len(s.history.history)
	v, err := s.history.viewAt(ctx, s.policy, s.strategy, n)
	if err != nil {
		return Fitted{}, err
	}
	f := Fitted{Context: s.history.context(v.Parts), Messages: s.history.write(v, n), Tokens: v.Tokens, Omitted: v.Omitted, Shortened: v.Shortened, Emptied: v.Emptied}
	if s.report.Turns == 0 || s.at != s.messages { // not a repetition of the last call
		s.report.Turns++
		s.report.add(v)
		if s.report.Turns == 1 || !extends(s.last, s.at, f.Context, s.messages) {
			s.report.Rows++
		}
		s.last, s.at = f.Context, s.messages
	}
	return f, nil
}

// Report says what the session did so far, as Plan does for a finished rollout. Repeated calls
// count once.
func (s *Session) Report() Report {
	r := s.report
	if s.history != nil {
		r.Calls = s.history.calls
	}
	return r
}

package ctxwindow

import (
	"context"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Session is the window of one live rollout: messages are appended as they arrive,
// and each call of the model is fitted into the budget with the cuts of the calls
// before it in mind. The contexts are those that Plan gives the finished rollout
// under the same policy, so Refill makes as few rows live as in a plan.
//
// A session counts each message a bounded number of times, however long the rollout
// grows, but for the plain history that HeadTail and Tail ask about before each call.
// It is for one goroutine.
type Session struct {
	policy   Policy
	strategy Strategy
	history  *History
	messages int // of the rollout, exit records included
	report   Report
	last     rollout.Context // of the call before
	at       int             // and the message number of its reply
}

// NewSession begins the window of a rollout without messages.
func NewSession(policy Policy, counter Counter) (*Session, error) {
	if policy == nil || counter == nil {
		return nil, fault("", "a window needs a policy and a counter").WithFix("use None{} for no window")
	}
	if err := policy.Validate(); err != nil {
		return nil, err
	}
	return &Session{policy: policy, history: newHistory(&rollout.Rollout{}, counter)}, nil
}

// Append takes messages in the order in which they join the rollout: the task, then
// the reply and the observations of each call. They are copied; what their slices hold
// must not change. An exit record counts as a message of the rollout and is shown to
// no call.
func (s *Session) Append(messages ...rollout.Message) {
	if s.history == nil { // Fit refuses a session that NewSession did not make
		return
	}
	for i := range messages {
		s.history.append(&messages[i], s.messages)
		s.messages++
	}
}

// Fit says what a call sees that is made now. Its Context names messages by their
// number in the rollout: it is the context of the turn whose reply is appended next. A
// call that is made again, or after an error, is fitted as before. An error of the
// counter, of a summarizer, or of kind limit where no shortening fits the budget,
// forgets no cut.
func (s *Session) Fit(ctx context.Context) (Fitted, error) {
	if s.history == nil {
		return Fitted{}, zero.Value("ctxwindow.Session", "NewSession")
	}
	if s.strategy == nil {
		s.strategy = s.policy.Start(s.history)
	}
	n := len(s.history.history)
	v, err := s.history.look(ctx, s.policy, s.strategy, n)
	if err != nil {
		return Fitted{}, err
	}
	f := Fitted{Context: s.history.context(v.Parts), Messages: s.history.write(v, n), Tokens: v.Tokens, Omitted: v.Omitted, Shortened: v.Shortened, Emptied: v.Emptied}
	if s.report.Turns == 0 || s.at != s.messages { // not the same call again
		s.report.Turns++
		s.report.add(v)
		if s.report.Turns == 1 || !extends(s.last, s.at, f.Context, s.messages) {
			s.report.Rows++
		}
		s.last, s.at = f.Context, s.messages
	}
	return f, nil
}

// Report says what the session did so far, as Plan does for a finished rollout. A call
// that was fitted twice counts once.
func (s *Session) Report() Report {
	r := s.report
	if s.history != nil {
		r.Calls = s.history.calls
	}
	return r
}

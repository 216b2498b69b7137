package prompt

// Reasons for a prompt not holding the last reply as it was sampled: Prompt.Reason, Report.Forked.
const (
	// reasonOpening: there is no earlier reply.
	reasonOpening = "opening"
	// reasonHistory: no checkpoint has the messages before the last reply: they were edited or
	// shortened, another agent sent them, or the checkpoint was dropped.
	reasonHistory = "history"
	// reasonReply: the client returns another reply than any sampled there.
	reasonReply = "reply"
	// reasonReasoning: the client returns the reply without its reasoning.
	reasonReasoning = "reasoning"
	// reasonRewritten: the template now writes earlier text differently, or leaves it out.
	reasonRewritten = "rewritten"
	// reasonSpelling: the template writes the reply in other characters than were sampled: white
	// space, the spacing of arguments.
	reasonSpelling = "spelling"
	// reasonStop: the template does not write the sampled stop token.
	reasonStop = "stop"
	// reasonControl: a control token is where the reply spells it out, or the reverse.
	reasonControl = "control"
	// reasonJoined: the text after the reply would join its last token.
	reasonJoined = "joined"
)

// spelling reports whether r means that the text has the reply in another spelling.
func spelling(r string) bool { return r == reasonSpelling || r == reasonStop || r == reasonJoined }

// Report counts the prompts that were answered.
type Report struct {
	Turns   int // prompts with a reply
	Opened  int // without an earlier reply
	Bridged int // with the last reply as it was sampled, as the template writes it
	Kept    int // with the last reply as it was sampled, though the template would write something else
	// Forked counts the others, and the kept ones, by reason.
	Forked map[string]int

	Checkpoints int // checkpoints held
	Tokens      int // ids held
	LetGo       int // checkpoints dropped by the limits
}

// Share returns the share of bridged turns among those with an earlier reply; 1 if there are none.
func (r Report) Share() float64 {
	if r.Turns == r.Opened {
		return 1
	}
	return float64(r.Bridged) / float64(r.Turns-r.Opened)
}

// Add adds the counts of another tree.
func (r *Report) Add(o Report) {
	r.Turns, r.Opened, r.Bridged, r.Kept = r.Turns+o.Turns, r.Opened+o.Opened, r.Bridged+o.Bridged, r.Kept+o.Kept
	r.Checkpoints, r.Tokens, r.LetGo = r.Checkpoints+o.Checkpoints, r.Tokens+o.Tokens, r.LetGo+o.LetGo
	if r.Forked == nil {
		r.Forked = map[string]int{}
	}
	for why, n := range o.Forked {
		r.Forked[why] += n
	}
}

func (r *Report) count(a *pending) {
	r.Turns++
	switch {
	case a.reason == reasonOpening:
		r.Opened++
		return
	case a.reason == "":
		r.Bridged++
		return
	case a.kept:
		r.Kept++
	}
	r.Forked[a.reason]++
}

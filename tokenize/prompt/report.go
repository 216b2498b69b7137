package prompt

// Reason says why a prompt does not hold the last reply as it was sampled: opening, history,
// reply, reasoning, rewritten, spelling, stop, control or joined.
type Reason string

// The reasons.
const (
	// reasonOpening: there is no reply before it.
	reasonOpening Reason = "opening"
	// reasonHistory: the messages before the last reply are those of no checkpoint: they were
	// edited or shortened, the agent is another one, or the checkpoint was let go.
	reasonHistory Reason = "history"
	// reasonReply: the client sends back another reply than any that was sampled there.
	reasonReply Reason = "reply"
	// reasonReasoning: the client sends the reply back without its reasoning.
	reasonReasoning Reason = "reasoning"
	// reasonRewritten: the template writes earlier text otherwise now, or leaves it out.
	reasonRewritten Reason = "rewritten"
	// reasonSpelling: the template writes the reply in other characters than were sampled:
	// white space, the spacing of arguments.
	reasonSpelling Reason = "spelling"
	// reasonStop: the template does not write the stop token that was sampled.
	reasonStop Reason = "stop"
	// reasonControl: a control token stands where the reply spells it out, or the other way
	// round.
	reasonControl Reason = "control"
	// reasonJoined: the text that follows would join the reply's last token.
	reasonJoined Reason = "joined"
)

// spelling reports whether the reply stands in the text, written otherwise.
func (r Reason) spelling() bool { return r == reasonSpelling || r == reasonStop || r == reasonJoined }

// Report counts the prompts that were answered.
type Report struct {
	Turns   int // prompts with a reply
	Opened  int // no reply stands before them
	Bridged int // they hold the last reply as it was sampled, as the template writes it
	Kept    int // they hold it although the template would write something else
	// Forked: the others, and the kept ones, by reason.
	Forked map[Reason]int

	Checkpoints int // held
	Tokens      int // ids held
	LetGo       int // checkpoints beyond the bounds
}

// Share is the share of bridged turns among those with a reply before them; 1 where there
// are none.
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
		r.Forked = map[Reason]int{}
	}
	for why, n := range o.Forked {
		r.Forked[why] += n
	}
}

func (r *Report) count(a *asked) {
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

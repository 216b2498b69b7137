package audit

// Severity is how serious a finding is.
type Severity uint8

// The severities.
const (
	Info  Severity = iota + 1 // worth knowing
	Warn                      // likely wrong
	Error                     // a trainer crashes or trains wrongly
)

var severityNames = [...]string{"", "info", "warn", "error"}

// String returns the name used in reports.
func (s Severity) String() string { return severityNames[min(int(s), len(severityNames)-1)] }

// MarshalText writes the name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// rule describes one rule of the audit.
type rule struct {
	ID       string
	Severity Severity
	Title    string
	Harm     string
	Fix      string
	// NeedsModel is true if the rule is not checked without a Model.
	NeedsModel bool
}

// rules returns all rules in the order of reports.
func rules() []rule {
	return []rule{
		{"lengths", Error, "per-token columns differ in length from the ids", "trainers crash, or pad the shorter one and train other tokens than meant", "give one value per token in every column", false},
		{"unfinished-set", Error, "the files belong to a set that is not complete", "a trainer takes a part of the batch for the whole", "run the job that writes the folder again: it goes on where it stopped", false},
		{"no-mask", Error, "there is no loss mask", "every token is trained, prompts and tool output included", "write a loss_mask column", false},
		{"mask-values", Error, "mask values are neither 0, 1 nor a weight", "negative or non-finite weights flip or poison the loss", "use 0 and 1, or finite weights of at least 0", false},
		{"negative-id", Error, "token ids are negative", "embedding look-ups crash, or wrap to the end of the vocabulary", "encode the row again; -100 belongs into labels", false},
		{"outside-vocabulary", Error, "token ids are outside the vocabulary", "embedding look-ups crash on the device", "encode with the tokenizer of the model that is trained", true},
		{"first-token-trained", Error, "the first token is trained", "nothing before it predicts it; a shift drops it or trains garbage", "mask the first token", false},
		{"no-trained-token", Warn, "rows train nothing", "they enter denominators of several trainers and zero whole sessions", "leave such rows out", false},
		{"tail-untrained", Warn, "rows end in untrained tokens", "AReaL puts the reward on the last token and loses it; elsewhere they cost compute", "cut rows after the last trained token", false},
		{"prompt-trained", Error, "tokens of the prompt are trained", "the policy learns to write its own instructions", "start the mask after the prompt", false},
		{"not-sampled", Warn, "tokens are trained that the policy did not sample", "the policy learns text of others: copied, prefilled, or written by the template", "train sampled tokens only, as the default loss mask does", false},
		{"mask-shifted", Error, "the mask is shifted by one against the log probabilities, the advantages or the turns", "the first token of each turn is lost and the token after it is trained", "align mask, ids and all columns to the same token", false},
		{"logprob-on-masked", Warn, "log probabilities are not 0 on masked tokens", "trainers that sum ratios over all tokens see ratios that were never sampled", "write 0 where the mask is 0", false},
		{"logprob-zero", Warn, "log probabilities are 0 on trained tokens", "0 says probability 1: importance ratios are wrong for every such token", "record the engine's log probabilities, or leave the column out", false},
		{"logprob-range", Error, "log probabilities are above 0 or not finite", "ratios overflow and the loss becomes NaN", "write natural logarithms of probabilities", false},
		{"logprob-drift", Warn, "the trainer's log probabilities are not those recorded", "the trainer sees other contexts, ids, temperature or weights than the policy that sampled: ratios are wrong from the first step", "look at the first token that differs: train on the ids and prompts of the engine, and recompute at the version and temperature that sampled", false},
		{"advantage-on-masked", Info, "advantages are not 0 on masked tokens", "trainers that average over all tokens count them", "write 0 where the mask is 0", false},
		{"advantage-not-finite", Error, "advantages are not finite", "the loss becomes NaN", "exclude the rollout from the group's statistics", false},
		{"advantage-sign", Error, "advantages are against the rewards of their group", "the policy is pushed towards the worst rollouts", "subtract the group's centre from the reward, not the reward from the centre", false},
		{"torn-rollout", Error, "a rollout lacks some of its rows, or has one twice", "weights, means over rollouts and the row that ends it count tokens that are not there", "filter whole rollouts, or convert again", false},
		{"trained-twice", Error, "rows of one rollout train the same reply in the same context", "the shared part counts several times", "mask it in all rows but one", false},
		{"duplicate-row", Warn, "rows are equal", "they count twice", "write each row once", false},
		{"group-split", Error, "rows of a group or rollout are not together", "trainers that group by position compute baselines over the wrong rows", "sort rows by group and rollout", false},
		{"schema", Error, "the file breaks a rule of its own schema", "loaders rely on it", "write the file with this module's writer", false},
		{"single-rollout", Info, "groups have one rollout", "a group baseline is 0 or the reward itself", "sample more rollouts or leave the group out", false},
		{"group-sizes", Info, "groups have different sizes", "trainers that slice rows by a fixed size misgroup them", "use a trainer that groups by key, or keep groups equal", false},
		{"zero-spread", Info, "all rewards of a group are equal", "its advantages are 0: the rows cost compute and train nothing under GRPO", "filter such groups", false},
		{"constant-reward", Warn, "all rewards of the file are equal", "there is nothing to learn from, or scoring failed", "check the outcome scorer", false},
		{"truncated-complete", Error, "rows that were cut are marked complete", "masking of truncated rollouts does not see them and cut answers are trained as whole", "set the status from the finish reason", false},
		{"no-stop", Warn, "completed rows do not end on a stop token", "the policy never learns to stop, or the row was cut", "train the stop token; mark cut rows truncated", true},
		{"doubled-header", Error, "an assistant header is followed by another", "every trained token has a context that no model saw", "do not render the generation prompt and the assistant message one after the other", true},
		{"header-trained", Error, "tokens of an assistant header are trained", "the policy learns to write what the template writes", "start the mask after the header", true},
		{"empty-think-trained", Error, "empty think blocks are trained", "templates put them in; the policy learns to skip its reasoning", "train sampled tokens only", true},
		{"stop-untrained", Error, "the stop token after a trained turn is not trained", "the policy learns to go on for ever", "include the stop token in the mask", true},
		{"separator-trained", Warn, "white space after a stop token is trained", "the model never samples it: it comes from the template", "end the mask on the stop token", true},
		{"special-trained", Error, "control tokens inside trained text", "the policy learns to forge turns", "mask or refuse such text; encode content without control tokens", true},
		{"escaped-arguments", Error, "the arguments of a trained call are an escaped string", "the policy learns calls that no parser reads: it never wrote the string around them", "give the template the object that the recorded text spells, as engines do", true},
		{"special-in-content", Warn, "a control token inside a turn's content", "text of users or tools has opened or closed a turn", "encode content without control tokens", true},
		{"control-in-text", Warn, "text of a user or tool is encoded as control tokens", "the engine that served the rollouts lets users and tools forge turns", "have the engine encode content without control tokens; leave such rollouts out", false},
	}
}

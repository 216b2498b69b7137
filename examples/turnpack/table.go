package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/show"
	"github.com/turnpack/turnpack/rollout"
)

// maxUnread is the number of unread files that the table names; --json has more.
const maxUnread = 10

// table collects the printed summary: a name and a text per row.
type table struct{ strings.Builder }

func (t *table) row(name, format string, args ...any) {
	fmt.Fprintf(t, "  %-22s %s\n", name, rollout.Printable(fmt.Sprintf(format, args...)))
}

// counts adds a row of numbers by name if of is not empty.
func (t *table) counts(name string, of map[string]int) {
	if len(of) > 0 {
		t.row(name, "%s", cli.Counts(of))
	}
}

// few adds a row with the length and the first items of a list if it is not empty.
func (t *table) few(name string, list []string) {
	if len(list) > 0 {
		t.row(name, "%s: %s", cli.Number(len(list)), cli.FirstOf(list))
	}
}

// list adds one row for each of n lines, up to most.
func (t *table) list(n, of, most int, line func(int) string) {
	for i := range n {
		if i == most {
			t.row("", "… and %s more (in --json)", cli.Number(of-i))
			return
		}
		t.row("", "%s", line(i))
	}
}

// table prints the summary as text.
func (s *summary) table(w io.Writer) error {
	var t table
	s.inputRows(&t)
	s.outcomeRows(&t)
	s.batchRows(&t)
	s.encodingRows(&t)
	s.leftOutRows(&t)
	for i, hint := range s.hints() {
		t.row([]string{"you may want", ""}[min(i, 1)], "%s", hint)
	}
	t.row("time", "%.2f s, %s tokens/s", s.Seconds, cli.Number(int64(s.TokensPerSec)))
	if s.Output != "" {
		t.row("output", "%s", s.Output)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (s *summary) inputRows(t *table) {
	t.row("rollouts", "%s in %s groups", cli.Number(s.Rollouts), cli.Number(s.Groups))
	t.counts("formats", s.Formats)
	if n := s.Ignored - s.Unread; n > 0 {
		t.row("passed over", "%s files that were read beside a dump or before, or are hidden", cli.Number(n))
	}
	if s.Unread > 0 {
		t.row("files not read", "%s: %s", cli.Number(s.Unread), cli.Counts(s.UnreadKinds))
		t.list(len(s.UnreadFiles), s.Unread, maxUnread, func(i int) string { return show.Visible(s.UnreadFiles[i]) })
	}
	t.few("duplicates left out", s.Repeats)
	if s.Joined+len(s.Unmatched)+len(s.Unrewarded) > 0 {
		t.row("rewards joined", "%s", cli.Number(s.Joined))
		t.few("… without a rollout", s.Unmatched)
		t.few("rollouts without one", s.Unrewarded)
	}
}

func (s *summary) outcomeRows(t *table) {
	t.row("status", "%s", cli.Counts(s.Status))
	if len(s.Verdicts) > 1 || s.Verdicts[rollout.VerdictUnknown.String()] == 0 {
		t.row("outcomes", "%s", cli.Counts(s.Verdicts))
	}
	if s.ZeroSpread > 0 || s.Singletons > 0 {
		t.row("groups without signal", "%s with equal rewards, %s with one rollout", cli.Number(s.ZeroSpread), cli.Number(s.Singletons))
	}
	s.Batch.Rows(t.row, s.Judge, s.Shaping)
}

func (s *summary) batchRows(t *table) {
	t.row("rows", "%s", cli.Number(s.Rows))
	if x := s.StepRollouts; x != nil {
		t.row("rollouts per step", "min %s, max %s over %s steps", cli.Number(x.Min), cli.Number(x.Max), cli.Number(x.Steps))
	}
	if len(s.Breaks) > 0 {
		t.row("row starts", "%s", cli.Counts(s.Breaks))
		t.row("turn joins", "%s", cli.Counts(s.Joins))
	}
	if x := s.Window; x.Windowed > 0 {
		t.row("context window", "cuts the history of %s turns: %s turns of it left out, %s messages shortened, %s of them to the note alone", cli.Number(x.Windowed), cli.Number(x.Omitted), cli.Number(x.Shortened), cli.Number(x.Emptied))
	}
	t.row("tokens", "%s, %s of them trained (%s)", cli.Number(s.Tokens), cli.Number(s.Trained), cli.Share(s.Trained, s.Tokens))
	t.counts("", s.Segments)
	t.row("sampled tokens", "%s captured, %s rendered from text", cli.Number(s.Captured), cli.Number(s.Rendered))
}

// encodingRows adds rows about differences between the record and its rows.
func (s *summary) encodingRows(t *table) {
	t.row("fidelity", "%s of them trained exactly as recorded", cli.Share(s.Exact, s.Sampled))
	untrained := s.DroppedBy["policy"] + s.DroppedBy["first"] + s.DroppedBy["too_long"]
	if untrained > 0 {
		t.row("sampled, not trained", "%s tokens of turns left untrained, %s that begin a row, %s beyond the longest row", cli.Number(s.DroppedBy["policy"]), cli.Number(s.DroppedBy["first"]), cli.Number(s.DroppedBy["too_long"]))
	}
	if s.Dropped-untrained+s.Substituted+s.StopsLost > 0 {
		t.row("drift repairs", "%s tokens given up, %s respelled (%s stop tokens among them), %s of %s stop tokens lost",
			cli.Number(s.Dropped-untrained), cli.Number(s.Substituted), cli.Number(s.Rewrites), cli.Number(s.StopsLost), cli.Number(s.Stops))
	}
	if s.LostReasoning+s.LostContent+s.LostCalls > 0 {
		t.row("template left out", "of the reasoning of %s turns, of the text of %s, of the tool calls of %s", cli.Number(s.LostReasoning), cli.Number(s.LostContent), cli.Number(s.LostCalls))
	}
	if s.OpenReasoning > 0 {
		t.row("reasoning left open", "%s of %s turns: the prompt opens reasoning that the recorded reply does not close; record the reasoning or the ids, or give the engine's --template-kwargs (enable_thinking)", cli.Number(s.OpenReasoning), cli.Number(s.Turns))
	}
	if s.idsAlone {
		t.row("model", "none: rows of recorded ids, which tell no stop tokens, and no reasoning and calls from content")
	} else if s.Unattributed > 0 {
		t.row("prompts of other text", "%s of %s turns: recorded ids that this chat template does not explain; what their tokens are from is unknown", cli.Number(s.Unattributed), cli.Number(s.Turns))
	}
	if s.Unwritten > 0 {
		first := s.UnwrittenAt[0]
		t.row("messages left out", "%s that the template does not write (first: %s message %d of %s)", cli.Number(s.Unwritten), first.Role, first.Message, first.Rollout)
	}
}

// leftOutRows adds rows about what is in no row or not trained.
func (s *summary) leftOutRows(t *table) {
	t.counts("rollouts without rows", s.WithoutRows)
	t.counts("left out for the target", s.Target)
	t.counts("rows masked", s.MaskedRows)
	if s.Faults != nil {
		t.row("messages at fault", "%s", cli.Counts(s.Faults))
	}
	if len(s.OutOf) > 0 {
		t.row("out of the statistics", "%s (first: %s)", cli.Counts(s.OutOf), s.OutOfAt[0].Rollout)
	}
	for i, why := range s.LostWhy {
		t.row([]string{"columns left out", ""}[min(i, 1)], "%s", why)
	}
	t.counts("importer notes", s.Notes)
	if s.Unscored > 0 {
		t.row("tokens without score", "%s, of steps that nobody scored or whose scores are alike; they are not trained", cli.Number(s.Unscored))
	}
	if n := len(s.Untrained); n > 0 {
		var why []string
		if s.UnknownContext > 0 {
			why = append(why, cli.Number(s.UnknownContext)+": what the model saw is not known")
		}
		if s.Incomplete > 0 {
			why = append(why, cli.Number(s.Incomplete)+": the record is not what was sampled (ids, log probabilities and usage differ)")
		}
		if s.Unmarked > 0 {
			why = append(why, cli.Number(s.Unmarked)+": nothing says who wrote the reply")
		}
		t.row("turns left untrained", "%s; first of each rollout", strings.Join(why, "; "))
		t.list(n, n, 3, func(i int) string { return s.Untrained[i].shown() }) // the reasons are alike, so three are enough
	}
	if s.LeftOut > 0 {
		t.row("records left out", "%s of %s", cli.Number(s.LeftOut), cli.Number(s.Read))
		t.list(len(s.Skipped), s.LeftOut, maxListed, func(i int) string { return s.Skipped[i].shown() })
	}
}

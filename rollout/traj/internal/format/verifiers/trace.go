package verifiers

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Episodes reads lines of traces.jsonl.
func Episodes() format.Importer {
	return format.Importer{Name: "verifiers", Match: isEpisode, Read: readEpisode, Stateless: true}
}

func isEpisode(v format.Value, _ *format.File) bool {
	return v.Get("traces").Kind() == jsonscan.Array && v.Get("task").Kind() == jsonscan.Object
}

// Traces reads traces by themselves.
func Traces() format.Importer {
	return format.Importer{Name: "verifiers", Match: isTrace, Read: func(in *format.File, v format.Value) error { return readTrace(in, v, format.Value{}) }, Stateless: true}
}

func isTrace(v format.Value, _ *format.File) bool {
	return v.Get("nodes").Kind() == jsonscan.Array && v.Get("task").Kind() == jsonscan.Object && v.Get("agent").Kind() == jsonscan.Object
}

func readEpisode(in *format.File, v format.Value) error {
	traces := v.Get("traces")
	in.WantList(traces, "/traces")
	if traces.Len() == 0 {
		why := "no error is told"
		for _, e := range v.Get("errors").Items() {
			why = cmp.Or(e.Get("message").String(), e.Get("type").String(), why)
		}
		return in.Fail(0, "/traces", "the episode has no trace: %s", why)
	}
	for _, t := range traces.Items() {
		if err := in.Failed(readTrace(in, t, v)); err != nil {
			return err
		}
	}
	return nil
}

// node is a message of the graph, with the ids that it adds.
type node struct {
	parent  int // -1 = none
	sampled bool
	ids     []int32 // before the sampled ids
	output  []int32
	broken  bool         // the mask has another length
	tools   format.Value // of the path, at its first node, since 0.4
}

// limits are stop conditions that mean truncation.
var limits = []string{"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length"}

func readTrace(in *format.File, v, episode format.Value) error {
	nodes := v.Get("nodes")
	in.WantList(nodes, "/nodes")
	task := v.Get("task")
	r := &rollout.Rollout{
		ID: v.Get("id").String(), Index: format.NoIndex, Turns: []rollout.Turn{},
		Instance:   cmp.Or(task.Get("key").String(), task.Get("hash").String()),
		Group:      episode.Path("group", "id").String(),
		Tools:      format.FunctionTools(v.Get("tools")),
		ExitStatus: v.Get("stop_condition").String(),
	}
	own, reply := true, rollout.SampledByPolicy
	if b, said := v.Path("agent", "trainable").Bool(); said && !b {
		own, reply = false, rollout.SampledOtherAgent
	}
	calls := map[int]format.Value{}
	for _, c := range v.Get("calls").Items() {
		if k, ok := c.Get("node").Int(); ok {
			calls[k] = c
		}
	}
	graph := make([]node, 0, nodes.Len())
	for i, x := range nodes.Items() {
		n, err := readNode(in, x, i)
		if err != nil {
			return err
		}
		m, err := in.ChatMessage(x.Get("message"), i)
		if err != nil {
			return err
		}
		if m.Role == rollout.RoleAssistant {
			m.Sampled = rollout.SampledPrefilled
			if n.sampled {
				m.Sampled = reply
			}
		} else if n.sampled {
			return in.Fail(rollout.At(i), "/nodes/sampled", "a message of %s is marked as sampled", m.Role)
		}
		graph = append(graph, n)
		r.Messages = append(r.Messages, m)
		if n.sampled && own {
			if err := addTurn(in, r, graph, x, calls[i]); err != nil {
				return err
			}
		}
	}
	outcome(r, v)
	version(in, r, episode)
	if m := v.Path("agent", "config", "model"); m.Kind() == jsonscan.String {
		format.Keep(&r.Metadata, "model", m)
	}
	for key, x := range map[string]format.Value{"agent": v.Path("agent", "name"), "env": episode.Path("env", "id"), "episode": episode.Get("id"), "metrics": v.Get("metrics"), "info": v.Get("info"), "task": task.Get("type")} {
		if !x.IsNull() && x.Size() <= format.MetadataBytes {
			format.Keep(&r.Metadata, key, x)
		}
	}
	in.NoteParts(r)
	in.UnlinkResults(r)
	in.Record = v
	return in.Emit(r)
}

func readNode(in *format.File, x format.Value, i int) (node, error) {
	n := node{parent: -1, sampled: x.Get("sampled").True(), tools: x.Get("tools")}
	if p := x.Get("parent"); !p.IsNull() {
		k, ok := p.Int()
		if !ok || k < 0 || k >= i {
			return n, in.Fail(rollout.At(i), "/nodes/parent", "node %d goes on from %.20s, which is no node before it", i, p.Raw())
		}
		n.parent = k
	}
	ids, bad, ok := x.Get("token_ids").AppendInt32(nil)
	if !ok && !x.Get("token_ids").IsNull() {
		return n, in.Fail(rollout.At(i), "/nodes/token_ids", "found %.40s, expected ids of tokens", bad.Raw())
	}
	first, k := len(ids), 0
	mask := x.Get("mask")
	for _, b := range mask.Items() {
		yes := b.True()
		if yes && k < first {
			first = k
		}
		n.broken = n.broken || !yes && k >= first && first < len(ids)
		k++
	}
	n.broken = n.broken || k != len(ids)
	n.ids, n.output = ids[:min(first, len(ids))], ids[min(first, len(ids)):]
	return n, nil
}

// addTurn adds the turn of the last node, which saw the path above it.
func addTurn(in *format.File, r *rollout.Rollout, graph []node, x, call format.Value) error {
	i := len(graph) - 1
	n := &graph[i]
	t := rollout.Turn{Message: i, Step: len(r.Turns), FinishReason: call.Get("finish_reason").String(), Sampling: format.SamplingOf(call.Get("sampling"))}
	var path []int
	for k := n.parent; k >= 0; k = graph[k].parent {
		path = append(path, k)
	}
	slices.Reverse(path)
	t.Context.Parts = format.Shown(path, i)
	whole := !n.broken && len(n.output) > 0
	var prompt []int32
	for _, k := range path {
		g := &graph[k]
		whole = whole && !g.broken && len(g.ids)+len(g.output) > 0
		prompt = append(append(prompt, g.ids...), g.output...)
	}
	switch {
	case whole:
		lp, bad, ok := x.Get("logprobs").AppendFloat32(nil)
		if !ok && !x.Get("logprobs").IsNull() {
			return in.Fail(rollout.At(i), "/nodes/logprobs", "found %.40s, expected log probabilities", bad.Raw())
		}
		in.TakeIDs(&t, append(prompt, n.ids...), n.output, lp)
	case n.broken || len(n.output) > 0:
		t.Incomplete = "the ids of its path are not all recorded"
		in.Note("incomplete", rollout.At(i), "the mask or the ids of this node or of one above it are not whole: the reply is context and never trained")
	}
	root := graph[append(path, i)[0]]
	other := rollout.Rollout{Tools: format.FunctionTools(root.tools), TemplateKwargs: r.TemplateKwargs}
	if note, differ := format.OtherSettings(r.ID, &other, r); differ && root.tools.Len() > 0 && t.Output == nil {
		t.Context = rollout.Context{Unknown: true}
		in.Notes = append(in.Notes, note)
	}
	r.Turns = append(r.Turns, t)
	return nil
}

func outcome(r *rollout.Rollout, v format.Value) {
	sum, scored := 0.0, 0
	for _, x := range v.Get("rewards").Members() {
		score, ok := x.Get("score").Float()
		if !ok {
			continue
		}
		weight := 1.0
		if w, said := x.Get("weight").Float(); said {
			weight = w
		}
		sum += score * weight
		scored++
	}
	failed := ""
	for _, e := range v.Get("errors").Items() {
		failed = cmp.Or(e.Get("message").String(), e.Get("type").String(), "error")
	}
	ok, said := v.Get("ok").Bool()
	done := v.Get("is_completed").True()
	switch {
	case slices.Contains(limits, r.ExitStatus):
		r.Status = rollout.StatusTruncated
	case failed != "" && !ok || said && !ok && done:
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: "error", Detail: failed}
	case done:
		r.Status = rollout.StatusCompleted
	}
	if n := len(r.Turns); n > 0 && r.Turns[n-1].FinishReason == "length" && r.Status == rollout.StatusCompleted {
		r.Status = rollout.StatusTruncated
	}
	if scored > 0 {
		r.Outcome.Reward = &sum
	}
}

// version sets the policy version of an episode, if it ran with a single one.
func version(in *format.File, r *rollout.Rollout, episode format.Value) {
	span := episode.Path("run", "work", "policy")
	from, ok := span.Get("start").Int()
	to, also := span.Get("end").Int()
	if !ok || !also || from < 0 || from != int(int32(from)) {
		return
	}
	if from != to {
		in.Note("version_not_known", 0, "the policy went from version %d to %d while the episode ran; which sampled a turn is not recorded", from, to)
		return
	}
	for i := range r.Turns {
		r.Turns[i].Version = new(int32(from))
	}
}

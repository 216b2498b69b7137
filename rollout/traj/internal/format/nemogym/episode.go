package nemogym

import (
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Episode reads rollouts with several models.
func Episode() format.Importer {
	return format.Importer{Name: "nemo-gym", Match: matchEpisode, Read: readEpisode}
}

func matchEpisode(v format.Value, _ *format.File) bool {
	return v.Get("episode_interaction_protocol").Kind() == jsonscan.String && v.Get("invocations").Kind() == jsonscan.Array
}

func readEpisode(in *format.File, v format.Value) error {
	r := &rollout.Rollout{Index: format.NoIndex, Turns: []rollout.Turn{}}
	join := format.NewCallJoin(r)
	var last format.Value
	others := map[string]bool{}
	for _, x := range v.Get("invocations").Items() {
		if role := x.Get("role").String(); role != "assistant" {
			others[role] = true
			continue
		}
		call, err := readCall(in, x.Get("request"), x.Get("response"))
		if err != nil {
			return err
		}
		if len(call.Turns) == 0 {
			continue // noted by nemoCall
		}
		if r.Tools == nil {
			r.Tools = call.Tools
		}
		if r.Temperature == nil {
			r.Temperature = call.Temperature
		}
		if r.TemplateKwargs == nil {
			r.TemplateKwargs = call.TemplateKwargs
		}
		join.Add(call.Messages, call.Turns)
		last = x.Get("response")
	}
	if len(others) > 0 {
		in.Note("other_agents", 0, "calls of other models were left in the dump: %s", strings.Join(slices.Sorted(maps.Keys(others)), ", "))
	}
	if len(r.Turns) == 0 {
		in.Note("no_output", 0, "no invocation of the assistant has an output")
	}
	for i := range r.Turns {
		r.Turns[i].Step = i
	}
	identity(in, r, v)
	outcome(in, r, v, last)
	in.Leftover(r, v, "invocations", "reward", "_ng_task_index", "_ng_rollout_index")
	in.NoteParts(r)
	in.UnlinkResults(r)
	return in.Emit(r)
}

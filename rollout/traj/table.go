package traj

import (
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/adp"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/atif"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/calls"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/claudecode"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/clients"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/codex"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/finetuning"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/frameworks"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/inspect"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/native"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/nemogym"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/openclaw"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/openhands"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/sweagent"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/tau"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/trainers"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/verifiers"
)

// importer is a built-in importer or the user's.
type importer struct {
	format.Importer
	own bool // the user's
	at  int  // index among all importers
}

// table lists the importers. The first match wins, so more specific ones come first.
func table() []format.Importer {
	return slices.Concat([]format.Importer{
		native.Importer(),
		native.Journal(),
		clients.QwenCode(),
		claudecode.Session(),
		claudecode.Stream(),
		codex.Importer(),
		codex.Exec(),
		verifiers.Episodes(),
		verifiers.Traces(),
		verifiers.Results(),
		trainers.Atropos(),
		trainers.NeMoRL(),
		trainers.PrimeRL(),
		trainers.RLLM(),
		trainers.Slime(),
		trainers.Verl(),
		trainers.SkyRL(),
		trainers.SkyRLBatches(),
		trainers.AReaL(),
		trainers.TRL(),
		finetuning.Preference(),
	}, clients.All(), frameworks.All(), []format.Importer{
		openclaw.Importer(),
		sweagent.Mini(),
		sweagent.MiniList(),
		sweagent.Importer(),
		nemogym.Importer(),
		nemogym.Episode(),
		atif.Importer(),
		openhands.Output(),
		openhands.Events(),
		openhands.SDKEvents(),
		calls.Batch(),
		calls.Stored(),
		calls.RunState(),
		calls.AgentsSpan(),
		calls.CompletionLog(),
		calls.OpenAI(),
		calls.Anthropic(),
		tau.Importer(),
		tau.Tau2(),
		sweagent.Nebius(),
		finetuning.ShareGPT(),
		adp.Importer(),
		inspect.Log(),
		inspect.Sample(),
		finetuning.PromptCompletion(),
		finetuning.Alpaca(),
		native.Unversioned(),
		finetuning.Chat(),
	})
}

// Formats returns the names of the built-in importers.
func Formats() []string {
	var out []string
	for _, imp := range table() {
		if !slices.Contains(out, imp.Name) {
			out = append(out, imp.Name)
		}
	}
	return out
}

// find returns the importer of a value by content, or the chosen format's; nil if there is
// none.
func (r *Reader) find(v format.Value, fr *fileReader) *importer {
	all := r.importers()
	for _, imp := range table() {
		all = append(all, importer{Importer: imp})
	}
	chosen := r.opt.Format
	if chosen == "auto" {
		chosen = ""
	}
	var fallback *importer
	for i := range all {
		imp := &all[i]
		imp.at = i
		if chosen != "" && imp.Name != chosen {
			continue
		}
		if imp.Match(v, &fr.File) {
			return imp
		}
		if chosen != "" && fallback == nil && v.Kind() == jsonscan.Object {
			fallback = imp
		}
	}
	return fallback
}

// importers returns the user's importers.
func (r *Reader) importers() []importer {
	var out []importer
	for _, x := range r.opt.Importers {
		out = append(out, importer{own: true, Importer: format.Importer{
			Name:  x.Name,
			Match: func(v format.Value, _ *format.File) bool { return x.Match(v.Raw()) },
			Read:  x.emit,
		}})
	}
	return out
}

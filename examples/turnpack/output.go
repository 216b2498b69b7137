package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/weigh"
	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// outputFlags are the flags about the files to write.
type outputFlags struct {
	Target          string `help:"Trainer whose rules rows must meet and whose files are written: none, slime, openclaw, megatron, verl, skyrl, prime-rl, trl, trl-async, areal or nemo-rl." default:"none"`
	RowsPerShard    int    `help:"Start a new file after so many rows, at the next group."`
	BytesPerShard   int64  `help:"Start a new file after so many bytes, at the next group."`
	GroupsPerStep   int    `help:"Groups of a training step: one file each (step_0, step_1, …)."`
	RolloutsPerStep int    `help:"Most rollouts of a training step (slime's --global-batch-size): one file each; a group that does not fit begins the next. With --pt, short steps are filled with samples that train nothing."`
	Logprobs        string `help:"Kind of the recorded log probabilities: raw (before the temperature, vLLM's default), processed (after it; vLLM with logprobs_mode processed_logprobs, SGLang) or unknown. Kept in the file; targets refuse raw ones if the temperature is not 1." enum:"unknown,raw,processed" default:"unknown"`
	GroupSize       int    `help:"Rollouts that a group must have (TRL's num_generations): other groups are left out. With --target trl, rollouts of several rows are left out before they are counted." placeholder:"N"`
	SeqLen          int    `help:"Sequence length of the trainer: longest row, and size of a pack for megatron and prime-rl."`
	PadMultiple     int    `help:"Multiple that packed segments are padded to."`
	Ranks           int    `help:"Data-parallel ranks (prime-rl)." default:"1"`
	Pt              bool   `help:"With --target slime or openclaw: write the .pt file of --load-debug-rollout-data."`
	Trace           string `help:"Write for every token the message that its text is from (columns sources and flags); auto does so if no target is named." enum:"auto,on,off" default:"auto"`
	Weights         string `help:"Loss weights that turn a mean over tokens into another aggregation: none, rollout-mean (a rollout counts once, however many rows it has), prompt-mean, sequence-mean, or a trainer's own aggregation. Reads the input once more." default:"none"`
	PolicyVersion   int32  `help:"Policy version of turns that record none; -1 = unknown." default:"-1"`

	source        string // digest of inputs, options and build
	unrecordedRun bool   // an identical run was killed before it wrote its record
	marker        string // file that exists while a batch of one file is written; "" for several files
}

// traced reports whether rows record the source of each token. Trainers do not read those
// columns.
func (f *outputFlags) traced() bool {
	return f.Trace == "on" || f.Trace == "auto" && f.Target == "none"
}

// steps reports whether each file is one training step.
func (f *outputFlags) steps() bool { return f.GroupsPerStep > 0 || f.RolloutsPerStep > 0 }

func (f *outputFlags) stepFlag() string {
	if f.RolloutsPerStep > 0 {
		return "--rollouts-per-step"
	}
	return "--groups-per-step"
}

// metadata adds file metadata about the columns to m.
func (f *outputFlags) metadata(m map[string]string) map[string]string {
	if f.Logprobs == "unknown" || f.Logprobs == "" {
		return m
	}
	if m == nil {
		m = map[string]string{}
	}
	m["logprobs"] = f.Logprobs
	return m
}

// packs reports whether the target packs rows by the trainer's sequence length.
func (f *outputFlags) packs() bool { return f.Target == "prime-rl" || f.Target == "megatron" }

func (f *outputFlags) primerl() primerl.Options {
	return primerl.Options{SeqLen: f.SeqLen, Ranks: f.Ranks, PadMultiple: f.PadMultiple}
}

func (f *outputFlags) megatron() megatron.Options {
	return megatron.Options{PackSize: f.SeqLen, PadMultiple: f.PadMultiple}
}

// check reports all flags that are out of range, contradict each other or have no effect.
// A file laid out otherwise than its reader expects fails only in training.
func (f *outputFlags) check() error {
	var errs []error
	bad := func(flag, fix, format string, args ...any) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: flag}, format, args...).WithFix("%s", fix))
	}
	if !slices.Contains(target.Names(), f.Target) {
		bad("--target", "choose one of "+strings.Join(target.Names(), ", "), "no trainer is named %q", f.Target)
		return errors.Join(errs...)
	}
	for _, n := range []struct {
		flag      string
		is, least int64
	}{{"--rows-per-shard", int64(f.RowsPerShard), 0}, {"--bytes-per-shard", f.BytesPerShard, 0}, {"--groups-per-step", int64(f.GroupsPerStep), 0}, {"--rollouts-per-step", int64(f.RolloutsPerStep), 0}, {"--group-size", int64(f.GroupSize), 0},
		{"--seq-len", int64(f.SeqLen), 0}, {"--pad-multiple", int64(f.PadMultiple), 0}, {"--ranks", int64(f.Ranks), 1}, {"--policy-version", int64(f.PolicyVersion), -1}} {
		if n.is < n.least {
			bad(n.flag, "leave it out for the default", "found %d, expected %d or more", n.is, n.least)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	cut := f.RowsPerShard > 0 || f.BytesPerShard > 0
	for _, n := range []struct {
		flag, fix string
		idle      bool
	}{
		{"--pt", "add --target slime or openclaw", f.Pt && f.Target != "slime" && f.Target != "openclaw"},
		{"--ranks", "leave it out, or add --target prime-rl", f.Ranks > 1 && f.Target != "prime-rl"},
		{"--pad-multiple", "leave it out, or choose the target megatron or prime-rl", f.PadMultiple > 1 && !f.packs()},
		{"--rows-per-shard and --bytes-per-shard", "use --groups-per-step or --rollouts-per-step, which make a file for each training step", cut && (f.packs() || f.Pt)},
		{"--trace", "leave it out: the files of this target have no such columns", f.Trace == "on" && (f.packs() || f.Pt)},
	} {
		if n.idle {
			bad(n.flag, n.fix, "does nothing with --target %s", f.Target)
		}
	}
	if f.GroupsPerStep > 0 && f.RolloutsPerStep > 0 {
		bad("--rollouts-per-step", "choose one of them", "a step ends after so many groups (--groups-per-step) or before so many rollouts are passed, not by both")
	}
	if f.Weights != "none" && f.Weights != "" && f.RolloutsPerStep > 0 {
		bad("--rollouts-per-step", "use --groups-per-step, or leave --weights out: slime takes the mean over rollouts by itself", "--weights counts steps by their groups")
	}
	if cut && f.steps() {
		bad(f.stepFlag(), "choose it, or --rows-per-shard and --bytes-per-shard", "a file is one training step, which a limit on rows or bytes would cut")
	}
	switch {
	case f.packs() && f.SeqLen == 0:
		bad("--seq-len", "give the trainer's sequence length", "%s packs rows by it, and it is not given", f.Target)
	case f.Target == "prime-rl":
		o := f.primerl()
		errs = append(errs, o.Validate())
	case f.Target == "megatron":
		o := f.megatron()
		errs = append(errs, o.Validate())
	}
	return errors.Join(errs...)
}

// target returns the trainer that --target names, and its row options.
func (f *outputFlags) target(model *tokenize.Model, w *weigh.Weigher) (*target.Target, target.Options, error) {
	o := target.Options{MaxTokens: f.SeqLen, PadMultiple: f.PadMultiple, GroupSize: f.GroupSize, LeaveIncomplete: f.GroupSize > 0, RawLogprobs: f.Logprobs == "raw"}
	if w.Mean() {
		o.MeanOverRollouts = w.Totals
	}
	var eos rollout.TokenID
	var ok bool
	if model != nil {
		eos, ok = model.EOS()
	}
	if !ok && f.Target == "megatron" && f.PadMultiple > 1 {
		return nil, o, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--pad-multiple"}, "segments are padded with the tokenizer's eos_token, and the model folder names none").
			WithFix("name it in tokenizer_config.json")
	}
	o.EOS = eos
	t, err := target.New(f.Target, o)
	return t, o, err
}

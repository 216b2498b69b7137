package recipe

import (
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/tokenize"
)

// Sources of the recipes' facts.
const (
	openclaw   = "OpenClaw-RL@0d034dd5e "
	sweRL      = openclaw + "swe-rl/generate_with_swe_remote.py"
	sweScript  = openclaw + "swe-rl/scripts/run_swe_rl_32b_remote_8nodes.sh"
	swePRM     = openclaw + "swe-rl/scripts/run_swe_rl_8b_prm_5nodes_remote.sh"
	slimeFork  = openclaw + "slime/slime/ray/rollout.py"
	nemo       = "NeMo-RL@7ea279abf "
	nemoLoss   = nemo + "examples/configs/grpo_math_1B.yaml"
	nemoSWE2   = nemo + "examples/nemo_gym/nemotron-3-super/stage2_swe2.yaml"
	nemoSWE1   = nemo + "examples/nemo_gym/nemotron-3-super/stage2_swe1.yaml"
	nemoGRPO   = nemo + "nemo_rl/algorithms/grpo.py"
	verlConfig = "verl@1dda039b9 verl/trainer/config/ppo_trainer.yaml"
	verlDAPO   = "verl@1dda039b9 docs/algo/dapo.md"
	verlDr     = "verl@1dda039b9 docs/algo/grpo.md (DrGRPO)"
	ssrPaper   = "arXiv:2512.18552v3"
)

// infra is the difference that nearly every recipe has.
const infra = "a rollout that failed by infrastructure has no reward and leaves its group; the system gives it one"

// swerl is the training of OpenClaw-RL's swe-rl on 32B models: GRPO with one sample per step, the
// history cut by its context manager.
func swerl() Recipe {
	return Recipe{
		Name: "swe-rl@0d034dd5e", About: "OpenClaw-RL swe-rl, 32B on 8 nodes: GRPO over trajectories with dynamic history, constant groups dropped",
		Source: sweScript,
		Sources: map[string]string{
			"scale":        sweRL + ": outcome_reward = 1.0 if reward else -1.0",
			"window":       sweScript + ": --rollout-max-context-len 16384 less --rollout-max-response-len 4096",
			"mode":         sweScript + ": --dynamic_history",
			"estimator":    slimeFork + ": _post_process_rewards, dynamic_history",
			"group-filter": slimeFork + ": _drop_constant_reward_groups",
			"overlong":     sweRL + ": a cut sample keeps its loss mask",
			"max-age":      sweScript + ": train_async.py samples one batch ahead",
		},
		Mode: tokenize.PerStep, Window: "swe-rl:12288",
		Scale:     reward.OutcomePolicy{Outcome: "signed"},
		Estimator: preset("openclaw_grpo_dynamic_history"),
		Shaping:   shaping.Rules{Filter: filterOf("openclaw_drop_constant@0d034dd5e"), MaxAge: new(int32(1))},
		Loss:      "openclaw_sample_mean@0d034dd5e",
		Trainer: []Setting{
			{"eps-clip", "0.2", sweScript}, {"eps-clip-high", "0.28", sweScript}, {"kl-loss-coef", "0.00", sweScript}, {"entropy-coef", "0.00", sweScript},
			{"n-samples-per-prompt", "8", sweScript}, {"rollout-batch-size", "8", sweScript},
		},
		Differs: []string{
			infra + ": reward −1 after a failed evaluation or model call, 0 where the sandbox never came up (--infra-unresolved counts all of them as −1 in the mean of their group, untrained)",
			"replies are trained as they were sampled; the system renders each again, with an empty block of reasoning before it",
			"a window that would stay over its budget is the system's own, latest turn lost and all: --window refill:12288 keeps it",
			"the filter compares one reward for each rollout, the system one for each of its samples, which are the same",
		},
	}
}

// swerlPRM is swerl with judged steps, as in the 8B script.
func swerlPRM() Recipe {
	r := swerl()
	r.Name, r.About, r.Source = "swe-rl-prm@0d034dd5e", "OpenClaw-RL swe-rl, 8B with a step judge: outcome + judged step, compared with the same step of the group's other rollouts", swePRM
	r.Window = "swe-rl:28672"
	r.Estimator = preset("openclaw_step_wise")
	r.Scale.StepCoef = 1
	r.Shaping.Filter = nil
	r.Sources = map[string]string{
		"scale":     sweRL + ": outcome_reward = 1.0 if reward else -1.0",
		"window":    swePRM + ": --rollout-max-context-len 32768 less --rollout-max-response-len 4096",
		"mode":      swePRM + ": --dynamic_history",
		"estimator": swePRM + ": --advantage-estimator step_wise; " + slimeFork + ": _post_process_step_wise_rewards",
		"step-coef": swePRM + ": --prm-step-coef 1.0",
		"max-age":   swePRM + ": train_async.py samples one batch ahead",
	}
	r.Trainer = append(r.Trainer, Setting{"prm-m", "3", swePRM}, Setting{"prm-temperature", "1.0", swePRM}, Setting{"prm-max-new-tokens", "4096", swePRM})
	r.Differs = append(r.Differs[:3:3], "steps keep their own scores: the system gives scores to steps by position, so that those after a step that was not judged get the next one's",
		"a step whose judge failed is not trained; the system scores it 0. One that is not judged on purpose, as the submission, counts with the outcome alone in both")
	return r
}

// nemotron22 is stage 2.2 of the Nemotron 3 Super recipe: agentic SWE-bench tasks.
func nemotron22() Recipe {
	override := -5.0
	tis := offpolicy.Correction{High: 5}
	e := preset("nemo_grpo_loo_std")
	e.Override = reward.Override{InvalidToolCall: &override, MalformedThinking: &override}
	e.Clip = &reward.Range{Low: -100, High: 100}
	return Recipe{
		Name: "nemotron-swe2@7ea279abf", About: "Nemotron 3 Super, RL stage 2.2: SWE tasks in a sandbox, leave-one-out GRPO with overlong filtering and −5 for broken calls and reasoning",
		Source: nemoSWE2,
		Sources: map[string]string{
			"overlong":  nemoSWE2 + ": grpo.overlong_filtering",
			"masked":    nemoGRPO + ": baseline and deviation before the loss multiplier",
			"estimator": nemoSWE2 + ": normalize_rewards, use_leave_one_out_baseline", "advantage-clip": nemoSWE2 + ": advantage_clip_low, advantage_clip_high",
			"invalid-call-advantage":       nemoSWE2 + ": grpo.invalid_tool_call_advantage",
			"malformed-thinking-advantage": nemoSWE2 + ": grpo.malformed_thinking_advantage",
			"detect":                       nemoSWE2 + ": invalid_tool_call_patterns, thinking_tags; " + nemo + "nemo_rl/environments/nemo_gym.py",
			"max-age":                      nemoSWE2 + ": async_grpo.max_trajectory_age_steps",
			"truncated-coef":               nemoSWE2 + ": reward_shaping.enabled false",
			"soft-overlong":                nemoSWE2 + ": reward_shaping.enabled false",
			"group-filter":                 nemoSWE2 + ": use_dynamic_sampling false",
			"max-tokens":                   nemoSWE2 + ": policy.max_total_sequence_length",
			"importance-weights":           nemoSWE2 + ": loss_fn.truncated_importance_sampling_ratio 5.0, type tis",
			"logprob-error":                nemoSWE2 + ": grpo.seq_logprob_error_threshold",
		},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "binary"},
		Estimator: e,
		Detector:  detect.Detector{Nemotron: true},
		MaxTokens: 196608,
		Shaping: shaping.Rules{MaskTruncated: true, MaxAge: new(int32(1)),
			OffPolicy: &shaping.OffPolicy{Weights: &tis, MaxError: 2}},
		Loss: "token-mean@verl-1dda039b9",
		Trainer: []Setting{
			{"truncated_importance_sampling_ratio", "5.0 (tis)", nemoSWE2}, {"seq_logprob_error_threshold", "2", nemoSWE2},
			{"force_on_policy_ratio", "true", nemoSWE2}, {"ratio_clip_min", "0.2", nemoSWE2}, {"ratio_clip_max", "0.28", nemoSWE2}, {"reference_policy_kl_penalty", "0.0", nemoSWE2},
			{"num_prompts_per_step", "16", nemoSWE2}, {"num_generations_per_prompt", "32", nemoSWE2}, {"token_level_loss", "true", nemoSWE2},
		},
		Differs: []string{infra, "the bounds on importance weights and on log-probability errors are applied where the training policy's log probabilities are there (train_logprobs of native records, prev_logprobs of NeMo RL's dumps, Pipeline.TrainLogprobs); of other rows, which are counted, the trainer applies them"},
	}
}

// nemotronPivot is stage 2.1 of the Nemotron 3 Super recipe: single steps of a SWE task, rewarded
// by comparing their call with a recorded one (package reward/pivot).
func nemotronPivot() Recipe {
	r := nemotron22()
	r.Name, r.About, r.Source = "nemotron-pivot@7ea279abf", "Nemotron 3 Super, RL stage 2.1: single steps rewarded by the recorded call, leave-one-out GRPO as in stage 2.2", nemoSWE1
	for flag, source := range r.Sources {
		if len(source) > len(nemoSWE2) && source[:len(nemoSWE2)] == nemoSWE2 {
			r.Sources[flag] = nemoSWE1 + source[len(nemoSWE2):]
		}
	}
	r.Sources["max-tokens"] = nemoSWE1 + ": policy.max_total_sequence_length"
	r.Sources["scale"] = nemoSWE1 + ": reward of swe_pivot_single_step_tool_use_with_argument_comparison"
	r.Scale.Outcome = "recorded"
	r.MaxTokens = 131072
	for i := range r.Trainer {
		r.Trainer[i].Source = nemoSWE1
		switch r.Trainer[i].Flag {
		case "num_prompts_per_step":
			r.Trainer[i].Value = "64"
		case "num_generations_per_prompt":
			r.Trainer[i].Value = "16"
		}
	}
	r.Differs = append(r.Differs, "the reward is one that turnpack pivot score gave, or that the dump records")
	return r
}

// ssr is self-play SWE-RL, whose code is not public.
func ssr() Recipe {
	return Recipe{
		Name: "ssr@2512.18552v3", About: "Self-play SWE-RL: solvers compared within a bug, injectors over all bugs, no rollout older than 8 versions",
		Source:    ssrPaper,
		Sources:   map[string]string{"estimator": "prime-rl@559b44772 orchestrator/algo/hierarchical_grpo.py: proposers across proposals, solvers within one", "scale": ssrPaper + ", eq. 1: solvers ±1, injectors a number (package reward/ssr)"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "recorded"},
		Estimator: preset("prime_hierarchical_grpo"),
		Shaping:   shaping.Rules{MaxAge: new(int32(8))},
		Differs: []string{infra, "no implementation is public: rewards are the paper's rules (ssr.Resolve), the estimator is that of another system for proposers and solvers",
			"rewards of both roles are numbers that package reward/ssr gives and the rollouts record; a bug with too few live attempts gives its injector none",
			"roles are told apart by groups: solvers of a bug have its key, injectors one key for all, such as reward.ProposerKey"},
	}
}

// slime is slime with its default arguments.
func slime() Recipe {
	const args = "slime@624b824a8 slime/utils/arguments.py"
	return Recipe{
		Name: "slime@624b824a8", About: "slime by default: GRPO with the group's deviation",
		Source:    args,
		Sources:   map[string]string{"estimator": "slime@624b824a8 slime/ray/rollout.py: _post_process_rewards"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "auto"},
		Estimator: preset("slime_grpo"),
		Loss:      "slime_rollout_mean@624b824a8",
		Trainer:   []Setting{{"eps-clip", "0.2", args}, {"tis-clip", "2.0, with --use-tis", args}},
		Differs:   []string{infra, "groups go by key, where slime cuts the batch into slices of n-samples-per-prompt"},
	}
}

// verlGRPO is verl's GRPO with its default configuration.
func verlGRPO() Recipe {
	return Recipe{
		Name: "verl-grpo@1dda039b9", About: "verl GRPO: deviation of the group, every row counts",
		Source:    verlConfig,
		Sources:   map[string]string{"estimator": "verl@1dda039b9 verl/trainer/ppo/core_algos.py: compute_grpo_outcome_advantage; norm_adv_by_std_in_grpo True"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "auto"},
		Estimator: preset("verl_grpo"),
		Loss:      "token-mean@verl-1dda039b9",
		Trainer:   []Setting{{"clip_ratio", "0.2", "verl@1dda039b9 verl/trainer/config/actor/actor.yaml"}, {"clip_ratio_c", "3.0", "verl@1dda039b9 verl/trainer/config/actor/actor.yaml"}},
		Differs:   []string{infra},
	}
}

// dapo is DAPO as verl documents it.
func dapo() Recipe {
	r := verlGRPO()
	r.Name, r.About = "verl-dapo@1dda039b9", "verl DAPO: groups of equal accuracy left out, soft overlong punishment, no overlong filtering"
	r.Source = verlDAPO
	r.Sources["group-filter"], r.Sources["filter-raw"] = verlDAPO+": filter_groups.metric acc", verlDAPO+": filter_groups.metric acc"
	r.Sources["soft-overlong"] = verlDAPO + ": max_response_length 20480, overlong_buffer len 4096, penalty_factor 1.0"
	r.Sources["length-of"] = "verl@1dda039b9 verl/workers/reward_manager/dapo.py: valid_response_length"
	r.Sources["overlong"] = verlDAPO + ": verl itself filters none"
	r.Shaping = shaping.Rules{Filter: filterOf("verl@1dda039b9"), FilterRaw: true, ResponseLength: true,
		Soft: &shaping.Overlong{Max: 20480, Cache: 4096, Penalty: 1, Unbounded: true}}
	r.Trainer = []Setting{{"clip_ratio_low", "0.2", verlDAPO}, {"clip_ratio_high", "0.28", verlDAPO}, {"loss_agg_mode", "token-mean", verlDAPO}}
	r.Differs = append(r.Differs, "groups that are left out are counted; verl samples others in their place", "the filter compares rewards before the punishment; verl compares its metric acc")
	return r
}

// verlDrGRPO is Dr. GRPO as verl documents it.
func verlDrGRPO() Recipe {
	r := verlGRPO()
	r.Name, r.About = "verl-drgrpo@1dda039b9", "verl Dr. GRPO: no division by the deviation, losses over a constant length"
	r.Source = verlDr
	r.Sources["estimator"] = verlDr + ": norm_adv_by_std_in_grpo False"
	r.Estimator, r.Loss = preset("verl_drgrpo"), "seq-mean-token-sum-norm@verl-1dda039b9"
	r.Trainer = append(r.Trainer, Setting{"use_kl_loss", "False", verlDr})
	return r
}

// primeRL is prime-rl with its default configuration.
func primeRL() Recipe {
	const configs = "prime-rl@559b44772 packages/prime-rl-configs/src/prime_rl/configs/"
	return Recipe{
		Name: "prime-rl@559b44772", About: "prime-rl by default: reward less the group's mean, zero advantages left out, at most 8 versions old",
		Source: configs + "orchestrator.py",
		Sources: map[string]string{
			"estimator": configs + "algorithm.py: grpo", "masked": "prime-rl@559b44772 orchestrator/algo/base.py: iter_trainable_traces",
			"max-age": configs + "orchestrator.py: max_off_policy_steps", "drop-zero": configs + "orchestrator.py: filter_zero_advantages",
			"length-penalty": configs + "algorithm.py: GRPOAlgoConfig.length_penalty None",
		},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "auto"},
		Estimator: preset("prime_grpo"),
		Shaping:   shaping.Rules{MaxAge: new(int32(8)), DropZero: true},
		Loss:      "token-mean@verl-1dda039b9",
		Trainer:   []Setting{{"dppo_mask_low", "0.2", configs + "trainer.py"}, {"dppo_mask_high", "0.2", configs + "trainer.py"}, {"kl_tau", "1e-3", configs + "trainer.py"}},
		Differs:   []string{"age is counted from the newest version of the batch; prime-rl counts from the version that it trains on"},
	}
}

// primeSWE is prime-rl's training of Nemotron 3 Super on SWE tasks: primeRL with a length penalty
// on turns and input tokens.
func primeSWE() Recipe {
	const example = "prime-rl@559b44772 examples/advanced/nemotron-3-super/swe.toml"
	r := primeRL()
	r.Name, r.About = "prime-rl-swe@559b44772", "prime-rl's SWE example: as by default, a tenth of the mean reward off for turns and for input tokens, at most 32 versions old"
	r.Sources["length-penalty"] = example + ": orchestrator.algo.length_penalty; orchestrator/algo/grpo.py: score_group"
	r.Sources["max-age"] = example + ": max_off_policy_steps"
	r.Scale.Outcome = "binary" // the penalty is a share of the pass rate
	r.Sources["scale"] = "prime-rl@559b44772 packages/prime-rl-configs/src/prime_rl/configs/algorithm.py: LinearLengthPenaltyConfig, scaled by the pass rate"
	r.Shaping.MaxAge = new(int32(32))
	r.Shaping.Spending = &shaping.Spending{Input: 0.1, Turns: 0.1}
	r.Trainer = append(r.Trainer, Setting{"batch_size", "256", example}, Setting{"group_size", "16", example})
	r.Differs = append(r.Differs, "the penalty counts tokens of rows, each sampled token once; prime-rl counts the usage that engines report, tokens of shared turns once for each branch")
	return r
}

// skyRL is SkyRL with its default configuration.
func skyRL() Recipe {
	const config = "SkyRL@a9564572e skyrl/train/config/config.py"
	return Recipe{
		Name: "skyrl@a9564572e", About: "SkyRL by default: GRPO with the group's deviation, no filter",
		Source: config,
		Sources: map[string]string{"stop-properly": config + ": zero_reward_on_non_stop False", "overlong": config + ": apply_overlong_filtering False",
			"group-filter": config + ": zero_variance_filter False"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "auto"},
		Estimator: preset("skyrl_grpo"),
		Loss:      "skyrl_token_mean@a9564572e",
		Trainer:   []Setting{{"eps_clip_low", "0.2", config}, {"eps_clip_high", "0.2", config}, {"kl_loss_coef", "0.001", config}, {"max_staleness_steps", "4, fully async only", config}},
		Differs:   []string{infra, "SkyRL makes its advantages itself from the rewards of the file"},
	}
}

// areal is AReaL's GRPO example.
func areal() Recipe {
	const example = "AReaL@4aef98d8d examples/math/gsm8k_grpo.yaml"
	return Recipe{
		Name: "areal@4aef98d8d", About: "AReaL's GRPO example: rewards moved and scaled, clipped at 20, normalised by group",
		Source: example,
		Sources: map[string]string{"reward-affine": example + ": reward_bias -0.5, reward_scaling 10.0; areal/trainer/ppo/actor.py",
			"reward-clip": "AReaL@4aef98d8d areal/api/cli_args.py: reward_clip 20.0", "estimator": example + ": reward_norm"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "binary"},
		Estimator: reward.ByKey(reward.ArealNorm(1, "", "", false, true)),
		Shaping:   shaping.Rules{Affine: shaping.Affine{Bias: -0.5, Scale: 10}, Clip: &reward.Range{Low: -20, High: 20}},
		Loss:      "token-mean@verl-1dda039b9",
		Trainer:   []Setting{{"adv_norm", "mean and deviation of the batch, over tokens", example}, {"eps_clip", "0.4", example}, {"rejection_sampling", "ratio, upper 5.0", example}},
		Differs:   []string{infra, "groups go by key, where AReaL cuts the batch into slices of group_size", "adv_norm is left to the trainer: it is over the tokens of its own batch"},
	}
}

// trl is TRL's GRPOTrainer with its default configuration.
func trl() Recipe {
	const config = "trl@f2cd57710 trl/trainer/grpo_config.py"
	return Recipe{
		Name: "trl@1.16.0", About: "TRL GRPOTrainer by default: deviation of the group with epsilon 1e-4",
		Source:    config,
		Sources:   map[string]string{"estimator": config + ": scale_rewards group", "overlong": config + ": mask_truncated_completions False"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "auto"},
		Estimator: preset("trl_grpo_group"),
		Loss:      "token-mean@verl-1dda039b9",
		Trainer: []Setting{{"loss_type", "dapo", config}, {"epsilon", "0.2", config}, {"beta", "0.0", config},
			{"vllm_importance_sampling_mode", "sequence_mask, clip_max 3.0", config}},
		Differs: []string{"groups go by key, where TRL cuts the batch into slices of num_generations",
			"the losses of other loss_types are averaged as one of dapo (cispo, vespo, bnpo), grpo (sapo) or dr_grpo; luspo, which weighs a sequence by its length, has no aggregation here",
			"a rollout without a reward stays with advantage 0, as a completion that no function scores does in TRL"},
	}
}

// neMoRL is NeMo RL's GRPO example.
func neMoRL() Recipe {
	return Recipe{
		Name: "nemo-rl@7ea279abf", About: "NeMo RL's GRPO example: leave-one-out baseline and deviation",
		Source:    nemoLoss,
		Sources:   map[string]string{"estimator": nemoLoss + ": normalize_rewards, use_leave_one_out_baseline", "overlong": nemoLoss + ": overlong_filtering false"},
		Mode:      tokenize.Merged,
		Scale:     reward.OutcomePolicy{Outcome: "binary"},
		Estimator: preset("nemo_grpo_loo_std"),
		Loss:      "token-mean@verl-1dda039b9",
		Trainer:   []Setting{{"ratio_clip_min", "0.2", nemoLoss}, {"ratio_clip_max", "0.2", nemoLoss}, {"reference_policy_kl_penalty", "0.01", nemoLoss}},
		Differs:   []string{infra},
	}
}

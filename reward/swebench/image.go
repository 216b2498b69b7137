package swebench

import (
	"cmp"
	"strings"
)

// imageNames holds the rules for image names, by a part of the data set's name (OpenClaw-RL@0d034dd
// swe-rl/swe_utils.py and data/pull_swe_images.sh).
var imageNames = []struct{ source, registry, underscores string }{
	{"swe-bench", "docker.io/swebench", "_1776_"},
	{"swe-gym", "docker.io/xingyaoww", "_s_"},
}

// ImageName returns the name of the container image of an instance: the image in its row, if there is
// one, else the name by the rule of the data set. dataSource is the name of the data set
// (SWE-bench_Verified, SWE-Gym-Subset, with or without an owner); any other data set follows SWE-Gym.
// registry replaces the data set's own registry and owner unless it is "".
func (in Instance) ImageName(dataSource, registry string) string {
	if in.Image != "" {
		return in.Image
	}
	dataSource = strings.ReplaceAll(strings.ToLower(dataSource), "_", "-")
	rule := imageNames[1]
	for _, r := range imageNames {
		if strings.Contains(dataSource, r.source) {
			rule = r
			break
		}
	}
	return strings.TrimSuffix(cmp.Or(registry, rule.registry), "/") + "/" + strings.ToLower("sweb.eval.x86_64."+strings.ReplaceAll(in.InstanceID, "__", rule.underscores)+":latest")
}

package swebench

import (
	"regexp"
	"slices"
	"strings"
)

// suiteRan reports whether a log that names no test contains evidence that a runner ran at least one,
// which distinguishes "ran without failures" from "never ran". Counts of zero do not match: a runner
// that loses its browser at once still prints "Executed 0 of 0".
func suiteRan(log string) bool {
	return slices.ContainsFunc(suiteTraces, func(t *regexp.Regexp) bool { return t.MatchString(log) })
}

const pySpace = `[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`

var suiteTraces = []*regexp.Regexp{
	regexp.MustCompile(`Executed [1-9]\p{Nd}* of \p{Nd}`),
	regexp.MustCompile(`TOTAL: [1-9]\p{Nd}* (?:SUCCESS|FAILED)`),
	regexp.MustCompile(`[1-9]\p{Nd}* passing`),
	regexp.MustCompile(`Tests:` + pySpace + `+[1-9]`),
	regexp.MustCompile(`Test Suites:` + pySpace + `+(?:\p{Nd}+ [\p{L}\p{N}_]+, )*[1-9]\p{Nd}* total`),
	regexp.MustCompile(`(?m)^# tests [1-9]`),
	regexp.MustCompile(`[1-9]\p{Nd}* specs?, \p{Nd}+ failure`),
	regexp.MustCompile(`(?m)': ok$`),
}

// infra is a sign that the environment, rather than the patch, broke a run.
type infra struct {
	reason string // "out_of_memory", "missing_module", …
	// certain is true for signs that a patch of the sources cannot cause; other signs may have either
	// cause.
	certain bool
}

var infraSigns = []struct {
	infra
	any []string
	re  *regexp.Regexp
}{
	{infra: infra{"browser_launch_failed", true}, any: []string{"Failed to launch", "Failed to connect to the bus"}},
	{infra: infra{"display_unavailable", true}, any: []string{"cannot open display", "Missing X server", "unable to open X display"}},
	{infra: infra{"out_of_memory", true}, any: []string{"Cannot allocate memory", "OutOfMemoryError"}, re: regexp.MustCompile(`(?m)^Killed$`)},
	{infra: infra{"container_unavailable", true}, any: []string{"Error response from daemon", "Cannot connect to the Docker daemon"}},
	{infra: infra{"network_unreachable", true}, any: []string{"Could not resolve host", "Temporary failure in name resolution"}},
	{infra: infra{"missing_module", false}, any: []string{"Cannot find module", "MODULE_NOT_FOUND", "ModuleNotFoundError"}},
	{infra: infra{"no_tests_collected", false}, any: []string{"no tests ran", "collected 0 items"}},
	{infra: infra{"tests_timed_out", false}, re: regexp.MustCompile(`Timeout error: \p{Nd}+ seconds exceeded`)},
}

// classifyInfra returns the first known sign of a broken environment in a log. The reference looks for
// signs only in logs that are not a run, and they do not change its verdict.
func classifyInfra(log string) (infra, bool) {
	log = unifyLines(log)
	for _, sign := range infraSigns {
		for _, text := range sign.any {
			if strings.Contains(log, text) {
				return sign.infra, true
			}
		}
		if sign.re != nil && sign.re.MatchString(log) {
			return sign.infra, true
		}
	}
	return infra{}, false
}

package ssr

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/rollout"
)

// maxOrder is the highest order of a bug: 1 is an injected bug, 2 the result of a failed repair. The
// paper stops there because higher orders overlap.
const maxOrder = 2

// Order returns 1 for an injected bug, plus one for each failed attempt.
func (a Artifact) Order() int { return 1 + len(a.Attempts) }

// Harder returns the bug of the next order: the repository as left by a failed attempt, with the same
// suite and specification. It must pass the checks again before it is used. An attempt without a patch
// or with changes to tests only, or a bug of order maxOrder, is an error of kind input.
func (a Artifact) Harder(failedPatch string) (Artifact, error) {
	if a.Order() >= maxOrder {
		return Artifact{}, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the bug has order %d already, the limit is %d", a.Order(), maxOrder)
	}
	p, err := patch.Parse(failedPatch)
	if err != nil {
		return Artifact{}, err
	}
	listed := setOf(a.TestFiles)
	if p.Only(func(path string) bool { return !listed[path] }) == nil {
		return Artifact{}, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the attempt touches test files only, which are restored: it leaves the same bug")
	}
	a.Attempts = append(slices.Clone(a.Attempts), failedPatch)
	return a, nil
}

// Fingerprint returns a hash of the change that a bug makes: the kind, the paths, the modes and the
// added and removed lines of each file, without positions, context and white space around lines. Listed
// test files are ignored. Artifacts with equal fingerprints pose the same task.
func (a Artifact) Fingerprint() (string, error) {
	h := sha256.New()
	listed := setOf(a.TestFiles)
	for _, text := range append([]string{a.Bug}, a.Attempts...) {
		p, err := patch.Parse(text)
		if err != nil {
			return "", err
		}
		var parts []string
		for _, e := range p.Edits() {
			if !listed[e.Path] {
				parts = append(parts, fmt.Sprintf("%q", e))
			}
		}
		slices.Sort(parts)
		fmt.Fprintln(h, parts)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// InjectKey returns the group key of injector rollouts that share a prompt: same repository and
// commit, same strategy, same round of self-play.
func InjectKey(repo, commit, strategy string, round int) string {
	return joinKey("inject", repo, commit, strategy, strconv.Itoa(round))
}

// SolveKey returns the group key of solver attempts at one bug. It extends the key of the injector's
// group by the bug, so that the groups of both roles form a tree and never mix.
func SolveKey(injectKey string, a Artifact) (string, error) {
	print, err := a.Fingerprint()
	if err != nil {
		return "", err
	}
	return injectKey + "/" + joinKey("solve", print, strconv.Itoa(a.Order())), nil
}

// joinKey joins parts with slashes; slashes and percent signs within parts are escaped, so that
// different parts never give the same key.
func joinKey(parts ...string) string {
	escape := strings.NewReplacer("%", "%25", "/", "%2F")
	for i, p := range parts {
		parts[i] = escape.Replace(p)
	}
	return strings.Join(parts, "/")
}

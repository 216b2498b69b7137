package ssr_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack/reward/ssr"
)

func ExampleCheck() {
	one := 1
	a := artifact() // breaks two functions, weakens one test
	env := memoryEnv{a, suite}
	verdict, err := ssr.Judge(context.Background(), env, a, repo, ssr.Settings{MinPassingTests: &one, MinChangedFiles: &one, MinFailingTests: &one})
	fmt.Println(verdict.Valid(), verdict.Broken, err)
	for _, c := range verdict.Checks[3:] {
		fmt.Println(c.Number, c.Name+":", c.Evidence[0])
	}
	// Output:
	// true [tests/t_a.txt::add tests/t_a.txt::mul] <nil>
	// 4 bug scope: the bug changes 2 files, at least 1 are needed
	// 5 bug breaks tests: 2 tests pass no more, at least 1 are needed
	// 6 weakening hides the bug: 1 of 2 broken tests pass when weakened
	// 7 every file matters: taking back src/add.txt alone repairs 1 broken tests
}

func ExampleResolve() {
	s, _ := ssr.Resolve([]ssr.Attempt{ssr.Solved, ssr.Unsolved, ssr.Unsolved, ssr.InfraError}, 2, ssr.DefaultAlpha)
	fmt.Printf("%d of %d solved: injector %+.1f\n", s.Solved, s.Live, *s.Inject)
	// Output: 1 of 3 solved: injector +0.4
}

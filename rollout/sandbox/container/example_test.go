package container_test

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/container"
)

// The engine is contacted when the first container is made.
func ExampleNew() {
	_, err := container.New(container.Options{Engine: "podman", Limits: sandbox.Limits{Memory: 8 << 30}})
	fmt.Println(err)
	_, err = container.New(container.Options{Engine: "lxc"})
	fmt.Println(err)
	// Output:
	// <nil>
	// Engine: expected docker, podman or apptainer, found "lxc"
}

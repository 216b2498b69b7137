package sandbox

import (
	"context"
	"time"
)

// Driver runs containers on this machine. Package local has one that copies folders,
// package container one for docker, podman and apptainer. Ids are all the state that it
// needs: a driver that is made anew serves the containers of the one before.
type Driver interface {
	// Create starts a container that waits for commands, with name as its name.
	Create(ctx context.Context, name string, spec Spec) (id string, err error)
	// Exec runs a command and kills all of it when its time is over or ctx ends. A
	// container that is not there is KindSandbox.
	Exec(ctx context.Context, id string, c Command) (Result, error)
	// Destroy ends every process of a container and removes it. One that is not there
	// is no error.
	Destroy(ctx context.Context, id string) error
	// Containers lists what Create made and Destroy did not remove.
	Containers(context.Context) ([]Container, error)
	// Images lists the names that Create can take at once.
	Images(context.Context) ([]string, error)
}

// Container is one that a driver has.
type Container struct {
	ID, Name string
	Spec     Spec
	Created  time.Time
}

// Limits bound what runs in a container. Zero fields have the values of swe-rl.
type Limits struct {
	Memory    int64 // bytes; 4 GiB if 0
	Processes int   // 256 if 0
}

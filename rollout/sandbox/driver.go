package sandbox

import (
	"context"
	"time"
)

// Driver runs containers on this machine. Package local has one that copies folders, package container one for
// docker, podman and apptainer. Its only state is the ids: a new driver serves the containers of an earlier
// one.
type Driver interface {
	// Create starts a container with that name, which waits for commands.
	Create(ctx context.Context, name string, spec Spec) (id string, err error)
	// Exec runs a command and kills all its processes when it exceeds its time or ctx ends. A missing container
	// is a KindSandbox error.
	Exec(ctx context.Context, id string, c Command) (Result, error)
	// Destroy kills every process of a container and removes it. A missing container is not an error.
	Destroy(ctx context.Context, id string) error
	// Containers lists the containers that Create made and Destroy did not remove.
	Containers(context.Context) ([]Container, error)
	// Images lists the names for which Create needs no pull.
	Images(context.Context) ([]string, error)
}

// Container describes a container of a driver.
type Container struct {
	ID, Name string
	Spec     Spec
	Created  time.Time
}

// Limits limits the processes in a container. The defaults are those of swe-rl.
type Limits struct {
	Memory    int64 // bytes; 4 GiB if 0
	Processes int   // 256 if 0
}

// Package container runs sandboxes with docker, podman or apptainer, through their
// commands on PATH.
//
// Containers of docker and podman have 4 GiB and 256 processes by flags of theirs, and a
// label with what they are for, by which a server that was killed finds them again. What
// apptainer runs is watched from here, as it needs no cgroups then.
//
// A command whose time is over is killed inside of its container: ending docker exec alone
// leaves it running.
package container

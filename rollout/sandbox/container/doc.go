// Package container runs sandboxes with docker, podman or apptainer, through their
// commands on PATH.
//
// Containers of docker and podman are limited to 4 GiB and 256 processes by their flags, and have a label with
// their Spec, by which a restarted server finds them. Commands in apptainer are watched from this process,
// which needs no cgroups.
//
// A command that exceeds its time is killed inside its container: ending docker exec alone leaves it running.
//
// A call of the program that only manages (to remove, kill, inspect or list) is ended after a minute.
package container

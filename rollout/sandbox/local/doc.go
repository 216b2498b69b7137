// Package local runs sandboxes as processes of this machine, for tests, development and clusters whose jobs
// already run in containers.
//
// An image is a folder below a root: the repository, of which a container gets a copy. Commands call it
// /testbed, as in a container; the name is replaced by the copy's path in commands, and the path by the name in
// output. Each container has its own home and folder for temporary files, and only PATH of this process's
// environment.
//
// Limits are checked by this process, not enforced by the kernel: the resident memory and the number of
// processes of a command, four times a second on Linux, with SIGKILL to all of its processes if one is
// exceeded. Between two checks a command can take what the machine has, as a fork bomb does: bound this process
// and all below it by the kernel (pids and memory of its container) where others work beside it. Commands can read and write whatever this process can: run a model's code only where that does no
// harm.
package local

// Package local runs sandboxes as processes of this machine, for tests, development and
// clusters whose jobs are containers already.
//
// An image is a folder below a root: the repository, which a container gets a copy of.
// Commands name it /testbed, as in a container; that name is read as the copy's place in
// commands and written back in output. Each container has a home and a folder for
// temporary files of its own, and nothing of this process's environment but PATH.
//
// Bounds are watched, not enforced by the kernel: resident memory and number of processes
// of a command, four times a second on Linux, and SIGKILL to all of it beyond them.
// Commands can read and write whatever this process can: run code of a model where that
// does no harm.
package local

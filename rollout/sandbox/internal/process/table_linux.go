package process

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// entry is a process as listed by the kernel.
type entry struct {
	pid, parent, group, session int
	started                     uint64
	resident                    int64
	zombie                      bool
}

// Table caches the list of processes for all its users.
type Table struct {
	mu   sync.Mutex
	read time.Time
	list []entry
}

func (t *Table) entries(age time.Duration) []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil || time.Since(t.read) > age {
		t.list, t.read = entries(), time.Now()
	}
	return t.list
}

func entries() (out []entry) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it ended
		}
		// The program's name, in parentheses, may contain any characters.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 22 {
			continue
		}
		number := func(i int) int64 { n, _ := strconv.ParseInt(string(f[i]), 10, 64); return n }
		out = append(out, entry{pid: pid, parent: int(number(1)), group: int(number(2)), session: int(number(3)),
			started: uint64(number(19)), resident: number(21) * int64(os.Getpagesize()), zombie: f[0][0] == 'Z'})
	}
	return out
}

// look finds the processes of the command: its group and session, their descendants, and those found before.
func (w *watch) look(age time.Duration) (memory int64, processes int) {
	list := w.options.Table.entries(age)
	children := map[int][]int{}
	byPid := map[int]*entry{}
	var todo []int
	for i, e := range list {
		byPid[e.pid] = &list[i]
		children[e.parent] = append(children[e.parent], e.pid)
		if started, known := w.known[e.pid]; e.group == w.pid || e.session == w.pid || known && started == e.started {
			todo = append(todo, e.pid)
		}
	}
	w.known = map[int]uint64{}
	for len(todo) > 0 {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e := byPid[pid]
		if _, seen := w.known[pid]; seen || e == nil {
			continue
		}
		w.known[pid] = e.started
		if !e.zombie {
			memory += e.resident
			processes++
		}
		todo = append(todo, children[pid]...)
	}
	return memory, processes
}

// kill kills all processes of the command, even those that left its session.
func (w *watch) kill() {
	for range 40 {
		syscall.Kill(-w.pid, syscall.SIGKILL)
		_, processes := w.look(0)
		for pid := range w.known {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if processes+killMarked(w.options.Mark) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// KillMarked kills every process with the mark, a NAME=value in its environment.
func KillMarked(mark string) {
	for range 40 {
		if killMarked(mark) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func killMarked(mark string) (n int) {
	if mark == "" {
		return 0
	}
	for _, e := range entries() {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(e.pid) + "/environ")
		if err == nil && !e.zombie && e.pid != os.Getpid() && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			syscall.Kill(e.pid, syscall.SIGKILL)
			n++
		}
	}
	return n
}

func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// exitCode returns the status as a shell reports it: 128 plus the signal for a killed process.
func exitCode(cmd *exec.Cmd) int {
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

package traj

import (
	"hash/maphash"
	"path/filepath"
	"slices"
	"strings"
)

// unread tracks ignored files of folders from which nothing else was read, such as rewards
// or pages of events. Files are remembered by the hashes of their paths, the first also by
// name.
type unread struct {
	kinds map[uint64]string // ignored files: hash of the path → kind
	used  map[uint64]struct{}
	list  []Ignored
}

func (r *Reader) ignore(path, why string) {
	r.report.IgnoredCount++
	if len(r.report.Ignored) < maxListed {
		r.report.Ignored = append(r.report.Ignored, Ignored{path, why})
	}
	u, key := &r.unread, r.pathKey(path)
	if _, used := u.used[key]; used || why == "hidden" || strings.HasPrefix(why, "read before") {
		return
	}
	if u.kinds == nil {
		u.kinds = map[uint64]string{}
	}
	u.kinds[key] = unreadKind(path, why)
	if len(u.list) < maxListed {
		u.list = append(u.list, Ignored{path, why})
	}
}

// reads records that the file at path was read beside a dump.
func (r *Reader) reads(path string) {
	u, key := &r.unread, r.pathKey(path)
	if u.used == nil {
		u.used = map[uint64]struct{}{}
	}
	u.used[key] = struct{}{}
	if _, passed := u.kinds[key]; !passed {
		return
	}
	delete(u.kinds, key)
	u.list = slices.DeleteFunc(u.list, func(x Ignored) bool { return filepath.Clean(x.Path) == filepath.Clean(path) })
}

func (r *Reader) pathKey(path string) uint64 {
	return maphash.String(r.registry.seed, filepath.Clean(path))
}

// emptyFile is the reason for ignoring an empty file, left by a writer that was killed or
// had no space.
const emptyFile = "empty"

// unreadKind returns what a file is counted as: its extension and, if it was examined, the
// result.
func unreadKind(path, why string) string {
	ext := strings.ToLower(filepath.Ext(path))
	switch {
	case ext == "":
		ext = "without extension"
	case strings.HasPrefix(why, "no known format"):
		ext += " of no known format"
	case why == emptyFile:
		ext += " that hold nothing"
	}
	return ext
}

// unreadFiles completes the report at the end.
func (r *Reader) unreadFiles() {
	for _, x := range r.opt.Rewards {
		for _, e := range x.table.Entries {
			r.reads(e.Where.File)
		}
	}
	r.report.Unread, r.report.UnreadCount = r.unread.list, len(r.unread.kinds)
	r.report.UnreadKinds = map[string]int{}
	for _, kind := range r.unread.kinds {
		r.report.UnreadKinds[kind]++
	}
}

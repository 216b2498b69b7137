package pivot

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// category is a family of tools that do the same thing under different names; "" means unknown and
// equals no category.
type category string

const (
	catEdit     category = "edit"
	catBash     category = "bash"
	catSearch   category = "search"
	catRead     category = "read"
	catFinish   category = "finish"
	catThink    category = "think"
	catPlanning category = "planning"
)

var toolNames = []struct {
	category category
	names    string
}{
	{catEdit, "str_replace_editor text_editor file_editor code_editor edit_file modify_file update_file file_edit edit modify apply_patch patch_file apply_diff apply_changes write write_file save_file create_file"},
	{catBash, "execute_bash run_bash bash_exec shell_run shell bash terminal shell_command shell_cmd run_shell_cmd exec_command exec_cmd"},
	{catSearch, "grep search_text find_pattern text_search glob find_files file_glob match_files grep_files search_files find_in_files code_search list_dir ls show_dir ls_dir list_directory"},
	{catRead, "read read_file view_file cat_file view file_view inspect show_file read_file_content"},
	{catFinish, "finish submit"},
	{catThink, "think"},
	{catPlanning, "task_tracker todo_tracker plan_tracker todo_read todo_write update_plan list_tasks update_tasks read_todos write_todos edit_plan modify_plan"},
}

// toolFamily returns the family of a tool by its name: edit, bash, search, read, finish, think or
// planning, "" if it is unknown.
func toolFamily(tool string) string { return string(toolCategory(lower(tool))) }

// toolCategory returns the category of a lower-case tool name, given with or without underscores.
func toolCategory(name string) category {
	for _, t := range toolNames {
		for known := range strings.FieldsSeq(t.names) {
			if name == known || name == strings.ReplaceAll(known, "_", "") {
				return t.category
			}
		}
	}
	return ""
}

// step is a call prepared for comparison. args is usually an object; other JSON values behave as in
// the reference, where most lookups fail.
type step struct {
	name     string // lower case
	category category
	args     value
	// raised is set by a lookup on which the reference raises an exception. Results after that are
	// meaningless.
	raised bool
}

func newStep(c Call) *step {
	name := lower(c.Name)
	args, err := decode(c.Arguments)
	if err != nil {
		args = value{kind: object}
	}
	return &step{name: name, category: toolCategory(name), args: args}
}

// has reproduces Python's `key in args`.
func (s *step) has(key string) bool {
	switch s.args.kind {
	case object:
		_, ok := s.args.of[key]
		return ok
	case list:
		return slices.ContainsFunc(s.args.list, func(e value) bool { return e.kind == text && e.text == key })
	case text:
		return strings.Contains(s.args.text, key)
	}
	s.raised = true
	return false
}

// index reproduces Python's args[key] for an existing key.
func (s *step) index(key string) value {
	s.raised = s.raised || s.args.kind != object
	return s.args.of[key]
}

// get reproduces Python's str(args.get(key, "")).
func (s *step) get(key string) string {
	s.raised = s.raised || s.args.kind != object
	if v, ok := s.args.of[key]; ok {
		return v.str()
	}
	return ""
}

// firstOf returns the trimmed text of the first of keys that exists, "" if none does.
func (s *step) firstOf(keys ...string) string {
	for _, k := range keys {
		if s.has(k) {
			return trim(s.index(k).str())
		}
	}
	return ""
}

func (s *step) file() string {
	return s.firstOf("path", "file", "file_path", "filename", "file_name")
}

func (s *step) command() string { return s.firstOf("command", "cmd") }

// edit returns the text that an edit writes, including the old text where it replaces text.
func (s *step) edit() string {
	for _, k := range []string{"new_str", "patch", "diff"} {
		switch {
		case !s.has(k):
		case k == "new_str":
			return s.get("old_str") + "\n" + s.index(k).str()
		default:
			return s.index(k).str()
		}
	}
	for _, k := range []string{"content", "file_text"} {
		if s.has(k) {
			return s.get(k)
		}
	}
	return ""
}

// pathSuffix returns the last n components of a path, which are independent of the root of the
// repository.
func pathSuffix(path string, n int) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-n):], "/")
}

// verb returns the program of a shell command without its directory.
func verb(command string) string {
	words := fields(command)
	if len(words) == 0 {
		return ""
	}
	return words[0][strings.LastIndexByte(words[0], '/')+1:]
}

var commandPath = func() *regexp.Regexp {
	const (
		space = `\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
		part  = `\p{L}\p{N}_.\-`
	)
	return regexp.MustCompile(`(?:^|[` + space + `='"(])((?:/[` + part + `]+)+|\.\.?/[` + part + `/]+|[` + part + `]+/[` + part + `/]+)`)
}()

// pathSuffixes returns the set of path suffixes in a shell command.
func pathSuffixes(command string) map[string]bool {
	set := map[string]bool{}
	for _, m := range commandPath.FindAllStringSubmatch(command, -1) {
		path := m[1]
		if strings.HasPrefix(path, "--") || utf8.RuneCountInString(path) <= 2 {
			continue
		}
		if suffix := pathSuffix(path, 3); suffix != "" {
			set[suffix] = true
		}
	}
	return set
}

// minBashSimilarity separates commands that only share their verb.
const minBashSimilarity = 0.3

// maxSimilarityChars is the number of code points of a text that are compared.
const maxSimilarityChars = 2000

func cappedRatio(a, b string) float64 {
	x, y := []rune(a), []rune(b)
	return ratio(x[:min(len(x), maxSimilarityChars)], y[:min(len(y), maxSimilarityChars)])
}

// sameTarget reports whether two calls of the same family act on the same target.
func sameTarget(want, got *step) bool {
	switch got.category {
	case catEdit:
		return sameEditTarget(want, got)
	case catBash:
		return sameCommandTarget(want.command(), got.command())
	case catSearch, catRead:
		g, w := got.file(), want.file()
		return g == "" || w == "" || pathSuffix(g, 3) == pathSuffix(w, 3)
	}
	return true
}

func sameEditTarget(want, got *step) bool {
	gc, wc := got.get("command"), want.get("command")
	if gc != "" && wc != "" && gc != wc {
		return false
	}
	gf, wf := got.file(), want.file()
	if gf != "" && wf != "" && pathSuffix(gf, 2) != pathSuffix(wf, 2) {
		return false
	}
	if gc != "view" || wc != "view" {
		return true
	}
	gr, wr := got.viewRange(), want.viewRange()
	return gr == nil || wr == nil || covers(gr, wr)
}

func sameCommandTarget(w, g string) bool {
	if gv, wv := verb(g), verb(w); gv != "" && wv != "" && gv != wv {
		return false
	}
	gs, ws := pathSuffixes(g), pathSuffixes(w)
	if len(gs) > 0 && len(ws) > 0 {
		shared := false
		for s := range gs {
			shared = shared || ws[s]
		}
		if !shared {
			return false
		}
	}
	return g == "" || w == "" || cappedRatio(g, w) >= minBashSimilarity
}

// viewRange returns the two numbers of view_range, given as a list or as a string holding one; nil if it
// is missing or unreadable.
func (s *step) viewRange() []float64 {
	raw := s.args.of["view_range"]
	if raw.kind == text {
		raw, _ = decode(raw.text) // an error leaves null
	}
	if len(raw.list) != 2 {
		return nil
	}
	bounds := make([]float64, 2)
	for i, e := range raw.list {
		var ok bool
		if bounds[i], ok = s.toInt(e); !ok {
			return nil
		}
	}
	return bounds
}

// toInt reproduces Python's int(), rounded to a float64. ok is false where int() raises an exception;
// the reference catches all of these except OverflowError.
func (s *step) toInt(v value) (n float64, ok bool) {
	whole := v.int
	switch v.kind {
	case boolean:
		if v.bool {
			n = 1
		}
		return n, true
	case float:
		s.raised = s.raised || math.IsInf(v.float, 0)
		return math.Trunc(v.float), v.float-v.float == 0
	case text:
		if t := trim(v.text); integerText.MatchString(t) {
			whole, _ = new(big.Int).SetString(strings.ReplaceAll(t, "_", ""), 10)
		}
	}
	if whole == nil {
		return 0, false
	}
	n, _ = new(big.Float).SetInt(whole).Float64()
	return n, true
}

var integerText = regexp.MustCompile(`\A[+-]?[0-9]+(_[0-9]+)*\z`)

// covers reports whether got shows at least 80 % of want.
func covers(got, want []float64) bool {
	overlap := max(0, min(got[1], want[1])-max(got[0], want[0]))
	return overlap/max(1, want[1]-want[0]) >= 0.8
}

// stepSimilarity returns the similarity of two edits or two commands, 1 for other calls of one family.
func stepSimilarity(want, got *step) float64 {
	switch got.category {
	case catEdit:
		return editSimilarity(want, got)
	case catBash:
		if g, w := got.command(), want.command(); g != "" && w != "" {
			return cappedRatio(g, w)
		}
	}
	return 1
}

// editSimilarity returns the smaller of the similarities of the old texts and of the new texts, or the
// similarity of the written content.
func editSimilarity(want, got *step) float64 {
	gOld, wOld, gNew, wNew := got.get("old_str"), want.get("old_str"), got.get("new_str"), want.get("new_str")
	if gOld+gNew != "" && wOld+wNew != "" {
		return min(partSimilarity(gOld, wOld), partSimilarity(gNew, wNew))
	}
	return partSimilarity(got.edit(), want.edit())
}

// partSimilarity returns the similarity of two texts, where an empty text is similar only to an empty
// text.
func partSimilarity(got, want string) float64 {
	switch {
	case got != "" && want != "":
		return cappedRatio(got, want)
	case got == want:
		return 1
	}
	return 0
}

// fullPenaltyChars is the length of an edit with the full penalty.
const fullPenaltyChars = 500

func diffPenalty(got *step, alpha float64) float64 {
	if got.category != catEdit {
		return 0
	}
	return alpha * min(float64(utf8.RuneCountInString(got.edit()))/fullPenaltyChars, 1)
}

package logparse

import (
	_ "embed"
	"slices"
	"strings"
)

// Context holds the data that some parsers need in addition to the log: two choose their rules by
// instance, two by version. The others ignore it.
type Context struct {
	InstanceID string // "jekyll__jekyll-8047"
	Version    string // the row's version field, "1.27"
}

// Parser returns the statuses in log, whose line ends must be LF. It never panics and keeps no
// reference to log. An error has the kind scorer and means that the reference parser raises an
// exception on the log.
type Parser func(log string, c Context) (Statuses, error)

// prefix is the prefix of every parser's name.
const prefix = "parse_log_"

// Lookup returns the parser with the given name in instance rows, such as "parse_log_pytest".
func Lookup(name string) (Parser, bool) {
	if short, ok := strings.CutPrefix(name, prefix); ok {
		for _, p := range parsers {
			if slices.Contains(strings.Fields(p.names), short) {
				return p.parse, true
			}
		}
	}
	return nil, false
}

// ForRepo returns the name of the parser that the reference uses for the
// repository of an instance ("django/django"), for rows that name none.
func ForRepo(repo string) (name string, ok bool) {
	for line := range strings.Lines(repoParsers) {
		if f := strings.Fields(line); strings.EqualFold(f[0], repo) {
			return prefix + f[1], true
		}
	}
	if Gym(repo) {
		return prefix + "pytest", true
	}
	return "", false
}

// gym lists the repositories of SWE-Gym, all graded by parse_log_pytest. It leaves out pydantic, whose
// results SWE-Gym shortens further: its rows have to name a parser.
var gym = []string{"python/mypy", "getmoto/moto", "conan-io/conan", "modin-project/modin", "Project-MONAI/MONAI", "iterative/dvc",
	"dask/dask", "bokeh/bokeh", "pandas-dev/pandas", "facebookresearch/hydra"}

// Gym reports whether the repository belongs to SWE-Gym, whose harness writes no markers.
func Gym(repo string) bool {
	return slices.ContainsFunc(gym, func(r string) bool { return strings.EqualFold(r, repo) })
}

// FailOnly reports whether the reference grades the repository only by recorded failures, since its
// runner's log names no passing tests.
func FailOnly(repo string) bool {
	switch strings.ToLower(repo) {
	case "chartjs/chart.js", "processing/p5.js", "markedjs/marked", "bpmn-io/bpmn-js", "openlayers/openlayers", "eslint/eslint":
		return true
	}
	return false
}

// Names returns all parser names, sorted.
func Names() []string {
	var names []string
	for _, p := range parsers {
		for name := range strings.FieldsSeq(p.names) {
			names = append(names, prefix+name)
		}
	}
	slices.Sort(names)
	return names
}

// parsers holds the reference's parsers with their names, without the common prefix.
var parsers = []struct {
	names string
	parse Parser
}{
	{"pytest astroid flask marshmallow pvlib pyvista sqlfluff xarray", parsePytest},
	{"pytest_options pydicom requests pylint", parsePytestOptions},
	{"pytest_v2 astropy scikit sphinx", parsePytestV2},
	{"django", parseDjango},
	{"seaborn", parseSeaborn},
	{"sympy", parseSympy},
	{"matplotlib", parseMatplotlib},

	{"calypso", parseCalypso},
	{"bpmn_js", parseBPMN},
	{"carbon react_pdf", parseCarbon},
	{"eslint", parseESLint},
	{"grommet", parseGrommet},
	{"highlightjs", parseHighlightJS},
	{"lighthouse", parseLighthouse},
	{"next", parseNext},
	{"openlayers", parseOpenLayers},
	{"prismjs", parsePrism},
	{"quarto_cli", parseQuarto},
	{"chart_js", parseChartJS},
	{"marked", parseMarked},
	{"p5js", parseP5},
	{"jest", parseJest},
	{"jest_json", parseJestJSON},
	{"vitest", parseVitest},
	{"karma", parseKarma},
	{"tap", parseTAP},
	{"immutable_js", parseImmutable},

	{"redis", parseRedis},
	{"jq", parseJQ},
	{"doctest", parseDoctest},
	{"micropython_test", parseMicroPython},
	{"googletest", parseGoogleTest},
	{"gotest", parseGoTest},
	{"maven", parseMaven},
	{"ant", parseAnt},
	{"gradle_custom", parseGradle},
	{"phpunit", parsePHPUnit},
	{"minitest", parseMinitest},
	{"cucumber", parseCucumber},
	{"ruby_unit", parseRubyUnit},
	{"rspec_transformed_json", parseRSpecJSON},
	{"jekyll", parseJekyll},
	{"cargo", parseCargo},
}

// repoParsers has a line for each pair of the reference's per-language tables whose parser has a name
// of its own: the repository and the parser's name without the common prefix.
//
//go:embed repos.txt
var repoParsers string

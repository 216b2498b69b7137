package logparse

import (
	"sort"
	"strings"
)

// Context is what some parsers need to know beside the log: two choose their
// rules by instance, two by version. All others ignore it.
type Context struct {
	InstanceID string // "jekyll__jekyll-8047"
	Version    string // the row's version field, "1.27"
}

// Parser reads the statuses out of log, whose line ends must be LF. It never
// panics and keeps no reference to log. An error is of kind scorer: the
// reference parser raises an exception on that log.
type Parser func(log string, c Context) (Statuses, error)

// Lookup returns the parser that instance rows call name, such as
// "parse_log_pytest".
func Lookup(name string) (Parser, bool) {
	for _, p := range parsers {
		if p.name == name {
			return p.parse, true
		}
	}
	return nil, false
}

// ForRepo returns the name of the parser that the reference uses for the
// repository of an instance ("django/django"), for rows that name none.
func ForRepo(repo string) (name string, ok bool) {
	for _, r := range repoParsers {
		if strings.EqualFold(r.repo, repo) {
			return r.parser, true
		}
	}
	return "", false
}

// FailOnly reports whether the reference grades the repository by recorded
// failures alone, since its runner's log names no passing test.
func FailOnly(repo string) bool {
	switch strings.ToLower(repo) {
	case "chartjs/chart.js", "processing/p5.js", "markedjs/marked", "bpmn-io/bpmn-js", "openlayers/openlayers", "eslint/eslint":
		return true
	}
	return false
}

// Names lists all parser names, sorted.
func Names() []string {
	names := make([]string, len(parsers))
	for i, p := range parsers {
		names[i] = p.name
	}
	sort.Strings(names)
	return names
}

var parsers = []struct {
	name  string
	parse Parser
}{
	{"parse_log_pytest", parsePytest},
	{"parse_log_astroid", parsePytest},
	{"parse_log_flask", parsePytest},
	{"parse_log_marshmallow", parsePytest},
	{"parse_log_pvlib", parsePytest},
	{"parse_log_pyvista", parsePytest},
	{"parse_log_sqlfluff", parsePytest},
	{"parse_log_xarray", parsePytest},
	{"parse_log_pytest_options", parsePytestOptions},
	{"parse_log_pydicom", parsePytestOptions},
	{"parse_log_requests", parsePytestOptions},
	{"parse_log_pylint", parsePytestOptions},
	{"parse_log_pytest_v2", parsePytestV2},
	{"parse_log_astropy", parsePytestV2},
	{"parse_log_scikit", parsePytestV2},
	{"parse_log_sphinx", parsePytestV2},
	{"parse_log_django", parseDjango},
	{"parse_log_seaborn", parseSeaborn},
	{"parse_log_sympy", parseSympy},
	{"parse_log_matplotlib", parseMatplotlib},

	{"parse_log_calypso", parseCalypso},
	{"parse_log_bpmn_js", parseBPMN},
	{"parse_log_carbon", parseCarbon},
	{"parse_log_react_pdf", parseCarbon},
	{"parse_log_eslint", parseESLint},
	{"parse_log_grommet", parseGrommet},
	{"parse_log_highlightjs", parseHighlightJS},
	{"parse_log_lighthouse", parseLighthouse},
	{"parse_log_next", parseNext},
	{"parse_log_openlayers", parseOpenLayers},
	{"parse_log_prismjs", parsePrism},
	{"parse_log_quarto_cli", parseQuarto},
	{"parse_log_chart_js", parseChartJS},
	{"parse_log_marked", parseMarked},
	{"parse_log_p5js", parseP5},
	{"parse_log_jest", parseJest},
	{"parse_log_jest_json", parseJestJSON},
	{"parse_log_vitest", parseVitest},
	{"parse_log_karma", parseKarma},
	{"parse_log_tap", parseTAP},
	{"parse_log_immutable_js", parseImmutable},

	{"parse_log_redis", parseRedis},
	{"parse_log_jq", parseJQ},
	{"parse_log_doctest", parseDoctest},
	{"parse_log_micropython_test", parseMicroPython},
	{"parse_log_googletest", parseGoogleTest},
	{"parse_log_gotest", parseGoTest},
	{"parse_log_maven", parseMaven},
	{"parse_log_ant", parseAnt},
	{"parse_log_gradle_custom", parseGradle},
	{"parse_log_phpunit", parsePHPUnit},
	{"parse_log_minitest", parseMinitest},
	{"parse_log_cucumber", parseCucumber},
	{"parse_log_ruby_unit", parseRubyUnit},
	{"parse_log_rspec_transformed_json", parseRSpecJSON},
	{"parse_log_jekyll", parseJekyll},
	{"parse_log_cargo", parseCargo},
}

// repoParsers holds the pairs of the reference's per-language tables whose
// parser has a name of its own.
var repoParsers = []struct{ repo, parser string }{
	{"astropy/astropy", "parse_log_astropy"},
	{"django/django", "parse_log_django"},
	{"marshmallow-code/marshmallow", "parse_log_marshmallow"},
	{"matplotlib/matplotlib", "parse_log_matplotlib"},
	{"mwaskom/seaborn", "parse_log_seaborn"},
	{"pallets/flask", "parse_log_flask"},
	{"psf/requests", "parse_log_requests"},
	{"pvlib/pvlib-python", "parse_log_pvlib"},
	{"pydata/xarray", "parse_log_xarray"},
	{"pydicom/pydicom", "parse_log_pydicom"},
	{"pylint-dev/astroid", "parse_log_astroid"},
	{"pylint-dev/pylint", "parse_log_pylint"},
	{"pytest-dev/pytest", "parse_log_pytest"},
	{"pyvista/pyvista", "parse_log_pyvista"},
	{"scikit-learn/scikit-learn", "parse_log_scikit"},
	{"sqlfluff/sqlfluff", "parse_log_sqlfluff"},
	{"sphinx-doc/sphinx", "parse_log_sphinx"},
	{"sympy/sympy", "parse_log_sympy"},
	{"Automattic/wp-calypso", "parse_log_calypso"},
	{"chartjs/Chart.js", "parse_log_chart_js"},
	{"markedjs/marked", "parse_log_marked"},
	{"processing/p5.js", "parse_log_p5js"},
	{"diegomura/react-pdf", "parse_log_react_pdf"},
	{"babel/babel", "parse_log_jest"},
	{"vuejs/core", "parse_log_vitest"},
	{"facebook/docusaurus", "parse_log_jest"},
	{"immutable-js/immutable-js", "parse_log_immutable_js"},
	{"mrdoob/three.js", "parse_log_tap"},
	{"preactjs/preact", "parse_log_karma"},
	{"axios/axios", "parse_log_tap"},
	{"alibaba-fusion/next", "parse_log_next"},
	{"bpmn-io/bpmn-js", "parse_log_bpmn_js"},
	{"carbon-design-system/carbon", "parse_log_carbon"},
	{"eslint/eslint", "parse_log_eslint"},
	{"GoogleChrome/lighthouse", "parse_log_lighthouse"},
	{"grommet/grommet", "parse_log_grommet"},
	{"highlightjs/highlight.js", "parse_log_highlightjs"},
	{"openlayers/openlayers", "parse_log_openlayers"},
	{"prettier/prettier", "parse_log_carbon"},
	{"PrismJS/prism", "parse_log_prismjs"},
	{"quarto-dev/quarto-cli", "parse_log_quarto_cli"},
	{"scratchfoundation/scratch-gui", "parse_log_carbon"},
	{"redis/redis", "parse_log_redis"},
	{"jqlang/jq", "parse_log_jq"},
	{"nlohmann/json", "parse_log_doctest"},
	{"micropython/micropython", "parse_log_micropython_test"},
	{"valkey-io/valkey", "parse_log_redis"},
	{"fmtlib/fmt", "parse_log_googletest"},
	{"caddyserver/caddy", "parse_log_gotest"},
	{"hashicorp/terraform", "parse_log_gotest"},
	{"prometheus/prometheus", "parse_log_gotest"},
	{"gohugoio/hugo", "parse_log_gotest"},
	{"gin-gonic/gin", "parse_log_gotest"},
	{"google/gson", "parse_log_maven"},
	{"apache/druid", "parse_log_maven"},
	{"javaparser/javaparser", "parse_log_maven"},
	{"projectlombok/lombok", "parse_log_ant"},
	{"apache/lucene", "parse_log_gradle_custom"},
	{"reactivex/rxjava", "parse_log_gradle_custom"},
	{"phpoffice/phpspreadsheet", "parse_log_phpunit"},
	{"laravel/framework", "parse_log_phpunit"},
	{"php-cs-fixer/php-cs-fixer", "parse_log_phpunit"},
	{"briannesbitt/carbon", "parse_log_phpunit"},
	{"jekyll/jekyll", "parse_log_jekyll"},
	{"fluent/fluentd", "parse_log_ruby_unit"},
	{"fastlane/fastlane", "parse_log_rspec_transformed_json"},
	{"jordansissel/fpm", "parse_log_rspec_transformed_json"},
	{"faker-ruby/faker", "parse_log_ruby_unit"},
	{"rubocop/rubocop", "parse_log_rspec_transformed_json"},
	{"burntsushi/ripgrep", "parse_log_cargo"},
	{"sharkdp/bat", "parse_log_cargo"},
	{"astral-sh/ruff", "parse_log_cargo"},
	{"tokio-rs/tokio", "parse_log_cargo"},
	{"uutils/coreutils", "parse_log_cargo"},
	{"nushell/nushell", "parse_log_cargo"},
	{"tokio-rs/axum", "parse_log_cargo"},
}

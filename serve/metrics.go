package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// metric is a counter or a gauge with one value, or with a value for each value of a label.
type metric struct {
	Name  string
	Help  string
	Value float64
	Label string             // "" = one value
	By    map[string]float64 // values by the label's value
}

// metricsOf returns metrics for the JSON fields of a struct of counts: a number is a metric, a map of numbers is
// one with a label. Names that end with _total are counters.
func metricsOf(prefix, label string, stats any) []metric {
	text, err := json.Marshal(stats)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	var out []metric
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		m := metric{Name: prefix + "_" + strings.ToLower(name), Help: strings.ReplaceAll(name, "_", " ") + " of " + strings.ReplaceAll(prefix, "_", " ")}
		if json.Unmarshal(fields[name], &m.Value) != nil {
			if json.Unmarshal(fields[name], &m.By) != nil {
				continue // strings are not metrics
			}
			m.Label = cmp.Or(label, "of")
		}
		out = append(out, m)
	}
	return out
}

// writeMetrics writes Prometheus's text format, version 0.0.4.
func writeMetrics(w io.Writer, metrics []metric) {
	for _, m := range metrics {
		kind := "gauge"
		if strings.HasSuffix(m.Name, "_total") {
			kind = "counter"
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, kind)
		if m.Label == "" {
			fmt.Fprintf(w, "%s %s\n", m.Name, number(m.Value))
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(m.By)) {
			fmt.Fprintf(w, "%s{%s=\"%s\"} %s\n", m.Name, m.Label, escape.Replace(key), number(m.By[key]))
		}
	}
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

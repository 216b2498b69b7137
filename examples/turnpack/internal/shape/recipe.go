package shape

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward/weights"
)

// Metadata returns the file metadata about a recipe. r has the name of the recipe and the
// settings that the run uses.
func Metadata(r recipe.Recipe) (map[string]string, error) {
	named, err := recipe.Named(r.Name)
	if err != nil {
		return nil, err
	}
	was, settings, changed := named.Settings(), map[string]string{}, []string{}
	for i, s := range r.Settings() {
		settings[s.Flag] = s.Value
		if s.Value != was[i].Value {
			changed = append(changed, s.Flag)
		}
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	return map[string]string{"recipe": r.Name, "recipe.digest": r.Digest(), "recipe.settings": string(text), "recipe.changed": strings.Join(changed, " ")}, nil
}

// Defaults gives flags that are not on the command line their values from --recipe.
func Defaults(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	name := ""
	for _, path := range ctx.Path {
		if path.Flag != nil && path.Flag.Name == "recipe" {
			name, _ = ctx.FlagValue(path.Flag).(string)
		}
	}
	r, err := recipe.Named(name)
	if err != nil {
		return nil, nil // there is none, or Rules reports it with all other errors
	}
	for _, s := range r.Settings() {
		if s.Flag == flag.Name {
			return s.Value, nil
		}
	}
	return nil, nil
}

// List prints the names of all recipes, each with a description.
func List(out io.Writer, asJSON bool) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	names := []string{}
	for _, r := range recipe.All() {
		names = append(names, r.Name)
		fmt.Fprintf(w, "%s\t%s\n", r.Name, r.About)
	}
	if asJSON {
		return json.NewEncoder(out).Encode(names)
	}
	return w.Flush()
}

// Print prints a recipe in full.
func Print(out io.Writer, r recipe.Recipe, asJSON bool) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Name, About, Digest string
			Settings, Trainer   []recipe.Setting
			Loss                string
			Differs             []string
		}{r.Name, r.About, r.Digest(), r.Settings(), r.Trainer, r.Loss, r.Differs})
	}
	fmt.Fprintf(w, "%s: %s\ndigest %s\n\n", r.Name, r.About, r.Digest())
	for _, s := range r.Settings() {
		fmt.Fprintf(w, "--%s=%s\t%s\n", s.Flag, s.Value, s.Source)
	}
	fmt.Fprintf(w, "\nleft to the trainer:\n")
	if a, ok := weights.Preset(r.Loss); ok {
		fmt.Fprintf(w, "loss averaged by\t%s (%s)\n", a.Name, strings.ReplaceAll(a.Mode, "_", " "))
	}
	for _, s := range r.Trainer {
		fmt.Fprintf(w, "%s=%s\t%s\n", s.Flag, s.Value, s.Source)
	}
	fmt.Fprintf(w, "\nnot as the system:\n")
	for _, d := range r.Differs {
		fmt.Fprintf(w, "- %s\n", d)
	}
	return w.Flush()
}

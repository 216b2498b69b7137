// Package flagfile reads flags of a command from a file.
package flagfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

// Parse reads arguments, of which --config names a JSON file of flags by name: those that
// the command line gives win.
func Parse(fs *flag.FlagSet, args []string) error {
	path := fs.String("config", "", "JSON `file` of flags by name; those given here win")
	if err := fs.Parse(args); err != nil || *path == "" {
		return err
	}
	return set(fs, *path)
}

func set(fs *flag.FlagSet, path string) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	text, err := os.ReadFile(path)
	var values map[string]any
	if d := json.NewDecoder(bytes.NewReader(text)); err == nil {
		d.UseNumber() // as they are written
		err = d.Decode(&values)
	}
	for name, v := range values {
		if !given[name] {
			err = errors.Join(err, fs.Set(name, fmt.Sprint(v)))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

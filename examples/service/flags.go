package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/turnpack/turnpack/internal/strictjson"
)

// parseFlags parses args. --config names a JSON file of flags by name; flags on the
// command line override it.
func parseFlags(fs *flag.FlagSet, args []string) error {
	path := fs.String("config", "", "JSON `file` of flags by name; flags on the command line override it")
	if err := fs.Parse(args); err != nil || *path == "" {
		return err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	text, err := os.ReadFile(*path)
	var values map[string]json.RawMessage
	if err == nil {
		err = strictjson.Decode(text, &values)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !given[name] {
			err = errors.Join(err, setOne(fs, name, values[name]))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", *path, err)
	}
	return nil
}

// setOne sets a flag to a JSON string, number or boolean.
func setOne(fs *flag.FlagSet, name string, value json.RawMessage) error {
	text := string(value)
	switch text[0] {
	case '"':
		if err := json.Unmarshal(value, &text); err != nil {
			return err
		}
	case '[', '{', 'n':
		return fmt.Errorf("%s: found %s, expected a text, a number, true or false", name, text)
	}
	if err := fs.Set(name, text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

package shard

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Merge returns the manifest of a set whose shards were written separately, for example on
// several machines, each as a set of its own. The parts are written with the options o, except
// that Name starts at the part's first shard; parts holds their manifests in the order of the
// shards. The result equals that of one writer of all rows. It is an error if the parts differ
// in tokenizer, template, estimator or columns, or have unexpected file names.
func Merge(o Options, parts []*Manifest) (*Manifest, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if len(parts) == 0 || slices.Contains(parts, nil) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "parts"}, "there is none, or one that is nil, expected one or more")
	}
	first := parts[0]
	m := &Manifest{SchemaVersion: first.SchemaVersion, Tokenizer: first.Tokenizer, Template: first.Template, Estimator: first.Estimator,
		Columns: first.Columns, Source: o.Source, Options: o.digest()}
	for i, p := range parts {
		for _, f := range []struct{ what, is, first string }{
			{"schema version", p.SchemaVersion, first.SchemaVersion}, {"tokenizer", p.Tokenizer, first.Tokenizer},
			{"template", p.Template, first.Template}, {"estimator", p.Estimator, first.Estimator}, {"columns", p.Columns, first.Columns},
		} {
			if f.is != f.first {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "parts"}, "part %d has the %s %q and part 0 %q", i, f.what, f.is, f.first).
					WithFix("write all parts with the same options, Export.Columns among them")
			}
		}
		for _, s := range p.Shards {
			if want := o.name(len(m.Shards)); s.File != want {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: s.File}, "part %d, shard %d of the set, has this name, expected %s", i, len(m.Shards), want).
					WithFix("give the parts in the order of their shards, each named by its place")
			}
			m.Shards = append(m.Shards, s)
		}
	}
	m.count()
	return m, nil
}

// count sums the counts of the shards.
func (m *Manifest) count() {
	for _, s := range m.Shards {
		m.Rows += s.Rows
		m.Rollouts += s.Rollouts
		m.Groups += s.Groups
		m.Tokens += s.Tokens
		m.Trained += s.Trained
	}
}

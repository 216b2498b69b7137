package patch

// Change is the effect of a patch on one file.
type Change = change

// Changes returns the changes of p.
func (p *Patch) Changes() []Change { return p.changes() }

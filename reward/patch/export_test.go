package patch

// Change is what a patch does to a file.
type Change = change

// Changes lists what p does.
func (p *Patch) Changes() []Change { return p.changes() }

package main

import (
	_ "embed"
	"io"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/modelfolder"
)

// notices holds the licences of the modules linked into the command; "make notices"
// writes the file.
//
//go:embed THIRD_PARTY_NOTICES
var notices string

type licencesCmd struct{}

// Run prints the licences.
func (licencesCmd) Run(p *cli.Program) error {
	_, err := io.WriteString(p.Out, notices+modelfolder.Notices())
	return err
}

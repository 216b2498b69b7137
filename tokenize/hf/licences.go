package hf

import _ "embed"

// notices is made by make notices of the crates in internal/libtokenizers/Cargo.lock.
//
//go:embed THIRD_PARTY_NOTICES
var notices string

// Licences returns the terms of the Rust crates in libtokenizers.a, which whoever passes
// on a program that links it has to pass on, too.
func Licences() string { return notices }

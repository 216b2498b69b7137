package hf

import _ "embed"

// notices is written by make notices from the crates in internal/libtokenizers/Cargo.lock.
//
//go:embed THIRD_PARTY_NOTICES
var notices string

// Licences returns the licence terms of the Rust crates in libtokenizers.a. Whoever distributes a program that links
// the library must pass them on.
func Licences() string { return notices }

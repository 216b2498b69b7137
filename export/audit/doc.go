// Package audit looks at training batches by anyone and reports what would
// crash a trainer or train wrongly: each finding says where it is, what harm it
// does and what to do.
//
// It reads this module's Parquet and Arrow files, slime's debug rollout data
// (.pt), SkyRL- and verl-style Parquet, and generic Parquet or JSON Lines with
// token ids and a mask under any of the names in use. With a [Model] it also
// knows headers, stop tokens and special tokens. docs/audit.md lists the rules.
package audit

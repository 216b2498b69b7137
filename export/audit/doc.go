// Package audit checks training batches from any writer and reports what would crash a trainer
// or make it train wrongly. Each finding says where it is, what harm it does and how to fix it.
//
// It reads this module's Parquet and Arrow files, slime's debug rollout data (.pt), SkyRL- and
// verl-style Parquet, and generic Parquet or JSON Lines with token ids and a mask under any of
// the usual names. With a [Model] it also checks headers, stop tokens and special tokens.
// docs/audit.md lists the rules.
package audit

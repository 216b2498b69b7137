// Package write makes lines of other programs' formats from rollouts: OpenAI chat JSONL
// ([Chat]) and ATIF ([ATIF]). Each comes with notes of what its form cannot hold.
package write

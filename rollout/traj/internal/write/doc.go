// Package write writes rollouts as lines of other programs' formats: OpenAI chat JSONL
// ([Chat]) and ATIF ([ATIF]). Each returns notes about what the format cannot hold.
package write

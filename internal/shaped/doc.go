// Package shaped applies the rules of package reward/shaping: [Rules.Shape] to each rollout,
// [Rules.Decide] to all groups together. Both report what they changed and why. turnpack.Pipeline
// calls them.
package shaped

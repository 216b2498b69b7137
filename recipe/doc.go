// Package recipe names what systems do between rollouts and rows: how turns become
// rows, how outcomes become rewards, what shapes and filters them, how advantages are
// made of them. A [Recipe] is a value whose facts name their source (system@commit, file
// and setting); [Recipe.Settings] lists every one of them as the flag of `turnpack
// convert` that changes it.
//
// A recipe changes what is written into rows. What the trainer does with them (clipping
// of ratios, KL terms, how losses are averaged) is listed as such, and a difference from
// the system that this module does not follow is a sentence in [Recipe.Differs].
//
// turnpack.Pipeline.With follows a recipe; `turnpack recipe NAME` prints one and
// `turnpack convert --recipe NAME` follows it, with each flag given beside it winning.
package recipe

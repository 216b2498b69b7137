// Package recipe describes what systems do between rollouts and rows: how turns become rows, how
// outcomes become rewards, which rules shape and filter them, and how advantages are computed. A
// [Recipe] is a value whose facts name their source (system@commit, file and setting);
// [Recipe.Settings] lists every fact as the flag of `turnpack convert` that changes it.
//
// A recipe changes what is written into rows. What the trainer does with them (clipping of ratios,
// KL terms, how losses are averaged) is listed as such. A difference from the system that this
// module does not follow is a sentence in [Recipe.Differs].
//
// turnpack.Pipeline.With applies a recipe; `turnpack recipe NAME` prints one and `turnpack convert
// --recipe NAME` applies it, with other given flags taking precedence.
package recipe

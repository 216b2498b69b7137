// Package pack puts rows into bins of a token budget and spreads bins over
// data-parallel ranks.
//
// [BestFit] sees all rows and packs by best-fit decreasing. [Balance] gives each rank
// about the same work. Everything follows from the order of the input alone.
package pack

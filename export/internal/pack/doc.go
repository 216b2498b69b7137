// Package pack packs rows into bins of a token budget and spreads bins over data-parallel
// ranks.
//
// [BestFit] sees all rows and packs them by best-fit decreasing. [Balance] gives each rank
// about the same work. The results depend only on the input and its order.
package pack

// Package pickle reads Python pickles of plain values, and torch.save files that hold one.
// It never instantiates a class: other values become an [Object] with the name of their
// class. Files are untrusted: time and memory are bounded by their size.
package pickle

// Package pickle reads Python pickles of plain values, and the files of torch.save that
// hold one. No class is ever made: what is not plain is an [Object] with the name of its
// class. Files are untrusted: time and memory follow from their size.
package pickle

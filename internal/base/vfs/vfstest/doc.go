// Package vfstest has disks for tests: one that fails, tears writes and loses what was not synced ([Faulty]), and one
// that is slow ([Slow]).
package vfstest

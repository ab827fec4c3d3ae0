// Package vfstest implements disks for tests.
//
// [Faulty] fails, tears writes and loses unsynced data. [Slow] delays calls.
package vfstest

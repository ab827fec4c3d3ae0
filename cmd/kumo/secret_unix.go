//go:build unix

package main

import "io/fs"

// isOpen reports whether others than its owner may read a file.
func isOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 && info.Mode().IsRegular() }

//go:build unix

package main

import "io/fs"

// isOpen reports whether users other than the owner may read a file.
func isOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 && info.Mode().IsRegular() }

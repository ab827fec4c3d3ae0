package target

// isNotDir always returns false: for a path below a file, Windows returns an error that is fs.ErrNotExist.
func isNotDir(error) bool { return false }

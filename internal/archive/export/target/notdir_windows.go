package target

// isNotDir is never true: Windows says of what would lie in a file that the path is not there.
func isNotDir(error) bool { return false }

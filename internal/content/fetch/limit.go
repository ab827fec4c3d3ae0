package fetch

// Files returns how many files and sockets this process may have open; 0 if the system does not report it.
func Files() int { return openFiles() }

// files returns Files, or a default.
func files() int {
	if n := openFiles(); n > 0 {
		return n
	}
	return defaultFiles
}

package fetch

// Files is how many files and sockets this process may have open; 0 if the system does not say.
func Files() int { return openFiles() }

// files is Files, or a guess.
func files() int {
	if n := openFiles(); n > 0 {
		return n
	}
	return defaultFiles
}

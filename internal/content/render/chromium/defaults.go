package chromium

import (
	"runtime"

	"kumo/internal/base/machine"
)

// MaxPageRequests is the number of requests that a page of a crawl may make; later ones are blocked.
const MaxPageRequests = 300

const (
	memoryPerPage  = 400 << 20 // bytes, with some room
	maxPagesAtOnce = 16
)

// PagesAtOnce returns how many pages this machine can render at once.
func PagesAtOnce() int {
	n := runtime.GOMAXPROCS(0)
	if gb := machine.NewLimits(".").Read().MemoryGB; gb > 0 {
		n = min(n, int(gb/2*(1<<30)/memoryPerPage))
	}
	return min(max(n, 1), maxPagesAtOnce)
}

// Find returns the program of a browser with the path, or of the first that is found if it is "".
func Find(path string) (string, error) {
	cfg, err := Config{Path: path, NoSandbox: true}.withDefaults()
	return cfg.Path, err
}

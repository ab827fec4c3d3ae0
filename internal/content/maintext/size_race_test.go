//go:build race

package maintext

// The race detector makes reading ten times as slow.
const (
	hostileSize = 128 << 10
	samples     = 1
)

//go:build race

package maintext

// The race detector makes extraction ten times slower.
const (
	hostileSize = 128 << 10
	samples     = 1
)

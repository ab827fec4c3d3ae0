//go:build !race

package maintext

const (
	hostileSize = 2 << 20
	samples     = 3 // pages of each template and language
)

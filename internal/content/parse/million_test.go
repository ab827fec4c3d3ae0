//go:build !race

package parse

const million = 1_000_000

//go:build race

package parse

const million = 100_000 // the race detector makes reading ten times as slow

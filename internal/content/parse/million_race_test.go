//go:build race

package parse

const million = 100_000 // reading is ten times slower with the race detector

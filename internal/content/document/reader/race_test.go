//go:build race

package reader_test

// underRace: the race detector is on, which makes reading ten times as slow.
const underRace = true

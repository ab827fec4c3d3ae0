//go:build !race

package reader_test

const underRace = false

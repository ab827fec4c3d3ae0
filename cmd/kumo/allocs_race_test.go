//go:build race

package main

const raced = true // the race detector allocates, and empties pools

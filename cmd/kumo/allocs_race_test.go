//go:build race

package main

const raced = true // the race detector allocates, and has pools forget

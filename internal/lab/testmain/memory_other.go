//go:build !linux

package testmain

func inMemory(string) bool { return false }

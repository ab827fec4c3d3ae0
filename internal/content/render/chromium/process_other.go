//go:build !linux

package chromium

import "os/exec"

// isolate does nothing: if kumo is killed, the browser ends when it finds its pipe closed.
func isolate(*exec.Cmd) {}

// killGroup does nothing: the browser ends its processes itself.
func killGroup(int) {}

//go:build !linux

package cputime

import "time"

var began = time.Now()

func now() time.Duration { return time.Since(began) }

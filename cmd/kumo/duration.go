package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// A duration is a flag for a time as Go writes it, in which days and weeks are understood, too: 90s, 1h30m, 7d, 2w.
type duration struct{ d *time.Duration }

func durationVar(f *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(duration{d}, name, usage)
}

func (d duration) Type() string { return "duration" }

func (d duration) String() string {
	if d.d == nil || *d.d == 0 {
		return "0"
	}
	return d.d.String()
}

func (d duration) Set(text string) (err error) {
	*d.d, err = parseDuration(text)
	return err
}

// longUnits are those that Go does not know.
var longUnits = regexp.MustCompile(`(\d+\.?\d*|\.\d+)([dw])`)

// parseDuration reads days and weeks as hours.
func parseDuration(text string) (time.Duration, error) {
	hours := longUnits.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil || n > math.MaxInt32 {
			return part
		}
		if n *= 24; part[len(part)-1] == 'w' {
			n *= 7
		}
		return strconv.FormatFloat(n, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(hours)
	if err != nil {
		return 0, fmt.Errorf("%q is no time: write a number and its unit as in 500ms, 90s, 1h30m, 7d or 2w", text)
	}
	return d, nil
}

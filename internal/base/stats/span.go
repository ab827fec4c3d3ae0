package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxClipped is the maximum length of a clipped error text, in bytes.
const maxClipped = 160

// Clip shortens a text to a line or two.
func Clip(text string) string {
	if len(text) <= maxClipped {
		return text
	}
	return strings.ToValidUTF8(text[:maxClipped], "") + "…"
}

// Span formats a duration with two or three digits: "250 ms", "1.5 s", "42 s", "12 min", "9.5 h", "3.2 days".
func Span(d time.Duration) string {
	in := func(unit time.Duration, name string) string {
		n := float64(d) / float64(unit)
		if n >= 10 {
			return fmt.Sprintf("%.0f %s", n, name)
		}
		return strconv.FormatFloat(float64(int(n*10+0.5))/10, 'f', -1, 64) + " " + name
	}
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	case d < 100*time.Second:
		return in(time.Second, "s")
	case d < 100*time.Minute:
		return in(time.Minute, "min")
	case d < 48*time.Hour:
		return in(time.Hour, "h")
	}
	return in(24*time.Hour, "days")
}

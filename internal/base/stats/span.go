package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxClipped is how much of an error's text is told again where there is little room.
const maxClipped = 160

// Clip is a text that is no longer than a line or two.
func Clip(text string) string {
	if len(text) <= maxClipped {
		return text
	}
	return strings.ToValidUTF8(text[:maxClipped], "") + "…"
}

// Span is a time for people, in two digits or a little more: "250 ms", "1.5 s", "42 s", "12 min", "9.5 h", "3.2 days".
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

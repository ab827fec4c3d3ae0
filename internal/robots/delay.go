package robots

import (
	"strconv"
	"strings"
	"time"
)

const maxDelay = 365 * 24 * time.Hour

// parseDelay reads a Crawl-delay in seconds: "10", "0.5", "0,5", "10 sec".
func parseDelay(value string) (time.Duration, bool) {
	seconds, _, ok := leadingNumber(value)
	return inSeconds(seconds), ok
}

// parseRate reads a Request-rate, pages/time with the time's unit s, m or h: "1/5", "30/1m". Hours of the day that follow are
// ignored: the rate holds all day.
func parseRate(value string) (time.Duration, bool) {
	before, after, _ := strings.Cut(value, "/")
	pages, _, ok := leadingNumber(before)
	span, unit, ok2 := leadingNumber(strings.TrimSpace(after))
	if !ok || !ok2 || pages <= 0 {
		return 0, false
	}
	if unit != "" {
		switch unit[0] {
		case 'm', 'M':
			span *= 60
		case 'h', 'H':
			span *= 3600
		}
	}
	return inSeconds(span / pages), true
}

// leadingNumber reads the decimal number that s begins with, by point or comma.
func leadingNumber(s string) (x float64, rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789.,")
	number := strings.Replace(s[:len(s)-len(rest)], ",", ".", 1)
	x, err := strconv.ParseFloat(number, 64)
	return x, rest, err == nil
}

func inSeconds(x float64) time.Duration {
	return time.Duration(min(x, maxDelay.Seconds()) * float64(time.Second))
}

package robots

import (
	"strconv"
	"strings"
	"time"
)

const maxDelay = 365 * 24 * time.Hour

// parseDelay parses a Crawl-delay in seconds: "10", "0.5", "0,5", "10 sec".
func parseDelay(value string) (time.Duration, bool) {
	seconds, _, ok := leadingNumber(value)
	return inSeconds(seconds), ok
}

// leadingNumber parses the decimal number at the beginning of s, with a point or comma.
func leadingNumber(s string) (x float64, rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789.,")
	number := strings.Replace(s[:len(s)-len(rest)], ",", ".", 1)
	x, err := strconv.ParseFloat(number, 64)
	return x, rest, err == nil
}

func inSeconds(x float64) time.Duration {
	return time.Duration(min(x, maxDelay.Seconds()) * float64(time.Second))
}

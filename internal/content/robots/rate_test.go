package robots

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// written formats rates as in a file.
func written(rates []Rate) string {
	var all []string
	for _, r := range rates {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%v/%vs %s", r.Requests, r.Per.Seconds(), r.Hours())))
	}
	return strings.Join(all, ", ")
}

func TestRates(t *testing.T) {
	for line, want := range map[string]string{
		"Request-rate: 1/5":                   "1/5s",
		"Request-rate: 1/10s 0800-1700":       "1/10s 0800-1700",
		"request-rate:30/1m 09:00 - 17:30":    "30/60s 0900-1730",
		"Request-rate: 60 / 1h\t2200-0600":    "60/3600s 2200-0600",
		"Request-rate: 1/2 S 0000-2400 # all": "1/2s 0000-2400",
		"Request-rate: 0.5/1":                 "0.5/1s",
		"Request-rate: 1/5 0800":              "1/5s", // no hours: all day
		"Request-rate: 1/5 0860-1700":         "1/5s",
		"Request-rate: 1/5 0800-2500":         "1/5s",
		"Request-rate: 1/5 800-1700":          "1/5s",
		"Request-rate: 1/5 0800-0800":         "1/5s",
		"Request-rate: 1/5 UTC":               "1/5s",
		"Request-rate: -1/5":                  "",
		"Request-rate: 1/":                    "",
		"Request-rate:":                       "",
	} {
		if got := written(Parse([]byte("User-agent: *\n"+line), "kumo").Rates()); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestRatesAreOfAGroup(t *testing.T) {
	r := Parse([]byte("User-agent: *\nRequest-rate: 1/9\n\nUser-agent: kumo\nRequest-rate: 1/2 "+
		"0800-1700\nRequest-rate: 2/1 1700-0800\n"), "kumo")
	if got := written(r.Rates()); got != "1/2s 0800-1700, 2/1s 1700-0800" {
		t.Error(got)
	}
	if d, ok := r.Delay(); d != 2*time.Second || !ok {
		t.Errorf("delay %v, %v: want that of the slower hours", d, ok)
	}
}

func TestCrawlDelayBeatsRequestRate(t *testing.T) {
	for _, file := range []string{"Crawl-delay: 2\nRequest-rate: 1/9", "Request-rate: 1/9\nCrawl-delay: 2",
		"Crawl-delay: 2\nRequest-rate: 9/1"} {
		if d, ok := Parse([]byte("User-agent: *\n"+file), "kumo").Delay(); d != 2*time.Second || !ok {
			t.Errorf("%q: delay %v, %v", file, d, ok)
		}
	}
}

func TestRatesAreBounded(t *testing.T) {
	r := Parse([]byte("User-agent: *\n"+strings.Repeat("Request-rate: 1/1\n", 1000)), "kumo")
	if n := len(r.Rates()); n != maxRates {
		t.Errorf("%d rates", n)
	}
}

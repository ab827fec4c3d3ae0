package plan

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
)

// Assumptions are what an estimate rests on beside the plan: what pages are like, and what the crawl may do.
type Assumptions struct {
	PageBytes int64         `json:"page_bytes"` // over the wire
	DiskBytes int64         `json:"disk_bytes"` // a page with all that is kept of it
	BytesFrom string        `json:"from"`       // what these two rest on
	Answer    time.Duration `json:"-"`          // that an answer takes, of a host that has given none

	Hosts     int           `json:"-"` // worked on at once
	PerHost   int           `json:"-"`
	AddrDelay time.Duration `json:"-"`
	Rate      float64       `json:"-"` // requests a second; 0: without limit
	Bandwidth int64         `json:"-"` // bytes a second, likewise
	Pages     int64         `json:"-"` // limits, likewise
	Bytes     int64         `json:"-"`
	Time      time.Duration `json:"-"`
}

// What is assumed where no earlier crawl says it. Pages of the web at large have some 30 kB as they are sent,
// compressed, and take as much in a WARC file, where they stay so; lines in logs, lists and the index, and the crawl's
// state come to 2 kB more.
const (
	DefaultPageBytes = 30_000
	DefaultDiskBytes = 32_000
	DefaultAnswer    = 300 * time.Millisecond
)

// A Sum is what a plan comes to as a whole.
type Sum struct {
	Hosts     int `json:"hosts"`
	Reached   int `json:"reached"`   // of these, have answered
	Forbidden int `json:"forbidden"` // have answered that no seed may be fetched
	Unknown   int `json:"unknown"`   // hosts, of how many pages

	Pages   int64   `json:"pages"` // of hosts where the number is known, within the limits
	Bytes   int64   `json:"bytes"`
	Disk    int64   `json:"disk_bytes"`
	Seconds float64 `json:"seconds"` // at least
	By      string  `json:"by"`      // what the end waits for
	Limit   string  `json:"limit,omitempty"`

	// how many hosts are to be worked on at once so that none waits for a place
	Concurrency int         `json:"concurrency_enough"`
	Assumed     Assumptions `json:"assumed"`
}

// Estimate says how long each host takes, and what the whole comes to; hosts that take the longest go first.
func (p *Plan) Estimate(a Assumptions) {
	a.PageBytes, a.DiskBytes = cmp.Or(a.PageBytes, DefaultPageBytes), cmp.Or(a.DiskBytes, DefaultDiskBytes)
	a.Answer, a.Hosts, a.PerHost = cmp.Or(a.Answer, DefaultAnswer), max(a.Hosts, 1), max(a.PerHost, 1)
	s := Sum{Hosts: len(p.Hosts), Assumed: a}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if h.Answer == 0 {
			h.Answer = a.Answer.Seconds()
		}
		switch h.Allowed {
		case No:
			s.Forbidden++
			s.Reached++
		case NoReply:
		default:
			s.Reached++
		}
		if h.Pages == nil {
			s.Unknown++
			continue
		}
		seconds := float64(*h.Pages) * h.each(a.PerHost)
		h.Bytes, h.Seconds = *h.Pages*a.PageBytes, &seconds
		s.Pages += *h.Pages
	}
	slices.SortStableFunc(p.Hosts, slowerFirst)
	s.limit(p.Hosts, a)
	s.Bytes, s.Disk = s.Pages*a.PageBytes, s.Pages*a.DiskBytes
	s.Concurrency = concurrencyFor(p.Hosts, a)
	p.Sum = s
}

// each is how many seconds a page takes of the time that a host has. Its delay is counted from the end of an answer, of
// several connections from the beginning of a request.
func (h *Host) each(perHost int) float64 {
	if perHost > 1 {
		return max(h.Delay, h.Answer/float64(perHost))
	}
	return h.Delay + h.Answer
}

// slowerFirst puts hosts that take longer before others, and those of which that is unknown before those that take
// none.
func slowerFirst(a, b Host) int {
	rank := func(h *Host) float64 {
		if h.Seconds == nil {
			return 0.5e-9
		}
		return *h.Seconds
	}
	return cmp.Or(cmp.Compare(rank(&b), rank(&a)), cmp.Compare(a.Host, b.Host))
}

// limit sets what the crawl comes to within its limits, how long that takes at least, and what is waited for.
func (s *Sum) limit(hosts []Host, a Assumptions) {
	s.Seconds, s.By = longest(hosts, s.Pages, a)
	most, name := int64(math.MaxInt64), ""
	if a.Pages > 0 {
		most, name = a.Pages, "--limit"
	}
	if n := a.Bytes / a.PageBytes; a.Bytes > 0 && n < most {
		most, name = max(n, 1), "--size-limit"
	}
	if name != "" && (s.Pages > most || s.Unknown > 0) {
		if s.Unknown > 0 && s.Pages < most {
			s.Limit = fmt.Sprintf("%s, if the hosts of unknown size have as many", name)
		} else {
			s.Limit = name
		}
		s.Pages = most
		s.Seconds, s.By = untilPages(hosts, most, a), s.Limit
	}
	if limit := a.Time.Seconds(); a.Time > 0 && (limit < s.Seconds || s.Unknown > 0 && name == "") {
		s.Pages = min(s.Pages, int64(pagesWithin(hosts, limit, a)))
		s.Seconds, s.By, s.Limit = limit, "--time-limit", "--time-limit"
	}
}

// longest is how long so many pages take at least, and what is waited for in the end.
func longest(hosts []Host, pages int64, a Assumptions) (seconds float64, by string) {
	consider := func(t float64, what string) {
		if t > seconds {
			seconds, by = t, what
		}
	}
	work := 0.0
	addresses := map[netip.Addr]int64{}
	sharing := map[netip.Addr]int{}
	for i := range hosts {
		h := &hosts[i]
		if h.Pages == nil || *h.Pages == 0 {
			continue
		}
		consider(*h.Seconds, h.Host)
		work += float64(*h.Pages) * h.Answer
		if h.addr.IsValid() {
			addresses[h.addr] += *h.Pages
			sharing[h.addr]++
		}
	}
	for addr, n := range addresses {
		if sharing[addr] > 1 {
			consider(float64(n)*a.AddrDelay.Seconds(),
				fmt.Sprintf("%d hosts at %s (--ip-delay)", sharing[addr], addr))
		}
	}
	consider(work/float64(a.Hosts*a.PerHost), "--concurrency")
	if a.Rate > 0 {
		consider(float64(pages)/a.Rate, "--max-rate")
	}
	if a.Bandwidth > 0 {
		consider(float64(pages*a.PageBytes)/float64(a.Bandwidth), "--bandwidth")
	}
	return seconds, by
}

// pagesWithin is how many pages there can be in a time; hosts of unknown size have as many as are wanted.
func pagesWithin(hosts []Host, seconds float64, a Assumptions) float64 {
	n, work := 0.0, 0.0
	for i := range hosts {
		h := &hosts[i]
		most := math.Inf(1)
		if h.Pages != nil {
			most = float64(*h.Pages)
		}
		have := most
		if each := h.each(a.PerHost); each > 0 {
			have = min(most, seconds/each)
		}
		n += have
		work += have * h.Answer
	}
	if room := seconds * float64(a.Hosts*a.PerHost); work > room && work > 0 {
		n *= room / work
	}
	if a.Rate > 0 {
		n = min(n, seconds*a.Rate)
	}
	if a.Bandwidth > 0 {
		n = min(n, seconds*float64(a.Bandwidth)/float64(a.PageBytes))
	}
	return n
}

// untilPages is how long it takes at least until there are so many pages.
func untilPages(hosts []Host, pages int64, a Assumptions) float64 {
	low, high := 0.0, 1.0
	for pagesWithin(hosts, high, a) < float64(pages) && high < 1e12 {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; pagesWithin(hosts, middle, a) < float64(pages) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// concurrencyFor is how many hosts have a request under way at once, as long as all have pages left, and a quarter more.
func concurrencyFor(hosts []Host, a Assumptions) int {
	n := 0.0
	for i := range hosts {
		h := &hosts[i]
		if h.Pages != nil && *h.Pages == 0 {
			continue
		}
		if each := h.each(a.PerHost); each > 0 {
			n += min(1, h.Answer/each)
		}
	}
	return max(1, int(math.Ceil(n*1.25)))
}

// Package stall explains why a crawl fetches nothing although URLs are pending, and suggests a remedy.
//
// [Judge] is a function of a snapshot and uses no clock. A [Watch] calls it repeatedly and reports changes.
package stall

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/stats"
)

// A Kind is why nothing is fetched.
type Kind string

// The kinds.
const (
	None     Kind = ""         // the crawl goes on, has nothing to do, or is paused by a person
	Disk     Kind = "disk"     // has too little room
	Outage   Kind = "outage"   // of the crawl's own line
	DNS      Kind = "dns"      // no name is found
	Sockets  Kind = "sockets"  // this machine has none left
	Outbox   Kind = "outbox"   // other nodes do not take the links that were found
	Rate     Kind = "rate"     // --max-rate is next to nothing
	Slow     Kind = "slow"     // requests are under way that nobody answers
	Backoff  Kind = "backoff"  // all hosts are left alone, after failures or at their own wish
	Delay    Kind = "delay"    // the hosts that are left have long delays
	Robots   Kind = "robots"   // what waits, waits for robots.txt
	Workers  Kind = "workers"  // hosts are due, and nobody takes them: memory, or a slow disk
	Failures Kind = "failures" // all that is asked fails
)

// Kinds are all that an alarm may have.
var Kinds = []Kind{Disk, Outage, DNS, Sockets, Outbox, Rate, Slow, Backoff, Delay, Robots, Workers, Failures}

// After is how long nothing may be answered before that is a stall.
const After = time.Minute

// A Snapshot is a crawl at one time.
type Snapshot struct {
	SinceAnswer time.Duration // since something was answered last, or the crawl began
	URLs        int           // that wait
	Active      int           // hosts with a request under way
	Waiting     int           // hosts whose time has not come, or that have no place
	BackingOff  int           // hosts that are left alone
	Next        NextHost      // the host that may be asked first
	HasNext     bool

	Paused   bool
	DiskFull bool
	DiskFree uint64 // bytes, if it is full
	DiskNeed uint64 // bytes that it should have

	Offline       bool
	OfflineFor    time.Duration
	OfflineReason string

	Folder        string // the crawl's
	OutboxFull    bool
	NoSocket      int64            // attempts since then for which this machine had no socket
	Failures      map[string]int64 // attempts since then that have failed, by kind ("dns", "timeout", ...)
	Failure       string           // the last one in words
	Rate          float64          // --max-rate
	Timeout       time.Duration    // --timeout
	Checkpointing bool             // a checkpoint is being written
}

// A Next is the host that may be asked first.
type NextHost struct {
	Host  string
	In    time.Duration // until then; 0 or less: now
	Why   string        // what it waits for, in a word or two
	Delay time.Duration // between its requests
}

// An Alarm is what is to be said of a stall; its Kind is None where there is none.
type Alarm struct {
	Kind  Kind          `json:"kind"`
	Words string        `json:"words"`
	Do    string        `json:"do"` // what to do, with the exact flag or command
	For   time.Duration `json:"-"`  // that nothing was answered
}

// Diagnose says why nothing is fetched.
func Diagnose(s *Snapshot) Alarm {
	if s.URLs == 0 || s.Paused || s.SinceAnswer < After {
		return Alarm{}
	}
	a := diagnose(s)
	a.For = s.SinceAnswer
	return a
}

func diagnose(s *Snapshot) Alarm {
	switch {
	case s.DiskFull:
		return Alarm{Kind: Disk, Words: fmt.Sprintf("the disk has %s left, and is to have %s", bytes(s.DiskFree),
			bytes(s.DiskNeed)), Do: "make room, or stop the crawl and go on with a lower --min-free-disk"}
	case s.Offline:
		return Alarm{Kind: Outage, Words: fmt.Sprintf(
			"no host that worked has been reached for %s (%s)",
			stats.Span(
				s.OfflineFor,
			),
			s.OfflineReason,
		), Do: "check this machine's line; the crawl goes on by itself when it is " +
			"back, and ends after --outage-wait"}
	case s.OutboxFull:
		return Alarm{Kind: Outbox, Words: "the outbox is full: other nodes do not take the links that were found here",
			Do: "kumo status says which nodes are not heard of: start them again, or wait until others have their hosts"}
	case s.NoSocket > 0 && s.Active == 0:
		return Alarm{Kind: Sockets, Words: "this machine has no socket left for a connection",
			Do: "raise ulimit -n, or go on with a lower --concurrency"}
	}
	kind, n, all := topFailure(s.Failures)
	switch {
	case kind == "dns" && 2*n > all:
		return Alarm{Kind: DNS, Words: fmt.Sprintf("%s to look a name up %s failed since, and no other request was "+
			"answered (%s)", stats.Count(n, "attempts"), stats.Either(n, "has", "have"), s.Failure),
			Do: "try kumo check links URL, which fetches one; if name servers are down, go on with --dns-server HOST:PORT"}
	case s.Active > 0 && all == 0:
		return Alarm{Kind: Slow, Words: fmt.Sprintf("%s under way, and none was answered",
			stats.Count(s.Active, "requests")+stats.Either(s.Active, " is", " are")),
			Do: fmt.Sprintf("go on with a --timeout lower than %s, or see where workers wait: --metrics localhost:9090 and "+
				"/debug/pprof/goroutine?debug=1", stats.Span(s.Timeout))}
	case s.Rate > 0 && s.Rate*After.Seconds() < 1:
		return Alarm{Kind: Rate, Words: fmt.Sprintf("--max-rate lets a request go every %s",
			stats.Span(time.Duration(float64(time.Second)/s.Rate))), Do: "go on with a higher --max-rate"}
	}
	if a := diagnoseHosts(s); a.Kind != None {
		return a
	}
	if all > 0 {
		return Alarm{Kind: Failures, Words: fmt.Sprintf(
			"%s failed since%s by %s (%s)",
			stats.Count(all, "attempts")+stats.Either(all, " has", " have"),
			stats.Either(all, ",", ", most of them"),
			kind,
			s.Failure,
		), Do: s.hostsCommand() + " lists what hosts wait for; kumo check links URL fetches one and tells what came"}
	}
	words := "hosts may be asked, and nobody asks them: workers wait for memory or for the disk"
	if s.Checkpointing {
		words += ", where a checkpoint is being written"
	}
	return Alarm{Kind: Workers, Words: words, Do: "go on with more --memory or on a faster disk; --metrics " +
		"localhost:9090 and /debug/pprof/goroutine?debug=1 say where workers wait"}
}

// hostsCommand is the command that lists the crawl's hosts.
func (s *Snapshot) hostsCommand() string {
	folder := s.Folder
	if strings.ContainsAny(folder, " \t'\"$&;()*?") {
		folder = "'" + strings.ReplaceAll(folder, "'", `'\''`) + "'"
	}
	return "kumo hosts -o " + cmp.Or(folder, "FOLDER")
}

// diagnoseHosts judges by what hosts wait for.
func diagnoseHosts(s *Snapshot) Alarm {
	next := ""
	if s.HasNext {
		next = fmt.Sprintf("; the first is %s, in %s", s.Next.Host, stats.Span(max(s.Next.In, 0)))
	}
	hosts := s.Waiting + s.BackingOff
	switch {
	case hosts == 0 && s.Active == 0:
		return Alarm{Kind: Robots, Words: fmt.Sprintf("%s for a robots.txt that nobody brings",
			stats.Count(s.URLs, "URLs")+stats.Either(s.URLs, " waits", " wait")),
			Do: "wait two seconds more: what nothing would wake is given up, and listed in skipped.jsonl"}
	case s.HasNext && s.Next.In <= 0:
		return Alarm{}
	case s.BackingOff > 0 && s.BackingOff >= s.Waiting:
		return Alarm{Kind: Backoff,
			Words: fmt.Sprintf("%s left alone after failures or at their wish%s", hostsAre(s.BackingOff, hosts), next),
			Do:    "wait, or stop the crawl and go on with a lower --max-backoff; " + s.hostsCommand() + " lists them"}
	case s.HasNext && s.Next.Delay >= After/2:
		return Alarm{Kind: Delay, Words: fmt.Sprintf("%s left, at one request every %s (%s)%s", hostsAre(hosts, 0),
			stats.Span(s.Next.Delay), s.Next.Why, next),
			Do: "wait, or go on with a lower --max-crawl-delay if the delay is robots.txt's, or a lower --delay if not"}
	case s.HasNext && s.Next.In > After:
		return Alarm{Kind: Delay, Words: fmt.Sprintf("%s for their time (%s)%s",
			stats.Count(hosts, "hosts")+stats.Either(hosts, " waits", " wait"), s.Next.Why, next),
			Do: "wait; " + s.hostsCommand() + " says what each waits for"}
	}
	return Alarm{}
}

// hostsAre says of so many hosts that they are: all, where there are several and no others.
func hostsAre(n, all int) string {
	text := stats.Count(n, "hosts") + stats.Either(n, " is", " are")
	if n == all && n > 1 {
		return "all " + text
	}
	return text
}

func bytes(n uint64) string { return stats.Bytes(int64(min(n, 1<<62))) }

// topFailure is the kind of failure that there were most of, how many of these, and how many of all.
func topFailure(failures map[string]int64) (kind string, n, all int64) {
	kinds := slices.SortedFunc(maps.Keys(failures), func(a, b string) int {
		return cmp.Or(cmp.Compare(failures[b], failures[a]), cmp.Compare(a, b))
	})
	for _, k := range kinds {
		all += failures[k]
	}
	if len(kinds) > 0 {
		kind, n = kinds[0], failures[kinds[0]]
	}
	return kind, n, all
}

// A Watch remembers whether there is a stall. It is used by one goroutine.
type Monitor struct {
	now Alarm
}

// A Change is what has changed with a stall.
type Change uint8

// The changes.
const (
	Same  Change = iota
	Began        // or its reason is another
	Ended
)

// Update says what there is to be said now, and whether that is news. A reason that changes and comes back is no news.
func (w *Monitor) Update(s *Snapshot) (Alarm, Change) {
	a := Diagnose(s)
	was := w.now
	w.now = a
	switch {
	case a.Kind == None && was.Kind != None:
		return a, Ended
	case a.Kind != None && was.Kind == None:
		return a, Began
	}
	return a, Same
}

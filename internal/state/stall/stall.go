// Package stall explains why a crawl fetches nothing although URLs are pending, and suggests a remedy.
//
// [Diagnose] is a function of a snapshot and uses no clock. A [Monitor] calls it repeatedly and reports changes.
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

// A Kind is the reason why nothing is fetched.
type Kind string

// Reasons for a stall.
const (
	None     Kind = ""         // the crawl makes progress, is finished, or was paused by the user
	Disk     Kind = "disk"     // too little free space
	Outage   Kind = "outage"   // the crawl's own connection is down
	DNS      Kind = "dns"      // no name can be resolved
	Sockets  Kind = "sockets"  // this machine has no free socket
	Outbox   Kind = "outbox"   // other nodes do not receive the links found here
	Limit    Kind = "limit"    // other nodes have the rest of the page limit
	Rate     Kind = "rate"     // --max-rate is very low
	Slow     Kind = "slow"     // requests under way get no response
	Backoff  Kind = "backoff"  // all hosts back off, after failures or at their request
	Delay    Kind = "delay"    // the remaining hosts have long delays
	Robots   Kind = "robots"   // all pending URLs wait for robots.txt
	Workers  Kind = "workers"  // hosts are due, but no worker takes them, because of memory or a slow disk
	Failures Kind = "failures" // all requests fail
)

// Kinds are the kinds of an alarm.
var Kinds = []Kind{Disk, Outage, DNS, Sockets, Outbox, Limit, Rate, Slow, Backoff, Delay, Robots, Workers, Failures}

// After is the time without a response that counts as a stall.
const After = time.Minute

// A Snapshot is the state of a crawl at one time.
type Snapshot struct {
	SinceAnswer time.Duration // since the last response, or the start of the crawl
	URLs        int           // pending
	Active      int           // hosts with a request under way
	Waiting     int           // hosts that are not due, or have no slot
	BackingOff  int           // hosts that back off
	Next        NextHost      // the host that may be visited first
	HasNext     bool

	Paused   bool
	DiskFull bool
	DiskFree uint64 // bytes, if DiskFull
	DiskNeed uint64 // required bytes

	Offline       bool
	OfflineFor    time.Duration
	OfflineReason string

	Folder        string // of the crawl
	OutboxFull    bool
	ShareUsed     bool             // this node has used its share of the page limit of all nodes
	NoSocket      int64            // attempts in this time for which this machine had no socket
	Failures      map[string]int64 // failed attempts in this time, by kind ("dns", "timeout", ...)
	Failure       string           // text of the last failure
	Rate          float64          // --max-rate
	Timeout       time.Duration    // --timeout
	Checkpointing bool             // a checkpoint is being written
}

// A NextHost is the host that may be visited first.
type NextHost struct {
	Host  string
	In    time.Duration // time until then; 0 or less means now
	Why   string        // what it waits for, in one or two words
	Delay time.Duration // between its requests
}

// An Alarm describes a stall. Its Kind is None if there is none.
type Alarm struct {
	Kind  Kind          `json:"kind"`
	Words string        `json:"words"`
	Do    string        `json:"do"` // remedy, with the exact flag or command
	For   time.Duration `json:"-"`  // time without a response
}

// Diagnose returns the reason why nothing is fetched.
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
		return Alarm{Kind: Disk, Words: fmt.Sprintf("free disk space is %s, and must be %s", bytes(s.DiskFree),
			bytes(s.DiskNeed)), Do: "free some space, or stop the crawl and resume it with a lower --min-free-disk"}
	case s.Offline:
		return Alarm{Kind: Outage, Words: fmt.Sprintf("no host that worked has been reached for %s (%s)",
			stats.Span(s.OfflineFor), s.OfflineReason),
			Do: "check this machine's connection; the crawl resumes by itself when it is back, and ends after --outage-wait"}
	case s.OutboxFull:
		return Alarm{Kind: Outbox, Words: "the outbox is full: other nodes do not receive the links that were found here",
			Do: "kumo status lists the nodes that do not respond: restart them, or wait until their hosts are reassigned"}
	case s.ShareUsed:
		return Alarm{Kind: Limit, Words: "this node has used its share of --limit, and the other nodes have not used theirs",
			Do: "wait: the nodes exchange shares every few seconds; or raise the limit: kumo set --crawl NAME limit=N"}
	case s.NoSocket > 0 && s.Active == 0:
		return Alarm{Kind: Sockets, Words: "this machine has no socket left for a connection",
			Do: "raise ulimit -n, or resume with a lower --concurrency"}
	}
	kind, n, all := topFailure(s.Failures)
	switch {
	case kind == "dns" && 2*n > all:
		return Alarm{Kind: DNS, Words: fmt.Sprintf("%s to resolve a name %s failed since, and no other request "+
			"got a response (%s)", stats.Count(n, "attempts"), stats.Either(n, "has", "have"), s.Failure),
			Do: "try kumo check links URL, which fetches one; if name servers are down, resume with --dns-server HOST:PORT"}
	case s.Active > 0 && all == 0:
		return Alarm{Kind: Slow, Words: fmt.Sprintf("%s under way, without a response",
			stats.Count(s.Active, "requests")+stats.Either(s.Active, " is", " are")),
			Do: fmt.Sprintf("resume with a --timeout lower than %s, or see where workers wait: --metrics localhost:9090 and "+
				"/debug/pprof/goroutine?debug=1", stats.Span(s.Timeout))}
	case s.Rate > 0 && s.Rate*After.Seconds() < 1:
		return Alarm{Kind: Rate, Words: fmt.Sprintf("--max-rate allows one request every %s",
			stats.Span(time.Duration(float64(time.Second)/s.Rate))), Do: "resume with a higher --max-rate"}
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
		), Do: s.hostsCommand() + " lists what hosts wait for; kumo check links URL fetches one and shows the response"}
	}
	words := "hosts are due, but no worker visits them: workers wait for memory or for the disk"
	if s.Checkpointing {
		words += ", where a checkpoint is being written"
	}
	return Alarm{Kind: Workers, Words: words, Do: "resume with more --memory or on a faster disk; --metrics " +
		"localhost:9090 and /debug/pprof/goroutine?debug=1 show where workers wait"}
}

// hostsCommand returns the command that lists the crawl's hosts.
func (s *Snapshot) hostsCommand() string {
	folder := s.Folder
	if strings.ContainsAny(folder, " \t'\"$&;()*?") {
		folder = "'" + strings.ReplaceAll(folder, "'", `'\''`) + "'"
	}
	return "kumo hosts -o " + cmp.Or(folder, "FOLDER")
}

// diagnoseHosts returns a reason that follows from what hosts wait for.
func diagnoseHosts(s *Snapshot) Alarm {
	next := ""
	if s.HasNext {
		next = fmt.Sprintf("; the first is %s, in %s", s.Next.Host, stats.Span(max(s.Next.In, 0)))
	}
	hosts := s.Waiting + s.BackingOff
	switch {
	case hosts == 0 && s.Active == 0:
		return Alarm{Kind: Robots, Words: fmt.Sprintf("%s for a robots.txt that is not being fetched",
			stats.Count(s.URLs, "URLs")+stats.Either(s.URLs, " waits", " wait")),
			Do: "wait two more seconds: such URLs are abandoned, and listed in skipped.jsonl"}
	case s.HasNext && s.Next.In <= 0:
		return Alarm{}
	case s.BackingOff > 0 && s.BackingOff >= s.Waiting:
		return Alarm{Kind: Backoff,
			Words: fmt.Sprintf("%s backing off, after failures or at their request%s", hostsAre(s.BackingOff, hosts), next),
			Do:    "wait, or stop the crawl and resume it with a lower --max-backoff; " + s.hostsCommand() + " lists them"}
	case s.HasNext && s.Next.Delay >= After/2:
		return Alarm{Kind: Delay, Words: fmt.Sprintf("%s left, at one request every %s (%s)%s", hostsAre(hosts, 0),
			stats.Span(s.Next.Delay), s.Next.Why, next),
			Do: "wait, or resume with a lower --max-crawl-delay if the delay is robots.txt's, or a lower --delay if not"}
	case s.HasNext && s.Next.In > After:
		return Alarm{Kind: Delay, Words: fmt.Sprintf("%s for their time (%s)%s",
			stats.Count(hosts, "hosts")+stats.Either(hosts, " waits", " wait"), s.Next.Why, next),
			Do: "wait; " + s.hostsCommand() + " lists what each waits for"}
	}
	return Alarm{}
}

// hostsAre returns a phrase such as "3 hosts are", or "all 3 hosts are" if there are several and no others.
func hostsAre(n, all int) string {
	text := stats.Count(n, "hosts") + stats.Either(n, " is", " are")
	if n == all && n > 1 {
		return "all " + text
	}
	return text
}

func bytes(n uint64) string { return stats.Bytes(int64(min(n, 1<<62))) }

// topFailure returns the most frequent kind of failure, its count, and the count of all kinds.
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

// A Monitor remembers whether there is a stall. It must be used by one goroutine.
type Monitor struct {
	now Alarm
}

// A Change is a change of a stall.
type Change uint8

// Changes.
const (
	Same  Change = iota
	Began        // not if only the reason changes
	Ended
)

// Update diagnoses a snapshot, and reports whether a stall has begun or ended. A change of the reason alone is Same.
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

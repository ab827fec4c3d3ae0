package stall

import (
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	quiet := 2 * time.Minute
	failed := func(kind string, n int64) map[string]int64 { return map[string]int64{kind: n, "timeout": 1} }
	for name, c := range map[string]struct {
		s     Snapshot
		kind  Kind
		words string
		do    string
	}{
		"it goes on":       {Snapshot{SinceAnswer: 59 * time.Second, URLs: 5, DiskFull: true}, None, "", ""},
		"nothing pending":  {Snapshot{SinceAnswer: time.Hour, DiskFull: true}, None, "", ""},
		"somebody's pause": {Snapshot{SinceAnswer: time.Hour, URLs: 5, Paused: true, Waiting: 3}, None, "", ""},
		"a full disk": {Snapshot{SinceAnswer: quiet, URLs: 5, DiskFull: true, DiskFree: 4e8, DiskNeed: 1e9, Active: 3}, Disk,
			"free disk space is 400.0 MB, and must be 1.0 GB", "--min-free-disk"},
		"an outage": {Snapshot{SinceAnswer: quiet, URLs: 5, Offline: true, OfflineFor: quiet, OfflineReason: "no route",
			Waiting: 5}, Outage, "no host that worked has been reached for 2 min (no route)", "--outage-wait"},
		"no names": {Snapshot{SinceAnswer: quiet, URLs: 5, BackingOff: 5, Failures: failed("dns", 9),
			Failure: "no such host"}, DNS, "9 attempts to resolve a name have failed since", "--dns-server HOST:PORT"},
		"no sockets": {Snapshot{SinceAnswer: quiet, URLs: 5, Waiting: 5, NoSocket: 3}, Sockets, "no socket left",
			"ulimit -n"},
		"a full outbox": {Snapshot{SinceAnswer: quiet, URLs: 5, Waiting: 5, OutboxFull: true}, Outbox, "other nodes",
			"kumo status"},
		"a used share of the limit": {Snapshot{SinceAnswer: quiet, URLs: 5, Waiting: 5, ShareUsed: true}, Limit,
			"its share of --limit", "limit=N"},
		"no answers": {Snapshot{SinceAnswer: quiet, URLs: 5, Active: 2, Timeout: 30 * time.Second}, Slow,
			"2 requests are under way, without a response", "--timeout lower than 30 s"},
		"a low rate": {Snapshot{SinceAnswer: quiet, URLs: 5, Waiting: 5, Rate: 0.01, HasNext: true}, Rate,
			"--max-rate allows one request every 1.7 min", "a higher --max-rate"},
		"all hosts back off": {Snapshot{SinceAnswer: quiet, URLs: 5, BackingOff: 3, HasNext: true,
			Next: NextHost{Host: "a.test", In: 10 * time.Minute, Why: "its wish"}}, Backoff,
			"all 3 hosts are backing off, after failures or at their request; the first is a.test, in 10 min", "--max-backoff"},
		"one host backs off": {Snapshot{SinceAnswer: quiet, URLs: 5, BackingOff: 1, HasNext: true,
			Failures: failed("reset", 3), Next: NextHost{Host: "a.test", In: 10 * time.Minute}}, Backoff, "1 host is backing off", "--max-backoff"},
		"one host with a long Crawl-delay": {Snapshot{SinceAnswer: quiet, URLs: 500, Waiting: 1, HasNext: true,
			Next: NextHost{Host: "a.test", In: 3 * time.Minute, Why: "Crawl-delay", Delay: 5 * time.Minute}}, Delay,
			"1 host is left, at one request every 5 min (Crawl-delay); the first is a.test, in 3 min", "--max-crawl-delay"},
		"what robots.txt holds back": {Snapshot{SinceAnswer: quiet, URLs: 7}, Robots, "7 URLs wait for a robots.txt",
			"skipped.jsonl"},
		"workers that are stuck": {Snapshot{SinceAnswer: quiet, URLs: 7, Waiting: 4, HasNext: true, Checkpointing: true,
			Next: NextHost{Host: "a.test"}}, Workers, "where a checkpoint is being written", "--memory"},
		"all fails": {Snapshot{SinceAnswer: quiet, URLs: 7, Waiting: 4, HasNext: true, Failures: failed("reset", 12),
			Failure: "connection reset", Next: NextHost{Host: "a.test"}}, Failures,
			"13 attempts have failed since, most of them by reset (connection reset)", "kumo hosts -o FOLDER"},
		"one fails": {Snapshot{SinceAnswer: quiet, URLs: 1, Waiting: 1, HasNext: true, Folder: "my crawl",
			Next:     NextHost{Host: "a.test"},
			Failures: map[string]int64{"reset": 1}, Failure: "connection reset"}, Failures,
			"1 attempt has failed since, by reset (connection reset)", "kumo hosts -o 'my crawl' lists"},
	} {
		a := Diagnose(&c.s)
		if a.Kind != c.kind || !strings.Contains(a.Words, c.words) || !strings.Contains(a.Do, c.do) {
			t.Errorf("%s: %s, %q, %q; want %s, %q, %q", name, a.Kind, a.Words, a.Do, c.kind, c.words, c.do)
		}
		if (a.Kind == None) != (a.Do == "") || a.Kind != None && a.For != c.s.SinceAnswer {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// A stall is reported when it begins and when it ends; a change of its reason is not.
func TestAWatchSaysWhatIsNew(t *testing.T) {
	var w Monitor
	full := Snapshot{SinceAnswer: time.Hour, URLs: 1, DiskFull: true}
	waits := Snapshot{SinceAnswer: time.Hour, URLs: 1, BackingOff: 1}
	for i, c := range []struct {
		s    Snapshot
		want Change
	}{{Snapshot{URLs: 1}, Same}, {full, Began}, {full, Same}, {waits, Same}, {Snapshot{URLs: 1}, Ended},
		{Snapshot{URLs: 1}, Same}, {waits, Began}} {
		if _, got := w.Update(&c.s); got != c.want {
			t.Errorf("look %d: %v, want %v", i, got, c.want)
		}
	}
}

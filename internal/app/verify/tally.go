package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
	"kumo/internal/state/seen"
	"kumo/internal/state/store/crawllog"
)

// A tally contains counts from the files.
type tally struct {
	pages, duplicates int64
	// Visits that may count as duplicates: unmodified ones if they are archived, and errors if an earlier version
	// counted them.
	maybeDuplicates int64
	statuses        map[int]int64
	rules           map[string]int64
	waiting         int64
	known           int64 // entries of the URL database
	urls            int64 // checked URLs
	compared        int64 // counters
	unlisted        bool  // a run wrote no pages.jsonl
	seenRead        bool  // the URL database was read completely
}

func (t *tally) visit(e *crawllog.Entry) {
	if e.Status <= 0 {
		return
	}
	t.pages++
	t.statuses[e.Status]++
	switch {
	case e.Has("duplicate:digest") && e.Status >= 200 && e.Status < 300:
		t.duplicates++
	case e.Has("duplicate:digest"), e.Has("duplicate:notModified"):
		t.maybeDuplicates++
	}
}

func (t *tally) skip(rule string) {
	if rule != ruleFailed { // failures have their own counter
		t.rules[rule]++
	}
}

// entry counts a known URL, but not one with visit data only.
func (t *tally) entry(e *seen.Entry) {
	if e.State != seen.Unknown {
		t.known++
	}
}

const reportName = "report.json"

// counters compares the counts with those of the state and the report, unless the report is of an earlier run.
func (v *verifier) counters() error {
	defer func() { v.addCount(checkReport, v.tally.compared, "counters") }()
	if v.State != nil {
		s := v.State.Stats.DurableSnapshot()
		v.compare("state", s.Pages, s.Duplicates, s.Statuses, s.Rules)
		if v.counts() {
			v.compareCount("state/seen/manifest", "known URLs", v.Seen.Len(), v.tally.known)
		}
	}
	r, err := v.report()
	if r == nil || err != nil {
		return err
	}
	if v.State != nil && r.Journal > uint64(v.Journal.End()) {
		v.fault(Fault{Check: checkReport, File: reportName, Offset: -1,
			What: fmt.Sprintf("journal: recorded position %d, but the journal ends at %d", r.Journal, uint64(v.Journal.End()))})
		return nil
	}
	if v.State == nil || r.Ended == "failed" || r.Journal != uint64(v.Journal.End()) {
		v.add(Fault{Check: checkReport, File: reportName, Offset: -1, What: "it is older than the files: the next run " +
			"rewrites it"})
		return nil
	}
	v.compare(reportName, r.Pages, r.Duplicates, r.Statuses, r.Skipped)
	if v.counts() {
		v.compareCount(reportName, "urls_known", int64(r.Known), v.tally.known)
	}
	v.compareSums(r)
	waiting := v.tally.waiting
	if more := int64(r.Waiting) - waiting; more > 0 && more <= int64(r.Hosts) {
		waiting += more // pending robots.txt fetches, which the next start schedules again
	} else if more < 0 && -more <= int64(r.PendingDedup) {
		waiting += more // URLs found to be new at the start
	}
	v.compareCount(reportName, "urls_waiting", int64(r.Waiting), waiting)
	return nil
}

// counts reports whether the URL database has counted all its entries. Entries in the journal after the last merge, and
// undecided ones, are counted at the next merge.
func (v *verifier) counts() bool {
	return v.tally.seenRead && v.Seen.Waiting() == 0 && journal.Position(v.Seen.Position()) == v.Journal.End()
}

// report reads report.json; nil if it does not exist or is damaged.
func (v *verifier) report() (*stats.Report, error) {
	text, err := vfs.ReadFile(v.Disk, v.path(reportName), stats.MaxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &stats.Report{}
	err = json.Unmarshal(text, r)
	if err != nil {
		v.fault(Fault{Check: checkReport, File: reportName, Offset: -1, What: err.Error()})
		return nil, nil
	}
	return r, nil
}

func (v *verifier) compare(file string, pages, duplicates int64, statuses map[int]int64, rules map[string]int64) {
	v.compareCount(file, "pages", pages, v.tally.pages)
	more := min(max(duplicates-v.tally.duplicates, 0), v.tally.maybeDuplicates)
	v.compareCount(file, "duplicates", duplicates, v.tally.duplicates+more)
	for _, s := range keysOf(statuses, v.tally.statuses) {
		v.compareCount(file, fmt.Sprintf("statuses %d", s), statuses[s], v.tally.statuses[s])
	}
	for _, rule := range keysOf(rules, v.tally.rules) {
		v.compareCount(file, "skipped by "+rule, rules[rule], v.tally.rules[rule])
	}
}

// compareSums compares counters that only the state has.
func (v *verifier) compareSums(r *stats.Report) {
	var want stats.Report
	want.Fill(v.State.Stats.DurableSnapshot(), 0, 0)
	v.compareCount(reportName, "bytes", r.Bytes, want.Bytes)
	v.compareCount(reportName, "failed", r.Failed-r.Abandoned, want.Failed)
	v.compareCount(reportName, "retries", r.Retries, want.Retries)
	v.compareCount(reportName, "robots_fetched", r.RobotsFetched, want.RobotsFetched)
	v.compareCount(reportName, "links", r.Links, want.Links)
	v.compareCount(reportName, "off_hosts", int64(r.OffHosts), int64(want.OffHosts))
	v.compareCount(reportName, "off_links", r.OffLinks, want.OffLinks)
	for _, t := range keysOf(r.Types, want.Types) {
		v.compareCount(reportName, "types "+t, r.Types[t], want.Types[t])
	}
}

func keysOf[K string | int](a, b map[K]int64) []K {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func (v *verifier) compareCount(file, what string, said, counted int64) {
	v.tally.compared++
	if said != counted {
		v.fault(Fault{Check: checkReport, File: file, Offset: -1, What: fmt.Sprintf("%s: recorded %d, counted %d", what,
			said, counted)})
	}
}

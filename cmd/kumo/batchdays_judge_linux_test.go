package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/text/encoding/htmlindex"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/inspect"
	"kumo/internal/content/fetch"
	"kumo/internal/lab/synthweb"
)

// documents calls each with the documents of a collection's day n.
func (l *batchLab) documents(p *batchPlace, c *collection.Collection, n int, each func(*batch.Document)) {
	l.Helper()
	names, err := batch.DayFiles(l.Context(), p.at, c, "doc", l.date(n))
	if err != nil {
		l.Fatal(err)
	}
	for _, name := range names {
		for r, err := range batch.ReadFile(l.Context(), p.at, name) {
			if err != nil {
				l.Fatal(err)
			}
			d, err := batch.ReadDocument(r.Key, r.Value)
			if err != nil {
				l.Fatal(err)
			}
			each(&d)
		}
	}
}

// judgeVisits logs the outcomes of the visits of day n, and compares them with the changes of the server's web.
func (l *batchLab) judgeVisits(p *batchPlace, n int) {
	l.Helper()
	found := map[string]int{}
	wrong := 0
	before, now := l.web(max(n-1, 0)), l.web(n)
	for _, c := range l.collections {
		l.documents(p, c, n, func(d *batch.Document) {
			found["all"]++
			what := cmp.Or(string(d.Change), "new")
			switch {
			case d.Unmodified:
				what += ", 304"
			case d.Change == page.Unchanged:
				what += ", the same bytes"
			}
			found[what]++
			if d.Unmodified && d.Status != 304 {
				wrong++
			}
			_, was := before.TextProfile(d.URL)
			if _, is := now.TextProfile(d.URL); n > 0 && (d.Change == page.Gone && is || d.Change == page.Changed && !was) {
				wrong++
				l.Errorf("%s was found %s, there before: %v, now: %v", d.URL, d.Change, was, is)
			}
		})
	}
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "; %s: %d", what, found[what])
	}
	l.Logf("visits of day %d%s", n+1, &b)
	if n > 0 && found["unchanged, 304"] == 0 {
		l.Error("no server said that a page is as it was")
	}
}

// A languageScore compares the detected languages and charsets of pages with the true ones.
type languageScore struct {
	pages         int // in the language of the web
	kept, foreign int // in xml/: of the language, of another
	lost, apart   int // in other/: of the language, of another
	read, misread int // by their charset, decoded rightly or not
	silent, told  int // without a declared charset; of these, decoded rightly
	unsure        []string
}

func (s *languageScore) add(o *languageScore) {
	s.pages, s.kept, s.foreign = s.pages+o.pages, s.kept+o.kept, s.foreign+o.foreign
	s.lost, s.apart = s.lost+o.lost, s.apart+o.apart
	s.read, s.misread, s.silent, s.told = s.read+o.read, s.misread+o.misread, s.silent+o.silent, s.told+o.told
	s.unsure = append(s.unsure, o.unsure...)
}

// judgeLanguages compares languages and charsets in the XML of day n with the web's, for each page.
func (l *batchLab) judgeLanguages(p *batchPlace, n int) {
	l.Helper()
	held, err := inspect.Collections(l.Context(), p.at)
	if err != nil {
		l.Fatal(err)
	}
	web := l.web(n)
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "\tpages in it\tkept\tof others kept\tprecision\trecall\tapart\tcharset right\tundeclared\tright\t")
	all := &languageScore{}
	for _, c := range l.collections {
		i := slices.IndexFunc(held, func(h *inspect.Collection) bool { return h.Code == c.Code })
		s := l.scoreOf(p, c, held[i], web, n)
		s.print(tab, c.Code)
		all.add(s)
	}
	all.print(tab, "all")
	if err := tab.Flush(); err != nil {
		l.Fatal(err)
	}
	l.Logf("languages and charsets of day %d, all pages of its XML:\n%swrong: %s", n+1, &table,
		strings.Join(all.unsure, "; "))
	if sure := float64(all.kept) / float64(max(all.kept+all.foreign, 1)); all.kept == 0 || sure < 0.98 {
		l.Errorf("%.4f of what was kept is in the language of its collection", sure)
	}
}

func (s *languageScore) print(w *tabwriter.Writer, name string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%d\t%s\t%d\t%s\t\n", name, s.pages, s.kept, s.foreign,
		share(s.kept, s.kept+s.foreign), share(s.kept, s.pages), s.apart+s.lost, share(s.read, s.read+s.misread), s.silent,
		share(s.told, s.silent))
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(of))
}

func (l *batchLab) scoreOf(
	p *batchPlace, c *collection.Collection, held *inspect.Collection, web *synthweb.Web, n int,
) *languageScore {
	l.Helper()
	s := &languageScore{}
	charsets := map[string]string{} // by URL, of pages in XML
	for _, isApart := range []bool{false, true} {
		q := inspect.Query{Other: isApart, Limit: -1}
		for e, err := range held.Records(l.Context(), l.date(n), q) {
			if err != nil {
				break // a day without such pages has no index
			}
			truth, ok := web.TextProfile(e.URL)
			if !ok {
				l.Errorf("%s is in XML, and no page of the web", e.URL)
			}
			charsets[e.URL] = e.Encoding
			if truth.Language == c.Code {
				s.pages++
			}
			switch right := truth.Language == c.Code; {
			case !isApart && right:
				s.kept++
			case !isApart:
				s.foreign++
				s.unsure = append(s.unsure, fmt.Sprintf("%s kept, which is %s: %s", c.Code, truth.Language, e.URL))
			case right:
				s.lost++
				s.unsure = append(s.unsure, fmt.Sprintf("%s apart as %s: %s", c.Code, e.Language, e.URL))
			default:
				s.apart++
			}
		}
	}
	l.documents(p, c, n, func(d *batch.Document) {
		encoding, is := charsets[d.URL]
		if !is {
			return
		}
		truth, _ := web.TextProfile(d.URL)
		var resp page.Response
		if err := d.Response(&resp); err != nil {
			l.Fatal(err)
		}
		body := plainBody(l, &resp)
		isRight := encoding == truth.Charset || inCharset(body, encoding) == inCharset(body, truth.Charset)
		if isRight {
			s.read++
		} else {
			s.misread++
			s.unsure = append(s.unsure, fmt.Sprintf("%s read as %s, which is %s: %s", c.Code, encoding, truth.Charset, d.URL))
		}
		if !truth.Declared {
			if s.silent++; isRight {
				s.told++
			}
		}
	})
	return s
}

func inCharset(body []byte, charset string) string {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return "in no charset"
	}
	text, err := e.NewDecoder().Bytes(bytes.TrimSpace(body))
	if err != nil {
		return "unreadable"
	}
	return string(text)
}

// judgePlans logs how evenly the hosts of the largest round of day n were spread over the tasks: as planned, by
// politeness; by their numbers of pages; and by their hash.
func (l *batchLab) judgePlans(p *batchPlace, n int) {
	l.Helper()
	delays := l.crawlDelays(p, n)
	rounds := map[string]map[string]int64{} // URLs by host, by round
	threads := 0
	for _, c := range l.collections {
		threads += c.Threads
		dir := batch.DayFolder(c, "out", l.date(n))
		names, err := batch.ListFiles(l.Context(), p.at, dir)
		if err != nil {
			l.Fatal(err)
		}
		for _, name := range names {
			round := strings.Split(strings.TrimPrefix(name, dir+"/"), "/")[0]
			if rounds[round] == nil {
				rounds[round] = map[string]int64{}
			}
			for r, err := range batch.ReadFile(l.Context(), p.at, name) {
				if err != nil {
					l.Fatal(err)
				}
				_, url, _ := batch.SplitKey(r.Key) // keys were read and checked before
				rounds[round][item.HostOf(url)]++
			}
		}
	}
	for _, round := range slices.Sorted(maps.Keys(rounds)) {
		l.comparePlans(round, rounds[round], delays, p.reducers, threads)
	}
}

// crawlDelays returns the crawl delays of the robots.txt files of day n, by host.
func (l *batchLab) crawlDelays(p *batchPlace, n int) map[string]time.Duration {
	l.Helper()
	names, err := batch.ListFiles(l.Context(), p.at, batch.RobotsFolder+"/"+l.date(n))
	if err != nil {
		l.Fatal(err)
	}
	delays := map[string]time.Duration{}
	for _, name := range names {
		for r, err := range batch.ReadFile(l.Context(), p.at, name) {
			if err != nil {
				l.Fatal(err)
			}
			rules, err := batch.ReadRobotsRecord(r.Key, r.Value)
			if err != nil {
				l.Fatal(err)
			}
			if bytes.Contains(rules.Body, []byte("Crawl-delay")) {
				delays[item.HostOf(rules.Origin+"/")] = l.cfg.CrawlDelay
			}
		}
	}
	return delays
}

func (l *batchLab) comparePlans(
	round string, urls map[string]int64, delays map[string]time.Duration, tasks, threads int,
) {
	l.Helper()
	var polite, byPages []batch.HostLoad
	for _, host := range slices.Sorted(maps.Keys(urls)) {
		polite = append(polite, batch.HostLoad{Host: host, URLs: urls[host], Interval: max(l.interval, delays[host])})
		byPages = append(byPages, batch.HostLoad{Host: host, URLs: urls[host]})
	}
	plans := []struct {
		name string
		plan map[string]int
	}{{"by politeness", batch.PlanHosts(polite, tasks, threads)}, {"by pages", batch.PlanHosts(byPages, tasks, threads)},
		{"by hash", map[string]int{}}}
	for host := range urls {
		plans[2].plan[host] = batch.HashPartition([]byte(host), tasks)
	}
	var b strings.Builder
	for _, p := range plans {
		pages, waits := make([]int64, tasks), make([]time.Duration, tasks)
		for _, h := range polite {
			pages[p.plan[h.Host]] += h.URLs
			waits[p.plan[h.Host]] += time.Duration(h.URLs) * h.Interval
		}
		fmt.Fprintf(&b, "; %s: pages %v, all hosts' waiting %v", p.name, pages, waits)
	}
	l.Logf("%s: %d hosts, %d of them with a Crawl-delay%s", round, len(urls), len(delays), &b)
}

// plainBody returns an answer's body without its content coding.
func plainBody(l *batchLab, resp *page.Response) []byte {
	l.Helper()
	if err := fetch.Decode(resp, 64<<20); err != nil {
		l.Fatal(err)
	}
	return resp.Body
}

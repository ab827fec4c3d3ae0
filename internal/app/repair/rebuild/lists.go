package rebuild

import (
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"kumo/internal/app/folder"
	"kumo/internal/app/repair/records"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
)

func (b *rebuilding) eachLine(ctx context.Context, name string, f func(line []byte) error) error {
	n := 0
	_, err := store.EachLineOf(vfs.OS, b.at(name), func(line []byte, _ int64) error {
		if n++; n%1000 == 0 {
			if err := errors.Join(ctx.Err(), b.state.FlushIfFull(ctx)); err != nil {
				return err
			}
		}
		return f(line)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (b *rebuilding) pages(ctx context.Context) error {
	return b.eachLine(ctx, "pages.jsonl", func(line []byte) error {
		p, err := jsonl.ParsePage(line)
		if err != nil {
			return err
		}
		at := placed{depth: int32(p.Depth)}
		copyDigest(at.digest[:], p.Digest)
		b.places[records.Key(p.WARC, p.Offset)] = at
		if p.Recrawl != "" {
			b.recrawls[records.Key(p.URL, p.Time.UnixMilli())] = true
		}
		if asks := strings.ToLower(p.Robots); strings.Contains(asks, "nofollow") || strings.Contains(asks, "none") {
			b.nofollowPages[p.URL] = true
		}
		b.state.Seen.Replay(p.Time)
		b.state.Seen.InsertKnown([]seen.URL{{URL: p.URL, Depth: int32(p.Depth), State: seen.Known}})
		return nil
	})
}

func (b *rebuilding) visits(ctx context.Context) error {
	var sums stats.Sums
	answered := map[uint64]bool{} // by URL
	err := b.eachLine(ctx, "crawl.log", func(line []byte) error {
		e, err := crawllog.Parse(line)
		if err != nil {
			return err
		}
		if e.Has("robots") {
			sums.Robots++
			sums.ExtraBytes += e.Size
			return nil
		}
		if e.Has("rendering") {
			sums.ExtraBytes += e.Size
			return nil
		}
		if e.Status <= 0 {
			return nil
		}
		u, err := weburl.Parse(e.URL)
		if err != nil {
			return err
		}
		m := seen.Meta{Fetched: e.Begin.Truncate(time.Second), Status: e.Status}
		if b.job.Crawl.Recrawl.Enabled() {
			m.From = e.Via
		}
		switch k := records.Key(e.URL); {
		case e.Status == http.StatusNotModified && answered[k]: // the page is unchanged
			m.Status = http.StatusOK
		case e.Status >= http.StatusBadRequest && answered[k]: // keep the metadata of the page in case it returns
		default:
			copyDigest(m.Digest[:], e.Digest)
			answered[k] = true
		}
		b.state.Seen.Replay(e.Begin)
		b.state.Seen.InsertKnown([]seen.URL{{URL: e.URL, Depth: int32(strings.Count(e.Path, "L")), State: seen.Known}})
		b.state.Seen.UpdateMeta(e.URL, m)
		b.state.Stats.Visited(stats.Visit{Host: u.Host(), Status: e.Status, Type: e.MIME, Bytes: e.Size, Took: e.Took,
			Duplicate: e.Has("duplicate:notModified") || e.Has("duplicate:digest") && e.Status/100 == 2,
			Recrawl:   b.recrawls[records.Key(e.URL, e.Begin.UnixMilli())]})
		b.addVisited(e.URL, e.Seed, e.Path, e.Via)
		return nil
	})
	b.state.Seen.Replay(time.Time{})
	b.state.Stats.Restore(sums)
	return err
}

// addVisited adds a URL to the scope seeds if its path shows that it is a seed or the redirect target of one.
func (b *rebuilding) addVisited(url, seed, path, via string) {
	it := frontier.Item{URL: url, Seed: seed, Kind: page.Redirect, ScopeSeed: true}
	switch {
	case path == "" && via == "":
		it.Kind = page.Seed
	case path == "" || strings.Trim(path, "R") != "":
		return
	}
	b.addScopeSeed(it)
}

func (b *rebuilding) addScopeSeed(it frontier.Item) {
	if b.isScopeSeed.Add(it.URL) {
		b.scopeSeeds = append(b.scopeSeeds, it)
	}
}

func copyDigest(to []byte, text string) {
	if sum, err := base32.StdEncoding.DecodeString(strings.TrimPrefix(text, "sha1:")); err == nil && len(sum) == len(to) {
		copy(to, sum)
	}
}

// permanentRules are the rules that exclude a URL for good: no better link admits it.
var permanentRules = map[string]bool{"robots": true, crawl.RuleUsage: true, "clean-param": true, "url": true, crawl.RuleTrap: true,
	crawl.RulePagesPerHost: true, crawl.RuleBytesPerHost: true, crawl.RulePagesPerDomain: true,
	crawl.RuleHostsPerDomain: true, crawl.RuleNamesPerDomain: true}

func (b *rebuilding) skips(ctx context.Context) error {
	return b.eachLine(ctx, "skipped.jsonl", func(line []byte) error {
		s, err := jsonl.ParseSkip(line)
		if err != nil {
			return err
		}
		if s.Rule == "failed" {
			b.state.Told = append(b.state.Told, s.URL)
			b.failed = append(b.failed, frontier.Item{URL: s.URL, From: s.From, Depth: int32(s.Depth), Kind: page.Anchor})
			return nil
		}
		b.state.Stats.Skipped(s.Rule)
		b.skipped[records.Key(s.URL)] = true
		u := seen.URL{URL: s.URL, Depth: int32(s.Depth), State: seen.Deferred}
		if permanentRules[s.Rule] {
			u.State = seen.Known
		}
		b.isNoFollow(s.URL, s.Rule)
		b.state.Seen.InsertKnown([]seen.URL{u})
		return nil
	})
}

func (b *rebuilding) isNoFollow(url, rule string) {
	if rule == "nofollow" {
		b.nofollow[records.Key(url)] = true
	}
}

// readDeferred keeps the deferred URLs that are not in skipped.jsonl.
func (b *rebuilding) readDeferred(context.Context) error {
	skips, err := statefile.SalvageDeferred(vfs.OS, b.From.Dir)
	if err != nil {
		return err
	}
	var kept []page.Skip
	for i := range skips {
		s := &skips[i]
		u, err := weburl.Parse(s.URL)
		if err != nil || u.String() != s.URL || !utf8.ValidString(s.URL) || u.Host() != s.Host ||
			b.skipped[records.Key(s.URL)] {
			continue
		}
		b.isNoFollow(s.URL, s.Rule)
		b.state.Seen.InsertKnown([]seen.URL{{URL: s.URL, Depth: int32(s.Depth), State: seen.Deferred}})
		kept = append(kept, *s)
	}
	return statefile.WriteDeferred(vfs.OS, b.Into, kept)
}

// readRobots keeps the readable lines.
func (b *rebuilding) readRobots(ctx context.Context) error {
	var kept []byte
	err := b.eachLine(ctx, statefile.RobotsAnswersName, func(line []byte) error {
		var a statefile.RobotsAnswer
		if json.Unmarshal(line, &a) == nil && a.Origin != "" {
			kept = append(append(kept, line...), '\n')
		}
		return nil
	})
	if err == nil && kept != nil {
		err = folder.At(b.Into, vfs.OS).Replace(statefile.RobotsAnswersName, kept)
	}
	return err
}

package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/weburl"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
)

// lists reads the files of lines besides WARC files and indexes.
func (v *verifier) lists() error {
	for _, l := range []struct {
		check, name, unit string
		read              func(line) error
	}{
		{checkPages, "pages.jsonl", "pages", v.pageLine},
		{checkText, "text.jsonl", "texts", v.textLine},
		{checkFields, jsonl.FieldsName, "records", v.fieldsLine},
		{checkLog, "crawl.log", "visits", v.visitLine},
		{checkSkipped, "skipped.jsonl", "lines", v.skipLine},
	} {
		n, err := v.eachLine(l.check, l.name, true, l.read)
		if err != nil {
			return fmt.Errorf("read %s: %w", l.name, err)
		}
		v.addCount(l.check, n, l.unit)
	}
	return nil
}

// timings are members of every line of pages.jsonl. WARC files do not contain them, so a damaged member name would
// remain undetected: readers ignore unknown members.
var timings = []string{`"connect_ms":`, `"first_byte_ms":`, `"total_ms":`}

func (v *verifier) pageLine(l line) error {
	p, err := jsonl.ParsePage(l.text)
	if err != nil {
		return err
	}
	sum, ok := parseDigest(p.Digest)
	if !ok {
		return fmt.Errorf("the line of %q lacks its digest", p.URL)
	}
	for _, member := range timings {
		if !bytes.Contains(l.text, []byte(member)) {
			return fmt.Errorf("the line of %q lacks %s", p.URL, strings.Trim(member, `":`))
		}
	}
	f := fact{At: l.at, File: -1, Offset: p.Offset, Length: p.Bytes, Time: p.Time.UnixMicro(), Status: p.Status,
		Digest: sum,
		Flags:  flagWords, ID: typeOf(p.Type), Words: wordsOf(p.Links, p.From, p.Charset, p.Lang, p.Title, p.H1,
			p.Description, p.Canonical)}
	if p.WARC != "" {
		f.File = v.files.numberOf(p.WARC)
	}
	if p.Revisit != "" {
		f.Flags |= flagRevisit
	}
	return asStop(v.claim(p.URL, kindPage, f))
}

func (v *verifier) textLine(l line) error {
	var t struct {
		URL  string
		Time time.Time
	}
	if err := json.Unmarshal(l.text, &t); err != nil {
		return err
	}
	return asStop(v.claim(t.URL, kindText, fact{At: l.at, Time: t.Time.UnixMicro()}))
}

func (v *verifier) fieldsLine(l line) error {
	r, err := jsonl.ParseFields(l.text)
	if err != nil {
		return err
	}
	f := fact{At: l.at, File: -1, Offset: r.Offset, Time: r.Time.UnixMicro()}
	if r.WARC != "" {
		f.File = v.files.numberOf(r.WARC)
	}
	return asStop(v.claim(r.URL, kindFields, f))
}

func (v *verifier) visitLine(l line) error {
	e, err := crawllog.Parse(l.text)
	if err != nil {
		return err
	}
	f := fact{At: l.at, Length: e.Size, Time: e.Begin.UnixMicro(), Status: e.Status, ID: typeOf(e.MIME),
		Trail: trailOf(e.Seed, e.Via, e.Path, fmt.Sprint(e.Took.Milliseconds()))}
	if e.Digest != "" {
		var ok bool
		if f.Digest, ok = parseDigest(e.Digest); !ok {
			return fmt.Errorf("%q is not a digest", e.Digest)
		}
		f.Flags |= flagAnswer
	}
	if e.Has("robots") || e.Has("rendering") {
		f.Flags |= flagRobots
	} else {
		v.tally.visit(&e)
	}
	return asStop(v.claim(e.URL, kindVisit, f))
}

// typeOf returns a hash of a media type, in the notation of crawl.log.
func typeOf(media string) uint64 {
	if media == "" {
		return 0
	}
	return hashOf(string(field.Token(nil, media)))
}

// permanentRules are the rules that exclude a URL for good: no better link admits it.
var permanentRules = map[string]bool{"robots": true, "clean-param": true, "url": true}

func (v *verifier) skipLine(l line) error {
	s, err := jsonl.ParseSkip(l.text)
	if err != nil {
		return err
	}
	if err := sameHost(s.URL, s.Host); err != nil {
		return err
	}
	f := fact{At: l.at, Time: s.Time.UnixMicro()}
	switch {
	case s.Rule == ruleFailed:
		f.Flags |= flagFailed
	case permanentRules[s.Rule]:
		f.Flags |= flagPermanent
	}
	v.tally.skip(s.Rule)
	return asStop(v.claim(s.URL, kindSkip, f))
}

const ruleFailed = "failed"

// sameHost checks the host of a URL.
func sameHost(url, host string) error {
	u, err := weburl.Parse(url)
	if err == nil && u.Host() != host {
		err = fmt.Errorf("the host %q is not that of %s", host, url)
	}
	return err
}

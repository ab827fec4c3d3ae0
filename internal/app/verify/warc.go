package verify

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/base/field"
	"kumo/internal/state/store/warc"
)

const openSuffix = ".open"

// A warcSource is a WARC file to read.
type warcSource struct {
	name   string // relative to the crawl's folder
	number int    // in the table of files
	length int64  // committed bytes
}

// warcs reads the WARC files, as many at once as there are processors.
func (v *verifier) warcs() error {
	all, err := v.warcSources()
	if err != nil {
		return err
	}
	v.reading.total = 0
	for _, src := range all {
		v.reading.total += src.length
	}
	var records atomic.Int64
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, src := range all {
		if src.length == 0 {
			continue
		}
		g.Go(func() error {
			n, err := v.readWARC(src)
			records.Add(n)
			if err != nil {
				return fmt.Errorf("read %s: %w", src.name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	v.tally.unlisted = slices.ContainsFunc(v.files.all, func(f warcFile) bool { return f.unlisted })
	v.addCount(checkWARC, int64(len(all)), "files")
	v.addCount(checkWARC, records.Load(), "records")
	return nil
}

// warcSources enters all WARC files into the table, which does not change while they are read.
func (v *verifier) warcSources() (all []warcSource, err error) {
	names, err := v.Disk.List(v.path("warc"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		final := strings.TrimSuffix(name, openSuffix)
		if !strings.HasSuffix(final, ".warc.gz") && !strings.HasSuffix(final, ".warc.zst") {
			continue
		}
		src, err := v.warcSource("warc/"+name, final)
		if err != nil {
			return nil, fmt.Errorf("read warc/%s: %w", name, err)
		}
		all = append(all, src)
	}
	return all, nil
}

func (v *verifier) warcSource(name, final string) (src warcSource, err error) {
	src.name = name
	grows := name != "warc/"+final
	if src.length, err = v.committedLength(checkWARC, name, grows); err != nil {
		return src, err
	}
	if mark, ok := v.marks["warc/"+final+openSuffix]; ok && !grows && mark != src.length {
		v.fault(Fault{Check: checkWARC, File: name, Offset: min(mark, src.length), What: fmt.Sprintf(
			"the journal records %d bytes, but the file has %d", mark, src.length),
			Remedy: "restore the file from a copy"})
	}
	if src.length == 0 && grows {
		return src, nil // the next start removes it
	}
	src.number = v.files.numberOf(final)
	v.files.all[src.number].present = true
	return src, nil
}

func (v *verifier) readWARC(src warcSource) (records int64, err error) {
	in, err := v.Disk.OpenAt(v.path(src.name))
	if err != nil {
		return 0, err
	}
	w := &warcReader{v: v, name: src.name, number: src.number}
	err = w.read(in, src.length)
	return w.records, errors.Join(err, in.Close())
}

// A warcReader reads one WARC file. The records of a visit are adjacent: response, request, metadata and, for a rendered
// page, conversion and pictures.
type warcReader struct {
	v       *verifier
	name    string
	number  int
	records int64
	visit   visit
	lost    bool // an unreadable record after the current response, which may have been a response
}

// A visit is the current response with its other records.
type visit struct {
	url, id, date                 string
	fact                          fact
	request, metadata, conversion bool
	pictures                      []string // their URNs
}

func (w *warcReader) read(src io.ReaderAt, length int64) error {
	in, err := warc.NewReader(src, length, w.name)
	if err != nil {
		return err
	}
	for {
		before := in.Offset()
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return w.endVisit()
		case rec == nil:
			w.lost = true
			w.bad(before, "", err.Error(), "the record is lost")
			in.Skip()
			continue
		case err != nil:
			w.bad(before, rec.Fields["WARC-Target-URI"], err.Error(), "")
		}
		if err := w.record(rec); err != nil {
			return err
		}
		w.records++
		if err := w.v.readBytes(rec.Length); err != nil {
			return err
		}
	}
}

func (w *warcReader) bad(at int64, url, what, remedy string) {
	w.v.fault(Fault{Check: checkWARC, File: w.name, Offset: at, URL: url, What: what, Remedy: remedy})
}

func (w *warcReader) record(rec *warc.Record) error {
	kind := rec.Fields["WARC-Type"]
	switch {
	case kind == "warcinfo":
		w.info(rec)
	case rec.BeginsVisit():
		if err := w.endVisit(); err != nil {
			return err
		}
		w.lost = false
		return w.answer(rec, kind)
	case kind == "request", kind == "metadata", kind == "conversion", kind == "resource":
		w.companion(rec, kind)
	default:
		w.bad(rec.Offset, "", fmt.Sprintf("unexpected record of type %q", kind), "")
	}
	return nil
}

// info processes the warcinfo record, which names the formats that the run wrote.
func (w *warcReader) info(rec *warc.Record) {
	file := &w.v.files.all[w.number]
	if name := w.v.files.names[w.number]; rec.Offset != 0 || rec.Fields["WARC-Filename"] != name {
		w.bad(rec.Offset, "", fmt.Sprintf("the record is that of the file %s, or not the first one",
			rec.Fields["WARC-Filename"]), "")
	}
	text := string(rec.Block)
	if strings.Contains(text, "kumo-format: ") && !strings.Contains(text, "kumo-format: jsonl") {
		file.unlisted = true
	}
}

func (w *warcReader) answer(rec *warc.Record, kind string) error {
	date, err := time.Parse(time.RFC3339Nano, rec.Fields["WARC-Date"])
	if err != nil {
		w.bad(rec.Offset, "", err.Error(), "")
	}
	f := fact{At: rec.Offset, File: w.number, Offset: rec.Offset, Length: rec.Length, Time: date.UnixMicro(),
		ID: hashOf(rec.ID())}
	if sum := rec.Fields["WARC-Payload-Digest"]; sum != "" {
		f.Sum = hashOf(sum)
	}
	f.Digest = rec.BodyDigest()
	switch kind {
	case "revisit":
		f.Flags |= flagRevisit
	case "resource":
		f.Flags |= flagResource
	}
	switch {
	case kind == "revisit" && strings.HasSuffix(rec.Fields["WARC-Profile"], "/server-not-modified"):
		f.Status = http.StatusNotModified
	case kind != "resource":
		f.Status = rec.Status()
	}
	w.visit = visit{url: rec.Fields["WARC-Target-URI"], id: rec.ID(), date: rec.Fields["WARC-Date"], fact: f}
	if kind != "revisit" {
		return nil
	}
	return w.refers(rec, f)
}

// refers adds the claim that the record referred to by a revisit exists.
func (w *warcReader) refers(rec *warc.Record, f fact) error {
	at, err := time.Parse(time.RFC3339Nano, rec.Fields["WARC-Refers-To-Date"])
	id := strings.Trim(rec.Fields["WARC-Refers-To"], "<>")
	if err != nil || id == "" {
		w.bad(rec.Offset, w.visit.url, "a revisit record must have the ID and date of the record it refers to", "")
		return nil
	}
	return w.v.claim(rec.Fields["WARC-Refers-To-Target-URI"], kindReference, fact{At: rec.Offset, File: w.number,
		Time: at.UnixMicro(), ID: hashOf(id), Sum: f.Sum})
}

// companion checks that a record belongs to the current response.
func (w *warcReader) companion(rec *warc.Record, kind string) {
	is := &w.visit
	done := &is.request
	switch kind {
	case "metadata":
		done = &is.metadata
	case "conversion":
		done = &is.conversion
	case "resource":
		done = new(slices.Contains(is.pictures, rec.Fields["WARC-Target-URI"]))
		is.pictures = append(is.pictures, rec.Fields["WARC-Target-URI"])
	}
	switch {
	case rec.ResponseID() != is.id && w.lost:
		return
	case is.id == "" || rec.ResponseID() != is.id:
		w.bad(rec.Offset, rec.Fields["WARC-Target-URI"], "a "+kind+" record that belongs to no response before it", "")
		return
	case rec.PageURI() != is.url || rec.Fields["WARC-Date"] != is.date || *done:
		w.bad(rec.Offset, is.url, "a "+kind+" record with another URL or time than its response, or a "+
			"second one", "")
	}
	if *done = true; kind == "metadata" {
		is.fact.Words, is.fact.Trail = metadata(rec.Block)
		is.fact.Flags |= flagWords
	}
}

// endVisit adds the claim of the current response after its last record.
func (w *warcReader) endVisit() error {
	is := w.visit
	if w.visit = (visit{}); is.id == "" {
		return nil
	}
	if !is.metadata && !w.lost {
		w.bad(is.fact.Offset, is.url, "the response has no metadata record", "")
	}
	return w.v.claim(is.url, kindCapture, is.fact)
}

// metadata returns the hashes (see wordsOf and trailOf) of a metadata record.
func metadata(block []byte) (words, trail uint64) {
	var links int
	said := map[string]string{}
	for line := range strings.SplitSeq(string(block), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		if name == "outlink" {
			links++
		} else {
			said[name] = value
		}
	}
	return wordsOf(links, said["via"], said["charset"], said["languages"], said["title"], said["h1"], said["description"],
			said["canonical"]),
		trailOf(said["seed"], said["via"], said["hopsFromSeed"], said["fetchTimeMs"])
}

// wordsOf returns a hash of the data common to a page's line and its metadata record.
func wordsOf(links int, words ...string) uint64 {
	var b []byte
	for _, s := range words {
		b = append(field.Line(b, s), 0)
	}
	return hashOf(string(b), fmt.Sprint(links))
}

// trailOf returns a hash of the data common to a visit's line in crawl.log and its metadata record.
func trailOf(seed, via, path, took string) uint64 {
	var b []byte
	for _, s := range []string{seed, via, path} {
		b = append(field.Token(b, s), ' ')
	}
	return hashOf(string(b), took)
}

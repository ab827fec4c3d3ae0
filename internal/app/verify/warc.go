package verify

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/state/store/warc"
)

const openSuffix = ".open"

func (v *verifier) warcs() error {
	names, err := v.Disk.List(v.path("warc"))
	if err != nil {
		return err
	}
	var files, records int64
	for _, name := range names {
		final := strings.TrimSuffix(name, openSuffix)
		if !strings.HasSuffix(final, ".warc.gz") && !strings.HasSuffix(final, ".warc.zst") {
			continue
		}
		n, err := v.warcFile("warc/"+name, final)
		if err != nil {
			return fmt.Errorf("read warc/%s: %w", name, err)
		}
		files, records = files+1, records+n
	}
	v.addCount(checkWARC, files, "files")
	v.addCount(checkWARC, records, "records")
	return nil
}

func (v *verifier) warcFile(name, final string) (int64, error) {
	grows := name != "warc/"+final
	length, err := v.committedLength(checkWARC, name, grows)
	if err != nil {
		return 0, err
	}
	if mark, ok := v.marks["warc/"+final+openSuffix]; ok && !grows && mark != length {
		v.fault(Fault{Check: checkWARC, File: name, Offset: min(mark, length), What: fmt.Sprintf(
			"the journal records %d bytes, but the file has %d", mark, length),
			Remedy: "restore the file from a copy"})
	}
	if length == 0 && grows {
		return 0, nil // the next start removes it
	}
	w := &warcReader{v: v, name: name, number: v.files.numberOf(final)}
	v.files.all[w.number].present = true
	src, err := v.Disk.OpenAt(v.path(name))
	if err != nil {
		return 0, err
	}
	err = w.read(src, length)
	return w.records, errors.Join(err, src.Close())
}

// A warcReader reads one WARC file. The records of a visit are adjacent: response, request, metadata and, for a rendered
// page, conversion.
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
		if err := w.v.progress(checkWARC, in.Offset(), length, rec.Length); err != nil {
			return err
		}
	}
}

func (w *warcReader) bad(at int64, url, what, remedy string) {
	w.v.fault(Fault{Check: checkWARC, File: w.name, Offset: at, URL: url, What: what, Remedy: remedy})
}

func (w *warcReader) record(rec *warc.Record) error {
	switch kind := rec.Fields["WARC-Type"]; kind {
	case "warcinfo":
		w.info(rec)
	case "response", "revisit", "resource":
		if err := w.endVisit(); err != nil {
			return err
		}
		w.lost = false
		return w.answer(rec, kind)
	case "request", "metadata", "conversion":
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
		file.unlisted, w.v.tally.unlisted = true, true
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
	is, uri := &w.visit, rec.Fields["WARC-Target-URI"]
	done := &is.request
	switch kind {
	case "metadata":
		done = &is.metadata
	case "conversion":
		done, uri = &is.conversion, strings.TrimPrefix(uri, warc.DocumentURN)
	}
	switch {
	case rec.ResponseID() != is.id && w.lost:
		return
	case is.id == "" || rec.ResponseID() != is.id:
		w.bad(rec.Offset, rec.Fields["WARC-Target-URI"], "a "+kind+" record that belongs to no response before it", "")
		return
	case uri != is.url || rec.Fields["WARC-Date"] != is.date || *done:
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

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/archive/links"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/content/document"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/traps"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

// A widening contains the settings of a run that extend those of the crawl so far.
type widening struct {
	deeper, embeds, traps bool
	text, fields          bool     // for pages already fetched
	limits                []string // rules whose limit has increased
	released              []string // patterns of traps
	changed               []string // the settings with their new values
}

func widened(saved, now []settings.Setting) (w widening) {
	before := settings.Map(saved)
	for _, s := range now {
		was := before[s.Key]
		if !setting.Widens(s.Key, was, s.Values) || s.Key == job.FieldsKey && len(was) > 0 {
			continue
		}
		w.changed = append(w.changed, "--"+s.Key+" "+strings.Join(s.Values, ","))
		switch s.Key {
		case "depth":
			w.deeper = true
		case "embeds":
			w.embeds = true
		case "text":
			w.text = true
		case job.FieldsKey:
			w.fields = true
		case job.NoTrapsKey:
			w.traps = true
		case job.ReleaseTrapKey:
			w.released = slices.DeleteFunc(slices.Clone(s.Values), func(p string) bool { return slices.Contains(was, p) })
		default:
			w.limits = append(w.limits, s.Key)
		}
	}
	return w
}

// widen admits URLs that earlier runs excluded and the new settings do not, and writes new kinds of data for pages
// already fetched. The crawl keeps its old settings until this is complete. So it is repeated after a crash, which
// admits no URL twice.
func (o *opening) widen(ctx context.Context) error {
	saved, err := folder.ReadSettings(o.Folder.Dir)
	if err != nil {
		return err
	}
	w := widened(saved, o.Job.Settings)
	if len(w.changed) == 0 || !o.Folder.HasJournal() {
		return nil
	}
	j := *o.Job
	j.Listener = crawl.Listener{}
	inner := &opening{Parts: session.Parts{Job: &j, Folder: folder.At(o.Folder.Dir, o.Folder.Disk)}, disk: o.Folder.Disk,
		uploadedDisk: o.uploadedDisk, willRun: true}
	s, err := inner.make(func() error { return runSteps(inner.check, inner.build) })
	if err != nil {
		return err
	}
	before := s.URLsWaiting()
	var again rereadCounts
	err = s.Reenter(ctx, func(r *crawl.Reentry) error {
		var err error
		if w.text || w.fields {
			again, err = inner.reread(ctx, w)
		}
		return errors.Join(err, inner.reenter(ctx, r, w))
	})
	waits := s.URLsWaiting()
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("extend the crawl with %s: %w", strings.Join(w.changed, ", "), err)
	}
	said := fmt.Sprintf("the crawl resumes with %s:", strings.Join(w.changed, ", "))
	var parts []string
	if w.deeper || w.embeds || w.traps || len(w.limits)+len(w.released) > 0 {
		parts = append(parts, " newly admitted: "+stats.Count(int64(waits-before), "URLs"))
	}
	const earlier = " written for pages fetched earlier: "
	if w.text {
		parts = append(parts, earlier+stats.Count(again.texts, "texts"))
	}
	if w.fields {
		parts = append(parts, earlier+stats.Count(again.records, "records"))
	}
	o.Job.Warn(errors.New(said + strings.Join(parts, ",")))
	return nil
}

// reenter admits URLs that are no longer excluded.
func (o *opening) reenter(ctx context.Context, r *crawl.Reentry, w widening) error {
	var rules []string
	if w.deeper {
		rules = append(rules, "depth")
	}
	if w.embeds {
		rules = append(rules, "embed")
	}
	if len(rules) > 0 {
		if err := r.Deferred(ctx, rules); err != nil {
			return err
		}
	}
	if w.embeds { // links to other sites are only recorded in WARC files
		if err := o.reenterEmbeds(ctx, r); err != nil {
			return err
		}
	}
	return o.reenterSkips(ctx, r, func(s *jsonl.SkipLine) bool {
		return slices.Contains(w.limits, s.Rule) || slices.Contains(crawl.TrapRules, s.Rule) &&
			(w.traps || slices.Contains(w.released, traps.Pattern(s.Why)))
	})
}

// reenterSkips admits the selected URLs in skipped.jsonl.
func (o *opening) reenterSkips(ctx context.Context, r *crawl.Reentry, wanted func(*jsonl.SkipLine) bool) error {
	_, err := store.EachLineOf(o.disk, o.Folder.Path("skipped.jsonl"), func(line []byte, _ int64) error {
		s, err := jsonl.ParseSkip(line)
		if err != nil || !wanted(&s) {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		return r.Skipped(ctx, &page.Skip{URL: s.URL, Host: s.Host, From: s.From, Depth: s.Depth})
	})
	return err
}

func (o *opening) reenterEmbeds(ctx context.Context, r *crawl.Reentry) error {
	return links.Pages(ctx, o.records(), o.Folder.Dir, func(p *links.Page) error {
		it := item.Item{URL: p.URL, From: p.Via, Seed: p.Seed, Path: p.Path, Depth: p.Depth, Kind: page.Anchor}
		var pg page.Page
		for _, l := range p.Links {
			if l.Kind.Embed() {
				pg.Links = append(pg.Links, l)
			}
		}
		if len(pg.Links) == 0 {
			return nil
		}
		return r.Embeds(ctx, &it, &pg)
	})
}

type rereadCounts struct{ texts, records int64 }

// reread writes the main texts or records of pages that were fetched without them, from the WARC files, in the order of
// pages.jsonl.
func (o *opening) reread(ctx context.Context, w widening) (n rereadCounts, err error) {
	r := &rereader{opening: o, parser: parse.New(parserConfig(o.Job, o.Job.Fetch.MaxBody))}
	for _, s := range o.Stores {
		switch s := s.(type) {
		case *jsonl.Texts:
			if w.text && o.isEmpty("text.jsonl") {
				r.texts = s
			}
		case *jsonl.Fields:
			if w.fields && o.isEmpty(jsonl.FieldsName) {
				r.fields = s
			}
		}
	}
	if r.texts == nil && r.fields == nil {
		return n, nil
	}
	defer func() { err = errors.Join(err, r.close()) }()
	_, err = store.EachLineOf(o.disk, o.Folder.Path("pages.jsonl"), func(line []byte, _ int64) error {
		p, err := jsonl.ParsePage(line)
		if err != nil || p.WARC == "" || p.Status != http.StatusOK || p.NoIndex || p.NoArchive || p.Withheld != "" ||
			p.Revisit != "" {
			return ctx.Err() //nolint:nilerr // kumo verify reports the line
		}
		return errors.Join(r.page(ctx, &p, &n), ctx.Err())
	})
	return n, err
}

// isEmpty reports whether a file is empty. Otherwise an interrupted attempt has written it, but not the settings.
func (o *opening) isEmpty(name string) bool {
	size, err := o.disk.Size(o.Folder.Path(name))
	return err != nil || size == 0
}

// A rereader reads the records of pages.
type rereader struct {
	*opening
	texts  *jsonl.Texts  // nil: not wanted
	fields *jsonl.Fields // nil: not wanted
	parser *parse.Parser
	name   string
	src    interface {
		io.ReaderAt
		io.Closer
	}
	in *warc.Reader
}

func (w *rereader) close() error {
	if w.src == nil {
		return nil
	}
	return w.src.Close()
}

// open opens the file of a record; nil if it no longer exists.
func (w *rereader) open(name string) (*warc.Reader, error) {
	if name == w.name {
		return w.in, nil
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	w.name, w.src, w.in = name, nil, nil
	path := w.Folder.Path("warc", name)
	if _, err := w.records().Size(path); err != nil {
		path += ".open"
	}
	size, err := w.records().Size(path)
	if err != nil {
		return nil, nil //nolint:nilerr // it was moved away
	}
	src, err := w.records().OpenAt(path)
	if err != nil {
		return nil, err
	}
	w.src = src
	w.in, err = warc.NewReader(src, size, name)
	return w.in, err
}

// page writes the wanted data of a page; nothing if its record is missing.
func (w *rereader) page(ctx context.Context, p *jsonl.PageLine, n *rereadCounts) error {
	in, err := w.open(p.WARC)
	if in == nil || err != nil {
		return err
	}
	in.SeekTo(p.Offset)
	rec, err := in.Next()
	if err != nil || rec.Fields["WARC-Type"] != "response" {
		return nil //nolint:nilerr // verify says what is wrong with a record
	}
	answer, err := rec.Response()
	if err != nil {
		return nil //nolint:nilerr // it has no head
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // after an error, the part so far is used
	resp := &page.Response{URL: p.URL, Status: answer.StatusCode, Header: answer.Header, Payload: body, Body: body}
	if max := w.Job.Fetch.MaxBody; max > 0 {
		_ = fetch.Decode(resp, 4*max) // after an error, the part so far is used
	}
	switch {
	case p.Rendered:
		if html := w.conversion(in, rec.ID()); html != nil {
			resp = resp.Rendered(html)
		}
	case w.Job.Documents != nil:
		resp.Truncated = page.Truncation(p.Truncated)
		doc := document.ReadResponse(resp, func(f document.File) (*document.Document, error) {
			return w.Job.Documents.Read(ctx, f, document.Default())
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if doc != nil {
			resp = doc.Shown(resp)
		}
	}
	var pg page.Page
	if err := w.parser.Parse(resp, &pg); err != nil && !parse.IsList(pg.Sniffed) {
		return nil //nolint:nilerr // it is none
	}
	made := &page.Record{URL: p.URL, Time: p.Time, Location: page.Location{File: p.WARC, Offset: p.Offset}}
	if w.texts != nil && err == nil && parse.IsHTML(pg.Sniffed) {
		switch made.Text = resp.Main; {
		case made.Text == nil:
			made.Text, _ = w.Job.Text(resp, &pg) // after a limit, the data so far is used
		case made.Text.Text == "":
			made.Text = nil
		}
		if made.Text != nil {
			n.texts++
			if err := w.texts.Put(made); err != nil {
				return err
			}
		}
	}
	if w.fields != nil {
		made.Fields, _ = w.Job.Fields.Read(resp, &pg) // after a limit, the data so far is used
		n.records += int64(len(made.Fields))
		return w.fields.Put(made)
	}
	return nil
}

// conversion returns the document of a rendered page, whose response was read last; nil if it is missing.
func (w *rereader) conversion(in *warc.Reader, response string) []byte {
	for {
		rec, err := in.Next()
		switch {
		case err != nil || rec.ResponseID() != response:
			return nil
		case rec.Fields["WARC-Type"] == "conversion":
			return bytes.Clone(rec.Block)
		}
	}
}

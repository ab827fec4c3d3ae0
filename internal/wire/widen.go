package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/folder"
	"kumo/internal/item"
	"kumo/internal/job"
	"kumo/internal/links"
	"kumo/internal/page"
	"kumo/internal/parse"
	"kumo/internal/session"
	"kumo/internal/settings"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/store/jsonl"
	"kumo/internal/store/warc"
	"kumo/internal/traps"
)

// A widening is what a run's settings add to those that the crawl was continued with before.
type widening struct {
	deeper, embeds, text, traps bool
	limits                      []string // that have grown, as rules
	released                    []string // patterns of traps
	said                        []string // the settings, as they are now
}

// widened compares settings.
func widened(saved, now []settings.Setting) (w widening) {
	before := settings.Map(saved)
	for _, s := range now {
		was := before[s.Key]
		if !job.Widens(s.Key, was, s.Values) {
			continue
		}
		w.said = append(w.said, "--"+s.Key+" "+strings.Join(s.Values, ","))
		switch s.Key {
		case "depth":
			w.deeper = true
		case "embeds":
			w.embeds = true
		case "text":
			w.text = true
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

// widen lets in what earlier runs left out and the job does not leave out any more, and writes what it asks for of what
// was fetched. Until that is whole the crawl has its old settings, so that after a crash it is done again: what is known
// already is not let in a second time.
func (o *opening) widen(ctx context.Context) error {
	saved, err := folder.ReadSettings(o.Folder.Dir)
	if err != nil {
		return err
	}
	w := widened(saved, o.Job.Settings)
	if len(w.said) == 0 || !o.Folder.HasJournal() {
		return nil
	}
	j := *o.Job
	j.Listener = crawl.Listener{}
	inner := &opening{Parts: session.Parts{Job: &j, Folder: folder.At(o.Folder.Dir, o.Folder.Disk)}, disk: o.Folder.Disk,
		runs: true}
	s, err := inner.make(func() error {
		for _, step := range []func() error{inner.check, inner.build} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	before, texts := s.URLsWaiting(), 0
	err = s.Reenter(ctx, func(r *crawl.Reentry) error {
		var err error
		if w.text {
			texts, err = inner.writeTexts(ctx)
		}
		return errors.Join(err, inner.reenter(ctx, r, w))
	})
	waits := s.URLsWaiting()
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("go on with %s: %w", strings.Join(w.said, ", "), err)
	}
	said := fmt.Sprintf("the crawl goes on with %s:", strings.Join(w.said, ", "))
	var parts []string
	if w.deeper || w.embeds || w.traps || len(w.limits)+len(w.released) > 0 {
		parts = append(parts, " let in that was left out: "+stats.Count(int64(waits-before), "URLs"))
	}
	if w.text {
		parts = append(parts, " written of pages that were fetched before: "+stats.Count(int64(texts), "texts"))
	}
	o.Job.Warn(errors.New(said + strings.Join(parts, ",")))
	return nil
}

// reenter lets in what is not left out any more.
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
	if w.embeds { // those of other sites nobody has noted but the records of the pages
		if err := o.reenterEmbeds(ctx, r); err != nil {
			return err
		}
	}
	return o.reenterSkips(ctx, r, func(s *jsonl.SkipLine) bool {
		return slices.Contains(w.limits, s.Rule) || slices.Contains(crawl.TrapRules, s.Rule) &&
			(w.traps || slices.Contains(w.released, traps.Pattern(s.Why)))
	})
}

// reenterSkips lets in what skipped.jsonl has, as far as it is wanted.
func (o *opening) reenterSkips(ctx context.Context, r *crawl.Reentry, wanted func(*jsonl.SkipLine) bool) error {
	_, err := store.EachLineOf(o.disk, o.Folder.Path("skipped.jsonl"), func(line []byte, _ int64) error {
		s, err := jsonl.ParseSkip(line)
		if err != nil || !wanted(&s) {
			return nil //nolint:nilerr // verify says what is wrong with a line
		}
		return r.Shed(ctx, &page.Skip{URL: s.URL, Host: s.Host, From: s.From, Depth: s.Depth})
	})
	return err
}

func (o *opening) reenterEmbeds(ctx context.Context, r *crawl.Reentry) error {
	return links.Pages(ctx, o.Folder.Dir, func(p *links.Page) error {
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

// writeTexts writes the main texts of pages that were fetched without, from their records, in the order of pages.jsonl.
func (o *opening) writeTexts(ctx context.Context) (n int, err error) {
	var texts *jsonl.Texts
	for _, s := range o.Stores {
		if t, is := s.(*jsonl.Texts); is {
			texts = t
		}
	}
	if size, err := o.disk.Size(o.Folder.Path("text.jsonl")); texts == nil || err == nil && size > 0 {
		return 0, nil //nolint:nilerr // an attempt before has written them, but not the settings
	}
	w := &textWriter{opening: o, parser: parse.New(parserConfig(o.Job, o.Job.Fetch.MaxBody))}
	defer func() { err = errors.Join(err, w.close()) }()
	_, err = store.EachLineOf(o.disk, o.Folder.Path("pages.jsonl"), func(line []byte, _ int64) error {
		p, err := jsonl.ParsePage(line)
		if err != nil || p.WARC == "" || p.Status != http.StatusOK || p.NoIndex || p.NoArchive || p.Revisit != "" {
			return ctx.Err() //nolint:nilerr // verify says what is wrong with a line
		}
		text, err := w.text(&p)
		if text == nil || err != nil {
			return errors.Join(err, ctx.Err())
		}
		n++
		return errors.Join(texts.Put(&page.Record{URL: p.URL, Time: p.Time, Text: text}), ctx.Err())
	})
	return n, err
}

// A textWriter reads the records of pages.
type textWriter struct {
	*opening
	parser *parse.Parser
	name   string
	src    interface {
		io.ReaderAt
		io.Closer
	}
	in *warc.Reader
}

func (w *textWriter) close() error {
	if w.src == nil {
		return nil
	}
	return w.src.Close()
}

// open opens the file of a record: nil where it is not here any more.
func (w *textWriter) open(name string) (*warc.Reader, error) {
	if name == w.name {
		return w.in, nil
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	w.name, w.src, w.in = name, nil, nil
	path := w.Folder.Path("warc", name)
	if _, err := os.Stat(path); err != nil {
		path += ".open"
	}
	size, err := w.disk.Size(path)
	if err != nil {
		return nil, nil //nolint:nilerr // it was moved away
	}
	src, err := w.disk.OpenAt(path)
	if err != nil {
		return nil, err
	}
	w.src = src
	w.in, err = warc.NewReader(src, size, name)
	return w.in, err
}

// text is the main text of a page, nil if it has none, or its record is not here.
func (w *textWriter) text(p *jsonl.PageLine) (*page.MainText, error) {
	in, err := w.open(p.WARC)
	if in == nil || err != nil {
		return nil, err
	}
	in.GoTo(p.Offset)
	rec, err := in.Next()
	if err != nil || rec.Fields["WARC-Type"] != "response" {
		return nil, nil //nolint:nilerr // verify says what is wrong with a record
	}
	answer, err := rec.Response()
	if err != nil {
		return nil, nil //nolint:nilerr // it has no head
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // what there is of it will do
	resp := &page.Response{URL: p.URL, Status: answer.StatusCode, Header: answer.Header, Payload: body, Body: body}
	if max := w.Job.Fetch.MaxBody; max > 0 {
		_ = fetch.Decode(resp, 4*max) // the same
	}
	var pg page.Page
	if err := w.parser.Parse(resp, &pg); err != nil || !parse.IsHTML(pg.Sniffed) {
		return nil, nil //nolint:nilerr // it is none
	}
	text, _ := w.Job.Text(resp, &pg) // what was found before a bound counts
	return text, nil
}

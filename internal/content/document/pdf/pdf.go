//go:build (amd64 || arm64) && (linux || darwin || windows || freebsd)

package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"kumo/internal/content/document"
)

// A Reader reads PDF files, each in its own instance of PDFium. It is safe for concurrent use.
type Reader struct {
	config Config

	mu    sync.Mutex // guards the start
	pool  pdfium.Pool
	cache wazero.CompilationCache
}

// New returns a Reader. PDFium is compiled, or loaded from the cache, by the first Read or by Start.
func New(c Config) *Reader { return &Reader{config: c} }

// Start prepares PDFium, so that the time is not part of the first Read.
func (r *Reader) Start(context.Context) error {
	_, err := r.start()
	return err
}

func (r *Reader) start() (pdfium.Pool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pool != nil {
		return r.pool, nil
	}
	// without WithCloseOnContextDone, which checks the context at each jump back and doubles the time
	c := wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(r.config.memoryPages()).WithCoreFeatures(
		api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	if r.config.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(r.config.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("open the cache of compiled PDFium in %s: %w", r.config.CacheDir, err)
		}
		r.cache, c = cache, c.WithCompilationCache(cache)
	}
	// no directory of this computer is visible to PDFium
	pool, err := webassembly.Init(webassembly.Config{MaxTotal: 64, RuntimeConfig: c, FSConfig: wazero.NewFSConfig(),
		Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	r.pool = pool
	return pool, nil
}

// Close ends PDFium. No Read may be running.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.pool != nil {
		err = r.pool.Close()
		r.pool = nil
	}
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(context.Background()))
		r.cache = nil
	}
	return err
}

// Read reads a PDF file. When the context is done it stops after the current page, and returns what it has read so far
// with the problem [document.Timeout]. Only the end of the process stops PDFium in the middle of a page. An error is a *[document.Error] unless PDFium itself did not start.
func (r *Reader) Read(ctx context.Context, f document.File, lim document.Limits) (*document.Document, error) {
	pool, err := r.start()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, document.Errorf(document.Timeout, "the file was not begun: %w", err)
	}
	p, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("start an instance of PDFium: %w", err)
	}
	s := &session{p: p, ctx: ctx, file: f, lim: lim, doc: &document.Document{Format: document.PDF}}
	err = s.read()
	if s.broken != nil {
		_ = p.Kill() // closing its documents would call the instance, which has trapped
	} else {
		_ = p.Close() // the instance is thrown away, whatever Close reports
	}
	if err != nil {
		return nil, err
	}
	return s.doc, nil
}

// A session reads one file.
type session struct {
	p      pdfium.Pdfium
	ctx    context.Context //nolint:containedctx // a session is one call of Read
	file   document.File
	lim    document.Limits
	doc    *document.Document
	broken error // why PDFium cannot be called anymore

	ref   references.FPDF_DOCUMENT
	lines []line
	uris  []linked
	bytes int // of text
	links int
}

// problem records the first problem.
func (s *session) problem(p document.Problem, format string, args ...any) {
	if s.doc.Problem == "" {
		s.doc.Problem, s.doc.Detail = p, fmt.Sprintf(format, args...)
	}
}

func (s *session) read() error {
	if s.file.Size() == 0 {
		return document.Errorf(document.Broken, "the file is empty")
	}
	cut := isCut(s.file)
	opened, err := s.p.OpenDocument(&requests.OpenDocument{
		FileReader: io.NewSectionReader(s.file, 0, s.file.Size()), FileReaderSize: s.file.Size()})
	switch {
	case err == nil:
		s.ref = opened.Document
	case errors.Is(err, pdfiumerrors.ErrPassword):
		return document.Errorf(document.Encrypted, "the file needs a password")
	case errors.Is(err, pdfiumerrors.ErrSecurity):
		return document.Errorf(document.Encrypted, "the file is encrypted by a method that PDFium does not know")
	case cut:
		return document.Errorf(document.Cut, "the end of the file is missing: %w", err)
	default:
		return document.Errorf(document.Broken, "PDFium does not open the file: %s", shorten(err))
	}
	count, err := s.p.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: s.ref})
	if err != nil {
		return s.stopped("count the pages", err)
	}
	s.doc.Pages = count.PageCount
	s.metadata()
	last := s.pages()
	s.blocks()
	switch {
	case last < s.doc.Pages && s.ctx.Err() != nil:
		s.problem(document.Timeout, "the time was up at page %d of %d", last, s.doc.Pages)
	case cut:
		s.problem(document.Cut, "the end of the file is missing")
	case s.doc.Pages == 0:
		s.problem(document.Broken, "the file has no pages")
	case len(s.doc.Blocks) == 0:
		s.problem(document.NoText, "no page has text: they are pictures or empty")
	}
	return nil
}

// stopped is the error of a call without which nothing can be read.
func (s *session) stopped(what string, err error) error {
	return document.Errorf(document.Broken, "%s: %s", what, shorten(err))
}

// fatal reports whether an error of PDFium means that the instance is unusable: it has trapped, or was closed.
func (s *session) fatal(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	for _, sign := range []string{"wasm error", "panic occurred", "module closed", "exit_code", "instance is closed"} {
		if strings.Contains(text, sign) {
			s.broken = err
			return true
		}
	}
	return false
}

// shorten returns the first line of an error: traps of WebAssembly come with a stack trace.
func shorten(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text[:min(len(text), 200)]
}

// blocks makes blocks of the lines that were read.
func (s *session) blocks() {
	all := paragraphs(s.lines)
	headings(all)
	if s.lim.Blocks > 0 && len(all) > s.lim.Blocks {
		s.problem(document.TooLarge, "the first %d of %d paragraphs were read", s.lim.Blocks, len(all))
		all = all[:s.lim.Blocks]
	}
	for i := range all {
		s.doc.Blocks = append(s.doc.Blocks, all[i].block)
	}
	s.doc.Links = attach(s.doc.Blocks, s.uris, s.lim.Links)
}

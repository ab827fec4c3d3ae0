package chromium

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kumo/internal/content/render"
)

// A PoolConfig has the settings of a pool. The zero value means the defaults.
type PoolConfig struct {
	Browser Config
	Pages   int           // rendered at once; default 1
	Renew   int           // pages after which a browser is replaced, because its memory grows; default 500
	MaxAge  time.Duration // after which a browser is replaced; default 30m
	Now     func() time.Time
}

// retryStart is how long a pool waits after a browser did not start. Until then, Render returns the error.
const retryStart = 10 * time.Second

// A Pool renders pages in a browser that it starts when the first page needs it. It replaces a browser that has
// crashed, is old, or has rendered many pages, also while it renders others. Its methods are safe for concurrent use.
type Pool struct {
	cfg   PoolConfig
	slots chan struct{} // held while a page is rendered

	mu       sync.Mutex // guards the fields below; held while a browser starts
	current  *member    // nil: none is running
	failure  error      // why the last start failed
	failedAt time.Time
	closing  sync.WaitGroup
}

// A member is a browser of a pool. The pool's lock guards it.
type member struct {
	*Browser
	started time.Time
	pages   int // rendered so far
	active  int // pages that are being rendered
	retired bool
}

// NewPool returns a pool. It returns an error if there is no browser, or it cannot run with these settings.
func NewPool(cfg PoolConfig) (*Pool, error) {
	browser, err := cfg.Browser.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg.Browser, cfg.Pages = browser, max(cfg.Pages, 1)
	if cfg.Renew == 0 {
		cfg.Renew = 500
	}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = 30 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Pool{cfg: cfg, slots: make(chan struct{}, cfg.Pages)}, nil
}

// Pages returns the number of pages that are rendered at once.
func (p *Pool) Pages() int { return p.cfg.Pages }

// Render waits until a page may be rendered, and renders it. If the browser crashes, it tries once more.
func (p *Pool) Render(ctx context.Context, job render.Job) (*render.Result, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.slots }()
	r, err := p.renderOnce(ctx, job)
	if errors.Is(err, render.ErrCrashed) && ctx.Err() == nil {
		r, err = p.renderOnce(ctx, job)
	}
	return r, err
}

func (p *Pool) renderOnce(ctx context.Context, job render.Job) (*render.Result, error) {
	m, err := p.acquire()
	if err != nil {
		return nil, err
	}
	defer p.release(m)
	r, err := m.Browser.Render(ctx, job)
	if err != nil && ctx.Err() == nil && !m.Healthy() {
		return nil, fmt.Errorf("%w: %w", render.ErrCrashed, err)
	}
	return r, err
}

// acquire returns the current browser, or starts one.
func (p *Pool) acquire() (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Now()
	if m := p.current; m != nil && (m.pages >= p.cfg.Renew || now.Sub(m.started) >= p.cfg.MaxAge || !m.Healthy()) {
		p.retire()
	}
	if p.current == nil {
		if p.failure != nil && now.Sub(p.failedAt) < retryStart {
			return nil, p.failure
		}
		b, err := Start(context.Background(), p.cfg.Browser) // it outlives the page
		if p.failure = err; err != nil {
			p.failedAt = now
			return nil, err
		}
		p.current = &member{Browser: b, started: now}
	}
	p.current.pages++
	p.current.active++
	return p.current, nil
}

// retire makes the next page start another browser. The caller holds mu.
func (p *Pool) retire() {
	m := p.current
	p.current, m.retired = nil, true
	if m.active == 0 {
		p.closing.Go(m.Close)
	}
}

func (p *Pool) release(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.active--; m.active == 0 && m.retired {
		p.closing.Go(m.Close)
	}
}

// Close ends the browser, and waits for pages that are being rendered. A later Render starts another browser.
func (p *Pool) Close() error {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	if p.current != nil {
		p.retire()
	}
	p.mu.Unlock()
	p.closing.Wait()
	for range cap(p.slots) {
		<-p.slots
	}
	return nil
}

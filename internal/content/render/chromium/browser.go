package chromium

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// A Browser is a running browser. Its methods are safe for concurrent use.
type Browser struct {
	cfg   Config
	files *profile
	ctx   context.Context // of the browser process
	kill  context.CancelFunc
	stuck atomic.Bool // a page could not be closed
	once  sync.Once   // for Close
}

const (
	maxTempDir = 60 // bytes of a path: in a longer one, the browser's socket has no valid address

	startTime = 30 * time.Second // limit for starting
	closeTime = 5 * time.Second  // limit for closing a page or the browser, after which it is killed
)

// Start starts a browser. It ends with ctx, and with the process; the caller must close it.
func Start(ctx context.Context, cfg Config) (*Browser, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	files, err := newProfile()
	if err != nil {
		return nil, fmt.Errorf("start the browser %s: %w", cfg.Path, err)
	}
	ctx, kill := context.WithCancel(ctx)
	opts := append(options(&cfg), chromedp.UserDataDir(files.dir))
	if len(files.dir) <= maxTempDir {
		opts = append(opts, chromedp.Env("TMPDIR="+files.dir))
	}
	allocator, _ := chromedp.NewExecAllocator(ctx, opts...)
	b := &Browser{cfg: cfg, files: files, kill: kill}
	b.ctx, _ = chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	started := make(chan error, 1)
	go func() { // its context must live as long as the browser
		_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior,
			browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny})
		started <- err
	}()
	select {
	case err = <-started:
	case <-time.After(startTime):
		err = fmt.Errorf("it did not start within %v", startTime)
	}
	if err != nil {
		kill()
		files.remove()
		return nil, fmt.Errorf("start the browser %s: %w", cfg.Path, err)
	}
	return b, nil
}

// disabledFeatures would make requests of their own, or keep pages from loading fully.
var disabledFeatures = strings.Join([]string{"Translate", "IsolateOrigins", "site-per-process", "BackForwardCache",
	"MediaRouter", "OptimizationHints", "LazyImageLoading", "AutofillServerCommunication",
	"CertificateTransparencyComponentUpdater"}, ",")

func options(cfg *Config) []chromedp.ExecAllocatorOption {
	all := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(
		chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(cfg.Path), chromedp.WindowSize(cfg.Width, cfg.Height), chromedp.ModifyCmdFunc(isolate),
		// no network: see the package's comment
		chromedp.ProxyServer("http://127.0.0.1:9"), chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"),
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"), // its newer name
		chromedp.Flag("disable-site-isolation-trials", true), chromedp.Flag("disable-features", disabledFeatures),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("no-pings", true), chromedp.Flag("mute-audio", true), chromedp.Flag("deny-permission-prompts", true),
		chromedp.Flag("autoplay-policy", "user-gesture-required"), chromedp.Flag("force-device-scale-factor", "1"),
		chromedp.Flag("block-new-web-contents", true))
	if cfg.NoSandbox {
		all = append(all, chromedp.NoSandbox)
	}
	if cfg.Agent != "" {
		all = append(all, chromedp.UserAgent(cfg.Agent))
	}
	return all
}

// Healthy reports whether the browser runs, and closes its pages. Otherwise it should be closed and replaced.
func (b *Browser) Healthy() bool { return b.ctx.Err() == nil && !b.stuck.Load() && !b.lost() }

// lost reports whether the browser process has ended.
func (b *Browser) lost() bool {
	c := chromedp.FromContext(b.ctx)
	if c == nil || c.Browser == nil {
		return true
	}
	select {
	case <-c.Browser.LostConnection:
		return true
	default:
		return false
	}
}

// Close ends the browser: it kills it if it does not end by itself.
func (b *Browser) Close() { b.once.Do(b.end) }

func (b *Browser) end() {
	ctx, cancel := context.WithTimeout(b.ctx, closeTime)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); _ = chromedp.Cancel(ctx) }() // it is killed below in any case
	select {
	case <-done:
	case <-ctx.Done():
	}
	b.kill()
	<-done
	if c := chromedp.FromContext(b.ctx); c != nil && c.Browser != nil && c.Browser.Process() != nil {
		killGroup(c.Browser.Process().Pid)
	}
	b.files.remove()
}

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
	"kumo/internal/base/wait"
	"kumo/internal/view/web/ui"
)

// defaultUI is the default address of the web page.
const defaultUI = "127.0.0.1:8090"

type uiFlags struct {
	name string // name of the first flag
	setting.UI
}

func crawlUI(u setting.UI) *uiFlags { return &uiFlags{"ui", u} }

func (u *uiFlags) bind(f *pflag.FlagSet, name string) {
	u.name = name
	f.StringVar(&u.Addr, name, "", "serve a web page and REST API at `ADDR`, given as --"+name+"=ADDR (without one: "+
		defaultUI+"); kumo open opens it")
	f.Lookup(name).NoOptDefVal = defaultUI
	f.StringVar(&u.Cert, name+"-cert", "", "with --"+name+": use TLS, with the certificate in `FILE`")
	f.StringVar(&u.Key, name+"-key", "", "with --"+name+"-cert: the certificate's key, in `FILE`")
	f.BoolVar(&u.NoToken, name+"-no-token", false, "with --"+name+" on a loopback address: give every user of "+
		"this machine access")
}

var addressLike = regexp.MustCompile(`^([\w.-]+|\[[0-9a-fA-F:.]+\])?:\d+$`)

// checkArgs reports an address that was meant as the value of --ui, which needs a =.
func (u *uiFlags) checkArgs(args []string) error {
	if u.Addr != defaultUI {
		return nil
	}
	for _, a := range args {
		if addressLike.MatchString(a) {
			return usagef("%q is not a URL; did you mean --ui=%s? the address of --ui needs a =", a, a)
		}
	}
	return nil
}

// A uiPage is the web page before it is served.
type uiPage struct {
	flags  uiFlags
	listen net.Listener
	open   bool     // other machines can reach it
	token  bool     // requests need a token
	hosts  []string // host names that requests may use
	host   string   // host in the page's URL
}

func (u *uiFlags) listen() (*uiPage, error) {
	if u.Addr == "" {
		if u.Cert+u.Key != "" || u.NoToken {
			return nil, usagef("--%s-cert, --%[1]s-key and --%[1]s-no-token need --%[1]s", u.name)
		}
		return nil, nil
	}
	host, _, err := net.SplitHostPort(u.Addr)
	if err != nil {
		return nil, usagef("--%s is %q: give a host and a port, such as %s", u.name, u.Addr, defaultUI)
	}
	if (u.Cert == "") != (u.Key == "") {
		return nil, usagef("--%s-cert and --%[1]s-key need each other: a certificate and its key", u.name)
	}
	if u.Cert != "" {
		if _, err := tls.LoadX509KeyPair(u.Cert, u.Key); err != nil {
			return nil, usagef("--%s-cert: %v", u.name, err)
		}
	}
	p := &uiPage{flags: *u, open: !isLoopback(host), token: !u.NoToken}
	if p.open && u.NoToken {
		return nil, usagef("--%s-no-token: %s is reached by other machines: only a loopback address, as %s, goes without a "+
			"token", u.name, u.Addr, defaultUI)
	}
	if p.listen, err = net.Listen("tcp", u.Addr); err != nil {
		return nil, usagef("--%s: %v; --%[1]s=%[3]s takes a port that is free", u.name, err, net.JoinHostPort(host, "0"))
	}
	_, port, _ := net.SplitHostPort(p.listen.Addr().String())
	machine, err := os.Hostname()
	if ip, bad := netip.ParseAddr(host); err == nil && (host == "" || bad == nil && ip.IsUnspecified()) {
		host = machine
	}
	p.host = net.JoinHostPort(host, port)
	p.hosts = []string{strings.ToLower(host), strings.ToLower(machine)}
	return p, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (p *uiPage) close() {
	if p != nil {
		p.listen.Close()
	}
}

func (p *uiPage) url() string {
	if p.flags.Cert != "" {
		return "https://" + p.host + "/"
	}
	return "http://" + p.host + "/"
}

// runningIn returns the content for the crawl that runs in a folder.
func runningIn(dir string) *webContent {
	return &webContent{dirs: []string{dir}, Config: ui.Config{Crawls: []ui.Crawl{withFiles(ui.Crawl{Dir: dir,
		Open: func(ctx context.Context) (*inspect.View, error) { return session.Dial(ctx, dir) }})}}}
}

func (p *uiPage) serve(ctx context.Context, log *slog.Logger, shown *webContent) (err error) {
	note, kept, end, err := p.publish(ctx, shown)
	if err != nil {
		return err
	}
	defer end()
	p.logURL(log, note, kept, shown)
	s := ui.New(ui.Config{Crawls: shown.Crawls, Batches: shown.Batches, Experiments: shown.Experiments, Hosts: p.hosts,
		Token: note.Token, Secure: p.flags.Cert != "", Log: log, Starter: shown.Starter,
		Documents: sharedDocuments()})
	return s.Serve(ctx, p.listen, p.flags.Cert, p.flags.Key)
}

// publish writes the page's URL and token to the folders that it shows, the first one first. If there is none, or the
// user cannot write there, it writes them to a folder in the user's cache. kept reports whether kumo open finds them.
// The caller calls end when the page is no longer served.
func (p *uiPage) publish(ctx context.Context, shown *webContent) (note *uiRecord, kept bool, end func(), err error) {
	note = &uiRecord{URL: p.url(), TokenRequired: p.token}
	dirs, spare := shown.dirs, userDir(shown.firstName())
	if len(dirs) == 0 && spare != "" {
		dirs = []string{spare}
	}
	if p.token {
		if note.Token, err = findToken(append(slices.Clone(dirs[:min(1, len(dirs))]), spare)...); err != nil {
			return nil, false, nil, err
		}
	}
	ends := &uiCleanup{}
	failed := forEachDir(dirs, func(dir string) error { return note.publish(ctx, dir, shown, ends) })
	kept = len(dirs) > 0 && (failed[0] == nil ||
		spare != "" && dirs[0] != spare && note.publish(ctx, spare, shown, ends) == nil)
	return note, kept, ends.run, nil
}

// findToken returns the token stored in the first folder that has one, or a new token. It skips folders that the user
// cannot read, or whose disk hangs.
func findToken(dirs ...string) (string, error) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		found := make(chan string, 1)
		failed := forEachDir([]string{dir}, func(dir string) error {
			n, err := readUIRecord(dir)
			if err == nil {
				found <- n.Token
			}
			return err
		})
		if err := failed[0]; err != nil && !errors.Is(err, fs.ErrPermission) {
			return "", err
		}
		select {
		case token := <-found:
			if token != "" {
				return token, nil
			}
		default:
		}
	}
	return rand.Text(), nil
}

// logURL logs the page's URL. It includes the token only on a terminal, which only the user sees, or if no folder
// stores the token: logs are often readable by others.
func (p *uiPage) logURL(log *slog.Logger, note *uiRecord, kept bool, shown *webContent) {
	switch {
	case !p.token:
		log.Info("web page", "at", note.URL)
		log.Warn("the web page has no token: every user of this machine can read and steer the crawl")
		return
	case !kept || isTerminal(os.Stderr):
		log.Info("web page", "at", note.link())
	default:
		log.Info("web page", "at", note.URL)
		log.Info("kumo open " + shown.firstName() + " prints the web page's URL with its token")
	}
	if p.open && p.flags.Cert == "" {
		log.Warn("the web page and its token are not encrypted: --" + p.flags.name +
			"-cert enables TLS")
	}
}

// firstName returns the argument with which kumo open finds the page.
func (s *webContent) firstName() string {
	switch {
	case len(s.dirs) > 0:
		return s.dirs[0]
	case len(s.Batches) > 0:
		return s.Batches[0].Name
	case len(s.Crawls) > 0:
		return clusterKey(s.Crawls[0].Name)
	}
	return ""
}

func clusterKey(crawl string) string { return "--crawl " + crawl }

// userDir returns a folder in the user's cache for the record of a page without a writable folder; "" if the user has
// no cache.
func userDir(of string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	if !strings.HasPrefix(of, clusterKey("")) && !strings.Contains(of, "://") { // a folder
		if abs, err := filepath.Abs(of); err == nil {
			of = abs
		}
	}
	return filepath.Join(cache, "kumo", "pages", fmt.Sprintf("%x", sha256.Sum256([]byte(of)))[:16])
}

// A uiRecord is the file in a crawl's folder that describes its web page. Only the user can read it.
type uiRecord struct {
	URL           string `json:"url,omitempty"`          // missing: not served
	TokenRequired bool   `json:"token_wanted,omitempty"` // requests to URL need the token
	Token         string `json:"token,omitempty"`        // also kept without TokenRequired, for the next page
}

// link returns the URL with the token.
func (n *uiRecord) link() string {
	if !n.TokenRequired {
		return n.URL
	}
	return n.URL + "?token=" + url.QueryEscape(n.Token)
}

func (n *uiRecord) isServed() bool {
	u, err := url.Parse(n.URL)
	if err != nil || u.Host == "" {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, recordCheckInterval)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

const maxUIRecord = 16 << 10 // bytes

// publish writes the record to a folder, and adds its removal to ends. The folder of a node may not exist yet, and it
// changes when the node starts again under a new identity.
func (n *uiRecord) publish(ctx context.Context, dir string, shown *webContent, ends *uiCleanup) error {
	of := slices.IndexFunc(shown.Crawls, func(c ui.Crawl) bool { return c.Dir == dir })
	// only a crawl has this folder already
	if state := filepath.Join(dir, filepath.Dir(folder.UIName)); of < 0 && dir == userDir(shown.firstName()) {
		if err := os.MkdirAll(state, 0o700); err != nil {
			return err
		}
	} else if of < 0 && os.Mkdir(state, 0o777) == nil {
		defer ends.add(func() { _ = os.Remove(state) }) // fails if it keeps a token
	}
	err, stop := n.save(dir), func() {}
	if of >= 0 && shown.Crawls[of].Cluster != nil {
		err, stop = nil, n.watch(ctx, dir)
	}
	ends.add(func() {
		stop()
		n.remove(dir)
	})
	return err
}

// uiCleanup lists the functions to call at the end, in order.
type uiCleanup struct {
	mu   sync.Mutex // guards todo
	todo []func()
}

func (e *uiCleanup) add(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.todo = append(e.todo, f)
}

// run calls the functions in order. It does not wait for a disk that hangs.
func (e *uiCleanup) run() {
	e.mu.Lock()
	todo := e.todo
	e.mu.Unlock()
	forEachDir([]string{""}, func(string) error {
		for _, f := range todo {
			f()
		}
		return nil
	})
}

// forEachDir calls do for each folder, many at once. It waits at most inspectTimeout; slower calls continue in the
// background.
func forEachDir(dirs []string, do func(dir string) error) (failed []error) {
	results := make([]chan error, len(dirs))
	turns := newSemaphore()
	for i, dir := range dirs {
		results[i] = make(chan error, 1)
		go turns.do(func() { results[i] <- do(dir) })
	}
	over := time.After(inspectTimeout)
	failed = make([]error, max(1, len(dirs)))
	for i := range dirs {
		select {
		case failed[i] = <-results[i]:
		case <-over:
			return failed
		}
	}
	return failed
}

// A semaphore limits concurrent disk access, so that slow disks do not delay others.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 32) }

func (t semaphore) do(do func()) {
	t <- struct{}{}
	leave := sync.OnceFunc(func() { <-t })
	defer leave()
	defer time.AfterFunc(inspectTimeout/16, leave).Stop()
	do()
}

// readUIRecord reads the record of the crawl in dir; it is empty if there is none.
func readUIRecord(dir string) (n uiRecord, err error) {
	f, err := os.Open(filepath.Join(dir, folder.UIName))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer f.Close()
	text := make([]byte, maxUIRecord)
	size, _ := f.Read(text)
	if err := json.Unmarshal(text[:size], &n); err != nil {
		return n, advice.With(fmt.Errorf("%s is not a valid web page record: %w", f.Name(), err),
			"remove it, and serve the page again")
	}
	return n, nil
}

// save writes the record, unless another page of the folder is being served, which has its own. If this page has no
// token, the token in the folder is kept.
func (n *uiRecord) save(dir string) error {
	old, _ := readUIRecord(dir) // an unreadable record counts as none
	if old.URL != "" && old.URL != n.URL && old.isServed() {
		return nil
	}
	now := *n
	if now.Token == "" {
		now.Token = old.Token
	}
	return now.write(dir)
}

// watch writes the record again whenever it is missing, until ctx ends or stop is called. stop waits for its end.
func (n *uiRecord) watch(ctx context.Context, dir string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.restore(ctx, dir)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (n *uiRecord) restore(ctx context.Context, dir string) {
	for range wait.Ticks(ctx, recordCheckInterval) {
		if now, err := readUIRecord(dir); err == nil && now.URL != n.URL {
			_ = n.save(dir) // the next attempt may succeed
		}
	}
}

const recordCheckInterval = 500 * time.Millisecond // time between two checks that the record exists

// write replaces the record atomically. Only the crawl's user can read it.
func (n *uiRecord) write(dir string) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return writePrivate(filepath.Join(dir, folder.UIName), append(text, '\n'))
}

// remove removes the URL from the record if it is that of this page. The token stays.
func (n *uiRecord) remove(dir string) {
	now, err := readUIRecord(dir)
	if err != nil || now.URL != n.URL {
		return
	}
	_ = os.Remove(filepath.Join(dir, folder.OpenName)) // contains the token; may be missing
	if now.URL, now.TokenRequired = "", false; now.Token == "" {
		_ = os.Remove(filepath.Join(dir, folder.UIName)) // readers find that nobody answers
		return
	}
	_ = now.write(dir)
}

package main

import (
	"context"
	"crypto/rand"
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/advice"
	"kumo/internal/folder"
	"kumo/internal/inspect"
	"kumo/internal/session"
	"kumo/internal/web/ui"
)

// defaultUI is where the web page is, unless the user says otherwise.
const defaultUI = "127.0.0.1:8090"

// uiFlags say where the web page is served.
type uiFlags struct {
	name            string // of the first flag
	addr, cert, key string
}

func (u *uiFlags) bind(f *pflag.FlagSet, name string) {
	u.name = name
	f.StringVar(&u.addr, name, "", "serve a web page and REST of the crawl at `ADDR`, given as --"+name+"="+
		"ADDR (alone: "+defaultUI+"); on an address "+
		"that others reach with a token: see kumo open")
	f.Lookup(name).NoOptDefVal = defaultUI
	f.StringVar(&u.cert, name+"-cert", "", "with --"+name+": over TLS, with the certificate in `FILE`")
	f.StringVar(&u.key, name+"-key", "", "with --"+name+"-cert: its key, in `FILE`")
}

var addressLike = regexp.MustCompile(`^([\w.-]+|\[[0-9a-fA-F:.]+\])?:\d+$`)

// checkArgs refuses an address that was meant for --ui: one stands behind =.
func (u *uiFlags) checkArgs(args []string) error {
	if u.addr != defaultUI {
		return nil
	}
	for _, a := range args {
		if addressLike.MatchString(a) {
			return usagef("%q is no URL; was it meant for --ui? its address stands behind =, as in --ui=%s", a, a)
		}
	}
	return nil
}

// A uiPage is a web page that is about to be served.
type uiPage struct {
	flags  uiFlags
	listen net.Listener
	open   bool     // others reach it: it has a token
	hosts  []string // names by which it may be called
	host   string   // by which it is told
}

// listen listens where the web page is to be served; nil if nowhere.
func (u *uiFlags) listen() (*uiPage, error) {
	if u.addr == "" {
		if u.cert+u.key != "" {
			return nil, usagef("--%s-cert and --%[1]s-key say how --%[1]s is served: give it, too", u.name)
		}
		return nil, nil
	}
	host, _, err := net.SplitHostPort(u.addr)
	if err != nil {
		return nil, usagef("--%s is %q: a host and a port are wanted, as in %s", u.name, u.addr, defaultUI)
	}
	if (u.cert == "") != (u.key == "") {
		return nil, usagef("--%s-cert and --%[1]s-key go together: a certificate and its key", u.name)
	}
	if u.cert != "" {
		if _, err := tls.LoadX509KeyPair(u.cert, u.key); err != nil {
			return nil, usagef("--%s-cert: %v", u.name, err)
		}
	}
	p := &uiPage{flags: *u, open: !isLoopback(host)}
	if p.listen, err = net.Listen("tcp", u.addr); err != nil {
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
	if p.flags.cert != "" {
		return "https://" + p.host + "/"
	}
	return "http://" + p.host + "/"
}

// runningIn is the crawl that runs in a folder.
func runningIn(dir string) *shown {
	return &shown{dirs: []string{dir}, Config: ui.Config{Crawls: []ui.Crawl{{Dir: dir,
		Open: func(ctx context.Context) (*inspect.View, error) { return session.Dial(ctx, dir) }}}}}
}

// serve serves the page until the context ends, and says where. What others need to reach it lies in the folders that
// are shown, first of all in the first.
func (p *uiPage) serve(ctx context.Context, log *slog.Logger, shown *shown) (err error) {
	note := &uiNote{URL: p.url(), Wanted: p.open}
	if p.open {
		if len(shown.dirs) == 0 {
			return usagef("--%s=%s: others reach this address, so that a token is needed, which lies in a folder that is "+
				"shown: name a folder as well, or an address of this machine's own such as %s", p.flags.name, p.flags.addr,
				defaultUI)
		}
		if note.Token, err = uiToken(shown.dirs[0]); err != nil {
			return err
		}
	}
	var ends uiEnds
	defer ends.all()
	failed := alongside(shown.dirs, func(dir string) error { return note.show(ctx, dir, shown, &ends) })
	if err := failed[0]; len(shown.dirs) > 0 && err != nil && p.open { // others may not be this user's to write in
		return fmt.Errorf("keep the web page's token: %w", err)
	}
	log.Info("web page", "at", note.URL)
	if p.open {
		log.Info("the web page answers who has its token: kumo open -o " + shown.dirs[0] + " prints the URL with it")
		if p.flags.cert == "" {
			log.Warn("the web page and its token go over the network as they are: --" + p.flags.name +
				"-cert has them encrypted")
		}
	}
	s := ui.New(ui.Config{Crawls: shown.Crawls, Batches: shown.Batches, Experiments: shown.Experiments, Hosts: p.hosts,
		Token: note.Token, Secure: p.flags.cert != "", Log: log})
	return s.Serve(ctx, p.listen, p.flags.cert, p.flags.key)
}

// A uiNote is what lies in a crawl's folder of its web page, for its user alone.
type uiNote struct {
	URL    string `json:"url,omitempty"`          // missing: it is not served
	Wanted bool   `json:"token_wanted,omitempty"` // there
	Token  string `json:"token,omitempty"`        // of what others reach, now or later
}

const maxNote = 16 << 10 // bytes

// show puts the note down in a folder that is shown, and adds what is to be done in the end. Of a crawl's cluster the
// folder may not be there yet, and is another one when the node begins again as another one.
func (n *uiNote) show(ctx context.Context, dir string, shown *shown, ends *uiEnds) error {
	of := slices.IndexFunc(shown.Crawls, func(c ui.Crawl) bool { return c.Dir == dir })
	// only a crawl has it
	if state := filepath.Join(dir, filepath.Dir(folder.UIName)); of < 0 && os.Mkdir(state, 0o777) == nil {
		defer ends.add(func() { _ = os.Remove(state) }) // unless a token is kept in it
	}
	err, stop := n.keep(dir), func() {}
	if of >= 0 && shown.Crawls[of].Cluster != nil {
		err, stop = nil, n.keepUp(ctx, dir)
	}
	ends.add(func() {
		stop()
		n.end(dir)
	})
	return err
}

// uiEnds are what is to be done in the end, folder by folder.
type uiEnds struct {
	mu   sync.Mutex // guards todo
	todo []func()
}

func (e *uiEnds) add(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.todo = append(e.todo, f)
}

// all does it, in its order, unless a disk hangs.
func (e *uiEnds) all() {
	e.mu.Lock()
	todo := e.todo
	e.mu.Unlock()
	alongside([]string{""}, func(string) error {
		for _, f := range todo {
			f()
		}
		return nil
	})
}

// alongside does something with folders, many at once, for as long as is waited for their disks: what takes longer goes
// on.
func alongside(dirs []string, do func(dir string) error) (failed []error) {
	results := make([]chan error, len(dirs))
	turns := newTurns()
	for i, dir := range dirs {
		results[i] = make(chan error, 1)
		go turns.take(func() { results[i] <- do(dir) })
	}
	over := time.After(lookPatience)
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

// turns are those of disks: who has one that takes long does not keep others waiting.
type turns chan struct{}

func newTurns() turns { return make(turns, 32) }

func (t turns) take(do func()) {
	t <- struct{}{}
	leave := sync.OnceFunc(func() { <-t })
	defer leave()
	defer time.AfterFunc(lookPatience/16, leave).Stop()
	do()
}

// readNote reads the note of the crawl in dir; an empty one if there is none.
func readNote(dir string) (n uiNote, err error) {
	f, err := os.Open(filepath.Join(dir, folder.UIName))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer f.Close()
	text := make([]byte, maxNote)
	size, _ := f.Read(text)
	if err := json.Unmarshal(text[:size], &n); err != nil {
		return n, advice.With(fmt.Errorf("%s says not where the web page is: %w", f.Name(), err),
			"remove it, and serve the page again")
	}
	return n, nil
}

// uiToken is the crawl's token: the one that it had before, so that who has it need not ask again.
func uiToken(dir string) (string, error) {
	n, err := readNote(dir)
	if err != nil || n.Token != "" {
		return n.Token, err
	}
	return rand.Text(), nil
}

// keep puts the note down. The token that the crawl has stays if this page has none.
func (n *uiNote) keep(dir string) error {
	now := *n
	if now.Token == "" {
		old, _ := readNote(dir) // one that cannot be read has none
		now.Token = old.Token
	}
	return now.write(dir)
}

// keepUp puts the note down wherever it is missing, until ctx ends or stop is called, which waits for it.
func (n *uiNote) keepUp(ctx context.Context, dir string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.keepAgain(ctx, dir)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (n *uiNote) keepAgain(ctx context.Context, dir string) {
	tick := time.NewTicker(noteTime)
	defer tick.Stop()
	for {
		if now, err := readNote(dir); err == nil && now.URL != n.URL {
			_ = n.keep(dir) // the next time
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

const noteTime = 500 * time.Millisecond // after which it is seen whether the note is still there

// write puts the note down in one go, readable by the crawl's user alone.
func (n *uiNote) write(dir string) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, folder.UIName)
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // which has mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// end says that the page is no longer served, if it is this one that the note speaks of. The token stays.
func (n *uiNote) end(dir string) {
	now, err := readNote(dir)
	if err != nil || now.URL != n.URL {
		return
	}
	if now.URL, now.Wanted = "", false; now.Token == "" {
		_ = os.Remove(filepath.Join(dir, folder.UIName)) // who asks for it finds out that nobody answers
		return
	}
	_ = now.write(dir)
}

func openCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: "open [FOLDER]", Short: "Print the URL of a crawl's web page",
		Long: `Print the URL of the web page of a crawl, as kumo crawl --ui, kumo node --ui or kumo serve serves it, with its token if it needs one. Who has
that URL can look at the crawl, and steer it. The browser keeps the token in a cookie when it has opened the URL once.`,
		Example:               "  kumo open -o crawls/example.com\n  xdg-open $(kumo open -o crawls/example.com)",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usagef("which crawl? name its folder with --out")
			}
			n, err := readNote(dir)
			if err != nil {
				return err
			}
			if n.URL == "" {
				return advice.With(fmt.Errorf("no web page of the crawl in %s is served", dir),
					fmt.Sprintf("kumo crawl -o %s --ui (of a node: kumo node --ui) serves it while it crawls, kumo serve %[1]s at "+
						"any time", dir))
			}
			if n.Wanted {
				n.URL += "?token=" + url.QueryEscape(n.Token)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), n.URL)
			return err
		}}
	cmd.Flags().StringVarP(&dir, "out", "o", "", "the crawl's `FOLDER` (needed)")
	return orArgument(cmd)
}

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/lab/clusterdemo"
	"kumo/internal/lab/testmain"

	"github.com/chromedp/chromedp"
)

// A nodeOfPage is a node with a web page of its cluster.
type nodeOfPage struct {
	*exec.Cmd
	dir, page string
	at        pageAt
	ended     chan struct{}
}

// clusterWithPages starts nodes, and the crawl of a site. The first one runs the server.
func clusterWithPages(t *testing.T, site string, names []string, flags ...string) []*nodeOfPage {
	t.Helper()
	at, err := clusterdemo.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	var all []*nodeOfPage
	for i, name := range names {
		n := &nodeOfPage{dir: filepath.Join(home, name), ended: make(chan struct{})}
		args := append([]string{"node", "-q", "--crawl", "shown", "--name", name, "-o", n.dir, "--ui=127.0.0.1:0"}, flags...)
		if where := "--join"; i > 0 {
			args = append(args, where, at[0])
		} else {
			args = append(args, "--listen", at[0])
		}
		n.Cmd = exec.Command(kumoProgram(t), args...)
		n.Stderr = os.Stderr
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { defer close(n.ended); _ = n.Wait() }()
		t.Cleanup(func() {
			_ = n.Process.Signal(syscall.SIGKILL) // it has ended already if all went well
			<-n.ended
		})
		all = append(all, n)
	}
	waitFor(t, func() string {
		out, err := exec.Command(kumoProgram(t), "start", "--crawl", "shown", "--join", at[0], "--delay", "1s", "--ip-delay",
			"0", "--allow-private", "--scope", "any", site).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "runs already") {
			return ""
		}
		return "started"
	})
	for _, n := range all {
		n.at = pageIn(t, n.dir)
		n.page = n.at.url
	}
	return all
}

// TestClusterInBrowser shows a cluster in a real Chromium, on the page of one of its nodes, and controls all of them
// there. KUMO_TEST_SCREENSHOTS is a folder for pictures; with it there are five nodes, and one is killed.
func TestClusterInBrowser(t *testing.T) {
	testmain.Slow(t)
	b := newUIBrowser(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for i := range 20 {
			fmt.Fprintf(w, "<a href='http://127.0.0.%d:%s%s/%d'>x</a>", i+1, r.Host[strings.LastIndexByte(r.Host, ':')+1:],
				r.URL.Path, i)
		}
	}))
	everywhere, err := net.Listen("tcp", "0.0.0.0:0") // an address of all interfaces
	if err != nil {
		t.Fatal(err)
	}
	s.Listener.Close()
	s.Listener = everywhere
	s.Start()
	defer s.Close()
	_, port, _ := net.SplitHostPort(everywhere.Addr().String())
	s.URL = "http://127.0.0.1:" + port
	names, strategy := []string{"a", "b"}, "shard"
	if os.Getenv("KUMO_TEST_SCREENSHOTS") != "" {
		names = []string{"a", "b", "c", "d", "e"}
		if given := os.Getenv("KUMO_TEST_STRATEGY"); given != "" {
			strategy = given
		}
	}
	nodes := clusterWithPages(t, s.URL+"/", names, "--strategy", strategy)
	at := nodes[1].page + "crawls/b/cluster"
	waitFor(t, func() string {
		if text := nodes[1].at.fetched(t, "api/v1/crawls/b/cluster"); strings.Count(text, `"is":"member"`) == len(names) {
			return text
		}
		return ""
	})
	for _, n := range nodes {
		b.do(t, "the URL with the token", chromedp.Navigate(n.at.link()), chromedp.WaitVisible("h1"))
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, path := range []string{"cluster", "act/delay", "act/stop", ""} {
			url := nodes[1].page + "crawls/b/" + path
			b.do(t, path, prefer(scheme), chromedp.Navigate(strings.TrimSuffix(url, "/")))
			if found := b.barriers(t, path); found != "" {
				t.Errorf("%s, %s, has barriers:\n%s", path, scheme, found)
			}
		}
	}
	b.do(t, "pause", chromedp.Navigate(nodes[1].page), chromedp.Click(`a[href$="/act/pause"]`),
		chromedp.Click(`button[name=sure]`),
		chromedp.WaitVisible(`.word.done`), chromedp.WaitVisible(`.state.paused`))
	b.do(t, "resume, on another node's page", chromedp.Click(`//a[contains(., 'a') and starts-with(@href, '`+nodes[0].page+
		`')]`),
		chromedp.Click(`a[href$="/act/resume"]`), chromedp.Click(`button[name=sure]`), chromedp.WaitVisible(`.state.running`))
	b.do(t, "limit", chromedp.Click(`a[href$="/act/limit"]`), chromedp.SendKeys("#value", "4321"),
		chromedp.Click(`.act .main`),
		chromedp.Click(`button[name=sure]`), chromedp.WaitVisible(`.word.done`))
	b.do(t, "delay", chromedp.Click(`a[href$="/act/delay"]`), chromedp.SendKeys("#host", "127.0.0.9:1"),
		chromedp.SendKeys("#value", "7s"),
		chromedp.Click(`.act .main`), chromedp.Click(`button[name=sure]`), chromedp.WaitVisible(`.word.done`))
	b.shoot(t, strategy, at)
	b.do(t, "add", chromedp.Navigate(nodes[0].page), chromedp.Click(`a[href$="/act/add"]`),
		chromedp.SendKeys("#value", s.URL+"/late\n"+s.URL+"/"), chromedp.Click(`.act .main`),
		chromedp.Click(`button[name=sure]`), chromedp.WaitVisible(`.word.done`))
	if said := evaluate(t, b, "what was added", chromedp.Text(`.word.done`)); said != "Done: 2 URLs added, 1 of them new" {
		t.Errorf("it says %q", said)
	}
	wanted := []string{"set limit=4321", "set override=", "add 2 URLs", "pause", "resume", "of node a, from 127.0.0.1",
		"of node b, from 127.0.0.1"}
	var text string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the cluster's page is to have %q:\n%s", wanted, text)
		}
	})
	waitFor(t, func() string { // the other node's page is updated a little later
		text = b.text(t, at)
		if slices.ContainsFunc(wanted, func(want string) bool { return !strings.Contains(text, want) }) {
			return ""
		}
		return text
	})
	for _, n := range nodes {
		waitFor(t, func() string {
			out, _ := exec.Command(kumoProgram(t), "set", "-o", n.dir).CombinedOutput()
			if strings.Contains(string(out), `"7s"`) {
				return "known"
			}
			return ""
		})
	}
	if len(nodes) > 2 {
		if err := nodes[3].Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		b.do(t, "a node is not heard of", chromedp.Navigate(at),
			chromedp.WaitVisible(`//td[contains(., 'd is not heard of')]`))
		b.shoot(t, strategy+"-silent", at)
		b.do(t, "a node is given up", chromedp.Navigate(at), chromedp.WaitVisible(`//td[contains(., 'had')]`))
		b.shoot(t, strategy+"-dead", at)
	}
	b.do(t, "stop", chromedp.Navigate(at), chromedp.Click(`a[href$="/act/stop"]`), chromedp.Click(`button[name=sure]`),
		chromedp.WaitVisible(`//h1[text()='The crawl is ending']`))
	for i, n := range nodes {
		select {
		case <-n.ended:
		case <-time.After(20 * time.Second):
			t.Errorf("node %s goes on", names[i])
		}
	}
}

// certificateFiles returns two files, with a certificate for 127.0.0.1 and its key, and a pool that trusts it.
func certificateFiles(t *testing.T) (cert, key string, trusts *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kumo"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusts = x509.NewCertPool()
	trusts.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, key, trusts
}

// A node's page on an address that others reach uses TLS, and requires its token. The token is in the folder even if
// the page starts early.
func TestNodesPageOverTLS(t *testing.T) {
	t.Parallel()
	cert, key, trusts := certificateFiles(t)
	at, err := clusterdemo.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "secure")
	node := exec.Command(kumoProgram(t), "node", "-q", "--crawl", "secure", "--name", "a", "--listen", at[0], "-o", dir,
		"--ui=0.0.0.0:0", "--ui-cert", cert, "--ui-key", key)
	node.Stderr = os.Stderr
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Wait() }()
	defer func() { _ = node.Process.Signal(syscall.SIGKILL); <-ended }()
	served := pageIn(t, dir)
	page, token := served.url, served.token
	if !strings.HasPrefix(page, "https://") {
		t.Fatalf("the page is at %s", page)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(page, "/"), "https://"), ":")
	page = "https://127.0.0.1:" + port + "/"
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusts}}}
	secure := false
	client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		for _, c := range r.Response.Cookies() {
			secure = secure || c.Secure && c.HttpOnly && c.Value == token
		}
		return nil
	}
	ask := func(url, bearer string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, _ := ask(page, ""); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	if status, _ := ask(page+"api/v1/crawls/secure/cluster", "x"+token); status != http.StatusUnauthorized {
		t.Errorf("with another token: %d", status)
	}
	if status, text := ask(page+"api/v1/crawls/secure/cluster", token); status != http.StatusOK ||
		!strings.Contains(text, `"state":"waiting"`) {
		t.Errorf("with the token: %d, %s", status, text)
	}
	if status, _ := ask(page+"?token="+token, ""); status != http.StatusOK || !secure {
		t.Errorf("the URL with the token: %d, a secure cookie: %v", status, secure)
	}
	// with the cookie
	if status, text := ask(page, ""); status != http.StatusOK || !strings.Contains(text, "has not been started") {
		t.Errorf("with the cookie: %d, %s", status, text)
	}
	if _, err := http.Get("https://127.0.0.1:" + port + "/"); err == nil { //nolint:noctx // nothing is got
		t.Error("a certificate that nobody trusts is trusted")
	}
}

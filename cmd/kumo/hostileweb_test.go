package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// A hostileWeb is a set of hosts on addresses of their own (of 127.0.0.0/8). Each answers every request in one way,
// made to use as much of a crawler's memory as possible.
type hostileWeb struct {
	seeds []string
	small atomic.Int64 // pages that the well-behaved hosts have served
	asked sync.Map     // attack → *atomic.Int64, answers begun
}

// An attack answers one request. Writes after the crawler has hung up are lost.
type attack struct {
	name   string
	slow   bool                               // its first answer takes long to make
	robots func(w *bufio.Writer)              // nil: there is none
	answer func(w *bufio.Writer, path string) // the connection ends when it returns; it may block
}

const attackSize = 30 << 20 // bytes of body, just below the default of --max-body

// reply writes an answer whose body is a head and then one piece again and again.
func reply(fields, head, piece string, size int) func(*bufio.Writer, string) {
	return func(w *bufio.Writer, _ string) {
		fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%s\r\n", fields)
		_, _ = w.WriteString(head)
		repeat(w, piece, size)
	}
}

// repeat writes a piece, with its number where it has %d, up to a size.
func repeat(w io.Writer, piece string, size int) {
	numbered := strings.Contains(piece, "%d")
	whole := []byte(piece)
	if !numbered {
		whole = bytes.Repeat(whole, max(1, (64<<10)/len(piece)))
	}
	for i, n := 0, 0; n < size; i++ {
		if numbered {
			whole = fmt.Appendf(whole[:0], piece, i)
		}
		m, err := w.Write(whole)
		if err != nil {
			return
		}
		n += m
	}
}

// typed is reply with another media type.
func typed(mediaType, head, piece string, size int) func(*bufio.Writer, string) {
	return func(w *bufio.Writer, _ string) {
		fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n%s", mediaType, head)
		repeat(w, piece, size)
	}
}

// bomb is a body that is small under its coding and large without.
func bomb(coding, head, piece string, size int) func(*bufio.Writer, string) {
	packed := sync.OnceValue(func() []byte {
		var b bytes.Buffer
		var z io.WriteCloser
		switch coding {
		case "gzip":
			z, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed)
		case "deflate":
			z, _ = zlib.NewWriterLevel(&b, zlib.BestSpeed)
		case "br":
			z = brotli.NewWriterLevel(&b, 2)
		case "zstd":
			z, _ = zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(8<<20),
				zstd.WithEncoderConcurrency(1))
		}
		_, _ = io.WriteString(z, head)
		repeat(z, piece, size)
		_ = z.Close()
		return b.Bytes()
	})
	return func(w *bufio.Writer, _ string) {
		fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: %s\r\n\r\n", coding)
		_, _ = w.Write(packed())
	}
}

// stalled sends a body in chunks without its end, and waits until the crawler hangs up.
func stalled(size int) func(*bufio.Writer, string) {
	return func(w *bufio.Writer, _ string) {
		_, _ = w.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
		piece := strings.Repeat("x", 16<<10)
		repeat(w, fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece), size)
		_ = w.Flush()
		time.Sleep(time.Minute)
	}
}

// manyFields sends a header as long as allowed, of fields as short as possible.
func manyFields(w *bufio.Writer, _ string) {
	_, _ = w.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
	repeat(w, "x%d:\r\n", 250<<10)
	_, _ = w.WriteString("\r\n")
	_ = w.Flush()
	time.Sleep(time.Minute)
}

func longField(w *bufio.Writer, _ string) {
	_, _ = w.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX: ")
	repeat(w, "x", 200<<10)
	_ = w.Flush()
	time.Sleep(time.Minute)
}

// hops redirects forever, with a large body each time.
func hops(w *bufio.Writer, path string) {
	fmt.Fprintf(w, "HTTP/1.1 302 Found\r\nContent-Type: text/html\r\nLocation: %sx\r\n\r\n", path)
	repeat(w, "x", attackSize)
}

func robotsOf(head, piece string, size int) func(*bufio.Writer) {
	return func(w *bufio.Writer) {
		_, _ = w.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + head)
		repeat(w, piece, size)
	}
}

func listOf(mediaType, head, piece string, size int) func(*bufio.Writer, string) {
	whole := typed(mediaType, head, piece, size)
	return func(w *bufio.Writer, path string) {
		if path == "/" {
			_, _ = w.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>x</title>")
			return
		}
		whole(w, path)
	}
}

const namesSitemap = "Sitemap: /sitemap.xml\nSitemap: /sitemap2.xml\nSitemap: /sitemap3.xml\n"

var attacks = []attack{
	{name: "stalled", answer: stalled(attackSize)},
	{name: "gzip", slow: true, answer: bomb("gzip", "", "<a href=/%d>word</a>", 70<<20)},
	{name: "gzip of nothing", slow: true, answer: bomb("gzip", "", strings.Repeat(" ", 64<<10), 70<<20)},
	{name: "deflate", slow: true, answer: bomb("deflate", "", "<a href=/%d>word</a>", 70<<20)},
	{name: "brotli", slow: true, answer: bomb("br", "", "<p>word %d</p>", 70<<20)},
	{name: "zstd", slow: true, answer: bomb("zstd", "", "<p>word %d</p>", 70<<20)},
	{name: "fields", answer: manyFields},
	{name: "long field", answer: longField},
	{name: "one line", answer: reply("", "<p>", "word ", attackSize)},
	{name: "links", answer: reply("", "", "<a href=/%d>x</a>", attackSize)},
	{name: "long links", answer: reply("", "<base href='/"+strings.Repeat("long/", 150)+"'>", "<a href=%d>x</a>",
		attackSize)},
	{name: "small page of long links", answer: reply("", "<base href='/"+strings.Repeat("long/", 150)+"'>",
		"<a href=%d>x</a>", 200<<10)},
	{name: "depth", answer: reply("", "", "<div>", attackSize)},
	{name: "attribute", answer: reply("", "<a href='", "x", attackSize)},
	{name: "attributes", answer: reply("", "<a ", "a%d=b ", attackSize)},
	{name: "title", answer: reply("", "<title>", "&amp;", attackSize)},
	{name: "srcdoc", answer: reply("", "<iframe srcdoc='", "&amp;", attackSize)},
	{name: "UTF-16", answer: typed("text/html; charset=utf-16le", "", "<\x00p\x00>\x00\x42\x30\x42\x30\x42\x30\x42\x30",
		attackSize)},
	{name: "windows-1252", answer: typed("text/html; charset=windows-1252", "", "<p>\x80\x80\x80\x80\x80\x80",
		attackSize)},
	{name: "text", answer: typed("text/plain", "", "http://127.1.0.1/%d ", attackSize)},
	{name: "style", answer: typed("text/css", "", "a{b:url(%d)}", attackSize)},
	{name: "sitemap", robots: robotsOf(namesSitemap, "#", 1), answer: listOf("application/xml", "<urlset>",
		"<url><loc>/%d</loc></url>", 49<<20)},
	{name: "index", robots: robotsOf(namesSitemap, "#", 1), answer: listOf("application/xml", "<sitemapindex>",
		"<sitemap><loc>/%d.xml</loc></sitemap>", 49<<20)},
	{name: "feed", answer: typed("application/rss+xml", "<rss><channel>", "<item><link>/%d</link></item>", attackSize)},
	{name: "JSON", answer: typed("application/feed+json",
		`{"version":"https://jsonfeed.org/version/1","items":[{"url":"/x"}`, `,{"url":"/%d"}`, attackSize)},
	{name: "robots.txt", robots: robotsOf("User-agent: *\n", "Allow: /%d\n", attackSize),
		answer: reply("", "", "word", 100)},
	{name: "stalled robots.txt", robots: func(w *bufio.Writer) { stalled(500<<10)(w, "") },
		answer: reply("", "", "word", 100)},
	{name: "JSON-LD", answer: reply("", `<script type="application/ld+json">`, `{"url":"/%d","a":[`, attackSize)},
	{name: "redirects", answer: hops},
	{name: "binary", answer: typed("application/octet-stream", "", "\x00\x01\x02%d", attackSize)},
	{name: "tables", answer: reply("", "", "<table><tr><td>word ", 2<<20)},
	{name: "quotes", answer: reply("", strings.Repeat("<blockquote>", 64), "<q>word</q> ", 2<<20)},
	{name: "paragraphs", answer: reply("", "", "<p>A sentence with some words in it.", 2<<20)},
}

func attackNamed(t testing.TB, names ...string) (found []attack) {
	for _, name := range names {
		for _, a := range attacks {
			if a.name == name {
				found = append(found, a)
			}
		}
	}
	if len(found) != len(names) {
		t.Fatal("no such attack")
	}
	return found
}

// smallPage is the response of a well-behaved host: 20 KB and a link to the next page.
var smallPage = attack{name: "small", answer: func(w *bufio.Writer, path string) {
	body := fmt.Sprintf("<title>small</title><a href='%sx'>next</a>%s", path,
		strings.Repeat("<p>"+strings.Repeat("Some words of a page. ", 90), 10))
	if len(path) > 200 {
		body = strings.Replace(body, path+"x", "/y"+fmt.Sprint(time.Now().UnixNano()), 1)
	}
	fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}}

var nets atomic.Int64 // networks of 127.0.0.0/8 used by tests

// serveHostile serves each attack on this many hosts.
func serveHostile(t testing.TB, hosts int, secure bool, each ...attack) *hostileWeb {
	web := &hostileWeb{}
	for i := range each {
		if each[i].slow {
			each[i].answer(bufio.NewWriter(io.Discard), "/")
		}
	}
	scheme, cfg := "http", (*tls.Config)(nil)
	if secure {
		scheme, cfg = "https", selfSigned(t)
	}
	port, net2 := "0", nets.Add(1)
	for i := range hosts * len(each) {
		l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:%s", net2%250+1, i/200, i%200+1, port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		_, port, _ = net.SplitHostPort(l.Addr().String())
		web.seeds = append(web.seeds, scheme+"://"+l.Addr().String()+"/")
		a := &each[i%len(each)]
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if cfg != nil {
					c = tls.Server(c, cfg)
				}
				go web.serve(c, a)
			}
		}()
	}
	return web
}

func (web *hostileWeb) serve(c net.Conn, a *attack) {
	defer c.Close()
	// If the crawler hangs up, the writer ends at once; if it only stops reading, at this deadline.
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	w := bufio.NewWriterSize(c, 64<<10)
	defer w.Flush()
	switch {
	case req.URL.Path != "/robots.txt":
		if a.name == smallPage.name {
			web.small.Add(1)
		}
		n, _ := web.asked.LoadOrStore(a.name, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		a.answer(w, req.URL.Path)
	case a.robots != nil:
		a.robots(w)
	default:
		_, _ = w.WriteString("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	}
}

func selfSigned(t testing.TB) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}},
		NextProtos: []string{"http/1.1"}}
}

package tika

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/document"
)

// serve answers as a server does, with the answers of a real one.
func serve(t *testing.T, status int, answer string, wait <-chan struct{}) *Reader {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || r.URL.Path != "/rmeta/html" || err != nil || string(body) != `{\rtf1 a}` {
			t.Errorf("%s %s: %q, %v", r.Method, r.URL, body, err)
		}
		if wait != nil {
			<-wait
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer) // the reader may be gone
	}))
	t.Cleanup(s.Close)
	r, err := New(Config{URL: s.URL + "/", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	r := serve(t, 200, `[{"Content-Type":"application/rtf","dc:title":"T","dc:creator":["A","B"],"xmpTPg:NPages":"3",
		"X-TIKA:content":"<html><head><title>T</title></head><body><h2>One</h2><p>See <a href=\"x.html\">this\n page</a>.</p><ul><li>i</li></ul><table><tr><td>1</td><td>2</td></tr></table></body></html>"},
		{"resourceName":"a.png"}]`, nil)
	d, err := r.Read(t.Context(), strings.NewReader(`{\rtf1 a}`), document.Default())
	if err != nil {
		t.Fatal(err)
	}
	if d.Format != "rtf" || d.Title != "T" || d.Author != "A, B" || d.Pages != 3 || d.Problem != "" ||
		d.Plain() != "One\nSee this page.\ni\n1\t2" || d.Attachments[0] != "a.png" ||
		d.Blocks[1].Links[0] != (document.Link{Text: "this page", URL: "x.html"}) {
		t.Errorf("%+v\n%s", d, d.Plain())
	}
}

func TestProblems(t *testing.T) {
	for answer, want := range map[string]document.Problem{
		`[{"X-TIKA:EXCEPTION:container_exception":"org.apache.tika.exception.EncryptedDocumentException: x\n at y"}]`: document.Encrypted,
		`[{"X-TIKA:EXCEPTION:container_exception":"org.apache.tika.exception.TikaException: bomb\n at y"}]`:           document.Broken,
		`[{"X-TIKA:EXCEPTION:write_limit_reached":"true","X-TIKA:content":"<p>a"}]`:                                   document.TooLarge,
		`[{"xmpTPg:NPages":"3"}]`: document.NoText,
		`[]`:                      document.Crashed,
		`<html>`:                  document.Crashed,
	} {
		d, err := serve(t, 200, answer, nil).Read(t.Context(), strings.NewReader(`{\rtf1 a}`), document.Default())
		if err != nil {
			d = document.Failed("", err)
		}
		if d.Problem != want || d.Detail == "" || strings.Contains(d.Detail, "\n") {
			t.Errorf("%s: %s (%s), want %s", answer, d.Problem, d.Detail, want)
		}
	}
	for status, want := range map[int]document.Problem{422: document.Unsupported, 503: document.Crashed} {
		_, err := serve(t, status, "", nil).Read(t.Context(), strings.NewReader(`{\rtf1 a}`), document.Default())
		if p, _ := document.ProblemOf(err); p != want {
			t.Errorf("status %d: %v", status, err)
		}
	}
	end := make(chan struct{})
	defer close(end)
	slow := serve(t, 200, "[]", end)
	slow.timeout = 10 * time.Millisecond
	if p, _ := document.ProblemOf(errOf(slow.Read(t.Context(), strings.NewReader(`{\rtf1 a}`),
		document.Default()))); p != document.Timeout {
		t.Errorf("a server that does not answer: %s", p)
	}
	if _, err := New(Config{URL: "127.0.0.1:9998"}); err == nil {
		t.Error("a URL without a scheme")
	}
}

func errOf(_ *document.Document, err error) error { return err }

// TestServer reads a file by a real server, if KUMO_TEST_TIKA has its URL.
func TestServer(t *testing.T) {
	at := os.Getenv("KUMO_TEST_TIKA")
	if at == "" {
		t.Skip("KUMO_TEST_TIKA is not set: no Tika server was tried")
	}
	r, err := New(Config{URL: at})
	if err != nil {
		t.Fatal(err)
	}
	rtf := `{\rtf1\ansi{\info{\title A caf\'e9}}\pard Hello {\b world}\par See {\field{\*\fldinst HYPERLINK ` +
		`"https://example.org/b.html"}{\fldrslt there}}.\par}`
	d, err := r.Read(t.Context(), strings.NewReader(rtf), document.Default())
	if err != nil {
		t.Fatal(err)
	}
	if d.Format != "rtf" || d.Title != "A café" || d.Problem != "" || d.LinkCount() != 1 ||
		!strings.Contains(d.Plain(), "Hello world") || !strings.Contains(d.Plain(), "See there.") {
		t.Errorf("%+v", d)
	}
}

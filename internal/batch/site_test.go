package batch_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/local"
	"kumo/internal/lab/testmain"
)

// A site serves hosts of a test: answers by "host/path". Everything else is 404, including robots.txt.
type site struct {
	*world
	port string

	mu      sync.Mutex // guards the fields below
	answers map[string]http.HandlerFunc
	asked   []string // in order
	now     time.Time
	since   time.Time // real time
}

func newSite(t *testing.T, answers map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{world: &world{dir: t.TempDir()}, answers: answers, since: time.Now()}
	s.setDay(day1)
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	_, s.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	var err error
	if s.place, err = file.Open(filepath.Join(s.dir, "place"), vfs.OS); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	name, _, _ := net.SplitHostPort(r.Host)
	s.mu.Lock()
	key := name + r.URL.RequestURI()
	s.asked = append(s.asked, key)
	answer := s.answers[key]
	s.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

// url returns the URL of "host/path".
func (s *site) url(key string) string {
	host, path, _ := strings.Cut(key, "/")
	return "http://" + host + ":" + s.port + "/" + path
}

func (s *site) set(key string, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[key] = answer
}

// requests returns the requests since the last call, sorted.
func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.asked
	s.asked = nil
	slices.Sort(all)
	return all
}

// setDay sets the clock to three in the morning of a day.
func (s *site) setDay(date string) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.since = day.Add(3*time.Hour), time.Now()
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Add(time.Since(s.since))
}

func (s *site) collection(code string, seeds ...string) *collection.Collection {
	c := collection.New()
	c.Code, c.Directory, c.Scope, c.Interval, c.Language.Code = code, "crawler_"+code, "any", 0, code
	for _, seed := range seeds {
		c.Seeds = append(c.Seeds, s.url(seed))
	}
	return c
}

func (s *site) pipeline(date string, reducers int, all ...*collection.Collection) *batch.Pipeline {
	return &batch.Pipeline{Deps: batch.Deps{Place: s.place, Text: text, Now: s.clock},
		Runner: local.New(local.Config{Place: s.place, Temp: filepath.Join(s.dir, "temp")}), Collections: all, Date: date,
		Reducers: reducers, Fetching: batch.Fetching{Agent: "kumo", UserAgent: "kumo", AllowPrivate: true,
			Resolve: []string{"*:*:127.0.0.1"}, Timeout: 5 * time.Second, MaxWait: 50 * time.Millisecond}}
}

// page serves an HTML page with links to "host/path".
func (s *site) page(title string, links ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<title>%s</title><p>%s</p>", title, title)
		for _, l := range links {
			fmt.Fprintf(w, "<a href=%q>x</a>", s.url(l))
		}
	}
}

func (s *site) redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, s.url(to), http.StatusFound) }
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nnot\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// outLinks returns the OutLinks of a day, as "TYPE URL → LINKS", with names for URLs, sorted.
func (s *site) outLinks(t *testing.T, c *collection.Collection, date string) (all []string) {
	t.Helper()
	names, err := batch.ListFiles(t.Context(), s.place, batch.DayFolder(c, "out", date))
	if err != nil {
		t.Fatal(err)
	}
	short := func(url string) string { return strings.ReplaceAll(strings.TrimPrefix(url, "http://"), ":"+s.port, "") }
	for _, name := range names {
		for r, err := range batch.ReadFile(t.Context(), s.place, name) {
			if err != nil {
				t.Fatal(err)
			}
			o, err := batch.ReadOutLinks(r.Key, r.Value)
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%d %s →", o.Type, short(o.URL))
			for _, l := range o.Links {
				line += " " + short(l)
			}
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

func TestRedirectsOfLaterRoundsWaitForTheNext(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start", "a.test/old", "a.test/away", "a.test/loop", "a.test/new"))
	s.set("a.test/old", s.redirect("a.test/new"))
	s.set("a.test/new", s.page("new"))
	s.set("a.test/away", s.redirect("b.test/there"))
	s.set("b.test/there", s.page("there", "b.test/further"))
	s.set("b.test/further", s.page("further"))
	s.set("a.test/loop", s.redirect("a.test/loop2"))
	s.set("a.test/loop2", s.redirect("a.test/loop"))
	c := s.collection("en", "a.test/")
	c.Depth = 1
	var rounds []string
	p := s.pipeline(day1, 3, c)
	p.Listener.JobStarted = func(j *batch.JobInfo) { rounds = append(rounds, fmt.Sprint(j.Round, j.Job)) }
	s.run(t, p)
	same(t, "requests", s.requests(), []string{"a.test/robots.txt", "a.test/", "a.test/old", "a.test/new", "a.test/away",
		"a.test/loop", "a.test/loop2", "b.test/robots.txt", "b.test/there"})
	same(t, "out/", s.outLinks(t, c, day1), []string{"0 a.test/ → a.test/old a.test/away a.test/loop a.test/new",
		"1 a.test/old → a.test/new", "0 a.test/new →", "1 a.test/away → b.test/there", "0 b.test/there →",
		"1 a.test/loop → a.test/loop2", "1 a.test/loop2 → a.test/loop"})
	if want := "0crawl 0parse 0optimize 1crawl 1parse 1optimize 2crawl 2parse 2optimize 3merge 3xml"; strings.Join(rounds,
		" ") != want {
		t.Errorf("jobs: %v", rounds)
	}
	d := s.documents(t, c, day1)[s.url("b.test/there")]
	if d == nil || d.From != s.url("a.test/away") || d.Depth != 1 || d.Redirects != 1 {
		t.Errorf("%+v", d)
	}
	if d := s.documents(t, c, day1)[s.url("a.test/old")]; d == nil || d.RedirectTo != s.url("a.test/new") || d.Status != 302 {
		t.Errorf("%+v", d)
	}
}

func TestASeedThatRedirectsIsFollowedAtOnceOnItsHost(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.redirect("a.test/home"))
	s.set("a.test/home", s.redirect("a.test/home/"))
	s.set("a.test/home/", s.page("home"))
	s.set("b.test/", s.redirect("a.test/home/"))
	c := s.collection("en", "a.test/", "b.test/", "a.test/home")
	c.Depth = 0
	rounds := 0
	p := s.pipeline(day1, 2, c)
	p.Listener.JobStarted = func(j *batch.JobInfo) { rounds = max(rounds, j.Round) }
	s.run(t, p)
	same(t, "requests", s.requests(), []string{"a.test/robots.txt", "a.test/", "a.test/home", "a.test/home/",
		"b.test/robots.txt", "b.test/"})
	if rounds != 1 {
		t.Errorf("%d rounds", rounds)
	}
}

func TestARobotsTxtElsewhereIsAskedForByTheTaskThatHasItsHost(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	var hosts []string
	for i := range 8 { // some are in other partitions than www.test
		host := fmt.Sprintf("h%d.test", i)
		hosts = append(hosts, host+"/")
		s.set(host+"/robots.txt", s.redirect("www.test/robots.txt"))
		s.set(host+"/", s.page("start", host+"/private", host+"/open"))
		s.set(host+"/open", s.page("open"))
		s.set(host+"/private", s.page("private"))
	}
	s.set("www.test/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	})
	c := s.collection("en", hosts...)
	c.Depth = 1
	s.run(t, s.pipeline(day1, 4, c))
	asked := s.requests()
	elsewhere := 0
	for i := range 8 {
		host := fmt.Sprintf("h%d.test", i)
		for path, want := range map[string]int{"/": 1, "/open": 1, "/private": 0, "/robots.txt": 1} {
			n := 0
			for _, a := range asked {
				if a == host+path {
					n++
				}
			}
			if n != want {
				t.Errorf("%s was asked for %d times, not %d", host+path, n, want)
			}
		}
	}
	for _, a := range asked {
		if a == "www.test/robots.txt" {
			elsewhere++
		}
	}
	if elsewhere != 8 {
		t.Errorf("the file elsewhere was asked for %d times", elsewhere)
	}
	for url, d := range s.documents(t, c, day1) {
		if refused := strings.HasSuffix(url, "/private"); refused != (d.Rule == "robots") {
			t.Errorf("%s: rule %q, status %d", url, d.Rule, d.Status)
		}
	}
}

const (
	german = "Am Morgen fuhr der Zug mit einer halben Stunde Verspätung ab, weil auf der Strecke ein Baum lag. " +
		"Die Reisenden warteten in der Halle und lasen Zeitung. Am Nachmittag schien wieder die Sonne über der Stadt. "
	english = "In the morning the train left half an hour late because a tree had fallen on the line. " +
		"The travellers waited in the hall and read the newspaper. In the afternoon the sun shone over the town again. "
	russian = "Утром поезд отправился с опозданием на полчаса, потому что на путях лежало дерево. " +
		"Пассажиры ждали в зале и читали газеты. Днём над городом снова светило солнце. "
)

func article(charset, title, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset="+charset)
		fmt.Fprintf(w, "<html><title>%s</title><body><article><h1>%s</h1>", title, title)
		for range 4 {
			fmt.Fprintf(w, "<p>%s</p>", text)
		}
		fmt.Fprint(w, "</article></body></html>")
	}
}

func TestPagesInOtherLanguagesAreKeptApart(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"a.test/de": article("utf-8", "Der Zug", german),
		"a.test/en": article("utf-8", "The train", english), "a.test/both": article("utf-8", "Both",
			german+"</p><p>"+english)})
	s.set("a.test/", s.page("", "a.test/de", "a.test/en", "a.test/both", "a.test/ru"))
	s.set("a.test/ru", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>x</title><p>%s</p>", koi8(strings.Repeat(russian, 3)))
	})
	c := s.collection("de", "a.test/")
	c.Language.Share = 0.8
	s.run(t, s.pipeline(day1, 2, c))
	state, err := batch.ReadState(t.Context(), s.place, c, day1)
	if err != nil {
		t.Fatal(err)
	}
	docs := s.documents(t, c, day1)
	for key, want := range map[string]string{"a.test/de": "de", "a.test/en": "en", "a.test/ru": "ru"} {
		if d := docs[s.url(key)]; d.Lang != want || d.Share < 0.9 || d.Confidence < 0.5 || d.Simhash == 0 {
			t.Errorf("%s: %s, share %v, confidence %v, simhash %x", key, d.Lang, d.Share, d.Confidence, d.Simhash)
		}
	}
	if d := docs[s.url("a.test/ru")]; d.Charset != "koi8-r" || !strings.Contains(d.Text, "Утром поезд") {
		t.Errorf("charset %s, text %.40q", d.Charset, d.Text)
	}
	if d := docs[s.url("a.test/both")]; d.Share > 0.8 {
		t.Errorf("a page in two languages: %s %v", d.Lang, d.Share)
	}
	if kept, apart := state.Count("kept"), state.Count("apart: en")+state.Count("apart: ru"); kept < 1 || apart < 2 {
		t.Errorf("kept %d, apart %d: %+v", kept, apart, state.Done)
	}
	if state.Count("charset koi8-r") != 1 || state.Count("language ru") != 1 {
		t.Errorf("the charsets and languages are not counted: %+v", state.Done)
	}
	s.wellFormed(t, c, day1)
}

// koi8 encodes Russian text as KOI8-R.
func koi8(text string) []byte {
	const upper = "юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ"
	letters := []rune(upper)
	var b []byte
	for _, r := range text {
		if i := slices.Index(letters, r); i >= 0 {
			b = append(b, byte(0xc0+i))
		} else if r == 'ё' {
			b = append(b, 0xa3)
		} else {
			b = append(b, byte(r))
		}
	}
	return b
}

func TestBadPagesAreTakenAsTheyCome(t *testing.T) {
	huge := testmain.Rounds(20<<20, 100<<20)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/bytes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for range 100 {
				_, _ = w.Write(every)
			}
		},
		"a.test/huge": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, "<title>huge</title>")
			for range huge / 25600 {
				if _, err := w.Write(every); err != nil {
					return
				}
				_, _ = w.Write(make([]byte, 25344))
			}
		},
		"a.test/gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "no gzip")
		},
		"a.test/empty": func(http.ResponseWriter, *http.Request) {},
		"a.test/error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"a.test/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "<p>half")
		},
	})
	pages := []string{"a.test/bytes", "a.test/huge", "a.test/gzip", "a.test/empty", "a.test/error", "a.test/cut"}
	s.set("a.test/", s.page("start", pages...))
	c := s.collection("en", "a.test/")
	p := s.pipeline(day1, 2, c)
	p.Fetching.MaxBody = 200 << 20
	s.run(t, p)
	docs := s.documents(t, c, day1)
	for _, key := range pages {
		if docs[s.url(key)] == nil {
			t.Errorf("%s has no document", key)
		}
	}
	if d := docs[s.url("a.test/huge")]; d != nil && (len(d.Raw) < huge-25600 || d.Title != "huge" || d.Truncated != "") {
		t.Errorf("the huge page has %d bytes, title %q, truncated %q", len(d.Raw), d.Title, d.Truncated)
	}
	if d := docs[s.url("a.test/cut")]; d.Truncated != "disconnect" {
		t.Errorf("the page that was cut: %q", d.Truncated)
	}
	s.wellFormed(t, c, day1)
}

func TestAURLOfTwoCollectionsIsFetchedOnce(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start", "a.test/1", "a.test/2"))
	s.set("a.test/1", s.page("1"))
	s.set("a.test/2", s.page("2"))
	de, en := s.collection("de", "a.test/"), s.collection("en", "a.test/1", "a.test/")
	de.Depth, en.Exclude = 0, []string{"/2$"}
	s.run(t, s.pipeline(day1, 2, de, en))
	same(t, "requests", s.requests(), []string{"a.test/robots.txt", "a.test/", "a.test/1"})
	for c, want := range map[*collection.Collection]int{de: 1, en: 2} {
		if docs := s.documents(t, c, day1); len(docs) != want {
			t.Errorf("%s has %d documents, not %d", c.Code, len(docs), want)
		}
	}
}

func TestAHostThatIsDeadDoesNotHoldTheOthersUp(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	var links []string
	for i := range 30 {
		key := fmt.Sprintf("dead.test/%d", i)
		links = append(links, key)
		s.set(key, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		})
	}
	s.set("a.test/", s.page("start", append(links, "a.test/1")...))
	s.set("a.test/1", s.page("1"))
	c := s.collection("en", "a.test/")
	s.run(t, s.pipeline(day1, 1, c))
	failed, tried := 0, 0
	for url, d := range s.documents(t, c, day1) {
		if strings.Contains(url, "dead.test") && d.Failure != "" {
			failed++
		}
	}
	for _, a := range s.requests() {
		if strings.HasPrefix(a, "dead.test/") {
			tried++
		}
	}
	if failed != len(links) {
		t.Errorf("%d documents say that they failed, of %d", failed, len(links))
	}
	if tried > 15 {
		t.Errorf("a dead host was asked %d times", tried)
	}
}

func TestAHostThatAsksToSlowDownIsLeftAlone(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{})
	n := 0
	s.set("a.test/", func(w http.ResponseWriter, r *http.Request) {
		if n++; n < 4 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		s.page("at last")(w, r)
	})
	c := s.collection("en", "a.test/")
	s.run(t, s.pipeline(day1, 1, c))
	if d := s.documents(t, c, day1)[s.url("a.test/")]; d == nil || d.Status != 200 || n != 4 {
		t.Errorf("after %d requests: %+v", n, d)
	}
}

func TestWhatPagesAskOfRobotsIsObeyed(t *testing.T) {
	meta := func(rules, link string, s *site) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<meta name=robots content=%q><title>t</title><p>%s</p><a href=%q>x</a>", rules, english, s.url(link))
		}
	}
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start", "a.test/noindex", "a.test/nofollow", "a.test/noarchive"))
	s.set("a.test/noindex", meta("noindex", "a.test/from-noindex", s))
	s.set("a.test/nofollow", meta("nofollow", "a.test/from-nofollow", s))
	s.set("a.test/noarchive", meta("noarchive", "a.test/from-noarchive", s))
	c := s.collection("en", "a.test/")
	s.run(t, s.pipeline(day1, 1, c))
	docs := s.documents(t, c, day1)
	for key, want := range map[string]bool{"a.test/from-noindex": true, "a.test/from-nofollow": false,
		"a.test/from-noarchive": true} {
		if got := docs[s.url(key)] != nil; got != want {
			t.Errorf("%s was fetched: %v", key, got)
		}
	}
	if d := docs[s.url("a.test/noindex")]; d.MetaIndex || !d.MetaFollow {
		t.Errorf("noindex: %+v", d)
	}
	if d := docs[s.url("a.test/nofollow")]; !d.MetaIndex || d.MetaFollow {
		t.Errorf("nofollow: %+v", d)
	}
	if d := docs[s.url("a.test/noarchive")]; len(d.Raw) > 0 || d.Text != "" {
		t.Errorf("a page that asks not to be archived is kept: %d bytes", len(d.Raw))
	}
	if n := s.wellFormed(t, c, day1); n != 2 { // the start, and nofollow
		t.Errorf("%d pages in XML", n)
	}
}

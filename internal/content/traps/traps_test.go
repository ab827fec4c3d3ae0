package traps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/weburl"
)

func parse(t testing.TB, url string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// patternOf returns the pattern of a URL in a new detector.
func patternOf(t testing.TB, url string) string {
	w := New(Config{}).walkTo(parse(t, url))
	return w.pattern()
}

func TestPatterns(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/":                               "example.com/",
		"https://www.example.co.uk/docs/intro.html":          "www.example.co.uk/docs/{word}.html",
		"https://example.com/calendar/2026/11":               "example.com/calendar/{n}/{n}",
		"https://example.com/calendar/2026-11-24/":           "example.com/calendar/{date}/",
		"https://example.com/day/20261124":                   "example.com/day/{date}",
		"https://example.com/a/b/a/b/a/b/c":                  "example.com/a/b/{loop}",
		"https://example.com/x/x/x/y":                        "example.com/x/{loop}",
		"https://example.com/tiles/0/0/0.png":                "example.com/tiles/{n}/{n}/{n}.png",
		"https://example.com/tiles/7/7/7/7/7/":               "example.com/tiles/{n}/{n}/{n}/{n}/{n}/",
		"https://example.com/s/4f9c0a1be77d02/view":          "example.com/s/{id}/{word}",
		"https://example.com/(S(q3x9abk2m4zz81ppqq))/p.aspx": "example.com/(S({id}))/{word}.aspx",
		"https://example.com/p?b=2&a=1&b=3":                  "example.com/{word}?a&b",
		"https://u17.example.com:8080/post-12":               "u{n}.example.com:8080/post-{n}",
		"http://127.0.0.1:4000/x/":                           "127.0.0.1:4000/x/",
		"http://[::1]:4000/x/":                               "[::1]:4000/x/",
		"https://example.com/2024-review":                    "example.com/{n}-review",
	} {
		if got := patternOf(t, url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// name returns distinct words without digits.
func name(i int) string {
	b := []byte("qaaaa")
	for at := len(b) - 1; i > 0; at, i = at-1, i/26 {
		b[at] = 'a' + byte(i%26)
	}
	return string(b)
}

// visit passes a URL through the detector as a crawl does when its host has no other pending URLs. It returns the
// reason if the URL is excluded, "" if it is fetched.
func visit(t *testing.T, d *Detector, u weburl.URL, s Source, o Outcome) string {
	t.Helper()
	if why := cmp.Or(d.CheckName(u, false), d.CheckHost(u, false)); why != "" {
		return why
	}
	for range 2 {
		v, why := d.Precheck(u, s)
		var trial Trial
		if v == Fetch {
			v, trial, why = d.Admit(u, s)
		}
		switch v {
		case Exclude:
			return why
		case Wait:
			t.Fatalf("%s has to wait, and nothing is under way", u)
		case Fetch:
			d.Finish(trial, o)
			return ""
		}
		s.Deferred = true
	}
	t.Fatalf("%s is deferred twice", u)
	return ""
}

// crawl visits n URLs that are listed on a page elsewhere, each with an outcome. It returns how many were fetched, and
// the last reason.
func crawl(t *testing.T, d *Detector, n int, url func(i int) string, o func(i int) Outcome) (fetched int, why string) {
	t.Helper()
	for i := range n {
		if w := visit(t, d, parse(t, url(i)), Source{}, o(i)); w != "" {
			why = w
		} else {
			fetched++
		}
	}
	return fetched, why
}

// follow is crawl for a chain of URLs: each is linked only from the page before it.
func follow(t *testing.T, d *Detector, n int, url func(i int) string, o func(i int) Outcome) (fetched int, why string) {
	t.Helper()
	s := Source{}
	for i := range n {
		u := parse(t, url(i))
		if w := visit(t, d, u, s, o(i)); w != "" {
			why = w
			continue
		}
		fetched++
		if s.From, s.Vain = u, s.Vain+1; o(i) == NewText {
			s.Vain = 0
		}
	}
	return fetched, why
}

// A linked is a page of a site: its outcome and its links.
type linked struct {
	outcome Outcome
	links   []string
}

// walkSite crawls a site of one host from its root as the engine does: deferred URLs last, those with the highest Vain
// first.
func walkSite(t *testing.T, d *Detector, most int, site func(path string) linked) (fetched, cut []string) {
	t.Helper()
	type waiting struct {
		path string
		s    Source
	}
	queue, deferred, known := []waiting{{path: "/"}}, [256][]waiting{}, map[string]bool{"/": true}
	for len(fetched) < most {
		var at waiting
		if len(queue) > 0 {
			at, queue = queue[0], queue[1:]
		} else {
			i := 255
			for i >= 0 && len(deferred[i]) == 0 {
				i--
			}
			if i < 0 {
				return fetched, cut
			}
			at, deferred[i] = deferred[i][0], deferred[i][1:]
			at.s.Deferred = true
		}
		u := parse(t, "https://example.com"+at.path)
		v, trial, _ := d.Admit(u, at.s)
		switch v {
		case Defer:
			deferred[at.s.Vain] = append(deferred[at.s.Vain], at)
			continue
		case Exclude:
			cut = append(cut, at.path)
			continue
		}
		p := site(at.path)
		d.Finish(trial, p.outcome)
		fetched = append(fetched, at.path)
		vain := min(at.s.Vain+1, 255)
		if p.outcome == NewText {
			vain = 0
		}
		for _, to := range p.links {
			if !known[to] {
				known[to] = true
				queue = append(queue, waiting{to, Source{From: u, Vain: vain}})
			}
		}
	}
	return fetched, cut
}

// A finite set is fetched completely, whatever its outcomes: here a manual in many languages, most of whose pages are
// not translated.
func TestAFiniteSetIsFetchedWhole(t *testing.T) {
	const languages, chapters = 40, 60
	var root, pages []string
	for l := range languages {
		root = append(root, "/"+name(l)+"/")
		for c := range chapters {
			pages = append(pages, fmt.Sprintf("/%s/chapter-%s.html", name(l), name(c)))
		}
	}
	fetched, cut := walkSite(t, New(Config{}), 10_000, func(path string) linked {
		dir := path[:strings.LastIndexByte(path, '/')+1]
		switch l := slices.Index(root, dir); {
		case path == "/":
			return linked{NewText, root}
		case path == dir && l == 0:
			return linked{NewText, pages[:chapters]}
		case path == dir:
			return linked{NearDuplicate, pages[l*chapters : (l+1)*chapters]}
		}
		return linked{outcome: Duplicate}
	})
	if want := 1 + languages + languages*chapters; len(fetched) != want || len(cut) > 0 {
		t.Errorf("%d of %d pages are fetched, %d cut off", len(fetched), want, len(cut))
	}
}

// Generators are excluded, whatever their structure, and real pages beside them are fetched.
func TestGeneratorsAreCutOff(t *testing.T) {
	facet := func(path string, by ...string) (links []string) {
		for _, name := range by {
			links = append(links, path+name+"/")
		}
		return links
	}
	for what, c := range map[string]struct {
		most int
		page func(path string) []string
	}{
		"/months/1": {40, func(path string) []string {
			var n int
			fmt.Sscanf(path, "/months/%d", &n)
			return []string{fmt.Sprintf("/months/%d", n+1), fmt.Sprintf("/months/%d", n-1)}
		}},
		"/shop/": {60, func(path string) []string { return facet(path, "red", "blue", "green", "wool", "silk") }},
		"/up/":   {60, func(path string) []string { return facet(path, "up") }},
		"/s/1/0": {60, func(path string) []string {
			return []string{"/s/" + path[len(path)-3:len(path)-2] + fmt.Sprint(len(path)) + path[3:len(path)-2] + "/0"}
		}},
		"/error?u=": {60, func(path string) []string { return []string{path + "%2F" + path[len(path)-1:], path + "a"} }},
		"/days/1": {300, func(path string) (links []string) { // each month lists its days
			var n, day int
			if k, _ := fmt.Sscanf(path, "/days/%d/%d", &n, &day); k == 2 {
				return nil
			}
			for day := range 30 {
				links = append(links, fmt.Sprintf("/days/%d/%d", n, day+1))
			}
			return append(links, fmt.Sprintf("/days/%d", n+1))
		}},
	} {
		fetched, cut := walkSite(t, New(Config{}), 20_000, func(path string) linked {
			var n int
			switch {
			case path == "/":
				return linked{NewText, []string{what, "/docs/0"}}
			case strings.HasPrefix(path, "/docs/"):
				fmt.Sscanf(path, "/docs/%d", &n)
				if n == 500 {
					return linked{outcome: NewText}
				}
				return linked{NewText, []string{fmt.Sprintf("/docs/%d", n+1)}}
			case path == what:
				return linked{NewText, c.page(path)}
			}
			return linked{Duplicate, c.page(path)}
		})
		if vain := len(fetched) - 503; vain < 0 || vain > c.most || len(cut) == 0 {
			t.Errorf("%s: %d pages in vain, more than %d; %d are cut off", what, vain, c.most, len(cut))
		}
	}
}

// URLs linked from pages outside of the trap are fetched, even if the pattern is endless.
func TestWhatOtherPagesLinkToIsFetched(t *testing.T) {
	d := New(Config{})
	url := func(i int) string { return fmt.Sprintf("https://example.com/p/%d", i) }
	if _, why := follow(t, d, 100, url, always(Duplicate)); why == "" {
		t.Fatal("the trap is not cut off")
	}
	if n, why := crawl(t, d, 300, func(i int) string { return url(i + 1000) }, always(Duplicate)); n != 300 {
		t.Errorf("%d of 300 fetched: %s", n, why)
	}
}

func always(o Outcome) func(int) Outcome { return func(int) Outcome { return o } }

func TestCalendarIsLeftOut(t *testing.T) {
	d := New(Config{})
	day := func(i int) string { return fmt.Sprintf("https://example.com/calendar/%d/%d", 1900+i/12, i%12+1) }
	fetched, why := follow(t, d, 10_000, day, always(NearDuplicate))
	if fetched > 40 || fetched < startBudget {
		t.Errorf("%d fetched", fetched)
	}
	if want := fmt.Sprintf("example.com/calendar/{n}/{n}: %d pages, 0 new; endless", fetched); why != want {
		t.Errorf("%q, want %q", why, want)
	}
	if got := Pattern(why); got != "example.com/calendar/{n}/{n}" {
		t.Errorf("pattern %q", got)
	}
	if n, why := crawl(t, d, 500, func(i int) string { return "https://example.com/docs/" + name(i) },
		always(NewText)); n != 500 {
		t.Errorf("of honest pages beside it %d were fetched: %s", n, why)
	}
}

func TestFacetsCostLittle(t *testing.T) {
	d := New(Config{})
	facet := func(i int) string {
		return fmt.Sprintf("https://example.com/shop/%s/%s/%s", name(i%40), name(i/40%40), name(i))
	}
	if fetched, _ := follow(t, d, 20_000, facet, always(Duplicate)); fetched > 200 {
		t.Errorf("%d fetched", fetched)
	}
}

// Facets at the root of a host are recognized by its branches, whatever else the host contains.
func TestFacetsAtTheRoot(t *testing.T) {
	for _, honest := range []int{0, 1000} {
		d := New(Config{})
		doc := func(i int) string { return "https://example.com/docs/" + name(i) + "/" + name(i) }
		crawl(t, d, honest, doc, always(NewText))
		facet := func(i int) string {
			return fmt.Sprintf("https://example.com/x%s/%s/%s/", name(i%40), name(i/40%40), name(i))
		}
		if n, _ := follow(t, d, 20_000, facet, always(Duplicate)); n > 90 {
			t.Errorf("beside %d honest pages %d fetched", honest, n)
		}
		if n, why := crawl(t, d, 500, func(i int) string { return doc(i + honest) }, always(NewText)); n != 500 {
			t.Errorf("of the honest pages %d: %s", n, why)
		}
	}
}

// Of a hundred directories of documents some are copies of others: only these are excluded.
func TestCopiesOfDirectories(t *testing.T) {
	d := New(Config{})
	for i := range 100 * 50 {
		dir := i / 50
		u := fmt.Sprintf("https://example.com/%s/html/%s.html", name(dir), name(i))
		o := NewText
		if dir%3 == 1 {
			o = Duplicate
		}
		n, why := crawl(t, d, 1, func(int) string { return u }, always(o))
		if n == 0 && o == NewText {
			t.Fatalf("%s: %s", u, why)
		}
	}
}

func TestWildcardHosts(t *testing.T) {
	d := New(Config{})
	host := func(i int) string { return "https://" + name(i) + ".example.com/" }
	fetched, why := follow(t, d, 20_000, host, always(Duplicate))
	if fetched > 120 || Pattern(why) == "" {
		t.Errorf("%d fetched, %q", fetched, why)
	}
	d = New(Config{Hosts: 100})
	fetched, why = crawl(t, d, 1000, host, always(NewText))
	if want := "*.example.com: 100 hosts already"; fetched != 100 || why != want {
		t.Errorf("%d fetched, %q, want %q", fetched, why, want)
	}
	if n, _ := crawl(t, d, 10, func(i int) string { return host(i) + "page" }, always(NewText)); n != 10 {
		t.Errorf("%d pages of known hosts", n)
	}
	if why := d.CheckHost(parse(t, "https://seed.example.com/"), true); why != "" {
		t.Errorf("a seed: %s", why)
	}
	if n, why := crawl(t, d, 10, func(int) string { return "https://seed.example.com/page" }, always(NewText)); n != 10 {
		t.Errorf("%d pages of a seed's host: %s", n, why)
	}
}

// Names that do not resolve also count as lookups; ports do not make separate domains.
func TestNamesThatAreLookedUp(t *testing.T) {
	d := New(Config{Names: 50})
	for i := range 60 {
		why := d.CheckName(parse(t, fmt.Sprintf("http://%s.example.com:%d/", name(i), 8000+i%3)), false)
		if want := "*.example.com: 50 names that were looked up already"; i < 50 && why != "" || i >= 50 && why != want {
			t.Errorf("%d: %q", i, why)
		}
	}
	again := New(Config{Names: 50})
	again.Restore(d.State())
	if why := again.CheckName(parse(t, "http://other.example.com/"), false); why == "" {
		t.Error("a crawl that goes on has forgotten them")
	}
	if why := again.CheckName(parse(t, "http://"+name(0)+".example.com:8000/"), false); why != "" {
		t.Errorf("a name that is known: %s", why)
	}
	lifted := New(Config{Names: 50, Released: []string{"*.example.com"}})
	lifted.Restore(d.State())
	if why := lifted.CheckName(parse(t, "http://other.example.com/"), false); why != "" {
		t.Errorf("the bound was lifted: %s", why)
	}
}

// A directory where hardly any page was new does not keep its productive part, nor its siblings, from being crawled.
func TestWhatIsGoodBelowATrapIsFetched(t *testing.T) {
	d := New(Config{})
	good := func(i int) string { return "https://example.com/shop/goods/" + name(i) }
	if n, why := crawl(t, d, 30, good, always(NewText)); n != 30 {
		t.Errorf("%d fetched: %s", n, why)
	}
	facet := func(i int) string {
		return fmt.Sprintf("https://example.com/shop/%s/%s/%s/", name(i%7), name(i%11), name(i%13))
	}
	if n, _ := follow(t, d, 5000, facet, always(Duplicate)); n > 300 {
		t.Errorf("%d of facets fetched", n)
	}
	if n, why := crawl(t, d, 500, func(i int) string { return good(i + 30) }, always(NewText)); n != 500 {
		t.Errorf("%d of 500 goods fetched: %s", n, why)
	}
	news := func(i int) string { return fmt.Sprintf("https://example.com/news/%s/%d/", name(i%5), i) }
	if n, why := crawl(t, d, 500, news, always(NewText)); n != 500 {
		t.Errorf("%d of 500 news fetched: %s", n, why)
	}
}

// For pages found late below a directory, the directory's counts decide.
func TestEvidenceOfTheRest(t *testing.T) {
	d := New(Config{})
	_, why := follow(t, d, 200, func(i int) string {
		return fmt.Sprintf("https://example.com/shop/%s/%s/", name(i), name(i+1))
	},
		always(Duplicate))
	pages := 0
	if n, err := fmt.Sscanf(why, "example.com/shop/{word}/{word}/: %d pages, 0 new", &pages); n != 1 || err != nil {
		t.Errorf("%q: %v", why, err)
	}
	_, why = follow(t, d, 200, func(i int) string { return fmt.Sprintf("https://example.com/shop/%s/", name(i)) },
		always(Duplicate))
	if n, err := fmt.Sscanf(why, "example.com/shop/{rest}: %d pages, 0 new", &pages); n != 1 || err != nil ||
		pages < hopelessAfter {
		t.Errorf("%q: %v", why, err)
	}
}

// A pattern is not excluded as long as one page in nine is new.
func TestSomeDuplicatesAreNoTrap(t *testing.T) {
	for _, every := range []int{2, 5, 8} {
		d := New(Config{})
		n, why := crawl(t, d, 3000, func(i int) string { return fmt.Sprintf("https://example.com/p/%d", i) },
			func(i int) Outcome {
				if i%every == 0 {
					return NewText
				}
				return NearDuplicate
			})
		if n != 3000 {
			t.Errorf("one in %d new: %d fetched, %s", every, n, why)
		}
	}
}

// Where no page was vain, texts are sampled. A vain page has more compared, also those of new patterns.
func TestTextsAreSampled(t *testing.T) {
	d, page := New(Config{}), 0
	next := func(dir string, s Source, o Outcome) (compared bool) {
		page++
		_, trial, _ := d.Admit(parse(t, fmt.Sprintf("https://example.com/%s/%d", dir, page)), s)
		if !trial.Compare {
			o = Inconclusive
		}
		d.Finish(trial, o)
		return trial.Compare
	}
	compared := func(dir string, n int) (sum int) {
		for range n {
			if next(dir, Source{}, NewText) {
				sum++
			}
		}
		return sum
	}
	if n := compared("p", knownAfter); n != knownAfter {
		t.Errorf("%d of the first %d pages are compared", n, knownAfter)
	}
	for _, dir := range []string{"p", "q"} {
		if n := compared(dir, 800); n < 25 || n > 100 {
			t.Errorf("%d of 800 pages in /%s/ are compared", n, dir)
		}
	}
	if !next("p", Source{Vain: 1}, NewText) || !next("p", Source{Deferred: true}, NewText) {
		t.Error("the target of a vain page, or a deferred URL, is not compared")
	}
	for !next("q", Source{}, NearDuplicate) {
	}
	if n := compared("r", alertAbove); n != alertAbove {
		t.Errorf("%d of %d pages in a new directory are compared after a vain page", n, alertAbove)
	}
	if n := compared("q", 800); n > 100 {
		t.Errorf("%d of 800 pages are compared long after a vain page", n)
	}
}

// A generator in a site that has had no vain page is found soon, also if each of its pages has a pattern of its own.
func TestALateGeneratorIsFound(t *testing.T) {
	for what, url := range map[string]string{"one pattern": "https://example.com/p/%d", "one directory a page": "https://example.com/p/x%[2]s/", "one host a page": "https://h%[2]s.example.com/"} {
		d := New(Config{})
		crawl(t, d, 1000, func(i int) string { return fmt.Sprintf("https://example.com/p/%d", i) }, always(NewText))
		missed, found := 0, 0
		for i := 0; found < 10 && missed < 1000; i++ {
			u := fmt.Sprintf(url, 1000+i, name(i))
			u, _, _ = strings.Cut(u, "%!")
			_, trial, _ := d.Admit(parse(t, u), Source{})
			if !trial.Compare {
				missed++
				d.Finish(trial, Inconclusive)
				continue
			}
			found++
			d.Finish(trial, NearDuplicate)
		}
		if missed > 4*sampleEvery {
			t.Errorf("%s: %d pages were not compared before 10 were", what, missed)
		}
	}
}

// A new text ends the suspicion of a pattern.
func TestPatternOpensAgain(t *testing.T) {
	d := New(Config{})
	url := func(i int) string { return fmt.Sprintf("https://example.com/p/%d", i) }
	crawl(t, d, 100, url, always(Duplicate))
	if v, _ := d.Precheck(parse(t, url(100)), Source{}); v != Defer {
		t.Errorf("verdict %d after 100 pages in vain", v)
	}
	crawl(t, d, 1, func(int) string { return url(100) }, always(NewText))
	if v, why := d.Precheck(parse(t, url(101)), Source{}); v != Fetch {
		t.Errorf("verdict %d after a new page: %s", v, why)
	}
}

func TestReleased(t *testing.T) {
	d := New(Config{})
	url := func(i int) string { return fmt.Sprintf("https://example.com/p/%d", i) }
	_, why := follow(t, d, 100, url, always(Duplicate))
	state := d.State()
	d = New(Config{Released: []string{Pattern(why)}})
	d.Restore(state)
	if n, why := follow(t, d, 500, url, always(Duplicate)); n != 500 {
		t.Errorf("%d of 500 fetched: %s", n, why)
	}
}

// Concurrent fetches overdraw a budget at most by its initial value.
func TestUnderWay(t *testing.T) {
	d := New(Config{})
	url := func(i int) weburl.URL { return parse(t, fmt.Sprintf("https://example.com/p/%d", i)) }
	for i := range startBudget / 2 {
		_, trial, _ := d.Admit(url(i), Source{})
		d.Finish(trial, NearDuplicate)
	}
	granted := 0
	var trials []Trial
	for i := 100; i < 200; i++ {
		if v, trial, _ := d.Admit(url(i), Source{}); v == Fetch {
			granted++
			trials = append(trials, trial)
		}
	}
	if granted != startBudget/2 {
		t.Errorf("%d granted", granted)
	}
	for _, trial := range trials {
		d.Finish(trial, Inconclusive)
	}
	if v, _, why := d.Admit(url(300), Source{}); v != Fetch {
		t.Errorf("%d %s: what brought no answer was counted", v, why)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	d := New(Config{Memory: 1000, Patterns: 100})
	for i := range 50_000 {
		u := parse(t, fmt.Sprintf("https://%s%d.com/%s/%s/", name(i), i, name(i), name(i+1)))
		d.Precheck(u, Source{})
		_, trial, _ := d.Admit(u, Source{})
		d.Finish(trial, NewText)
	}
	places := 0
	for _, all := range []map[string]*domain{d.old, d.young} {
		for _, dom := range all {
			places += 1 + dom.nodes
		}
	}
	if places > 2*(1000+100) {
		t.Errorf("%d places", places)
	}
	d = New(Config{Patterns: 100})
	for i := range 50_000 {
		d.Admit(parse(t, fmt.Sprintf("https://%s.example.com/%s/%s/", name(i%999), name(i), name(i+1))), Source{})
	}
	if n := d.young["example.com"].nodes; n > 200 {
		t.Errorf("%d places of a domain", n)
	}
}

// Whatever a site serves, the state is bounded, also when it is saved and restored, and the counts on the path are
// right.
func TestMemoryOfAHostileWeb(t *testing.T) {
	seed := time.Now().UnixNano()
	defer func() {
		if t.Failed() {
			t.Log("seed", seed)
		}
	}()
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	cfg := Config{Memory: 2000, Patterns: 64, Hosts: 1000, Names: 1500}
	d := New(cfg)
	var trials []Trial
	for i := range 60_000 {
		depth, path := r.IntN(30), ""
		for range depth {
			path += []string{"/", "/" + name(r.IntN(1<<r.IntN(16))), "/1", "/2026-11-24", "//", "/4f9c0a1be77d02"}[r.IntN(6)]
		}
		u := parse(t, fmt.Sprintf("http://%s.%s.com:%d/%s?%s=1", name(r.IntN(1<<r.IntN(18))), name(r.IntN(1<<r.IntN(12))),
			80+r.IntN(1+r.IntN(1000)), path, name(r.IntN(1<<r.IntN(10)))))
		s := Source{From: u, Vain: r.IntN(12), Deferred: r.IntN(2) == 0}
		if v, _ := d.Precheck(u, s); v == Fetch && cmp.Or(d.CheckName(u, false), d.CheckHost(u, false)) == "" {
			if v, trial, _ := d.Admit(u, s); v == Fetch {
				trials = append(trials, trial)
			}
		}
		for len(trials) > r.IntN(64) {
			d.Finish(trials[0], Outcome(r.IntN(4)))
			trials = trials[1:]
		}
		if i%10_000 == 0 {
			s := d.State()
			d = New(cfg)
			d.Restore(s)
			trials = nil
		}
		if i%1000 != 0 {
			continue
		}
		places, size := 0, 0
		for _, all := range []map[string]*domain{d.old, d.young} {
			size = 0
			for _, dom := range all {
				if n := countNodes(&dom.root); n != dom.nodes {
					t.Fatalf("%s has %d places, not %d", dom.name, n, dom.nodes)
				}
				if n := len(dom.hosts.known); n > 1500 {
					t.Fatalf("%s has %d names", dom.name, n)
				}
				size += 1 + dom.nodes + dom.hosts.memory()
			}
			places += size
		}
		if size != d.size {
			t.Fatalf("%d places are taken, and %d counted", size, d.size)
		}
		if most := 2 * (2000 + 64 + 40 + 1500/hostsPerNode); places > most {
			t.Fatalf("%d places, more than %d", places, most)
		}
	}
}

func countNodes(n *node) (all int) {
	for child := range n.all() {
		all += 1 + countNodes(child)
	}
	return all
}

func TestAreas(t *testing.T) {
	const site = "https://www.example.com"
	d := New(Config{})
	enter := func(path, from string) {
		u := parse(t, site+path)
		_, trial, _ := d.Admit(u, Source{})
		d.Finish(trial, NewText)
		d.AddArea(u, from)
	}
	first := func(path, of string) bool { return d.FirstCopy(parse(t, site+path), parse(t, site+of)) }
	if first("/de/2.html", "/en/2.html") {
		t.Error("nothing was entered")
	}
	enter("/", "")
	enter("/en/", site+"/")
	enter("/de/", site+"/")
	enter("/s/0123456789abcdef/1", site+"/")
	enter("/s/fedcba9876543210/2", site+"/s/0123456789abcdef/1") // of the same pattern
	for _, c := range []struct {
		path, of string
		want     bool
	}{
		{"/de/2.html", "/en/2.html", true},
		{"/de/2.html?again", "/en/2.html", false},
		{"/de/deeper/3.html", "/en/3.html", true},
		{"/de/4.html", "/de/3.html", false},
		{"/5.html", "/en/2.html", true},
		{"/6.html", "/5.html", false},
		{"/s/fedcba9876543210/1", "/s/0123456789abcdef/1", true}, // the area of the root has none yet
		{"/s/aaaabbbbccccdddd/1", "/s/0123456789abcdef/1", false},
	} {
		if got := first(c.path, c.of); got != c.want {
			t.Errorf("%s as a copy of %s: %v", c.path, c.of, got)
		}
	}
	for i := range 2 * maxAreas {
		enter(fmt.Sprintf("/%s/", name(i)), "")
	}
	if n := len(d.domain(parse(t, site+"/")).areas.numbers); n != maxAreas {
		t.Errorf("there are %d areas", n)
	}
}

func TestState(t *testing.T) {
	d := New(Config{})
	d.AddArea(parse(t, "https://cala.example.com:81/c/1"), "")
	day := func(i int) string { return fmt.Sprintf("https://cal%s.example.com:81/c/%d?day", name(i%3), i) }
	follow(t, d, 300, day, always(Duplicate))
	crawl(t, d, 100, func(i int) string { return "https://" + name(i) + ".example.org/" }, always(NewText))
	for i := range 100 {
		d.CheckName(parse(t, "https://"+name(i)+".example.net/"), false)
	}
	text, err := json.Marshal(d.State())
	if err != nil {
		t.Fatal(err)
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	again := New(Config{})
	again.Restore(&s)
	if !reflect.DeepEqual(again.State(), d.State()) {
		t.Errorf("%+v, want %+v", again.State(), d.State())
	}
	for i := 300; i < 400; i++ {
		u, from := parse(t, day(i)), Source{From: parse(t, day(i-1)), Vain: i % 2, Deferred: true}
		v, a := d.Precheck(u, from)
		w, b := again.Precheck(u, from)
		if v != w || a != b {
			t.Fatalf("%s: %d %q, and %d %q when restored", u, v, a, w, b)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, url := range []string{"https://example.com/a/b?c=d", "http://[::1]:1/%2f//;x=?&&=", "http://1.2.3.4/{n}/{loop}",
		"https://a.b/20261124/..x/é"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		u, err := weburl.Parse(url)
		if err != nil || !u.IsHTTP() {
			return
		}
		d := New(Config{Patterns: 4})
		for range 60 {
			s := Source{From: u, Vain: 8, Deferred: true}
			d.Precheck(u, s)
			if v, trial, why := d.Admit(u, s); v == Fetch {
				d.Finish(trial, Duplicate)
			} else if Pattern(why) == "" {
				t.Fatalf("%q has no pattern", why)
			}
		}
		again := New(Config{Patterns: 4})
		again.Restore(d.State())
		if !reflect.DeepEqual(again.State(), d.State()) {
			t.Fatalf("%+v, want %+v", again.State(), d.State())
		}
	})
}

func BenchmarkPage(b *testing.B) {
	d := New(Config{})
	urls := make([]weburl.URL, 1000)
	for i := range urls {
		urls[i] = parse(b, fmt.Sprintf("https://www.example.com/docs/%s/%s.html?page=%d", name(i%30), name(i), i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u := urls[i%len(urls)]
		d.CheckName(u, false)
		d.Precheck(u, Source{})
		d.CheckHost(u, false)
		_, trial, _ := d.Admit(u, Source{})
		d.CountedDomain(u)
		d.Finish(trial, NewText)
	}
}

func TestNoMemoryForAHostThatIsKnown(t *testing.T) {
	d, u := New(Config{}), parse(t, "https://www.example.com:8080/docs/")
	ask := func() {
		if d.CheckName(u, false)+d.CheckHost(u, false) != "" || d.CountedDomain(u) != "example.com" {
			t.Fatal("it is left out")
		}
	}
	if n := testing.AllocsPerRun(100, ask); n > 0 {
		t.Errorf("%v objects", n)
	}
}

package fulltext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

var day = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)

func put(t *testing.T, x *Index, docs ...Doc) {
	t.Helper()
	if err := x.Put(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, disk vfs.FS, dir string) *Index {
	t.Helper()
	x, err := Open(disk, dir)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// find returns the result of a query.
func find(t *testing.T, dir, query string, n int) *Result {
	t.Helper()
	r, err := OpenReader(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q, err := Parse(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	f, err := r.Search(t.Context(), q, 0, n)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return f
}

func urls(f *Result) (all []string) {
	for _, h := range f.Hits {
		all = append(all, strings.TrimPrefix(h.URL, "http://a.test/"))
	}
	slices.Sort(all)
	return all
}

func TestWhatIsFound(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	put(t, x,
		Doc{URL: "http://a.test/de", Lang: "de", Status: 200, Type: "text/html", Time: day, Title: "Alte Häuser",
			Text: "Ein Haus am See."},
		Doc{URL: "http://a.test/en", Lang: "en", Status: 200, Type: "text/html", Time: day, Title: "Crawling",
			Text: "Crawlers were running through old houses."},
		Doc{URL: "http://a.test/fr", Lang: "fr", Status: 200, Type: "text/plain", Time: day.AddDate(0, 0, 1),
			Text: "Les élèves continuaient."},
		Doc{URL: "http://a.test/ru", Lang: "ru", Status: 404, Type: "text/html; charset=utf-8", Time: day,
			Text: "Новые книги о городах"},
		Doc{URL: "http://a.test/ja", Lang: "ja", Status: 200, Time: day, Text: "東京都に住んでいます"},
		Doc{URL: "http://b.a.test:8080/zh-x", Lang: "zh-Hans", Status: 200, Time: day, Text: "全文检索的索引在网络上"})
	for query, want := range map[string]string{
		"haus": "de", "Hause": "de", "häusern": "de", "HOUSE": "en", "crawl": "en", "run house": "en",
		`"running through"`: "en",
		`"through running"`: "", "élève": "fr", "continuer": "fr", "книга": "ru", "город книгами": "ru", "東京": "ja",
		"京": "ja", "す": "ja",
		"京都": "ja", "都京": "", "检索": "http://b.a.test:8080/zh-x", "索引 网络": "http://b.a.test:8080/zh-x", "haus -see": "",
		"alte lang:de": "de", "lang:de,fr status:200": "de fr", "status:4xx": "ru", "host:a.test type:text/plain": "fr",
		"host:b.a.test": "http://b.a.test:8080/zh-x", "host:b.a.test:8080": "http://b.a.test:8080/zh-x",
		"type:text -lang:de -lang:en": "fr ru",
		"day:2026-11-27":              "fr", "day:2026-11 -day:2026-11-26": "fr", "lang:zh": "http://b.a.test:8080/zh-x",
		"host:test -lang:ru,ja,zh": "de en fr",
		"nowhere":                  "", `"alte haus"`: "de", "zh-x": "http://b.a.test:8080/zh-x",
	} {
		if got := strings.Join(urls(find(t, dir, query, 10)), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	hit := find(t, dir, "crawler house", 1).Hits[0]
	var marked []string
	for _, p := range hit.Snippet {
		if p.Match {
			marked = append(marked, p.Text)
		}
	}
	if strings.Join(marked, " ") != "Crawlers houses" {
		t.Errorf("%+v", hit.Snippet)
	}
	if first := find(t, dir, "haus lang:de", 1).Hits[0]; first.Title != "Alte Häuser" || !first.Time.Equal(day) ||
		first.Status != 200 {
		t.Errorf("%+v", first)
	}
}

// Percent-encoded words of a URL are found in their decoded form.
func TestURLsInOtherLetters(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	put(t, x,
		Doc{URL: "http://a.test/wiki/M%C3%BCnchen_(Stadt)", Status: 200, Time: day},
		Doc{URL: "http://a.test/%E6%9D%B1%E4%BA%AC?q=caf%e9", Status: 200, Time: day},
		Doc{URL: "http://a.test/100%", Status: 200, Time: day},
		Doc{URL: "http://www.xn--mnchen-3ya.de:8080/", Status: 200, Time: day})
	for query, want := range map[string]string{"münchen": "wiki/M%C3%BCnchen_(Stadt)",
		"stadt": "wiki/M%C3%BCnchen_(Stadt)", "100": "100%",
		"caf": "%E6%9D%B1%E4%BA%AC?q=caf%e9", "host:München.DE": "http://www.xn--mnchen-3ya.de:8080/",
		"host:www.münchen.de:8080": "http://www.xn--mnchen-3ya.de:8080/",
		"host:münchen.de:80":       "http://www.xn--mnchen-3ya.de:8080/"} {
		if got := strings.Join(urls(find(t, dir, query, 10)), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// The index stays readable with long hosts, types and languages; a word that is too long is an error.
func TestLongWordsOfFilters(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	for n := maxTerm - 10; n < maxTerm+10; n++ {
		long := strings.Repeat("a", n)
		put(t, x, Doc{URL: "http://" + long + ":8080/", Status: 200, Time: day, Lang: long + "-x", Type: long + "/x"},
			Doc{URL: "http://" + long + ".b:8080/", Status: 200, Time: day, Lang: "x" + long, Type: long})
	}
	if err := checkIndex(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if f := find(t, dir, "host:b type:"+strings.Repeat("a", maxTerm-10), 1); f.Total != 1 {
		t.Errorf("%d are found", f.Total)
	}
	if _, err := Parse("host:" + strings.Repeat("ü", maxTerm/2)); err == nil {
		t.Error("there is no bound")
	}
	w, err := newSegmentWriter(vfs.OS, dir, "x.seg")
	if err != nil {
		t.Fatal(err)
	}
	defer w.drop()
	w.begin(strings.Repeat("a", maxTerm+1))
	if err := errors.Join(w.add(0, false, []uint32{1}), w.end()); err == nil || IsDamaged(err) {
		t.Error(err)
	}
}

// Documents that are put repeatedly, with merges, are in the index once, in the newest version, and are found only by
// its words.
func TestNewestOfEachURL(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	now := map[string]Doc{}
	vocabulary := strings.Fields("alpha beta gamma delta epsilon zeta eta theta")
	for round := range 60 {
		if round%20 == 19 {
			x = open(t, vfs.OS, dir)
		}
		batch := map[string]Doc{}
		for range 1 + dice.IntN(40) {
			text := make([]string, 1+dice.IntN(12))
			for i := range text {
				text[i] = vocabulary[dice.IntN(len(vocabulary))]
			}
			d := Doc{URL: fmt.Sprintf("http://a.test/%d", dice.IntN(300)), Status: 200,
				Time: day.Add(time.Duration(dice.IntN(1000)) * time.Second),
				Line: dice.Int64(), Text: strings.Join(text, " ")}
			batch[d.URL] = d
		}
		var docs []Doc
		for url, d := range batch {
			docs = append(docs, d)
			if !d.Time.Before(now[url].Time) {
				now[url] = d
			}
		}
		put(t, x, docs...)
	}
	if err := checkIndex(t.Context(), x); err != nil {
		t.Error(err)
	}
	if x.Docs() != int64(len(now)) || len(x.man.Segments) >= 2*fanIn {
		t.Errorf("%d documents in %d segments, want %d", x.Docs(), len(x.man.Segments), len(now))
	}
	all := find(t, dir, "status:200", MaxHits)
	if len(all.Hits) != len(now) || all.Total != int64(len(now)) {
		t.Errorf("%d are found", len(all.Hits))
	}
	for _, h := range all.Hits {
		if d := now[h.URL]; h.Text != d.Text || h.Line != d.Line || !h.Time.Equal(d.Time) {
			t.Errorf("%+v, want %+v", h.Doc, d)
		}
	}
	for _, query := range []string{"alpha", "alpha beta", `"alpha beta"`, "gamma -delta", `"eta theta alpha"`,
		`"beta gamma" -"gamma beta" zeta`} {
		want := 0
		for _, d := range now {
			if fits(query, d.Text) {
				want++
			}
		}
		if got := find(t, dir, query, 10); got.Total != int64(want) {
			t.Errorf("%s: %d, want %d", query, got.Total, want)
		}
	}
}

// fits evaluates a query for a text of words separated by single spaces.
func fits(query, text string) bool {
	text = " " + text + " "
	for query != "" {
		not := strings.HasPrefix(query, "-")
		query = strings.TrimPrefix(query, "-")
		var word string
		if rest, is := strings.CutPrefix(query, `"`); is {
			word, query, _ = strings.Cut(rest, `"`)
			query = strings.TrimSpace(query)
		} else {
			word, query, _ = strings.Cut(query, " ")
		}
		if strings.Contains(text, " "+word+" ") == not {
			return false
		}
	}
	return true
}

func doc(n, version int) Doc {
	return Doc{URL: fmt.Sprintf("http://a.test/%d", n), Status: 200, Lang: "en",
		Time:  day.Add(time.Duration(version) * time.Hour),
		Title: fmt.Sprintf("Page %d", n), Text: fmt.Sprintf("version%d of page number%d %s", version, n,
			strings.Repeat("and so on ", n%9))}
}

// batches returns the batches of a crawl and its recrawls.
func batches() (all [][]Doc) {
	for version := range 3 {
		for from := 0; from < 60; from += 10 {
			var batch []Doc
			for n := from; n < from+10; n++ {
				batch = append(batch, doc(n, version))
			}
			all = append(all, batch)
		}
	}
	return all
}

// Whenever a process is killed or the power fails, the index has all completed batches and at most the current one, and
// can be continued.
func TestKilledAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 2))
	for range 20 {
		disk, dir := vfstest.NewFaulty(vfs.OS), filepath.Join(t.TempDir(), "index")
		life := int64(dice.IntN(120_000))
		disk.DieAfter(life)
		done := 0
		x, err := Open(disk, dir)
		for ; err == nil && done < len(batches()); done++ {
			err = x.Put(t.Context(), batches()[done])
		}
		if err != nil && !disk.Dead() {
			t.Fatal(err)
		}
		if err != nil && done > 0 {
			done--
		}
		if err := disk.PowerLoss(dice); err != nil {
			t.Fatal(err)
		}
		x = open(t, vfs.OS, dir)
		if err := checkIndex(t.Context(), x); err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		if from := max(done-1, 0); x.Docs() < int64(min(60, 10*from)) || x.Docs() > int64(min(60, 10*(done+1))) {
			t.Errorf("life %d: %d documents after %d batches", life, x.Docs(), done)
		}
		for _, batch := range batches()[max(done-1, 0):] {
			put(t, x, batch...)
		}
		if x.Docs() != 60 || find(t, dir, "version2", 10).Total != 60 || find(t, dir, "version1", 10).Total != 0 {
			t.Errorf("life %d: %d documents, %d new ones, %d old ones", life, x.Docs(), find(t, dir, "version2", 10).Total,
				find(t, dir, "version1", 10).Total)
		}
		names, _ := vfs.OS.List(dir)
		if len(names) > 2*len(x.man.Segments)+1 {
			t.Errorf("%v lie there, %d segments count", names, len(x.man.Segments))
		}
	}
}

// Files left by failed operations, as on a full disk, are removed by the next successful one.
func TestFilesOfFailedTries(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 5))
	disk, dir := vfstest.NewFaulty(vfs.OS), t.TempDir()
	x := open(t, disk, dir)
	put(t, x, batches()[0]...)
	failed := 0
	for n, batch := range batches()[1:] {
		for range 3 {
			disk.SetRoom(int64(dice.IntN(6000)))
			if x.Put(t.Context(), batch) != nil {
				failed++
			}
		}
		disk.SetRoom(-1)
		put(t, x, batch...)
		want := 1
		for _, s := range x.man.Segments {
			if want++; s.Deleted != "" {
				want++
			}
		}
		if names, _ := vfs.OS.List(dir); len(names) != want {
			t.Fatalf("after batch %d: %v lie there, of which %d count", n, names, want)
		}
	}
	if failed < 10 {
		t.Errorf("%d tries failed", failed)
	}
}

// If the removal of an index is interrupted, either the other packages' files are removed or the index is complete.
func TestRemovedAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 4))
	for life := int64(1); ; life += 128 {
		disk, dir := vfstest.NewFaulty(vfs.OS), t.TempDir()
		x := open(t, disk, dir)
		put(t, x, doc(1, 0))
		put(t, x, doc(2, 0), doc(1, 1))
		for _, name := range []string{"about.json", "position.json"} {
			if err := vfs.Replace(disk, filepath.Join(dir, name), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		disk.DieAfter(life)
		err := Remove(disk, dir)
		if err != nil && !disk.Dead() {
			t.Fatal(err)
		}
		done := err == nil
		if err := disk.PowerLoss(dice); err != nil {
			t.Fatal(err)
		}
		names, err := vfs.OS.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(names, "about.json") || slices.Contains(names, "position.json") {
			if n := find(t, dir, "page", 10).Total; n != 2 {
				t.Errorf("life %d: %d documents of 2, beside %v", life, n, names)
			}
		}
		if done {
			if len(names) > 0 {
				t.Errorf("%v are left", names)
			}
			return
		}
	}
}

// A recreated index has a new ID.
func TestIDOfAnIndex(t *testing.T) {
	dir := t.TempDir()
	id := func() string {
		t.Helper()
		id, err := ID(vfs.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if none := id(); none != "" {
		t.Errorf("there is no index, and it is %q", none)
	}
	put(t, open(t, vfs.OS, dir), doc(1, 0))
	first := id()
	put(t, open(t, vfs.OS, dir), doc(2, 0))
	if first == "" || id() != first {
		t.Errorf("%q became %q", first, id())
	}
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil {
		t.Fatal(err)
	}
	open(t, vfs.OS, dir)
	if second := id(); second == "" || second == first {
		t.Errorf("%q and %q are two", first, second)
	}
}

// Whatever byte is changed or truncated, the reader gets an error or correct data.
func TestDamageIsSaid(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 3))
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	for _, batch := range batches() {
		put(t, x, batch...)
	}
	names, _ := vfs.OS.List(dir)
	said := 0
	for range 200 {
		name := filepath.Join(dir, names[dice.IntN(len(names))])
		good, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(good)
		if dice.IntN(4) == 0 {
			bad = bad[:dice.IntN(len(bad))]
		} else {
			bad[dice.IntN(len(bad))] ^= byte(1 + dice.IntN(255))
		}
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if x, err := Open(vfs.OS, dir); err != nil {
			if said++; !IsDamaged(err) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err := checkIndex(t.Context(), x); err != nil {
			if said++; !IsDamaged(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r, err := OpenReader(vfs.OS, dir); err == nil {
			for _, query := range []string{"page -version1", `"so on and"`, "status:200"} {
				q, _ := Parse(query)
				if f, err := r.Search(t.Context(), q, 0, 100); err == nil && len(f.Hits) > 60 || err != nil && !IsDamaged(err) {
					t.Errorf("%s, %s: %+v, %v", name, query, f, err)
				}
			}
			r.Close()
		}
		if err := os.WriteFile(name, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said < 150 {
		t.Errorf("of 200 damages %d were said", said)
	}
	if err := Remove(vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(vfs.OS, dir); !errors.Is(err, ErrNoIndex) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"version":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(vfs.OS, dir); !IsDamaged(err) || !strings.Contains(err.Error(), "version 99") {
		t.Error(err)
	}
}

// TestDeclaredSizes tests that a manifest that names more documents than a segment can have is refused before memory is
// allocated for them.
func TestDeclaredSizes(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	for _, batch := range batches() {
		put(t, x, batch...)
	}
	name := filepath.Join(dir, manifestName)
	for _, lie := range []func(*segmentInfo){
		func(s *segmentInfo) { s.Docs = 1 << 50 },
		func(s *segmentInfo) { s.Bytes = 1 << 50 },
	} {
		m, err := readManifest(vfs.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		good, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lie(&m.Segments[0])
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(string(text)+"\n"+checksumLine(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenReader(vfs.OS, dir); !IsDamaged(err) {
			t.Errorf("the error is %v", err)
		}
		if err := os.WriteFile(name, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The memory of a merge is bounded by its documents, including deleted ones.
func TestSizeOfAMerge(t *testing.T) {
	for docs, want := range map[int]int{100: fanIn, 200_000: fanIn, 300_000: 6, maxSegmentDocs - 1: 2, maxSegmentDocs: 0} {
		x := &Index{}
		for range fanIn {
			x.man.Segments = append(x.man.Segments, segmentInfo{Docs: docs})
		}
		if some := x.toMerge(); len(some) != want {
			t.Errorf("%d segments of %d documents are merged, want %d", len(some), docs, want)
		}
	}
}

// An interrupted merge does no harm, and a reader keeps its open files.
func TestEndedMergeAndReaders(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range fanIn {
		if err := x.Put(over, []Doc{doc(n, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.man.Segments) != fanIn {
		t.Fatalf("%d segments", len(x.man.Segments))
	}
	r, err := OpenReader(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	put(t, x, doc(fanIn, 0))
	if len(x.man.Segments) > 2 {
		t.Errorf("%d segments", len(x.man.Segments))
	}
	q, _ := Parse("page")
	if f, err := r.Search(t.Context(), q, 0, 100); err != nil || f.Total != fanIn {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := r.Search(over, q, 0, 1); err != nil || f.Cut == "" {
		t.Errorf("a search whose time is over: %+v, %v", f, err)
	}
	for _, from := range []int{MaxHits, math.MaxInt - 1, math.MaxInt} {
		if _, err := r.Search(t.Context(), q, from, 10); err == nil {
			t.Error("there is no bound")
		}
	}
}

// patience is a context that ends after a number of checks.
type patience struct {
	context.Context //nolint:containedctx // it is one
	looks           int
}

func (p *patience) Err() error {
	if p.looks--; p.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// Every slow search ends at its timeout: phrases that do not occur, rare words among frequent ones, snippets.
func TestTimeOfASearch(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	var docs []Doc
	for n := range 3000 {
		docs = append(docs, Doc{URL: fmt.Sprintf("http://a.test/%d", n), Status: 200, Time: day, Text: "alpha and beta"})
	}
	docs[2999].Text = "alpha rare"
	put(t, x, docs...)
	r, err := OpenReader(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, query := range []string{`"alpha beta"`, "rare alpha", "alpha", `status:200 "and alpha"`, "alpha -and"} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		s := &search{r: r, most: 10, found: &Result{}, pace: &pace{ctx: &patience{t.Context(), 3}}}
		if err := errors.Join(s.prepare(&q), s.searchSegment(0)); !errors.Is(err, errTimeout) || s.pace.steps > 3*256 {
			t.Errorf("%s: %v after %d steps", query, err, s.pace.steps)
		}
		for looks := range 6 {
			if f, err := r.Search(&patience{t.Context(), looks}, q, 0, 10); err != nil || f.Cut == "" {
				t.Errorf("%s: %+v, %v", query, f, err)
			}
		}
		if f, err := r.Search(t.Context(), q, 0, 10); err != nil || f.Cut != "" {
			t.Errorf("%s: %+v, %v", query, f, err)
		}
	}
	for looks := range 3 {
		q, _ := Parse("host:a.test")
		f, err := r.Search(&patience{t.Context(), 70 + looks}, q, 0, 1000)
		if err != nil || f.Cut == "" || len(f.Hits) != 1000 || len(f.Hits[0].Snippet) == 0 || len(f.Hits[999].Snippet) > 0 {
			t.Errorf("%d hits, %v", len(f.Hits), err)
		}
	}
}

// A letter that matches very many terms is searched up to the limit, with a note, and uses little memory.
func TestLettersThatStandForMuch(t *testing.T) {
	dir := t.TempDir()
	x := open(t, vfs.OS, dir)
	var text strings.Builder
	for r := range rune(maxPrefixTerms) {
		text.WriteString("京" + string('人'+r) + " ")
	}
	docs := make([]Doc, 40)
	for n := range docs {
		docs[n] = Doc{URL: fmt.Sprintf("http://a.test/%d", n), Status: 200, Time: day, Text: text.String()}
	}
	put(t, x, docs...)
	if f := find(t, dir, "京", 1); f.Total != 40 || f.Cut != "" {
		t.Errorf("%d, %s", f.Total, f.Cut)
	}
	put(t, x, Doc{URL: "http://a.test/last", Status: 200, Time: day, Text: text.String() + "京龍 大"})
	if f := find(t, dir, "京 大", 1); f.Total != 1 || !strings.Contains(f.Cut, "letter") {
		t.Errorf("%d, %s", f.Total, f.Cut)
	}
	r, err := OpenReader(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q, _ := Parse("京")
	s := &search{r: r, pace: &pace{ctx: t.Context()}, found: &Result{}}
	if err := s.prepare(&q); err != nil {
		t.Fatal(err)
	}
	all, is := r.segments[0].iterator(s.pace, s.clauses[0].matches[0]).(*union)
	if !is || len(all.some) != maxPrefixTerms {
		t.Fatalf("%T", all)
	}
	held := 0
	for doc := range 40 {
		if err := all.next(doc); err != nil {
			t.Fatal(err)
		}
		for _, it := range all.some {
			p, _ := it.(*postings)
			held = max(held, cap(p.list.buf), cap(p.pos.buf))
		}
	}
	if held == 0 || held > 2*smallBuffer {
		t.Errorf("%d bytes for one of %d words", held, maxPrefixTerms)
	}
}

func TestQueriesThatAreNone(t *testing.T) {
	for _, bad := range []string{`"open`, "foo:bar", "http://a.test/", "lang:", "status:40", "status:abc", "status:44xx",
		"day:soon", "fo*",
		"***", `""`, strings.Repeat("a ", 33), strings.Repeat("a", 1001), "\xff", "-a", "-lang:de", "", `-"`,
		`"` + strings.Repeat("a ", 33) + `"`, strings.Repeat("a-", 33), strings.Repeat("京", 34), "東 京 大 阪 市",
		`東 "a 京" 大 阪 -市`} {
		q, err := Parse(bad)
		if err == nil {
			err = q.Check()
		}
		if err == nil {
			t.Errorf("%q is taken: %+v", bad, q)
		}
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{`a "b c" -d`, "host:a.test -lang:de,fr", `x:"y`, "東 -京", "--", `a"b"c:d`} {
		f.Add(s)
	}
	dir := f.TempDir()
	x, err := Open(vfs.OS, dir)
	if err == nil {
		err = x.Put(f.Context(), batches()[0])
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil || q.Check() != nil {
			return
		}
		r, err := OpenReader(vfs.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := r.Search(t.Context(), q, 0, 20); err != nil || len(got.Hits) > 10 {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	})
}

// checkIndex reads all of an index and returns the first error.
func checkIndex(ctx context.Context, x *Index) error {
	for i := range x.man.Segments {
		s, err := openSegment(x.disk, x.dir, &x.man.Segments[i])
		if err == nil {
			err = errors.Join(s.check(ctx))
			s.close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *segment) check(ctx context.Context) error {
	next := 0
	for block := range s.docs.t.N {
		r, first, err := s.docBlock(block)
		if err != nil {
			return err
		}
		for ; len(r.Rest) > 0 && first == next && ctx.Err() == nil; next, first = next+1, first+1 {
			data := r.Bytes()
			if r.Bad || next >= s.info.Docs {
				return damagedf("%s: a document cannot be read", s.info.Name)
			}
			d, err := readDoc(data)
			if err != nil {
				return err
			}
			doc, _, err := s.find(hashOf(d.URL))
			if err != nil {
				return err
			}
			if doc != next {
				return damagedf("%s: %s is not found by its URL", s.info.Name, d.URL)
			}
		}
	}
	if next != s.info.Docs && ctx.Err() == nil {
		return damagedf("%s: documents are missing", s.info.Name)
	}
	c := &cursor{s: s}
	for {
		if err := c.next(); err != nil || c.over || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		p := s.postings(c.entry)
		for p.cur != ended {
			if err := p.next(p.cur + 1); err != nil {
				return err
			}
			if p.cur == ended {
				break
			}
			if _, err := p.positions(); err != nil {
				return err
			}
		}
	}
}

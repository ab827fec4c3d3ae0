package choices

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	_ "modernc.org/sqlite" // registers itself

	"kumo/internal/archive/fulltext"
	"kumo/internal/base/vfs"
)

var markup = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|<[^>]*>`)

const batch = 250 // documents that are put at once

// texts are the words of pages, or as many made ones.
func texts() (all []string, size int) {
	for _, page := range pages() {
		text := strings.ToValidUTF8(markup.ReplaceAllString(string(page), " "), "")
		all, size = append(all, text), size+len(text)
	}
	return all, size
}

// An engine is an index of texts, each with its number as its name.
type engine interface {
	put(from int, texts []string) error
	search(most int, words ...string) (hits []string, err error) // texts that have all of the words, the best first
	close() error
}

var engines = []struct {
	name string
	open func(dir string) (engine, error)
}{{"kumo", openKumo}, {"SQLite FTS5", openSQLite}, {"bleve", openBleve}}

type kumoIndex struct {
	dir string
	x   *fulltext.Index
}

func openKumo(dir string) (engine, error) {
	x, err := fulltext.Open(vfs.OS, dir)
	return &kumoIndex{dir, x}, err
}

func (k *kumoIndex) put(from int, texts []string) error {
	var docs []fulltext.Doc
	for i, text := range texts {
		docs = append(docs, fulltext.Doc{URL: fmt.Sprintf("http://a.test/%d", from+i), Status: 200, Lang: "en",
			Time: time.Unix(1e9, 0), Type: "text/html", Text: text})
	}
	return k.x.Put(context.Background(), docs)
}

func (k *kumoIndex) search(most int, words ...string) (hits []string, err error) {
	r, err := fulltext.OpenReader(vfs.OS, k.dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	q, err := fulltext.Parse(strings.Join(words, " "))
	if err != nil {
		return nil, err
	}
	found, err := r.Search(context.Background(), q, 0, most)
	if err != nil {
		return nil, err
	}
	for _, h := range found.Hits {
		hits = append(hits, strings.TrimPrefix(h.URL, "http://a.test/"))
	}
	return hits, nil
}

func (k *kumoIndex) close() error { return nil }

type bleveIndex struct{ x bleve.Index }

func openBleve(dir string) (engine, error) {
	text := bleve.NewTextFieldMapping()
	text.Analyzer, text.Store, text.IncludeInAll, text.DocValues = en.AnalyzerName, false, false, false
	m := bleve.NewIndexMapping()
	m.DefaultMapping.AddFieldMappingsAt("text", text)
	x, err := bleve.Open(dir)
	if err != nil {
		x, err = bleve.New(dir, m)
	}
	return &bleveIndex{x}, err
}

func (x *bleveIndex) put(from int, texts []string) error {
	b := x.x.NewBatch()
	for i, text := range texts {
		if err := b.Index(fmt.Sprint(from+i), map[string]any{"text": text}); err != nil {
			return err
		}
	}
	return x.x.Batch(b)
}

func (x *bleveIndex) search(most int, words ...string) (hits []string, err error) {
	q := bleve.NewConjunctionQuery()
	for _, word := range words {
		one := bleve.NewMatchQuery(word)
		one.SetField("text")
		q.AddQuery(one)
	}
	found, err := x.x.Search(bleve.NewSearchRequestOptions(q, most, 0, false))
	if err != nil {
		return nil, err
	}
	for _, h := range found.Hits {
		hits = append(hits, h.ID)
	}
	return hits, nil
}

func (x *bleveIndex) close() error { return x.x.Close() }

type sqliteIndex struct{ db *sql.DB }

func openSQLite(dir string) (engine, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "index.db"))
	for _, statement := range []string{"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
		"CREATE VIRTUAL TABLE IF NOT EXISTS docs USING fts5(text, tokenize='porter unicode61')"} {
		if err == nil {
			_, err = db.Exec(statement)
		}
	}
	return &sqliteIndex{db}, err
}

func (x *sqliteIndex) put(from int, texts []string) error {
	tx, err := x.db.Begin()
	if err != nil {
		return err
	}
	for i, text := range texts {
		if _, err := tx.Exec("INSERT INTO docs(rowid, text) VALUES (?, ?)", from+i, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (x *sqliteIndex) search(most int, words ...string) (hits []string, err error) {
	rows, err := x.db.Query("SELECT rowid FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT ?",
		`"`+strings.Join(words, `" "`)+`"`, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		hits = append(hits, id)
	}
	return hits, rows.Err()
}

func (x *sqliteIndex) close() error { return x.db.Close() }

func folderSize(t testing.TB, dir string) (size int64) {
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join(dir, "*", "*")) // the pattern is a good one
	for _, name := range append(all, more...) {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			size += info.Size()
		}
	}
	return size
}

// BenchmarkFulltext puts texts into empty indexes.
func BenchmarkFulltext(b *testing.B) {
	all, size := texts()
	var contenders []*contender
	for _, e := range engines {
		c := &contender{name: e.name}
		c.run = func() error {
			dir := filepath.Join(b.TempDir(), "index")
			x, err := e.open(dir)
			if err != nil {
				return err
			}
			from := 0
			for docs := range slices.Chunk(all, batch) {
				if err := x.put(from, docs); err != nil {
					return err
				}
				from += len(docs)
			}
			if err := x.close(); err != nil {
				return err
			}
			c.note = fmt.Sprintf("%.2f bytes a byte of text", float64(folderSize(b, dir))/float64(size))
			return os.RemoveAll(dir)
		}
		contenders = append(contenders, c)
	}
	byTurns(b, "document", len(all), contenders...)
}

// queries are words of texts, one or two.
func queries(all []string) (queries [][]string) {
	word := regexp.MustCompile(`[a-z]{5,12}`)
	random := rand.New(rand.NewPCG(1, 1))
	for len(queries) < 200 {
		if words := word.FindAllString(all[random.IntN(len(all))], -1); len(words) > 10 {
			queries = append(queries, []string{words[random.IntN(len(words))], words[random.IntN(len(words))]}[:1+len(queries)%2])
		}
	}
	return queries
}

func filled(t testing.TB, open func(string) (engine, error), dir string, all []string) engine {
	t.Helper()
	x, err := open(dir)
	from := 0
	for docs := range slices.Chunk(all, batch) {
		if err == nil {
			err = x.put(from, docs)
		}
		from += len(docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// BenchmarkSearch looks for the ten best texts with a word or two; kumo opens its index each time, and makes snippets.
func BenchmarkSearch(b *testing.B) {
	all, _ := texts()
	ask := queries(all)
	var contenders []*contender
	for _, e := range engines {
		x := filled(b, e.open, filepath.Join(b.TempDir(), "index"), all)
		defer x.close() //nolint:errcheck // nothing is written
		contenders = append(contenders, &contender{name: e.name, run: func() error {
			for _, q := range ask {
				if _, err := x.search(10, q...); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	byTurns(b, "query", len(ask), contenders...)
}

// TestSearch holds what is found against the texts that have the words as they stand, which all engines have to find.
func TestSearch(t *testing.T) {
	all, _ := texts()
	ask := queries(all)
	for _, e := range engines {
		x := filled(t, e.open, filepath.Join(t.TempDir(), "index"), all)
		want, missed, found := 0, 0, 0
		for _, q := range ask {
			hits, err := x.search(fulltext.MaxHits, q...)
			if err != nil {
				t.Fatal(e.name, err)
			}
			found += len(hits)
			has := map[string]bool{}
			for _, h := range hits {
				has[h] = true
			}
			for i, text := range all {
				if len(hits) < fulltext.MaxHits && hasWords(text, q) {
					want++
					if !has[fmt.Sprint(i)] {
						missed++
					}
				}
			}
		}
		t.Logf("%s: %d of %d documents with a query's words as they stand are not found; %d documents are", e.name, missed,
			want, found)
		if err := x.close(); err != nil {
			t.Error(e.name, err)
		}
	}
}

func hasWords(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(" "+text+" ", " "+w+" ") {
			return false
		}
	}
	return true
}

// TestDamagedIndex changes 50 bytes of a file of an index at a time and counts what becomes of searches by it. bleve may
// end the process in a goroutine of its own.
func TestDamagedIndex(t *testing.T) {
	debug.SetPanicOnFault(true) // bleve reads what it has mapped into memory
	all, _ := texts()
	all = all[:min(len(all), 100)]
	ask := queries(all)
	random := rand.New(rand.NewPCG(2, 2))
	for _, e := range engines {
		whole := filepath.Join(t.TempDir(), "index")
		x := filled(t, e.open, whole, all)
		if err := x.close(); err != nil {
			t.Fatal(err)
		}
		search := func(dir string) (answers string, err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			x, err := e.open(dir)
			if err != nil {
				return "", err
			}
			defer x.close() //nolint:errcheck // it is damaged
			for _, q := range ask {
				hits, err := x.search(fulltext.MaxHits, q...)
				if err != nil {
					return "", err
				}
				slices.Sort(hits)
				answers += strings.Join(hits, " ") + "\n"
			}
			return answers, nil
		}
		want, err := search(whole)
		if err != nil {
			t.Fatal(e.name, err)
		}
		counts := map[string]int{}
		for range 60 {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			if more, _ := filepath.Glob(filepath.Join(dir, "store", "*")); len(more) > 0 {
				files = more
			}
			name := files[random.IntN(len(files))]
			data, err := os.ReadFile(name)
			if err != nil || len(data) == 0 {
				continue
			}
			for range 50 {
				data[random.IntN(len(data))] ^= 0x55
			}
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := search(dir)
			switch {
			case err != nil && strings.HasPrefix(err.Error(), "panic"):
				counts["panics"]++
			case err != nil:
				counts["errors"]++
			case got != want:
				counts["wrong answers"]++
			default:
				counts["right answers"]++
			}
		}
		t.Logf("%s: %v", e.name, counts)
	}
}

package office_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"kumo/internal/content/document"
	"kumo/internal/content/document/office"
)

// TestReference compares texts with those of LibreOffice, on the files that .ci/documents has prepared.
func TestReference(t *testing.T) {
	folder := os.Getenv("KUMO_DOCUMENTS")
	if folder == "" {
		t.Skip("no folder of documents: run .ci/documents")
	}
	texts, err := filepath.Glob(filepath.Join(folder, "texts", "*.txt"))
	if err != nil || len(texts) == 0 {
		t.Fatal("no reference texts", err)
	}
	all := map[string]*score{}
	for _, name := range texts {
		file := strings.TrimSuffix(filepath.Base(name), ".txt")
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(folder, "files", file))
		if err != nil {
			t.Fatal(err)
		}
		s := measure(t, file, body, string(want))
		for _, group := range []string{filepath.Ext(file), "all"} {
			if all[group] == nil {
				all[group] = &score{}
			}
			all[group].add(s)
		}
	}
	for group, s := range all {
		t.Logf("%-6s %4d files %8d words, recall %.4f, order %.4f, %6.2f ms and %5.1f MB allocated a document", group,
			s.files, s.words, s.recall(), s.order(), float64(s.took.Microseconds())/1000/float64(s.files),
			float64(s.bytes)/1e6/float64(s.files))
	}
	if s := all["all"]; s.recall() < 0.98 || s.order() < 0.95 {
		t.Errorf("recall %.4f, order %.4f: want 0.98 and 0.95", s.recall(), s.order())
	}
}

// A score is how much of a reference text is read.
type score struct {
	files, words, found, inOrder int
	took                         time.Duration
	bytes                        uint64
}

func (s *score) add(o score) {
	s.files += o.files
	s.words += o.words
	s.found += o.found
	s.inOrder += o.inOrder
	s.took += o.took
	s.bytes += o.bytes
}

func (s *score) recall() float64 { return float64(s.found) / float64(max(s.words, 1)) }
func (s *score) order() float64  { return float64(s.inOrder) / float64(max(s.words, 1)) }

func measure(t *testing.T, file string, body []byte, want string) score {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	d, err := office.Read(bytes.NewReader(body), document.Default())
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	words := wordsOf(want)
	s := score{files: 1, words: len(words), took: took, bytes: after.TotalAlloc - before.TotalAlloc}
	if err != nil {
		t.Logf("%s: %d words: %v", file, len(words), err)
		return s
	}
	read := wordsOf(d.Plain())
	left := map[string]int{}
	for _, w := range read {
		left[w]++
	}
	var lost []string
	for _, w := range words {
		if left[w]--; left[w] >= 0 {
			s.found++
		} else if len(lost) < 12 {
			lost = append(lost, w)
		}
	}
	s.inOrder = common(words, read)
	if s.recall() < 0.98 || s.order() < 0.95 || d.Problem != "" {
		t.Logf("%s: %d words, recall %.3f, order %.3f, read %d words, %s %s, lacks %q", file, len(words), s.recall(),
			s.order(), len(read), d.Problem, d.Detail, lost)
	}
	return s
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
}

// common returns the length of the longest common subsequence of two texts (Hunt and Szymanski). Words that are very
// frequent are matched only near the place where they are expected.
func common(a, b []string) int {
	const most = 200
	at := map[string][]int{}
	for i, w := range b {
		at[w] = append(at[w], i)
	}
	var ends []int // the least end in b of a subsequence by its length
	for i, w := range a {
		places := at[w]
		if len(places) > most {
			near, _ := slices.BinarySearch(places, i*len(b)/len(a))
			from := min(max(near-most/2, 0), len(places)-most)
			places = places[from : from+most]
		}
		for _, j := range slices.Backward(places) {
			k, _ := slices.BinarySearch(ends, j)
			if k == len(ends) {
				ends = append(ends, j)
			} else {
				ends[k] = j
			}
		}
	}
	return len(ends)
}

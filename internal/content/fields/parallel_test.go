package fields

import (
	"fmt"
	"sync"
	"testing"
)

// TestParallel applies the same rules in several goroutines: the results must be the same as in one.
func TestParallel(t *testing.T) {
	rules, err := Parse("rules.yaml", []byte(tenRules+
		`- {name: x, url: /p/, fields: {a: {xpath: "count(//a)"}, b: {xpath: "string(//h1)"}, c: {xpath: "//time/@datetime", list: true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	text := shopPage()
	want := fmt.Sprintf("%s", rules.NewReader().Read(Page{URL: "http://a/p/", Text: text}, false).Records)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r := rules.NewReader()
			for i := range 5 {
				r.Read(Page{URL: "http://a/p/", Text: fmt.Sprint("<h1>other", i)}, false)
				got := fmt.Sprintf("%s", r.Read(Page{URL: "http://a/p/", Text: text}, false).Records)
				if got != want {
					t.Errorf("%.300s\nwant %.300s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

package wire

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"kumo/internal/lab/testmain"
)

// There are far more hosts than fit into the memory for rules. Each robots.txt is fetched once, before the host's
// pages, and all are fetched, with and without a folder.
func TestManyMoreHostsThanMemoryHasRulesFor(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	for _, folder := range []bool{true, false} {
		t.Run(fmt.Sprint("folder=", folder), func(t *testing.T) {
			t.Parallel()
			hosts := testmain.Rounds(1000, 3000) // 22 KB of rules each; the memory is 6 MiB
			rules := "User-agent: *\n" + strings.Repeat("Disallow: /no-such-page-of-this-site\n", 400)
			pages := map[string]http.HandlerFunc{}
			var seeds []string
			var mu sync.Mutex
			begun, open, most := map[string]bool{}, 0, 0
			s := newSite(t, pages)
			for i := range hosts {
				host := fmt.Sprintf("h%d.test", i)
				seeds = append(seeds, s.url(host+"/"))
				pages[host+"/robots.txt"] = func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					open++
					most = max(most, open)
					mu.Unlock()
					io.WriteString(w, rules)
				}
				pages[host+"/"] = func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					if !begun[host] {
						begun[host] = true
						open--
					}
					mu.Unlock()
					html(`<a href=/1>1</a>`)(w, r)
				}
				pages[host+"/1"] = html("1")
			}
			j := s.job(t, "h0.test/")
			j.Seeds, j.Memory, j.Frontier.Hosts = seeds, 1<<20, 16
			if !folder {
				j.Dir = ""
			}
			mustRun(t, j)
			asked := map[string]int{}
			for _, u := range s.asked {
				asked[u]++
			}
			for i := range hosts {
				for _, path := range []string{"/robots.txt", "/", "/1"} {
					if u := fmt.Sprintf("h%d.test%s", i, path); asked[u] != 1 {
						t.Fatalf("%s was asked for %d times", u, asked[u])
					}
				}
			}
			if most > 4*16 {
				t.Errorf("%d robots.txt files were read ahead of the pages of their hosts, with 16 workers", most)
			}
		})
	}
}

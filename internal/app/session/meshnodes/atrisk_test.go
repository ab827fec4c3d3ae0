package meshnodes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A mortal uploads files until its node dies.
type mortal struct {
	*uploads.Upload
	die  chan struct{}
	dead chan struct{} // closed when the upload has stopped
}

func (m mortal) Start(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	m.Upload.Start(ctx)
	go func() {
		select {
		case <-m.die:
			stop()
			close(m.dead)
		case <-ctx.Done():
		}
	}()
}

func (m mortal) Finish(ctx context.Context) error {
	select {
	case <-m.dead:
		m.Abort()
		return errors.New("the node is dead")
	default:
		return m.Upload.Finish(ctx)
	}
}

// Nodes upload their files. One dies with its disk when half of its files are uploaded. The others fetch the rest
// again, and not more; at the end all its pages are uploaded.
func TestWhatALostNodeHadComesToThePlace(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(21, 40, 1200))
	c := newCrew(t, web)
	place := "file://" + filepath.ToSlash(t.TempDir())
	nodes := map[string]mortal{}
	c.tune = func(j *job.Job) {
		slow(j)
		j.WARCSize = 300_000
	}
	c.also = func(cfg *Config) {
		m := mortal{nil, make(chan struct{}), make(chan struct{})}
		nodes[cfg.Name] = m
		cfg.LostAfter, cfg.ReadManifest, cfg.PlaceWait = 10*time.Second, uploads.ReadManifest, time.Minute
		cfg.NewUploader = func(ctx context.Context, j *job.Job, life string) (session.Uploader, error) {
			up, err := uploads.New(ctx, j, uploads.Config{Place: uploads.Child(place, life), Wait: time.Minute})
			m.Upload = up
			return m, err
		}
	}
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.slowAfter(500)
	c.begin(a, map[string][]string{}, web.SeedURLs()...)
	c.await(500)
	c.eventually("b has brought a file", func() bool { return len(placed(t, place, "b~*")) > 0 })
	c.eventually("others know what of b is at risk", func() bool {
		lists, _ := filepath.Glob(filepath.Join(a.dir, "state", "mesh", "atrisk", "b~*"))
		return slices.ContainsFunc(lists, func(file string) bool {
			info, err := os.Stat(file)
			return err == nil && info.Size() > 500
		})
	})
	c.await(web.Requests() + 60) // pages known to the keepers are reported as done
	close(nodes["b"].die)
	<-nodes["b"].dead
	b.kill()
	had := fieldsIn(t, filepath.Join(b.dir, "pages.jsonl"))
	there := placed(t, place, "*")
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for url := range had {
		if !there[url] {
			lost++
		}
	}
	c.goOn()
	c.ends(nil, a, d)
	again := a.Refetched() + d.Refetched()
	t.Logf("b had fetched %d pages, and %d were not in the place; %d were fetched again", len(had), lost, again)
	// Pages that b had not reported as done are fetched normally, and not counted. On a busy machine, a or d may be
	// unreachable for a while; then some of their pages may be fetched again, too.
	if lost == 0 || lost == len(had) || again > int64(lost+(len(had)-lost)/2) {
		t.Error("that is not what was wanted")
	}
	c.wantAll(int64(lost) + 50)
	there = placed(t, place, "*")
	for url := range had {
		if !there[url] {
			t.Errorf("%s is not in the place", url)
		}
	}
}

// placed returns the URLs in the indexes of nodes' storage locations.
func placed(t *testing.T, place, nodes string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(strings.TrimPrefix(place, "file://"), nodes, "warc", "*.cdxj"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, file := range files {
		if warcs, _ := filepath.Glob(strings.TrimSuffix(file, ".cdxj") + ".warc*"); len(warcs) == 1 {
			for url := range fieldsIn(t, file) {
				all[url] = true
			}
		}
	}
	return all
}

// fieldsIn returns the fields url of a file's lines, which end with a JSON object.
func fieldsIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, text, _ := strings.Cut(lines.Text(), "{")
		var line struct{ URL string }
		if err := json.Unmarshal([]byte("{"+text), &line); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(line.URL, "/robots.txt") {
			all[line.URL] = true
		}
	}
	return all
}

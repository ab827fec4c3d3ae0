package wire

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/repair"
	"kumo/internal/base/advice"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A patient is a stopped or finished crawl that is damaged in many ways.
type patient struct {
	job   *job.Job
	files map[string]string
	truth int
	serve *synthweb.Server
}

func newPatient(t *testing.T, seed uint64, pages int64) *patient {
	t.Helper()
	cfg := synthweb.Clean(seed, 8, 120)
	cfg.MedianSize = 1 << 10
	cfg.Kinds[synthweb.Copy], cfg.Traits[synthweb.Chunked] = 100, 500
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	j.WARCSize, j.Frontier.Memory = 64<<10, 1<<10
	for _, j.Crawl.Pages = range []int64{pages / 2, pages} {
		if err := run(t, t.Context(), j); err != nil && !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
	}
	p := &patient{job: j, files: contentsOf(t, j.Dir), serve: s}
	whole := *j
	whole.Dir, whole.Crawl.Pages = t.TempDir(), 0
	mustRun(t, &whole)
	p.truth = len(lines(t, whole.Dir, "pages.jsonl"))
	return p
}

// copied returns a job with a copy of the patient's folder.
func (p *patient) copied(t *testing.T) *job.Job {
	t.Helper()
	j := *p.job
	j.Dir, j.Crawl.Pages = t.TempDir(), 0
	for name, text := range p.files {
		path := filepath.Join(j.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	return &j
}

func testRepair(t *testing.T, j *job.Job, dry bool) (*repair.Result, error) {
	t.Helper()
	return Repair(t.Context(), j.Dir, repair.Options{DryRun: dry, Report: func(s string) { t.Log(s) }, Now: time.Now,
		Job: func() (*job.Job, error) { k := *j; return &k, nil }})
}

// runOnly runs a job without verifying its folder.
func runOnly(t *testing.T, j *job.Job) error {
	t.Helper()
	k := *j
	c, err := Open(t.Context(), &k)
	if err != nil {
		return err
	}
	_, err = c.Run(t.Context())
	return errors.Join(err, c.Close())
}

// heals damages a copy of the patient, and checks that the crawl can be completed, after a repair if necessary.
func (p *patient) heals(t *testing.T, damage func(dir string)) {
	t.Helper()
	j := p.copied(t)
	damage(j.Dir)
	started := runOnly(t, j)
	if started != nil && !strings.Contains(advice.Of(started), "kumo repair") {
		t.Errorf("the start says no way on: %v", started)
	}
	if started == nil && len(faultsOf(t, j.Dir)) == 0 && len(lines(t, j.Dir, "pages.jsonl")) == p.truth {
		return
	}
	t.Logf("the start: %v", started)
	if _, err := testRepair(t, j, false); err != nil {
		t.Errorf("repair: %v", err)
		return
	}
	for _, f := range faultsOf(t, j.Dir) {
		t.Errorf("after the repair: %s", &f)
	}
	if err := runOnly(t, j); err != nil {
		t.Errorf("after the repair: %v", err)
		return
	}
	for _, f := range faultsOf(t, j.Dir) {
		t.Errorf("in the end: %s", &f)
	}
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != p.truth {
		t.Errorf("%d of %d pages", n, p.truth)
	}
}

// TestRepairAfterAFlippedByte flips a byte of each file of stopped and finished crawls.
func TestRepairAfterAFlippedByte(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	for _, pages := range []int64{60, 1e6} {
		seed := rand.Uint64()
		dice := rand.New(rand.NewPCG(seed, 0))
		p := newPatient(t, seed, pages)
		for _, name := range p.some(dice, int(crashWebs())) {
			text := p.files[name]
			at, by := dice.IntN(len(text)), byte(1+dice.IntN(255))
			t.Run(fmt.Sprintf("seed %d, %d pages, byte %d of %s ^ %d", seed, pages, at, strings.ReplaceAll(name, "/", ":"), by),
				func(t *testing.T) {
					t.Parallel()
					p.heals(t, func(dir string) {
						b := []byte(text)
						b[at] ^= by
						write(t, filepath.Join(dir, filepath.FromSlash(name)), string(b))
					})
				})
		}
	}
}

// some returns n of the non-empty files, or all, with a different choice in each run.
func (p *patient) some(dice *rand.Rand, n int) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.files)), func(name string) bool { return p.files[name] == "" })
	dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(n, len(names))]
}

// TestRepairAfterALostFile deletes each file, or truncates it.
func TestRepairAfterALostFile(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	p := newPatient(t, seed, 70)
	for _, name := range p.some(rand.New(rand.NewPCG(seed, 1)), int(crashWebs())) {
		for _, how := range []string{"lost", "cut"} {
			t.Run(fmt.Sprintf("seed %d, %s %s", seed, strings.ReplaceAll(name, "/", ":"), how), func(t *testing.T) {
				t.Parallel()
				p.heals(t, func(dir string) {
					path := filepath.Join(dir, filepath.FromSlash(name))
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					if how == "cut" {
						write(t, path, half(p.files[name]))
					}
				})
			})
		}
	}
}

// TestRepairFetchesNothingAgainThatIsKept: lists and state can be rebuilt from WARC files and from each other.
func TestRepairFetchesNothingAgainThatIsKept(t *testing.T) {
	t.Parallel()
	p := newPatient(t, rand.Uint64(), 70)
	for _, lost := range [][]string{{"pages.jsonl"}, {"crawl.log"}, {"state/journal", "state/seen", "state/frontier",
		"state/digests"}, {".cdxj"}} {
		t.Run(strings.ReplaceAll(fmt.Sprint(lost), "/", ":"), func(t *testing.T) {
			t.Parallel()
			j := p.copied(t)
			for name := range p.files {
				if slices.ContainsFunc(lost, func(l string) bool { return strings.Contains(name, l) }) {
					if err := os.Remove(filepath.Join(j.Dir, filepath.FromSlash(name))); err != nil {
						t.Fatal(err)
					}
				}
			}
			r, err := testRepair(t, j, false)
			if err != nil {
				t.Fatal(err)
			}
			if robots := int64(8); r.Pages != 70 || r.Visits > robots { // only crawl.log has the times of their visits
				t.Errorf("%+v: 70 pages were there", r)
			}
			if err := runOnly(t, j); err != nil {
				t.Fatal(err)
			}
			for _, f := range faultsOf(t, j.Dir) {
				t.Errorf("in the end: %s", &f)
			}
			if n := len(lines(t, j.Dir, "pages.jsonl")); n != p.truth {
				t.Errorf("%d of %d pages", n, p.truth)
			}
		})
	}
}

// TestRepairCountsAllThatIsLost: kept and lost visits add up to the listed ones.
func TestRepairCountsAllThatIsLost(t *testing.T) {
	t.Parallel()
	p := newPatient(t, rand.Uint64(), 70)
	first := ""
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if strings.HasPrefix(name, "warc/") && strings.HasSuffix(name, ".warc.gz") && first == "" {
			first = name
		}
	}
	flipped := []byte(p.files[first])
	flipped[len(flipped)/2] ^= 4
	for how, damage := range map[string]func(name string) error{
		"missing": os.Remove,
		"emptied": func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"a byte":  func(name string) error { return os.WriteFile(name, flipped, 0o600) },
	} {
		t.Run(how, func(t *testing.T) {
			j := p.copied(t)
			logged := func() int { return strings.Count(contentsOf(t, j.Dir)["crawl.log"], "\n") }
			listed, pages := logged(), len(lines(t, j.Dir, "pages.jsonl"))
			if err := damage(filepath.Join(j.Dir, filepath.FromSlash(first))); err != nil {
				t.Fatal(err)
			}
			r, err := testRepair(t, j, false)
			if err != nil {
				t.Fatal(err)
			}
			kept := len(lines(t, j.Dir, "pages.jsonl"))
			// A damaged byte may cost only the record of a robots.txt visit, while its line remains.
			over := logged() + int(r.Visits) - listed
			if r.Visits == 0 && how != "a byte" || over < 0 || over > 0 && (how != "a byte" || over > 1) ||
				kept != int(r.Pages) {
				t.Errorf("%d of %d visits are kept, %d of %d pages: %+v", logged(), listed, kept, pages, r)
			}
		})
	}
}

func TestADryRepairChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPatient(t, rand.Uint64(), 40)
	j := p.copied(t)
	name := filepath.Join(j.Dir, "state", "seen", "manifest")
	write(t, name, "nothing")
	before := contentsOf(t, j.Dir)
	dry, err := testRepair(t, j, true)
	if err != nil {
		t.Fatal(err)
	}
	if after := contentsOf(t, j.Dir); !maps.Equal(before, after) {
		t.Error("it has changed something")
	}
	wet, err := testRepair(t, j, false)
	if err != nil || wet.Damaged == "" {
		t.Fatal(err, wet)
	}
	if dry.Damaged = wet.Damaged; *dry != *wet {
		t.Errorf("it said %+v, and it is %+v", dry, wet)
	}
	if text, err := os.ReadFile(filepath.Join(wet.Damaged, "state", "seen", "manifest")); err != nil ||
		string(text) != "nothing" {
		t.Errorf("what was replaced is not kept: %q, %v", text, err)
	}
}

// TestRepairKeepsUnknownMembers: lines with members of a newer kumo remain unchanged in a repair, even if the state is
// rebuilt from them.
func TestRepairKeepsUnknownMembers(t *testing.T) {
	t.Parallel()
	j := newPatient(t, 7, 1e6).copied(t)
	newer := map[string]string{}
	for name, text := range contentsOf(t, j.Dir) {
		if strings.HasPrefix(name, "state/") || !strings.HasSuffix(name, ".jsonl") && !strings.HasSuffix(name, ".cdxj") {
			continue
		}
		text = strings.ReplaceAll(text, "}\n", `,"unheard":{"of":[1,2]}}`+"\n")
		newer[name] = text
		write(t, filepath.Join(j.Dir, filepath.FromSlash(name)), text)
	}
	if len(newer["pages.jsonl"]) == 0 || len(newer["skipped.jsonl"]) == 0 || len(newer) < 4 {
		t.Fatalf("%d lists", len(newer))
	}
	if err := os.RemoveAll(filepath.Join(j.Dir, "state", "journal")); err != nil {
		t.Fatal(err)
	}
	r, err := testRepair(t, j, false)
	if err != nil || r.Visits != 0 || r.Lines != 0 || r.Pages != int64(strings.Count(newer["pages.jsonl"], "\n")) {
		t.Errorf("%+v, %v", r, err)
	}
	for name, text := range contentsOf(t, j.Dir) {
		if want, is := newer[name]; is && text != want {
			t.Errorf("%s is other than it was", name)
		} else if is {
			delete(newer, name)
		}
	}
	for name := range newer {
		if name != "index.cdxj" { // it is merged from the others at the end of a run
			t.Errorf("%s is gone", name)
		}
	}
	for _, f := range faultsOf(t, j.Dir) {
		t.Errorf("after the repair: %s", &f)
	}
}

// TestRepairMovesNothingFromElsewhere: the plan of an earlier repair is rejected if it names files outside the crawl's
// folder.
func TestRepairMovesNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	p := newPatient(t, 8, 40)
	for ready, refused := range map[string]bool{
		`{"Damaged":"DIR/state/damaged-x","Away":["../OTHER/file"]}`:  true,
		`{"Damaged":"DIR/state/seen","Away":["pages.jsonl"]}`:         true,
		`{"Damaged":"DIR/../OTHER/damaged-x","Away":["report.json"]}`: false, // a move within the folder
	} {
		j := p.copied(t)
		other := t.TempDir() // next to the crawl's folder
		work := filepath.Join(j.Dir, "state", "repaired")
		if err := os.MkdirAll(work, 0o700); err != nil || filepath.Dir(other) != filepath.Dir(j.Dir) {
			t.Fatal(err, other)
		}
		ready = strings.NewReplacer("DIR", filepath.ToSlash(j.Dir), "OTHER", filepath.Base(other)).Replace(ready)
		write(t, filepath.Join(other, "file"), "mine")
		write(t, filepath.Join(work, "ready"), ready)
		if _, err := testRepair(t, j, false); (err != nil) != refused {
			t.Errorf("%s: %v", ready, err)
		}
		if all := contentsOf(t, other); len(all) != 1 || all["file"] != "mine" {
			t.Errorf("there are now %v", slices.Collect(maps.Keys(all)))
		}
	}
}

// TestDamagedFormat: verify reports a damaged state/format; a run and a repair rewrite it.
func TestDamagedFormat(t *testing.T) {
	t.Parallel()
	p := newPatient(t, 9, 40)
	for how, mend := range map[string]func(*job.Job) error{
		"run":    func(j *job.Job) error { return runOnly(t, j) },
		"repair": func(j *job.Job) error { _, err := testRepair(t, j, false); return err },
	} {
		j := p.copied(t)
		write(t, filepath.Join(j.Dir, folder.FormatName), "format: 7\n")
		if all := faultsOf(t, j.Dir); len(all) != 1 || all[0].File != "state/format" {
			t.Errorf("faults: %v", all)
		}
		if err := mend(j); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if all := faultsOf(t, j.Dir); len(all) > 0 {
			t.Errorf("faults after a %s: %v", how, all)
		}
	}
}

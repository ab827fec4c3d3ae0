package sets

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/weburl"
	"kumo/internal/batch/collection"
	"kumo/internal/content/lang"
	"kumo/internal/content/policy"
)

func news(t *testing.T) (dir string, all []*collection.Collection) {
	t.Helper()
	set, err := Open("news27")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "news")
	if err := Write(set, dir, false, func(string, Outcome) {}); err != nil {
		t.Fatal(err)
	}
	if all, err = collection.LoadAll(dir); err != nil {
		t.Fatal(err)
	}
	return dir, all
}

func TestTheNewsAreInEachLanguageOnce(t *testing.T) {
	_, all := news(t)
	var codes, dirs []string
	for _, c := range all {
		codes = append(codes, c.Language.Code)
		dirs = append(dirs, c.Directory)
		if c.Threads != 30 || c.Schedule == "" || c.Name == "" || len(c.Charsets) == 0 {
			t.Errorf("%s lacks something: %+v", c.Code, c)
		}
	}
	slices.Sort(codes)
	if !slices.Equal(codes, lang.Known()) {
		t.Errorf("languages %v, known are %v", codes, lang.Known())
	}
	slices.Sort(dirs)
	want := strings.Fields("crawler1 crawler2 crawler3 crawler_Korea crawler_ar crawler_de crawler_fr crawler_id " +
		"crawler_in crawler_ir crawler_it crawler_kg crawler_kz crawler_la crawler_md crawler_mn crawler_my crawler_np " +
		"crawler_pashto crawler_ph crawler_pt crawler_ru crawler_sp crawler_tj crawler_urdo crawler_vn crawler_zang")
	if !slices.Equal(dirs, want) {
		t.Errorf("directories %v\nnot %v", dirs, want)
	}
}

// A crawl must stay on its sites, and must not refuse its seeds.
func TestTheNewsStayInTheirSites(t *testing.T) {
	_, all := news(t)
	sites := 0
	for _, c := range all {
		rules, err := c.Rules()
		if err != nil {
			t.Fatal(err)
		}
		taken := func(text string) bool {
			u, err := weburl.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			return !rules.Judge(u, policy.Link{Depth: 1}).Refused()
		}
		for _, seed := range c.Seeds {
			sites++
			if !taken(seed) {
				t.Errorf("%s refuses what its seed %s is", c.Code, seed)
			}
		}
		for i, pattern := range c.Include {
			if len(c.Include) == len(c.Seeds) && !regexp.MustCompile(pattern).MatchString(c.Seeds[i]) {
				t.Errorf("%s: rule %s is not of seed %s", c.Code, pattern, c.Seeds[i])
			}
		}
		for _, other := range []string{"https://example.com/", "https://www.facebook.com/x?u=" + c.Seeds[0],
			c.Seeds[0] + "a.JPG?x=1"} {
			if taken(other) {
				t.Errorf("%s takes %s", c.Code, other)
			}
		}
	}
	if sites != 151 {
		t.Errorf("%d sites", sites)
	}
}

// The list has 164 sites; the files mention those without an address.
func TestNoSiteOfTheListIsForgotten(t *testing.T) {
	set, err := Open("news27")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(set, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without := 0
	for _, name := range names {
		data, err := fs.ReadFile(set, name)
		if err != nil {
			t.Fatal(err)
		}
		without += strings.Count(string(data), "\n#   ")
	}
	if without != 164-151 {
		t.Errorf("%d sites without a place", without)
	}
}

func TestEditedFilesAreLeftAsTheyAre(t *testing.T) {
	dir, _ := news(t)
	set, err := Open("news27")
	if err != nil {
		t.Fatal(err)
	}
	edited, gone := filepath.Join(dir, "de.yaml"), filepath.Join(dir, "zh.yaml")
	if err := os.WriteFile(edited, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	write := func(force bool) (counts map[Outcome]int, content string) {
		counts = map[Outcome]int{}
		if err := Write(set, dir, force, func(_ string, o Outcome) { counts[o]++ }); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(edited)
		if err != nil {
			t.Fatal(err)
		}
		return counts, string(data)
	}
	counts, content := write(false)
	if content != "mine" || counts[Same] != 25 || counts[Written] != 1 || counts[Edited] != 1 {
		t.Errorf("%v, %q", counts, content)
	}
	if counts, content := write(true); content == "mine" || counts[Same] != 26 || counts[Overwritten] != 1 {
		t.Errorf("by force: %v", counts)
	}
}

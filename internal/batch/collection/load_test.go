package collection

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/advice"
	"kumo/internal/base/yaml"
)

const full = `# news in Chinese
code: zh
name: 中文
directory: crawler1
seeds:
  - HTTP://News.example:80/a b
  - https://other.example
scope: host
include: ['/news/']
exclude:
  - \.jpg$
depth: 5
threads: 12
interval: 500ms
redirects: 3
charsets: [gb2312, UTF-8]
language:
  share: 0.7
recrawl: 12h
schedule: daily
`

func TestACollectionIsReadAsItIsWritten(t *testing.T) {
	c, err := Parse("zh.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &Collection{Code: "zh", Name: "中文", Directory: "crawler1",
		Seeds: []string{"http://news.example/a%20b", "https://other.example/"}, Scope: "host", Include: []string{"/news/"},
		Exclude: []string{`\.jpg$`}, Depth: 5, Threads: 12, Interval: Duration(500 * time.Millisecond), Redirects: 3,
		Charsets: []string{"gbk", "utf-8"}, Language: Language{Code: "zh", Share: 0.7, Confidence: 0.5},
		Recrawl: []string{"12h"}, Schedule: "daily"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v\nnot\n%+v", c, want)
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", data)
	if err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("written and read again: %+v %v\n%s", again, err, data)
	}
}

func TestWhatIsNotSaidHasDefaults(t *testing.T) {
	c, err := Parse("de.yaml", []byte("code: de\nseeds: https://a.example/\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := New()
	want.Code, want.Directory, want.Seeds, want.Language.Code = "de", "crawler_de", []string{"https://a.example/"}, "de"
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v", c)
	}
}

func TestFaultsNameFileLineAndKey(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "f.yaml: the file is empty",
		"- a\n":                           "f.yaml:1: expected keys with values",
		"code: de\n":                      "f.yaml: seeds: no seeds",
		"code: de\nseeds: []\n":           "f.yaml:2: seeds: no seeds",
		"code: D E\nseeds: [http://a/]\n": `f.yaml:1: code: "D E"`,
		"code: de\nseeds:\n- http://a/\n- a.example\n": `f.yaml:4: seeds[1]: "a.example": expected a URL`,
		"code: de\nseeds:\n- http://a/\n- ftp://a/\n":  `f.yaml:4: seeds[1]: "ftp://a/": expected a URL`,
		"code: de\nseeds:\n- http://a/\n- HTTP://A\n":  `f.yaml:4: seeds[1]: "HTTP://A" is a duplicate of entry 1`,
		"code: de\nseeds: [http://a/]\ndeph: 3\n": "f.yaml:3: deph: unknown key; known keys: " +
			"charsets, code",
		"code: de\nseeds: [http://a/]\ndepth: deep\n": "f.yaml:3: depth: expected a number, got deep",
		"code: de\nseeds: [http://a/]\ndepth: -1\n": "f.yaml:3: depth: -1: expected a number from 0 to " +
			"1000",
		"code: de\nseeds: [http://a/]\ninterval: 5\n": "f.yaml:3: interval: expected a duration",
		"code: de\nseeds: [http://a/]\ninterval: 2h\n": "f.yaml:3: interval: 2h0m0s: expected a duration " +
			"from 0s to 1h",
		"code: de\nseeds: [http://a/]\nthreads: 0\n": "f.yaml:3: threads: 0: expected a number from 1",
		"code: de\nseeds: [http://a/]\nscope: all\n": `f.yaml:3: scope: "all": expected page`,
		"code: de\nseeds: [http://a/]\ninclude:\n- ok\n- " +
			"'(x'\n": `f.yaml:5: include[1]: "(x" is not a valid regular expression`,
		"code: de\nseeds: [http://a/]\ncharsets: " +
			"klingon\n": `f.yaml:3: charsets: "klingon": expected a charset name`,
		"code: de\nseeds: [http://a/]\nlanguage:\n  share: 50\n": "f.yaml:4: language.share: 50: expected a number " +
			"from 0 to 1",
		"code: de\nseeds: [http://a/]\nlanguage:\n  shar: 1\n": "f.yaml:4: language.shar: unknown key; known keys: " +
			"code",
		"code: de\nseeds: [http://a/]\nlanguage: de\n":    "f.yaml:3: language: expected keys with values",
		"code: de\nseeds: [http://a/]\nrecrawl: often\n":  `f.yaml:3: recrawl: "often" is no interval`,
		"code: de\nseeds: [http://a/]\ndirectory: ../x\n": `f.yaml:3: directory: "../x"`,
		"code: de\ncode: zh\nseeds: [http://a/]\n":        "f.yaml:2: ",
		"code: de\nseeds: [http://a/]\nname:\n":           "f.yaml:3: name: expected a text",
		"code: dutch\nseeds: " +
			"[http://a/]\n": `f.yaml:1: code: "dutch" is not a language that can be detected`,
		"code: a\nseeds: [http://a/]\nlanguage:\n  code: " +
			"nl\n": `f.yaml:4: language.code: "nl" is not a language that can`,
		"code: de\nseeds: [http://a/]\nschedule: often\n":   `f.yaml:3: schedule: "often" is not a schedule`,
		"code: de\nseeds: [http://a/]\nschedule: '24:00'\n": `f.yaml:3: schedule: "24:00" is not a time of day`,
		"code: de\nseeds: [http://a/]\nschedule: 60 1 * * " +
			"*\n": `f.yaml:3: schedule: "60 1 * * *" is not a cron expression`,
		"code: de\nseeds: [http://a/]\nschedule: 0 0 30 2 *\n": `f.yaml:3: schedule: "0 0 30 2 *" never occurs`,
		"code: de\nseeds: [http://a/]\ninterval: -1s\n": "f.yaml:3: interval: -1s: expected a duration " +
			"from 0s to 1h",
		"code: de\n  seeds: [http://a/]\n":                         "f.yaml:1: not YAML: ",
		"code: de\nseeds: [http://a/]\n---\ncode: zh\n":            "second document",
		"code: de\nseeds: {a: b}\n":                                "f.yaml:2: seeds: expected a list of texts",
		"code: de\nseeds: [http://a/]\nlanguage:\n  share: .nan\n": "f.yaml:4: language.share: NaN",
	} {
		_, err := Parse("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !advice.IsUsage(err) {
			t.Errorf("%q:\n%v\nnot\n%s", text, err, want)
		}
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "code: de\nseeds: [x]\ndepth: x\n",
		"b.yml": "code: zh\nseeds: [y]\n",
		"c.txt": "no collection"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := LoadAll(dir)
	if err == nil || strings.Count(err.Error(), "\n") != 2 || !advice.IsUsage(err) {
		t.Errorf("not three lines:\n%v", err)
	}
	if fault, ok := errors.AsType[*Error](err); !ok || fault.Key != "depth" || fault.Line != 3 {
		t.Errorf("the first is %+v", fault)
	}
}

func TestCollectionsAreLoadedOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "code: zh\nseeds: [http://a/]\n",
		"b.yaml": "code: de\nseeds: [http://b/]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := LoadAll(dir)
	if err != nil || len(all) != 2 || all[0].Code != "de" || all[1].Code != "zh" {
		t.Errorf("%v %v", all, err)
	}
	if _, err := LoadAll(dir, filepath.Join(dir, "a.yaml")); err == nil || !strings.Contains(err.Error(), "already used") {
		t.Errorf("loaded twice: %v", err)
	}
	if _, err := LoadAll(t.TempDir()); !advice.IsUsage(err) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := LoadAll(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("code: de\nseeds: {a: [b, {c: d}]}\nlanguage: [x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.yaml", data)
		if err != nil {
			return
		}
		if _, err := c.Rules(); err != nil {
			t.Errorf("its rules: %v", err)
		}
		if _, err := c.Intervals(); err != nil {
			t.Errorf("its intervals: %v", err)
		}
		if s, err := c.ParsedSchedule(); err != nil || c.Schedule != "" && s.Next(time.Unix(0, 0)).IsZero() {
			t.Errorf("its schedule %q: %v", c.Schedule, err)
		}
	})
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/base/settings"
	"kumo/internal/content/render/chromium"
)

// Settings of kumo start reach a node, in addition to the node's own.
func TestSettingsTravel(t *testing.T) {
	o := &options{}
	flags := crawlFlags(o)
	rules, sinkURL := filepath.Join(t.TempDir(), "rules.yaml"), "hbase://me@h:8080/t"
	const ruleText = "[{name: page, url: '^http', fields: {title: h1}}]" // without a line feed
	if err := os.WriteFile(rules, []byte(ruleText), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--fields", rules, "--sink", sinkURL, "--delay", "3s", "--exclude", "a,b", "--exclude", "c", "--canon", "tracking,sort", "--format",
		"jsonl", "--ignore", "nofollow", "-d", "2"}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.readStart(t.Context(), flags, []string{"http://a.example/"}); err != nil {
		t.Fatal(err)
	}
	shared := o.sharedSettings(flags)
	if i := slices.IndexFunc(shared, func(s settings.Setting) bool {
		return hasScope(s.Key, setting.Node) ||
			s.Key == setting.SeedsKey
	}); i >= 0 {
		t.Errorf("%s is shared", shared[i].Key)
	}
	n := &options{}
	given := crawlFlags(n)
	if err := given.Parse([]string{"--memory", "64MB", "-c", "7", "--password", "x", "--user", "u", "--header",
		"Authorization: a, b"}); err != nil {
		t.Fatal(err)
	}
	j := &job.Job{Name: "news", Dir: "d"}
	if err := n.resolveNode(given, j, shared); err != nil {
		t.Fatal(err)
	}
	if j.Frontier.Delay != 3*time.Second || len(j.Crawl.Exclude) != 2 || j.Crawl.Exclude[0].String() != "a,b" ||
		j.Crawl.Canon.String() != "tracking,sort" ||
		!slices.Equal(j.Formats, []string{"jsonl"}) || j.Crawl.Depth != 2 || j.Crawl.Ignore.Names() == nil {
		t.Errorf("of the crawl: %+v", j)
	}
	if j.Memory != 64e6 || j.Frontier.Hosts != 7 || j.Fetch.User != "u" || j.Fetch.Header.Get("Authorization") != "a, b" ||
		j.Name != "news" || j.Dir != "d" {
		t.Errorf("of the machine: %+v", j)
	}
	if got := settings.Map(shared); !slices.Equal(got["fields"], []string{ruleText + "\n"}) ||
		!slices.Equal(got["sink"], []string{sinkURL}) || j.Fields == nil || len(j.Fields.Rules("http://a/")) != 1 {
		t.Errorf("rules %q, sinks %q: %+v", got["fields"], got["sink"], j.Fields)
	}
	for _, s := range j.Settings {
		if s.Key == "sink" {
			t.Errorf("the node's folder would have %v", s)
		}
		if s.Key == "password" && s.Values[0] != settings.Redacted {
			t.Error("a password would be written down")
		}
	}
}

// Only nodes need a browser, not the machine of kumo start.
func TestRenderingNodes(t *testing.T) {
	o := &options{}
	flags := crawlFlags(o)
	if err := flags.Parse([]string{"--render", "auto"}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := o.readStart(t.Context(), flags, []string{"http://a.example/"}); err != nil {
		t.Fatal(err)
	}
	n := &options{}
	given := crawlFlags(n)
	if err := given.Parse([]string{"--browser-no-sandbox"}); err != nil {
		t.Fatal(err)
	}
	err := n.resolveNode(given, &job.Job{Name: "news", Dir: "d"}, o.sharedSettings(flags))
	if !errors.Is(err, chromium.ErrNoBrowser) || browserOf(n) != "" {
		t.Errorf("a node without a browser: %v", err)
	}
}

func TestServersOf(t *testing.T) {
	join := []string{"a:1", "b:1", "c:1", "d:1"}
	for _, c := range []struct {
		listen string
		join   []string
		n      int
		want   string // "!": an error
	}{
		{"a:1", nil, 0, "a:1"}, {"a:1", nil, 1, "a:1"}, {"", join[:1], 0, ""}, {"", join, 0, ""}, {"a:1", join, 0, "a:1"},
		{"b:1", join, 0, ""},
		{"b:1", join, 3, "a:1 b:1 c:1"}, {"", join, 1, "a:1"}, {"", join, 5, "!"}, {"a:1", nil, 3, "!"}, {"", join, 2, "!"},
		{"", join, -1, "!"},
	} {
		got, err := serversOf(c.listen, c.join, c.n)
		if text := strings.Join(got, " "); text != c.want && (err == nil || c.want != "!") ||
			(err != nil) != (c.want == "!") {
			t.Errorf("--listen %q --join %v --servers %d: %q, %v; want %q", c.listen, c.join, c.n, text, err, c.want)
		}
	}
}

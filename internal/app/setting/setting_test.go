package setting

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kumo/internal/content/policy"
)

var update = flag.Bool("update", false, "write docs/reference/settings.md")

func TestEntriesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	v := defaults()
	for i := range All {
		s := &All[i]
		if seen[s.Key] || seen["-"+s.Short] && s.Short != "" {
			t.Errorf("%s: the key or the letter is there twice", s.Key)
		}
		seen[s.Key], seen["-"+s.Short] = true, true
		if !slices.Contains(Groups, s.Group) || !slices.Contains([]Scope{Crawl, Node, Alone}, s.Scope) ||
			!slices.Contains([]Change{Live, NextRun, Grow, Fixed, PerRun}, s.Change) {
			t.Errorf("%s: group %q, scope %q, change %q", s.Key, s.Group, s.Scope, s.Change)
		}
		if s.Help == "" || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: help %q", s.Key, s.Help)
		}
		if s.Change == Grow && s.Widens == nil {
			t.Errorf("%s may grow, and nothing says when it does", s.Key)
		}
		if s.Change == Live && s.Scope != Crawl {
			t.Errorf("%s is live, but nodes do not share it", s.Key)
		}
		if got := s.Value(v).String(); s.Default != "" && s.Default != "named" && got == "" {
			t.Errorf("%s: the default %q is %q", s.Key, s.Default, got)
		}
	}
}

// TestStoredSettingsRoundTrip sets each setting to the result of Get, in the text form stored in a folder.
func TestStoredSettingsRoundTrip(t *testing.T) {
	changed := map[string]string{"string": "some/text", "bool": "true", "int": "7", "float64": "2.5", "duration": "36h",
		"SIZE": "3MiB", "stringArray": "a=2", "stringSlice": "nofollow", "RULES": "tracking,www",
		"YAML": "{match: a.test, delay: 2s}"}
	for i := range All {
		s := &All[i]
		from, to := defaults(), defaults()
		value := s.Value(from)
		text, ok := changed[value.Type()]
		if words, is := value.(Words); is {
			text, ok = words.Words()[len(words.Words())-1], true
		}
		switch s.Key {
		case "depth":
			text = "3"
		case "format":
			text = "jsonl"
		case ScreenshotKey:
			text = "thumb"
		case ExtractKey:
			text = "doc=http://127.0.0.1:9998"
		case "max-body-of":
			text = "application/pdf=3MiB"
		case "render-actions":
			text = "scroll"
		case "usage":
			text = "obey=tdm"
		case "render-wait":
			text = "#root > p"
		case KeepLocalKey:
			text = "false"
		}
		if !ok {
			t.Errorf("%s: type %q", s.Key, value.Type())
			continue
		}
		if err := value.Set(text); err != nil {
			t.Errorf("%s: %v", s.Key, err)
			continue
		}
		stored, ok := s.Stored(from)
		if !ok {
			t.Errorf("%s is %q and not stored", s.Key, text)
		}
		if err := s.Set(to, stored.Values); err != nil {
			t.Errorf("%s: %v", s.Key, err)
		}
		if got := s.Get(to); !slices.Equal(got, stored.Values) || slices.Equal(got, s.Get(defaults())) {
			t.Errorf("%s: %q, stored %q", s.Key, got, stored.Values)
		}
	}
}

// TestOverridesAreSettings compares the keys of overrides with the table.
func TestOverridesAreSettings(t *testing.T) {
	for _, key := range policy.OverrideKeys() {
		if Find(key) == nil {
			t.Errorf("an override may have %q, which is no setting", key)
		}
	}
}

// TestDocument compares docs/reference/settings.md with the table. With -update it writes the page.
func TestDocument(t *testing.T) {
	const name = "../../../docs/reference/settings.md"
	want := settingsPage()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference/settings.md differs from the table (%v): go test ./internal/app/setting -update writes it",
			err)
	}
}

// settingsPage returns docs/reference/settings.md.
func settingsPage() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`# Settings

All settings of a crawl, by group: ~--KEY~ is a flag of ~kumo crawl~, as in ~kumo crawl --delay 2s URL~.

The same setting is the key ~KEY~ in the file that ~--config~ names and in a crawl's config.yaml, and the environment
variable ~KUMO_KEY~, in upper case with ~_~ for ~-~. Flags override the environment, which overrides the file, which
overrides the crawl's folder.

- **Scope**: ~crawl~ settings are the same on all nodes of a cluster; give them to ~kumo start~. ~node~ settings belong
  to one machine; give them to ~kumo node~. ~alone~ settings are for a crawl on one machine. ~kumo crawl~ has all.
- **Change**: ~live~ settings can change while the crawl runs (~kumo set~). ~next run~ settings can change when the
  crawl, or the node, starts again. ~grow~ settings can then change only so that more is fetched or written, and on one
  machine only: in a cluster, they never change if their scope is ~crawl~. ~fixed~ settings never change.
  ~per run~ settings are not stored with the crawl.
- **Override**: the setting can differ by host, or by URL ([overrides.md](overrides.md)).
- **Library**: the option of package kumo.

This page is generated: ~go test ./internal/app/setting -update~ writes it.
`, "~", "`"))
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Setting | Value | Default | Scope | Change | Override | Library | |\n"+
			"| --- | --- | --- | --- | --- | --- | --- | --- |\n", g)
		for i := range All {
			if s := &All[i]; s.Group == g {
				fmt.Fprintf(&b, "| `--%s` | %s | %s | %s | %s | %s | %s | %s |\n", s.Key, cell(valueName(s)),
					cell(s.Default), s.Scope, s.Change, policy.OverrideLevel(s.Key), code(s.Option),
					strings.ReplaceAll(s.Help, "|", `\|`))
			}
		}
	}
	b.WriteString("\nNext: [overrides.md](overrides.md), [a first crawl](../tutorials/first-crawl.md).\n")
	return b.String()
}

func cell(text string) string { return code(strings.ReplaceAll(text, "|", `\|`)) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// defaults returns the values of a crawl for which nothing is set.
func defaults() *Values {
	v := &Values{}
	v.Reset()
	return v
}

// valueName returns the placeholder of the value in help and docs: the quoted name in Help, or the words of a choice.
// It is "" for a boolean.
func valueName(s *Setting) string {
	if _, rest, ok := strings.Cut(s.Help, "`"); ok {
		name, _, _ := strings.Cut(rest, "`")
		return name
	}
	switch value := s.Value(&Values{}); value.Type() {
	case "bool":
		return ""
	case "duration":
		return "DURATION"
	case "string":
		return "TEXT"
	default:
		return value.Type()
	}
}

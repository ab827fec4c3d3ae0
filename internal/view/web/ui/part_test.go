package ui

import (
	"strings"
	"testing"

	"kumo/internal/base/page"
)

// TestCommentsOfAPage tests that a page's comments are a format of their own.
func TestCommentsOfAPage(t *testing.T) {
	prose := strings.Repeat("The boat left the harbor before sunrise, and nobody expected it back so soon. ", 5)
	body := "<title>T</title><h1>H</h1><p>" + prose + "</p><div class=comments><div class=comment><p>It is good.</p></div>" +
		"<div class=comment><p>It is bad.</p></div></div>"
	resp := &page.Response{URL: "http://a.test/", Status: 200, Body: []byte(body)}
	for as, want := range map[string]string{"text": strings.TrimSpace(prose), "comments": "It is good.\nIt is bad."} {
		p, err := partOf(resp, as)
		if err != nil || p.Text != want || p.Kind != "other" {
			t.Errorf("as %s: %v: %+v, want text %q", as, err, p, want)
		}
	}
}

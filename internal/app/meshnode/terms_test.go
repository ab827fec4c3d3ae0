package meshnode

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/member/mesh"
)

// A folder has the terms of its crawl, and a node with others is refused.
func TestAFolderKeepsTheTerms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *store {
		s, _, _, err := openStore(vfs.OS, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if got, err := s.terms(); err != nil || got != (mesh.AgreedTerms{}) {
		t.Fatalf("a new folder has %+v, %v", got, err)
	}
	want := mesh.AgreedTerms{Terms: mesh.Terms{Strategy: mesh.StrategyPaper, Block: 7, Interval: time.Minute},
		Since: time.Unix(1e9, 5).UTC()}
	if err := s.putTerms(want); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // pending writes are completed
	if err := s.run(ctx); err != nil {
		t.Fatal(err)
	}
	n := &Node{store: open()}
	for own, fits := range map[mesh.Terms]bool{
		{}:                                       false,
		{Strategy: mesh.StrategyPaper}:           true,
		{Strategy: mesh.StrategyPaper, Block: 7}: true,
		{Strategy: mesh.StrategyPaper, Block: 8}: false,
		{Strategy: mesh.StrategyPaper, Interval: time.Minute}:   true,
		{Strategy: mesh.StrategyPaper, Interval: 2 * time.Hour}: false,
	} {
		got, err := n.earlierTerms(own)
		if fits != (err == nil) || got != want || !fits && !advice.IsUsage(err) {
			t.Errorf("%+v: %+v, %v", own, got, err)
		}
	}
	for _, damaged := range []string{"{", "{}", "null",
		`{"Strategy": "mesh/paper", "Block": 0, "Interval": 60000000000, "Since": "2026-01-01T00:00:00Z"}`,
		`{"Strategy": "mesh/paper", "Block": 7, "Interval": 0, "Since": "2026-01-01T00:00:00Z"}`,
		`{"Strategy": "mesh/paper", "Block": 7, "Interval": 60000000000}`} {
		if err := os.WriteFile(filepath.Join(dir, termsFile), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		own := mesh.Terms{Strategy: mesh.StrategyPaper}
		if _, err := n.earlierTerms(own); err == nil || !strings.Contains(err.Error(), termsFile) {
			t.Errorf("%s: %v", damaged, err)
		}
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/lab/synthweb"
)

// served parses the flags of a synthetic web.
func served(args ...string) (synthweb.Config, *serveFlags, error) {
	w, f := webFlags{}, serveFlags{}
	cmd := &cobra.Command{}
	w.bind(cmd, 100, 1000)
	f.bind(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return synthweb.Config{}, nil, err
	}
	cfg, err := f.config(&w)
	return cfg, &f, err
}

func TestFlagsOfTheWeb(t *testing.T) {
	cfg, f, err := served("--tls", "--by-address", "--page-size", "242KB", "--per-connection", "10", "--latency",
		"500ms-9s", "--dead", "10")
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.TLS || !cfg.ByAddress || cfg.MedianSize < 145_000 || cfg.MedianSize > 149_000 || f.opts.PerConnection != 10 ||
		cfg.Latency != 500*time.Millisecond || cfg.Slowest != 9*time.Second {
		t.Errorf("%+v, %+v", cfg, f.opts)
	}
	if refused, hanging := cfg.Traits[synthweb.Refused], cfg.Traits[synthweb.Hanging]; refused != 50 || hanging != 50 {
		t.Errorf("of a thousand hosts %d refuse and %d hang, want 50 and 50", refused, hanging)
	}
	if cfg, _, err := served("--latency", "2s"); err != nil || cfg.Latency != 2*time.Second ||
		cfg.Slowest != 2*time.Second {
		t.Errorf("one latency for all: %+v, %v", cfg, err)
	}
	for _, bad := range []string{"--latency=9s-1s", "--latency=fast", "--latency=-1s", "--dead=-1", "--page-size=big"} {
		if _, _, err := served(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestCrawlLineOfAServer(t *testing.T) {
	for _, c := range []struct {
		cfg  synthweb.Config
		dns  bool
		want []string
		not  string
	}{
		{synthweb.Config{}, true, []string{"--dns-server 127.0.0.1:", " http://h0000.synth.test:"}, "--insecure"},
		{synthweb.Config{TLS: true, ByAddress: true}, false, []string{"--insecure", " https://127.77.0.1:"}, "--dns-server"},
	} {
		s, err := synthweb.Serve(t.Context(), synthweb.New(c.cfg), synthweb.ServeOptions{DNS: c.dns})
		if err != nil {
			t.Skip(err) // a system with one loopback address
		}
		defer s.Close()
		line := crawlLine(s)
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("%q lacks %q", line, want)
			}
		}
		if strings.Contains(line, c.not) {
			t.Errorf("%q has %q", line, c.not)
		}
	}
}

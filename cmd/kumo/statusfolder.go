package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"kumo/internal/view/text"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// folder says how the crawl in dir goes, again and again with --watch, until it ends.
func (s *statusView) folder(cmd *cobra.Command, dir string) error {
	if other := foreignTo(cmd.Flags()); other != "" {
		return usagef("--%s is for a crawl of several nodes: leave it or --out out", other)
	}
	ctx := cmd.Context()
	for {
		running, err := s.look(ctx, dir)
		if err != nil || !running || !s.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(s.every, 100*time.Millisecond)):
		}
	}
}

// foreignTo is a flag that was typed and says nothing of a crawl of one machine.
func foreignTo(f *pflag.FlagSet) (name string) {
	for _, n := range []string{"crawl", "join", "nats", "secret-file", "wait", "hosts"} {
		if fl := f.Lookup(n); fl.Changed && name == "" {
			name = n
		}
	}
	return name
}

// look shows the crawl once, and reports whether it runs.
func (s *statusView) look(ctx context.Context, dir string) (running bool, err error) {
	v, err := openLook(ctx, dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	x, err := v.Status(ctx)
	if err != nil {
		return false, err
	}
	if s.json {
		return v.Running(), text.JSON(s.out, x)
	}
	var b strings.Builder
	text.Status(&b, x, dir)
	return v.Running(), s.draw(b.String(), s.width())
}

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"kumo/internal/view/text"

	"github.com/spf13/cobra"
)

// folder says how the crawl in dir goes, again and again with --watch, until it ends.
func (s *statusView) folder(cmd *cobra.Command, dir string) error {
	if err := (&alone{dir}).check(cmd.Flags()); err != nil {
		return err
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

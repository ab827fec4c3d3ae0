package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/inspect"
	"kumo/internal/app/session"
)

// alone is a crawl on this machine alone, for verbs that steer one of several nodes as well.
type alone struct{ dir string }

func (a *alone) bind(f *pflag.FlagSet) {
	f.StringVarP(&a.dir, "out", "o", "", "a crawl on this machine, by its `FOLDER`")
	f.Lookup("crawl").Usage = "a crawl of several nodes, by its `NAME`: letters, digits, - and _"
}

// check refuses flags that say nothing of a crawl on this machine.
func (a *alone) check(f *pflag.FlagSet) error {
	for _, n := range []string{"crawl", "join", "nats", "secret-file", "wait", "hosts"} {
		if f.Changed(n) {
			return usagef("--%s is for a crawl of several nodes: leave it or --out out", n)
		}
	}
	return nil
}

// steer has the crawl do something, and says what.
func (a *alone) steer(cmd *cobra.Command, f func(context.Context, inspect.Steerer) (done string, err error)) error {
	if err := a.check(cmd.Flags()); err != nil {
		return err
	}
	var done string
	err := session.Steer(cmd.Context(), a.dir, func(s inspect.Steerer) (err error) {
		done, err = f(cmd.Context(), s)
		return err
	})
	if errors.Is(err, session.ErrIdle) {
		return usagef("the crawl in %s does not run: kumo crawl -o %s, with or without more URLs, lets it go on", a.dir,
			a.dir)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; see: kumo status -o %s\n", a.dir, done, a.dir)
	return err
}

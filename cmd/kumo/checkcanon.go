package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kumo/internal/base/weburl"
	"kumo/internal/engine/check"
)

func checkCanon() *cobra.Command {
	v := &verb[check.CanonIn, check.CanonOut]{use: "canon URL", about: "What is a URL's canonical form?",
		examples: canonExample,
		read:     check.Canon,
		args: func(_ context.Context, args []string, in *check.CanonIn) (err error) {
			in.URL, err = only(args)
			return err
		}}
	cmd := v.command()
	cmd.Flags().StringVar(&v.in.Rules, "rules", "none", "rewrite it further by these `RULES`, as kumo crawl --canon does")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if _, err := weburl.ParseRules(v.in.Rules); err != nil {
			return &usage{fmt.Errorf("--rules: %w", err)}
		}
		return nil
	}
	return cmd
}

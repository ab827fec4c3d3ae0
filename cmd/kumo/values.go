package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/setting"
)

func durationVar(f *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(setting.Time(d), name, usage)
}

// completeChoices makes shells complete the values of a command's choices.
func completeChoices(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if choice, ok := f.Value.(setting.Words); ok {
			words := cobra.FixedCompletions(choice.Words(), cobra.ShellCompDirectiveNoFileComp)
			_ = cmd.RegisterFlagCompletionFunc(f.Name, words) // fails only if the flag already has a completion
		}
	})
}

// A limitFlag is a flag for the number of items to list.
type limitFlag struct{ n *int }

// newLimitFlag sets n to its default and returns its flag.
func newLimitFlag(n *int, ordinary int) limitFlag {
	*n = ordinary
	return limitFlag{n}
}

func (c limitFlag) Type() string { return "int" }

func (c limitFlag) String() string {
	if c.n == nil {
		return "0"
	}
	return strconv.Itoa(*c.n)
}

func (c limitFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of items: give 0 or more", text)
	}
	*c.n = n
	return nil
}

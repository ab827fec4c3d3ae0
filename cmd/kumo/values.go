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

// completeChoices has a shell complete the words of a command's choices.
func completeChoices(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if choice, ok := f.Value.(setting.Words); ok {
			words := cobra.FixedCompletions(choice.Words(), cobra.ShellCompDirectiveNoFileComp)
			_ = cmd.RegisterFlagCompletionFunc(f.Name, words) // it fails only where a flag has its words already
		}
	})
}

// A count is a flag for how many are to be listed.
type limitFlag struct{ n *int }

// newLimitFlag sets n to what is listed unless the user says otherwise, and returns its flag.
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
		return fmt.Errorf("%q is no number of things to list: 0 or more is wanted", text)
	}
	*c.n = n
	return nil
}

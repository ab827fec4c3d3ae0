package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/lab/sim/report"
	"kumo/internal/view/results"
)

// A simFolder is the flag for the folder of an experiment's files.
type simFolder struct{ report.Folder }

func (s *simFolder) bind(f *pflag.FlagSet, what string) {
	f.StringVar(&s.Dir, "out", "", "write "+what+" into `DIR`, for kumo serve DIR to show")
	f.Lookup("out").Annotations = map[string][]string{noVariable: {"true"}} // KUMO_OUT is where a crawl is
}

// keeps has a command leave in the folder what it was and what it said.
func (s *simFolder) keeps(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.Dir == "" {
			return run(cmd, args)
		}
		out := s.Begin(results.Experiment{Experiment: cmd.Name(), About: cmd.Short, Command: typedAs(cmd),
			Version: job.Version}, cmd.OutOrStdout())
		cmd.SetOut(out)
		if err := run(cmd, args); err != nil {
			return err
		}
		return s.End(out)
	}
	return cmd
}

// typedAs is how a command was called, but for where its files go.
func typedAs(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if _, is := f.Value.(pflag.SliceValue); is {
			value = strings.Trim(value, "[]")
		}
		switch {
		case f.Name == "out":
		case f.Value.Type() == "bool" && value == "true":
			words = append(words, "--"+f.Name)
		case strings.ContainsAny(value, " '\"$\\*?") || value == "":
			words = append(words, fmt.Sprintf("--%s='%s'", f.Name, strings.ReplaceAll(value, "'", `'\''`)))
		default:
			words = append(words, "--"+f.Name+"="+value)
		}
	})
	return strings.Join(words, " ")
}

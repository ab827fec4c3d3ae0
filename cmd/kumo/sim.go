package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/lab/sim/report"
	"kumo/internal/view/results"
)

const simLong = `Try out, on one machine and without a network, what a crawl and a cluster do.

The strategies by which nodes share the hosts of the web among them run here as they are: it is the code of a crawl, with
made-up hosts, made-up nodes and, where time matters, a clock that does not wait. So an answer that would take a hundred machines
comes within seconds, and the same flags give the same answer, on any machine: what a random choice decides comes from --seed.

  kumo sim hash       how evenly Igloo's two-level hash spreads hosts, and how many move when a node comes or goes
  kumo sim soak       whether a cluster loses nothing, and stays polite, whatever fails
  kumo sim dspider    DSpider's experiments with a control unit again, and how many nodes one can serve
  kumo sim mesh       the experiments of a crawler without a centre again, and what it costs as it grows
  kumo sim balance    the experiments of balancing by predicted times again, and what samples are worth
  kumo sim rank       which order of what waits finds the important pages soonest`

func simCommand() *cobra.Command {
	return withVerbs("sim", "Try out what crawls and clusters do", simLong, simHash(), simSoak(), simDSpider(), simMesh(),
		simBalance(), simRank())
}

// A simFolder is the flag for the folder of an experiment's files.
type simFolder struct{ report.Folder }

func (s *simFolder) bind(f *pflag.FlagSet, what string) {
	f.StringVar(&s.Dir, "out", "", "write "+what+" into `DIR`, for kumo serve DIR to show")
	f.Lookup("out").Annotations = map[string][]string{noVariable: {"true"}} // KUMO_OUT is where a crawl is
}

// runs makes an experiment's command, once its flags are bound. Flags are checked before anything is written; what the
// command was and what it said is left in the folder.
func (s *simFolder) runs(cmd *cobra.Command, check, run func(*cobra.Command) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := check(cmd); err != nil {
			return err
		}
		if err := s.Prepare(); err != nil {
			return err
		}
		if s.Dir == "" {
			return run(cmd)
		}
		out := s.Begin(results.Experiment{Experiment: cmd.Name(), About: cmd.Short, Command: commandTyped(cmd),
			Version: job.Version}, cmd.OutOrStdout())
		cmd.SetOut(out)
		if err := run(cmd); err != nil {
			return err
		}
		return s.End(out)
	}
	return cmd
}

// checkScaling rejects flags without effect: those of --scale if it is not given, and with --scale all flags but its
// own and those in both.
func checkScaling(cmd *cobra.Command, scaling bool, both ...string) (err error) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if of := strings.HasPrefix(f.Usage, "with --scale, "); f.Changed && of != scaling &&
			!slices.Contains(both, f.Name) {
			err = usagef("--%s says nothing with --scale", f.Name)
			if of {
				err = usagef("--%s says something only with --scale", f.Name)
			}
		}
	})
	return err
}

// commandTyped is how a command was called, but for where its files go.
func commandTyped(cmd *cobra.Command) string {
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

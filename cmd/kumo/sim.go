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

const simLong = `Simulate crawls and clusters, on one machine and without a network.

The strategies for sharing hosts among nodes are the code of a real crawl, with synthetic hosts,
synthetic nodes and, where time matters, virtual time. So results for a hundred machines take
seconds, and the same flags give the same results on any machine: random choices depend on --seed.

  kumo sim hash       how evenly Igloo's two-level hash distributes hosts, and how many move when a
                      node joins or leaves
  kumo sim soak       whether a cluster loses nothing, and stays polite, under faults
  kumo sim dspider    DSpider's experiments with a control unit, and how many nodes one can serve
  kumo sim mesh       the experiments of a crawler without a center, and its cost as it grows
  kumo sim balance    the experiments of balancing by predicted time, and the value of samples
  kumo sim rank       which fetch order finds important pages soonest`

func simCommand() *cobra.Command {
	return withVerbs("sim", "Simulate crawls and clusters", simLong, simHash(), simSoak(), simDSpider(), simMesh(),
		simBalance(), simRank())
}

// A simFolder is the flag for the output folder of an experiment.
type simFolder struct{ report.Folder }

func (s *simFolder) bind(f *pflag.FlagSet, what string) {
	f.StringVar(&s.Dir, "out", "", "write "+what+" to `DIR`, which kumo serve DIR shows")
	f.Lookup("out").Annotations = map[string][]string{noVariable: {"true"}} // KUMO_OUT is the folder of a crawl
}

// runs completes an experiment's command after its flags are bound. It checks the flags before it writes anything, and
// stores the command line and its output in the folder.
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

// checkScaling rejects flags without effect: the flags of --scale if it is not given, and with --scale all flags except
// its own and those in both.
func checkScaling(cmd *cobra.Command, scaling bool, both ...string) (err error) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if of := strings.HasPrefix(f.Usage, "with --scale, "); f.Changed && of != scaling &&
			!slices.Contains(both, f.Name) {
			err = usagef("--%s has no effect with --scale", f.Name)
			if of {
				err = usagef("--%s has an effect only with --scale", f.Name)
			}
		}
	})
	return err
}

// commandTyped returns the command line without the output folder.
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

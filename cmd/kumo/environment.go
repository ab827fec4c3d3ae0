package main

import (
	"fmt"
	"kumo/internal/base/advice"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	variablePrefix = "KUMO_"
	testPrefix     = "KUMO_TEST"          // settings of tests
	sinkPassword   = "KUMO_SINK_PASSWORD" // read by sinks
)

// variable returns the name of a flag's environment variable.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// isVariable reports whether a flag can be set in the environment.
func isVariable(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != helpAll && f.Name != "version" && f.Deprecated == "" &&
		f.Annotations[noVariable] == nil
}

// noVariable marks a flag that cannot be set in the environment, because its variable name has another meaning.
const noVariable = "kumo_no_variable"

// fromEnvironment sets flags of a command that were not given and have an environment variable. They count as given:
// they override a configuration file and the saved settings of a crawl. The variable of a repeatable flag has one value
// per line. An empty variable is ignored.
func fromEnvironment(cmd *cobra.Command) error {
	if strings.HasPrefix(cmd.Name(), "__") { // shell completion
		return nil
	}
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(variable(f.Name))
		if value == "" || f.Changed || !isVariable(f) || failed != nil {
			return
		}
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = strings.Split(strings.TrimRight(value, "\n"), "\n")
		}
		for _, v := range values {
			if err := cmd.Flags().Set(f.Name, strings.TrimSuffix(v, "\r")); err != nil {
				failed = usagef("in the environment, %s: %v", variable(f.Name), clarifyFlagError(err))
				return
			}
		}
	})
	if failed == nil {
		warnOfVariables(cmd)
	}
	return failed
}

// warnOfVariables prints a warning for variables that look like flags but match none.
func warnOfVariables(cmd *cobra.Command) {
	var unknown []string
	for _, setting := range os.Environ() {
		name, value, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, variablePrefix) && value != "" && name != secretVariable &&
			!strings.HasPrefix(name, testPrefix) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return
	}
	known := []string{sinkPassword}
	eachCommand(cmd.Root(), func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if isVariable(f) {
					known = append(known, variable(f.Name))
				}
			})
		}
	})
	slices.Sort(unknown)
	for _, name := range unknown {
		if slices.Contains(known, name) {
			continue
		}
		hint := ""
		if near := nearestVariable(name, known); near != "" {
			hint = "; did you mean " + near + "?"
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "kumo: %s is in the environment, and no command has such a flag%s\n", name, hint)
	}
}

func nearestVariable(name string, known []string) string {
	flags := make([]string, len(known))
	for i, k := range known {
		flags[i] = strings.ToLower(strings.TrimPrefix(k, variablePrefix))
	}
	near := advice.Nearest(strings.TrimPrefix(name, variablePrefix), flags)
	if near == "" {
		return ""
	}
	return variablePrefix + strings.ToUpper(near)
}

func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, f)
	}
}

// serviceVariables returns the environment without variables for flags, for child processes of kumo that get all
// settings as arguments.
func serviceVariables() []string {
	return slices.DeleteFunc(os.Environ(), func(setting string) bool {
		return strings.HasPrefix(setting, variablePrefix) && !strings.HasPrefix(setting, testPrefix)
	})
}

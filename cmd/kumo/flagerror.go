package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/base/advice"
)

func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return &usage{clarifyFlagError(err)}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := advice.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		err = fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return &usage{err}
}

// clarifyFlagError replaces pflag's message for an invalid number or bool with a message that states the expected
// value.
func clarifyFlagError(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	number, of := errors.AsType[*strconv.NumError](err)
	switch {
	case !is:
		return err
	case !of:
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(invalid))
	}
	wanted := "a whole number"
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		wanted = "true or false"
	case "float64":
		wanted = "a number"
	}
	if errors.Is(number, strconv.ErrRange) {
		wanted += " that is not as large"
	}
	return fmt.Errorf("--%s is %q: %s is wanted", invalid.GetFlag().Name, invalid.GetValue(), wanted)
}

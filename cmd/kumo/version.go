package main

import (
	"fmt"
	"runtime"

	"kumo/internal/job"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print kumo's version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kumo %s (%s, %s/%s)\n", job.Version, runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
			return err
		}}
}

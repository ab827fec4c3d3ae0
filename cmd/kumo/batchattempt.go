package main

import (
	"github.com/spf13/cobra"

	wirebatch "kumo/internal/app/wire/batch"
	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/hadoop"
)

// batchAttemptCommand is what a Hadoop cluster starts for a task: the file says all there is to know.
func batchAttemptCommand() *cobra.Command {
	return &cobra.Command{Use: wirebatch.HadoopTask[1] + " ROLE FILE", Hidden: true, Args: cobra.ExactArgs(2),
		Short: "Run an attempt of a task on a Hadoop cluster",
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs := func(conf *batch.Conf, at place.Place) (*batch.Job, error) {
				return batch.NewJob(conf, batch.Deps{Place: at, Text: pageTexts()})
			}
			return hadoop.Task(cmd.Context(), args[0], args[1], jobs,
				hadoop.Pipes{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		}}
}

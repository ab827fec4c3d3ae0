package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/batch/hadoop"
	"kumo/internal/batch/hadoop/doctor"
)

const doctorLong = `Check the requirements of kumo.

  kumo doctor hadoop      a Hadoop cluster for batch crawls`

func doctorCommand() *cobra.Command {
	return withVerbs("doctor", "Check the requirements of kumo", doctorLong,
		doctorHadoopCommand(), doctorTaskCommand())
}

const doctorHadoopLong = `Check whether a Hadoop cluster can run batch crawls, and print problems with their solutions.
URL is the crawl's folder on HDFS (default: hdfs:///user/NAME). The check writes a small file there,
and removes it.

  configuration   core-site.xml, hdfs-site.xml, yarn-site.xml and mapred-site.xml, in HADOOP_CONF_DIR
  Java, client    on this machine: java, the command hadoop, the matching jar of Hadoop Streaming
  HDFS            NameNode and DataNodes are reachable, the user may write, there is space
  YARN, nodes     the ResourceManager answers; memory and vcores suffice for tasks
  history         the JobHistoryServer answers
  a job           with --job: run a small job, with this program as mapper and reducer

Nothing is installed or changed in the cluster.

Exit codes: 0 jobs can run, 1 they cannot, 2 wrong usage.`

var errNotReady = errors.New("jobs cannot run there yet")

func doctorHadoopCommand() *cobra.Command {
	cfg := doctor.Config{Task: []string{"doctor", "task"}}
	asJSON := false
	cmd := &cobra.Command{Use: "hadoop [URL]", Short: "Check whether a Hadoop cluster can run batch crawls",
		Long:    doctorHadoopLong,
		Example: "  kumo doctor hadoop\n  kumo doctor hadoop --job hdfs://namenode:8020/crawls",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("give one folder, not %d", len(args))
			}
			if len(args) == 1 && !strings.HasPrefix(args[0], "hdfs://") {
				return usagef("%q is not an HDFS URL: write hdfs://HOST:PORT/FOLDER, or hdfs:///FOLDER for the "+
					"file system named in the configuration", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.URL = append(args, "")[0]
			out := cmd.OutOrStdout()
			tell := func(f doctor.Finding) { printFinding(out, f) }
			if asJSON {
				tell = func(f doctor.Finding) { printFindingJSON(out, f) }
			}
			if doctor.Check(cmd.Context(), cfg, tell) == doctor.Failed {
				return errNotReady
			}
			return nil
		}}
	f := cmd.Flags()
	f.BoolVar(&cfg.Job, "job", false, "also run a small job")
	f.IntVar(&cfg.Memory, "task-memory", 0, "memory of a task in `MiB` (default: the cluster's)")
	f.StringVar(&cfg.Queue, "queue", "", "YARN `QUEUE` for the job")
	f.StringVar(&cfg.ConfDir, "hadoop-conf", "", "read Hadoop's configuration from `FOLDER` (default: HADOOP_CONF_DIR)")
	f.StringVar(&cfg.Home, "hadoop-home", "",
		"Hadoop's installation `FOLDER`, with bin (default: HADOOP_HOME, or PATH)")
	f.StringVar(&cfg.Streaming, "streaming-jar", "",
		"the Hadoop Streaming `JAR` (default: search the usual folders)")
	f.BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	return cmd
}

var stateWords = map[doctor.State]string{doctor.Good: "ok", doctor.Warning: "doubtful", doctor.Failed: "missing"}

func printFinding(w io.Writer, f doctor.Finding) {
	fmt.Fprintf(w, "%-8s  %-13s  %s\n", stateWords[f.State], f.Subject, f.Detail)
	if f.Advice != "" {
		fmt.Fprintf(w, "%-8s  %-13s  to do: %s\n", "", "", f.Advice)
	}
}

func printFindingJSON(w io.Writer, f doctor.Finding) {
	line, _ := json.Marshal(struct { // cannot fail: only strings
		State string `json:"state"`
		What  string `json:"what"`
		Says  string `json:"says"`
		Do    string `json:"do,omitempty"`
	}{stateWords[f.State], f.Subject, f.Detail, f.Advice})
	fmt.Fprintf(w, "%s\n", line)
}

func doctorTaskCommand() *cobra.Command {
	return &cobra.Command{Use: "task ROLE FILE", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return hadoop.Task(cmd.Context(), args[0], args[1], doctor.Job,
				hadoop.Pipes{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		}}
}

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

const doctorLong = `Look whether what kumo is to work with is as it has to be.

  kumo doctor hadoop      a Hadoop cluster for batch crawls`

func doctorCommand() *cobra.Command {
	return withVerbs("doctor", "Look whether a Hadoop cluster has what batch crawls need", doctorLong,
		doctorHadoopCommand(), doctorTaskCommand())
}

const doctorHadoopLong = `Look whether a Hadoop cluster has what batch crawls need, and say what is missing and how to mend it.
URL is the folder on HDFS that a crawl is to have (default: hdfs:///user/NAME); a small file is written there, and removed.

  configuration   core-site.xml, hdfs-site.xml, yarn-site.xml and mapred-site.xml, in HADOOP_CONF_DIR
  Java, client    on this machine: java, the command hadoop, the jar of Hadoop Streaming that belongs to it
  HDFS            NameNode and DataNodes are reached, the user may write, there is room
  YARN, nodes     the ResourceManager answers; an application master and tasks find memory and vcores
  history         the JobHistoryServer answers
  a job           with --job: a small job is run, with this very program as mapper and reducer

Nothing is installed or changed in the cluster.

Exit codes: 0 jobs can run, 1 they cannot, 2 wrong usage.`

var errNotReady = errors.New("jobs cannot run there yet")

func doctorHadoopCommand() *cobra.Command {
	cfg := doctor.Config{Task: []string{"doctor", "task"}}
	asJSON := false
	cmd := &cobra.Command{Use: "hadoop [URL]", Short: "Look whether a Hadoop cluster has what batch crawls need",
		Long:    doctorHadoopLong,
		Example: "  kumo doctor hadoop\n  kumo doctor hadoop --job hdfs://namenode:8020/crawls",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one folder at a time, not %d", len(args))
			}
			if len(args) == 1 && !strings.HasPrefix(args[0], "hdfs://") {
				return usagef("%q is no URL of HDFS: write hdfs://HOST:PORT/FOLDER, or hdfs:///FOLDER for the "+
					"file system that the configuration names", args[0])
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
	f.BoolVar(&cfg.Job, "job", false, "run a small job, too")
	f.IntVar(&cfg.Memory, "task-memory", 0, "`MiB` that a task is to have (default: what the cluster gives)")
	f.StringVar(&cfg.Queue, "queue", "", "YARN's `QUEUE` for the job")
	f.StringVar(&cfg.ConfDir, "hadoop-conf", "", "Hadoop's configuration is in this `FOLDER` (default: HADOOP_CONF_DIR)")
	f.StringVar(&cfg.Home, "hadoop-home", "",
		"Hadoop's commands are in bin below this `FOLDER` (default: HADOOP_HOME, or on PATH)")
	f.StringVar(&cfg.Streaming, "streaming-jar", "",
		"the `JAR` of Hadoop Streaming (default: looked for where it is usual)")
	f.BoolVar(&asJSON, "json", false, "answer with a JSON object a line")
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
	line, _ := json.Marshal(struct { // strings only
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

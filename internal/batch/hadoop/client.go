package hadoop

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kumo/internal/base/advice"
	"kumo/internal/content/hadoopconf"
)

// A Client runs Hadoop's commands on this machine.
type Client struct {
	Home      string // folder with bin/hadoop; "" to use PATH
	Streaming string // path of the Hadoop Streaming jar
	env       []string
}

// FindClient finds the commands in home, in HADOOP_HOME or on PATH, and the Streaming jar in their installation. If
// home or streaming is set, it is used.
func FindClient(conf hadoopconf.Conf, home, streaming string) (Client, error) {
	c := Client{Home: cmp.Or(home, os.Getenv("HADOOP_HOME")), Streaming: streaming}
	if conf.Dir != "" {
		c.env = append(c.env, "HADOOP_CONF_DIR="+conf.Dir)
	}
	hadoop, err := exec.LookPath(c.path("hadoop"))
	if err != nil {
		return Client{}, advice.With(fmt.Errorf("cannot find the command hadoop: %w", err),
			"install a Hadoop client, and set HADOOP_HOME to its folder or add its bin folder to PATH")
	}
	if c.Streaming == "" {
		if c.Streaming = findStreaming(c.Home, hadoop); c.Streaming == "" {
			return Client{}, advice.With(errors.New("cannot find the Hadoop Streaming jar"),
				"it is share/hadoop/tools/lib/hadoop-streaming-VERSION.jar in Hadoop's release, or in the package "+
					"hadoop-mapreduce of a distribution")
		}
	}
	return c, nil
}

func (c Client) path(name string) string {
	if c.Home == "" {
		return name
	}
	return filepath.Join(c.Home, "bin", name)
}

// findStreaming looks for the jar where Hadoop's release and the distributions install it.
func findStreaming(home, command string) string {
	if real, err := filepath.EvalSymlinks(command); err == nil {
		command = real
	}
	for _, dir := range []string{home, filepath.Dir(filepath.Dir(command)), os.Getenv("HADOOP_MAPRED_HOME"),
		"/usr/lib/hadoop-mapreduce",
		"/opt/cloudera/parcels/CDH/lib/hadoop-mapreduce", "/usr/hdp/current/hadoop-mapreduce-client"} {
		if dir == "" {
			continue
		}
		for _, pattern := range []string{"share/hadoop/tools/lib/hadoop-streaming-*.jar", "hadoop-streaming.jar",
			"hadoop-streaming-*.jar",
			"lib/hadoop-mapreduce/hadoop-streaming*.jar"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
			for _, jar := range found {
				if !strings.Contains(jar, "sources") && !strings.Contains(jar, "tests") {
					return jar
				}
			}
		}
	}
	return ""
}

var versionLine = regexp.MustCompile(`(?m)^Hadoop (\S+)`)

// Version returns Hadoop's version.
func (c Client) Version(ctx context.Context) (string, error) {
	out, err := c.output(ctx, "hadoop", "version")
	if err != nil {
		return "", err
	}
	m := versionLine.FindStringSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("unexpected output of hadoop version: %.200q", out)
	}
	return m[1], nil
}

// run runs a command to its end and calls line for each line of its output.
func (c Client) run(ctx context.Context, line func(string), name string, args ...string) error {
	cmd := exec.CommandContext(ctx, c.path(name), args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan error, 1)
	go func() {
		err := cmd.Run()
		_ = in.Close() // never fails
		done <- err
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(lines.Text())
	}
	_, _ = io.Copy(io.Discard, out) // the rest after an overlong line
	if err := <-done; err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// output runs a command and returns what it prints.
func (c Client) output(ctx context.Context, name string, args ...string) (string, error) {
	var all bytes.Buffer
	err := c.run(ctx, func(line string) { all.WriteString(line); all.WriteByte('\n') }, name, args...)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, lastLines(all.String()))
	}
	return all.String(), err
}

// lastLines returns the last lines of a command's output.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}

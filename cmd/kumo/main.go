// Command kumo is a web crawler. See kumo --help for its commands, and the root package's documentation for an overview
// of the code.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/archive/upload"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
)

// Exit codes, as documented in the root command's help.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNothing     = 3
	exitLimit       = 4
	exitDiskFull    = 5
	exitUnreached   = 6
	exitBehind      = 7
	exitInterrupted = 130
)

const rootLong = `kumo crawls the web and stores pages as WARC files.

  kumo crawl https://example.com/     crawl one site, politely, into crawls/example.com
  kumo demo                           crawl a synthetic web, offline
  kumo cluster demo                   the same with several nodes, one of which is killed

Exit codes:
  0    done: no URL is pending, except on a few abandoned hosts; for a node also: it has left, or the
       crawl was stopped
  1    failed
  2    wrong usage, or incompatible settings
  3    done, but nothing could be fetched; or the proxy could not be reached
  4    a limit was reached; the same command with a higher limit resumes
  5    the disk is full; make room, and the same command resumes
  6    many hosts were abandoned (more than a tenth of those that had answered, or more than half of
       all), or the crawl was offline for longer than --outage-wait; the same command resumes
  7    the crawl is done, but a sink (--sink) or storage location (-o s3://...) does not have all of
       it; nothing is lost, and the same command sends the rest
  130  interrupted; the same command resumes

Each flag can also be set in the environment: --max-rate as KUMO_MAX_RATE, a repeatable flag with one
value per line. The command line overrides the environment, which overrides a --config file and the
crawl's saved settings.`

func main() {
	if len(os.Args) == 2 && os.Args[1] == documentsArgument {
		os.Exit(serveDocuments())
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := interruptible()
	defer stop()
	root := &cobra.Command{Use: "kumo", Short: "A distributed web crawler", Long: rootLong, Version: job.Version,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) }}
	root.SetFlagErrorFunc(flagError)
	addVerbs(root)
	eachCommand(root, completeChoices)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // otherwise it treats an unknown shell as a request for help
			c.Args, c.RunE = cobra.ArbitraryArgs, noVerb
		}
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !isReported(err) {
		err = withSuggestion(err, args)
		fmt.Fprintf(os.Stderr, "kumo: %v\n", err)
		if vfs.IsFull(err) && !errors.Is(err, upload.ErrIncomplete) {
			fmt.Fprintln(os.Stderr, "the disk is full: make room and run the same command again")
		}
		if do := advice.Of(err); do != "" {
			fmt.Fprintln(os.Stderr, do)
		}
		if isUsage(err) {
			fmt.Fprintf(os.Stderr, "see: %s --help\n", cmd.CommandPath())
		}
	}
	return exitCode(err)
}

// addVerbs adds the commands to the root command, in groups.
func addVerbs(root *cobra.Command) {
	group := func(id, title string, verbs ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, v := range verbs {
			v.GroupID = id
			root.AddCommand(v)
		}
	}
	group("one", "Crawl on one machine:", crawlCommand(), mirrorCommand(), planCommand(), demoCommand())
	group("several", "Crawl on several machines:", nodeCommand(), startCommand(), balanceCommand(), secretCommand(),
		clusterCommand())
	group("steer", "Control a running crawl, on one machine or several:", statusCommand(), addCommand(),
		setCommand(), pauseCommand(), resumeCommand(), blockCommand(), stopCommand())
	group("batch", "Crawl in layers, day by day:", batchCommand())
	group("look", "Inspect a crawl:", explainCommand(), hostsCommand(), queueCommand(), seenCommand(), topCommand(),
		linksCommand(), auditCommand(), trapsCommand(), searchCommand(), verifyCommand(), serveCommand(), openCommand(), mcpCommand())
	group("other", "Export and index a crawl:", exportCommand(), indexCommand())
	group("keep", "Back up and repair a crawl:", snapshotCommand(), repairCommand())
	group("try", "Try out:", checkCommand(), doctorCommand(), synthwebCommand(), simCommand())
	group("self", "kumo itself:", manCommand(), versionCommand())
	root.SetUsageTemplate(helpTemplate(root))
	root.SetHelpCommandGroupID("self")
	root.SetCompletionCommandGroupID("self")
}

// repeatedSignal is the time after the first signal during which another one counts as the same. Some programs signal a
// process and its group.
const repeatedSignal = 500 * time.Millisecond

// interruptible returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. A second signal ends the process
// at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel()
		for first := time.Now(); ; {
			<-signals
			if time.Since(first) > repeatedSignal {
				fmt.Fprintln(os.Stderr, "kumo: ended at once by a second signal; the same command resumes")
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// A usage is a usage error.
type usage struct{ err error }

func (u *usage) Error() string { return u.err.Error() }
func (u *usage) Unwrap() error { return u.err }

// withSuggestion adds a suggestion to the error if the command name was omitted before a URL.
func withSuggestion(err error, args []string) error {
	if len(args) == 0 || !strings.HasPrefix(err.Error(), "unknown command") || !strings.Contains(args[0], "://") {
		return err
	}
	return usagef("%q is not a command; did you mean kumo crawl %s?", args[0], strings.Join(args, " "))
}

func usagef(format string, args ...any) error { return &usage{fmt.Errorf(format, args...)} }

var (
	errNothing = errors.New("nothing could be fetched")
	errGaveUp  = errors.New("abandoned: the same command tries them again")
)

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case isUsage(err):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, policy.ErrLimit):
		return exitLimit
	case vfs.IsFull(err) && !errors.Is(err, upload.ErrIncomplete): // a storage location may be full, too
		return exitDiskFull
	case errors.Is(err, errNothing), errors.Is(err, batch.ErrNothingFetched), errors.Is(err, crawl.ErrNoProxy):
		return exitNothing
	case errors.Is(err, errGaveUp), errors.Is(err, crawl.ErrOffline):
		return exitUnreached
	case isSinkBehind(err), errors.Is(err, upload.ErrIncomplete), errors.Is(err, upload.ErrInUse):
		return exitBehind
	}
	return exitFailed
}

// isReported reports whether an error needs no message, because the report contains it.
func isReported(err error) bool {
	if errors.Is(err, upload.ErrIncomplete) || errors.Is(err, upload.ErrInUse) {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, policy.ErrLimit)
}

func isUsage(err error) bool {
	_, called := errors.AsType[*usage](err)
	return called || advice.IsUsage(err) || errors.Is(err, job.ErrNoSeeds) || isCobraUsage(err)
}

// isCobraUsage reports whether an error is cobra's message for an unknown command or argument.
func isCobraUsage(err error) bool {
	msg := err.Error()
	return strings.HasPrefix(msg, "unknown command") || strings.HasPrefix(msg, "accepts ") ||
		strings.HasPrefix(msg, "unknown flag")
}

// Package sinks opens sinks by URL, sends crawl records to them and compares their contents with a crawl. It also
// builds the full-text index of a crawl. It is separate from wire, so that programs that import kumo do not link the
// sinks' clients.
package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/records"
	"kumo/internal/archive/export/target"
	"kumo/internal/archive/export/where"
	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/hbase"
	"kumo/internal/archive/sink/kafka"
	"kumo/internal/archive/sink/opensearch"
	"kumo/internal/archive/sink/postgres"
	"kumo/internal/archive/sink/stdout"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/content/document"
	"kumo/internal/content/fields"
)

// Schemes returns the schemes of sink URLs.
func Schemes() []string { return []string{"postgres", "opensearch", "kafka", "hbase"} }

// Stdout is the name of standard output as a sink.
const Stdout = "-"

// Is reports whether a name is that of a sink: a URL or "-".
func Is(name string) bool { return name == Stdout || strings.Contains(name, "://") }

// Open connects to a sink. Records for "-" are written to out.
func Open(ctx context.Context, at string, out io.Writer) (sink.Sink, error) {
	if at == Stdout {
		return stdout.Open(out), nil
	}
	u, err := sink.Parse(at)
	if err != nil {
		return nil, err
	}
	switch u.Scheme { // Check has the same schemes
	case "postgres", "postgresql":
		return asSink(postgres.Open(ctx, u))
	case "hbase", "hbase+https":
		return asSink(hbase.Open(ctx, u))
	case "kafka", "kafka+tls":
		return asSink(kafka.Open(ctx, u))
	case "opensearch", "opensearch+https", "elasticsearch", "elasticsearch+https":
		return asSink(opensearch.Open(ctx, u))
	}
	return nil, notASink(at)
}

// Check checks the form of a sink's URL, without a connection.
func Check(at string) error {
	u, err := sink.Parse(at)
	if err != nil {
		return err
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		return postgres.Check(u)
	case "hbase", "hbase+https":
		return hbase.Check(u)
	case "kafka", "kafka+tls":
		return kafka.Check(u)
	case "opensearch", "opensearch+https", "elasticsearch", "elasticsearch+https":
		return opensearch.Check(u)
	}
	return notASink(at)
}

func notASink(at string) error {
	return advice.Usage("%s is not a sink: give %s:// or -", sink.Redact(at), strings.Join(Schemes(), "://, "))
}

// CheckShared checks the URL of a sink of all nodes of a crawl. It must not contain a password, because the crawl's
// record would show it to everyone who can read the record.
func CheckShared(at string) error {
	if at == Stdout {
		return advice.Usage("--sink -: nodes cannot share a standard output")
	}
	if err := Check(at); err != nil {
		return err
	}
	if u, err := sink.Parse(at); err != nil || sink.HasPassword(u) {
		return advice.Usage("--sink %s: all nodes share this setting, and it must not contain a password: remove it, and "+
			"set PGPASSWORD (PostgreSQL) or KUMO_SINK_PASSWORD (others) in the environment of each node", sink.Redact(at))
	}
	return nil
}

// asSink avoids a non-nil Sink with a nil pointer.
func asSink[S sink.Sink](s S, err error) (sink.Sink, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// An Export configures an export to a sink.
type Export struct {
	Crawl, Sink string
	Condition   string // selects pages; "" for all
	Temp        string
	Out         io.Writer // for "-"
	Progress    func(export.Progress)
	OnWait      func(error, time.Duration) // called with the reason for waiting for the sink; may be nil
	Documents   document.Reader            // of PDFs, office documents and e-books; nil: they are treated as other files
}

// maxRetryTime is how long an export waits for a sink that is down.
const maxRetryTime = 5 * time.Minute

// A Report is the result of an export.
type Report struct {
	*export.Report
	Sent  int64  // records sent by this call
	After string // last URL of an interrupted earlier call; "" if there was none
}

// Run sends a crawl's records to a sink: the newest good response of each URL. It resumes an interrupted export if the
// crawl has not changed.
func Run(ctx context.Context, x Export) (_ *Report, err error) {
	condition, err := x.condition()
	if err != nil {
		return nil, err
	}
	f, err := openShared(x.Crawl)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	retry := &sink.Retry{Wait: sink.Sleep, Now: time.Now, MaxTime: maxRetryTime, Failed: x.OnWait}
	if retry.Sink, err = Open(ctx, x.Sink, x.Out); err != nil { // no retries before the first connection
		return nil, err
	}
	defer func() { err = errors.Join(err, retry.Close()) }()
	n := x.state()
	if err := n.read(); err != nil {
		return nil, err
	}
	r := &Report{After: n.After}
	cfg := records.Config{Sink: retry, Crawl: x.Crawl, Temp: x.Temp, After: n.After, Rules: savedRules(x.Crawl)}
	kept := time.Time{}
	cfg.Acknowledged = func(url string, put int64) error {
		n.After, r.Sent = url, put
		if now := time.Now(); now.Sub(kept) >= time.Second {
			kept = now
			return n.write()
		}
		return nil
	}
	r.Report, err = run(ctx, &x, condition, cfg)
	if err != nil {
		if kept != (time.Time{}) {
			err = errors.Join(err, n.write())
		}
		return nil, x.withProgress(err, r.Sent, n.After)
	}
	return r, n.remove()
}

// savedRules returns the field rules of a crawl's last run by URL; nil if there are none, or if they cannot be read:
// the file may be gone, or changed.
func savedRules(crawl string) func(url string) []page.FieldRule {
	saved, err := folder.ReadSettings(crawl)
	source := settings.Map(saved)[job.FieldsKey]
	if err != nil || len(source) != 1 {
		return nil
	}
	rules, _, err := fields.Load(source[0])
	if err != nil {
		return nil
	}
	return rules.For
}

// withProgress adds the progress of the export to an error.
func (x *Export) withProgress(err error, sent int64, after string) error {
	if after == "" || x.Sink == Stdout || errors.Is(err, context.Canceled) {
		return err
	}
	do := fmt.Sprintf("%d records were sent; the same command sends the rest", sent)
	if was := advice.Of(err); was != "" {
		do = was + "\n" + do
	}
	return advice.With(err, do)
}

func (x *Export) condition() (export.Condition, error) {
	if x.Condition == "" {
		return nil, nil
	}
	c, err := where.Parse(x.Condition)
	if err != nil {
		return nil, advice.Usage("--where %w", err)
	}
	return c.Matcher, nil
}

// openShared locks a crawl's folder for reading.
func openShared(crawl string) (*folder.Folder, error) {
	f := folder.At(crawl, vfs.OS)
	if !f.IsCrawl() && !f.HasOutputs() {
		return nil, folder.NoCrawlError(crawl)
	}
	err := f.Share(0)
	if errors.Is(err, folder.ErrLocked) {
		return nil, advice.With(err, "kumo crawl --sink sends records while a crawl runs; or kumo snapshot "+crawl+
			" copies it, and the copy can be exported")
	}
	return f, err
}

func run(ctx context.Context, x *Export, condition export.Condition, cfg records.Config) (*export.Report, error) {
	r, err := export.Run(ctx, export.Config{Crawl: x.Crawl, Temp: x.Temp, Texts: vfs.OS, Progress: x.Progress,
		Where: condition, Documents: x.Documents}, func(*target.Folder) (export.Exporter, error) { return records.New(ctx, cfg) })
	if errors.Is(err, captures.ErrNoRecords) {
		err = fmt.Errorf("%s: %w", x.Crawl, err)
	}
	return r, err
}

// An exportState is the progress of an export, in a file in the crawl's state. Its name depends on the sink, without
// its password.
type exportState struct {
	file  string
	Sink  string // for users
	Of    string // version of the crawl's records, from their indexes
	After string // last URL that was sent
}

func (x *Export) state() *exportState {
	if x.Sink == Stdout {
		return &exportState{}
	}
	at := sink.Redact(x.Sink)
	sum := sha256.Sum256([]byte(at + "\x00" + x.Condition))
	return &exportState{file: filepath.Join(x.Crawl, "state", "sinks", "export-"+hex.EncodeToString(sum[:8])+".json"),
		Sink: at,
		Of:   indexVersion(x.Crawl)}
}

// indexVersion returns a hash of the names and lengths of a crawl's indexes, which identifies the state of its records.
func indexVersion(crawl string) string {
	sum := sha256.New()
	entries, _ := os.ReadDir(filepath.Join(crawl, "warc")) // an error is reported by the export
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.Contains(e.Name(), ".cdxj") {
			fmt.Fprintln(sum, strings.TrimSuffix(e.Name(), ".open"), info.Size())
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// read reads the progress if it belongs to the current state of the crawl.
func (n *exportState) read() error {
	if n.file == "" {
		return nil
	}
	data, err := os.ReadFile(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	was := exportState{}
	if err == nil && json.Unmarshal(data, &was) == nil && was.Sink == n.Sink && was.Of == n.Of {
		n.After = was.After
	}
	return err
}

func (n *exportState) write() error {
	if n.file == "" {
		return nil
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := vfs.OS.MkdirAll(filepath.Dir(n.file)); err != nil {
		return err
	}
	return vfs.Replace(vfs.OS, n.file, append(data, '\n'))
}

func (n *exportState) remove() error {
	if n.file == "" {
		return nil
	}
	if err := os.Remove(n.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
)

const (
	gcsHost  = "https://storage.googleapis.com"
	gcsScope = "https://www.googleapis.com/auth/cloud-platform"

	gcsTries     = 5 // per request: about ten seconds if responses arrive at once
	gcsPause     = time.Second
	gcsChunk     = 16 << 20 // bytes of a file per request; a multiple of 256 KiB
	tokenTimeout = time.Minute
	maxJSON      = 16 << 20 // bytes of a response

	gcsCredentials = "run gcloud auth application-default login, set GOOGLE_APPLICATION_CREDENTIALS to a key file, or " +
		"use ?anonymous=true for a public bucket"
)

// A gcsClient accesses a bucket of Google Cloud Storage with the JSON API.
type gcsClient struct {
	client *http.Client
	host   string // https://HOST[:PORT]
	bucket string
	tries  int
	pause  time.Duration // before a request is retried; doubles each time
	chunk  int64
}

var _ store = (*gcsClient)(nil)

// openGCS opens a bucket with Google's default credentials. It uses none if the URL has ?anonymous=true or Google's
// environment variable selects an emulator.
func openGCS(ctx context.Context, u *url.URL) (store, error) {
	c := &gcsClient{bucket: u.Host, tries: gcsTries, pause: gcsPause, chunk: gcsChunk}
	anonymous, err := c.setOptions(u)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	setIdleTimeout(transport)
	c.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // status 308 requests more of an upload
	}}
	emulator := os.Getenv("STORAGE_EMULATOR_HOST")
	if emulator != "" && !strings.Contains(emulator, "://") {
		emulator = "http://" + emulator
	}
	c.host = strings.TrimRight(cmp.Or(c.host, emulator, gcsHost), "/")
	if anonymous || emulator != "" {
		return c, nil
	}
	// Tokens are fetched for as long as the location is open, not only during this call.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient,
		&http.Client{Transport: transport, Timeout: tokenTimeout})
	credentials, err := google.FindDefaultCredentials(ctx, gcsScope)
	if err != nil {
		return nil, advice.With(fmt.Errorf("find credentials for gs://%s: %w", u.Host, err), gcsCredentials)
	}
	c.client.Transport = &oauth2.Transport{Source: credentials.TokenSource, Base: transport}
	return c, nil
}

// setOptions applies the options of a gs:// URL.
func (c *gcsClient) setOptions(u *url.URL) (anonymous bool, err error) {
	for name, values := range u.Query() {
		value := values[len(values)-1]
		switch name {
		case "anonymous":
			if anonymous, err = strconv.ParseBool(value); err != nil {
				return false, badGCS(u, "anonymous must be true or false")
			}
		case "endpoint":
			at, err := url.Parse(value)
			if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
				return false, badGCS(u, "endpoint must be a server, as https://HOST:PORT")
			}
			c.host = value
		default:
			return false, badGCS(u, "unknown option "+name+": the options are anonymous and endpoint")
		}
	}
	return anonymous, nil
}

func badGCS(u *url.URL, what string) error {
	return advice.Usage("place %s://%s%s: %s", u.Scheme, u.Host, u.Path, what)
}

// A gcsError is an error response of Google's API.
type gcsError struct {
	status  int
	message string // "" if the response has none
}

func (e *gcsError) Error() string {
	if e.message == "" {
		return statusText(e.status)
	}
	return statusText(e.status) + ": " + e.message
}

// isBucket reports whether the error means that the bucket does not exist.
func (e *gcsError) isBucket() bool {
	return e.status == http.StatusNotFound && strings.Contains(e.message, "bucket does not exist")
}

// A gcsObject is an object in the API's representation.
type gcsObject struct {
	Name     string            `json:"name"`
	Size     int64             `json:"size,string"`
	Updated  time.Time         `json:"updated"`
	MD5      []byte            `json:"md5Hash"`
	Metadata map[string]string `json:"metadata"`
}

func (o *gcsObject) object() object {
	return object{key: o.Name, size: o.Size, modified: o.Updated, md5: o.MD5, metadata: o.Metadata}
}

// at returns the URL of the bucket's objects, or of one.
func (c *gcsClient) at(key string) string {
	at := c.host + "/storage/v1/b/" + url.PathEscape(c.bucket) + "/o"
	if key != "" {
		at += "/" + url.PathEscape(key)
	}
	return at
}

// failFast returns the same bucket with fewer tries per request.
func (c *gcsClient) failFast() store {
	few := *c
	few.tries = min(promptTries, c.tries)
	return &few
}

func (c *gcsClient) close() error {
	c.client.CloseIdleConnections()
	return nil
}

// A gcsRequest is a request that can be sent several times.
type gcsRequest struct {
	method, url string
	header      http.Header
	body        func() io.Reader // returns a new reader of the body for each try; nil: no body
	length      int64
}

// send sends a request once. The caller closes the response's body.
func (c *gcsClient) send(ctx context.Context, r *gcsRequest) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = r.body()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, r.url, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = r.length
	request.Header.Set("User-Agent", "kumo")
	for name, values := range r.header {
		request.Header[name] = values
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < 300 || answer.StatusCode == http.StatusPermanentRedirect {
		return answer, nil
	}
	defer answer.Body.Close()
	failed := &gcsError{status: answer.StatusCode}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err == nil && json.Unmarshal(text, &said) == nil { // otherwise the status suffices
		failed.message = said.Error.Message
	}
	return nil, failed
}

// retry calls f until it succeeds or fails permanently. All requests in this file can be repeated, because they write
// the same each time.
func (c *gcsClient) retry(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || try >= c.tries || !isTransient(err) {
			return err
		}
		if err := c.backoff(ctx, try); err != nil {
			return err
		}
	}
}

// backoff waits before the next try: a random time between half and all of a delay that doubles.
func (c *gcsClient) backoff(ctx context.Context, try int) error {
	pause := c.pause << (try - 1)
	return place.Sleep(ctx, pause/2+rand.N(pause/2+1))
}

// call sends a request with a JSON response; to may be nil.
func (c *gcsClient) call(ctx context.Context, r *gcsRequest, to any) error {
	return c.retry(ctx, func() error {
		answer, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		return decode(answer, to)
	})
}

// decode reads a JSON response to its end, so that its connection can be reused.
func decode(answer *http.Response, to any) error {
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxJSON))
	if err != nil || to == nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("invalid response from Google: %w", err)
	}
	return nil
}

func (c *gcsClient) head(ctx context.Context, key string) (object, error) {
	var o gcsObject
	err := c.call(ctx, &gcsRequest{method: http.MethodGet, url: c.at(key)}, &o)
	return o.object(), err
}

func (c *gcsClient) get(ctx context.Context, key string, offset, length int64, version string) (*content, error) {
	query := url.Values{"alt": {"media"}}
	if version != "" {
		query.Set("ifGenerationMatch", version)
	}
	header := http.Header{"Accept-Encoding": {"gzip"}} // otherwise Google decompresses objects stored as gzip
	span := byteRange(offset, length)
	if span != "" {
		header.Set("Range", span)
	}
	var answer *http.Response
	err := c.retry(ctx, func() (err error) {
		r := &gcsRequest{method: http.MethodGet, url: c.at(key) + "?" + query.Encode(), header: header}
		answer, err = c.send(ctx, r) //nolint:bodyclose // the content's Close closes it
		return err
	})
	if err != nil {
		return nil, err
	}
	got := &content{ReadCloser: answer.Body, size: wholeSize(answer.ContentLength, answer.Header.Get("Content-Range")),
		version: answer.Header.Get("X-Goog-Generation")}
	if modified, err := http.ParseTime(answer.Header.Get("Last-Modified")); err == nil {
		got.modified = modified // the version is more precise
	}
	if got.size < 0 {
		return nil, errors.Join(errors.New("the response to a read has no length"), answer.Body.Close())
	}
	for sum := range strings.SplitSeq(strings.Join(answer.Header["X-Goog-Hash"], ","), ",") {
		if crc, is := strings.CutPrefix(strings.TrimSpace(sum), "crc32c="); is && span == "" {
			if want, err := base64.StdEncoding.DecodeString(crc); err == nil {
				got.digest, got.want = crc32.New(crc32.MakeTable(crc32.Castagnoli)), hex.EncodeToString(want)
			}
		}
	}
	return got, nil
}

func (c *gcsClient) list(ctx context.Context, prefix, delimiter, token string, limit int) (page []object, next string,
	err error) {
	query := url.Values{"maxResults": {strconv.Itoa(limit)},
		"fields": {"nextPageToken,prefixes,items(name,size,updated)"}}
	for name, value := range map[string]string{"prefix": prefix, "delimiter": delimiter, "pageToken": token} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var listed struct {
		Next     string      `json:"nextPageToken"`
		Prefixes []string    `json:"prefixes"`
		Items    []gcsObject `json:"items"`
	}
	err = c.call(ctx, &gcsRequest{method: http.MethodGet, url: c.at("") + "?" + query.Encode()}, &listed)
	for i := range listed.Items {
		page = append(page, listed.Items[i].object())
	}
	for _, folder := range listed.Prefixes {
		page = append(page, object{key: folder, isDir: true})
	}
	return page, listed.Next, err
}

// copy copies an object on the server, which may take several requests.
func (c *gcsClient) copy(ctx context.Context, to, from string) error {
	at := c.at(from) + "/rewriteTo/b/" + url.PathEscape(c.bucket) + "/o/" + url.PathEscape(to)
	for token := ""; ; {
		var state struct {
			Done  bool   `json:"done"`
			Token string `json:"rewriteToken"`
		}
		query := ""
		if token != "" {
			query = "?" + url.Values{"rewriteToken": {token}}.Encode()
		}
		err := c.call(ctx, &gcsRequest{method: http.MethodPost, url: at + query}, &state)
		if err != nil || state.Done {
			return err
		}
		if token = state.Token; token == "" {
			return errors.New("invalid response from Google to a copy: neither done nor a token")
		}
	}
}

func (c *gcsClient) removeAll(ctx context.Context, keys []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelParts)
	for _, key := range keys {
		group.Go(func() error {
			err := c.call(ctx, &gcsRequest{method: http.MethodDelete, url: c.at(key)}, nil)
			if isNotFound(err) && !isBucketMissing(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

func isBucketMissing(err error) bool {
	answer, is := errors.AsType[*gcsError](err)
	return is && answer.isBucket()
}

// abortBelow does nothing: an upload can be named only by the process that started it, and Google drops it after a
// week.
func (c *gcsClient) abortBelow(context.Context, string) error { return nil }

// upload uploads a file with its MD5, so that the store rejects other bytes, and then compares the stored object.
func (c *gcsClient) upload(ctx context.Context, f file, resume bool) error {
	long, short := sha256.New(), md5.New()
	if err := copyAll(ctx, io.MultiWriter(long, short), f.data, 0, f.size); err != nil {
		return err
	}
	if err := place.CheckDigest(long, f.sum); err != nil {
		return err
	}
	sum := short.Sum(nil)
	if resume {
		if is, err := c.compare(ctx, f, sum); is == present || err != nil {
			return err
		}
	}
	about, err := json.Marshal(map[string]any{"name": f.key, "contentType": contentType, "md5Hash": sum,
		"metadata": f.metadata()})
	if err != nil {
		return err
	}
	if f.size <= c.chunk {
		err = c.put(ctx, f, about)
	} else {
		err = c.putChunks(ctx, f, about)
	}
	if err != nil {
		return err
	}
	switch is, err := c.compare(ctx, f, sum); {
	case is == present, is == different, err != nil:
		return err
	case is == absent:
		return errors.New("the uploaded file does not exist in the store")
	}
	return errors.Join(fmt.Errorf("the store has other bytes than those uploaded: %w", place.ErrDigest),
		c.removeAll(ctx, []string{f.key}))
}

// A presence is the result of comparing a stored object with a file.
type presence int

const (
	absent    presence = iota // there is no object
	different                 // another file, such as one written by another process
	present                   // the same file
	damaged                   // a file with the same metadata and other bytes
)

// compare compares the stored object with a file and its MD5.
func (c *gcsClient) compare(ctx context.Context, f file, sum []byte) (presence, error) {
	there, err := c.head(ctx, f.key)
	if isNotFound(err) {
		return absent, nil
	}
	if err != nil || there.metadata[digestKey] != f.metadata()[digestKey] {
		return different, err
	}
	same := there.size == f.size
	if there.md5 != nil {
		same = same && bytes.Equal(there.md5, sum)
	} else if same { // composite object
		r, err := c.get(ctx, f.key, 0, -1, "")
		if err != nil {
			return different, err
		}
		read := sha256.New()
		_, err = io.Copy(read, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return different, err
		}
		same = [sha256.Size]byte(read.Sum(nil)) == f.sum
	}
	if same {
		return present, nil
	}
	return damaged, nil
}

func (c *gcsClient) uploadURL(kind string) string {
	return c.host + "/upload/storage/v1/b/" + url.PathEscape(c.bucket) + "/o?uploadType=" + kind
}

// put uploads a file in one request.
func (c *gcsClient) put(ctx context.Context, f file, about []byte) error {
	var head bytes.Buffer
	parts := multipart.NewWriter(&head)
	for i, kind := range []string{"application/json; charset=utf-8", contentType} {
		part, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}})
		if err == nil && i == 0 {
			_, err = part.Write(about)
		}
		if err != nil {
			return err
		}
	}
	tail := "\r\n--" + parts.Boundary() + "--\r\n"
	return c.call(ctx, &gcsRequest{method: http.MethodPost, url: c.uploadURL("multipart"),
		header: http.Header{"Content-Type": {"multipart/related; boundary=" + parts.Boundary()}},
		body: func() io.Reader {
			return io.MultiReader(bytes.NewReader(head.Bytes()), io.NewSectionReader(f.data, 0, f.size),
				strings.NewReader(tail))
		},
		length: int64(head.Len()) + f.size + int64(len(tail))}, nil)
}

var (
	errSession    = errors.New("the server has ended the upload session")
	errNoProgress = errors.New("the server does not accept more bytes of the upload")
)

// putChunks uploads a file in a session with several requests.
func (c *gcsClient) putChunks(ctx context.Context, f file, about []byte) error {
	for try := 1; ; try++ {
		session, err := c.begin(ctx, f, about)
		if err == nil {
			err = c.sendChunks(ctx, f, session)
		}
		if !errors.Is(err, errSession) || try >= c.tries {
			return err
		}
		if err := c.backoff(ctx, try); err != nil {
			return err
		}
	}
}

// begin starts an upload session, and returns its URL.
func (c *gcsClient) begin(ctx context.Context, f file, about []byte) (session string, err error) {
	err = c.retry(ctx, func() error {
		answer, err := c.send(ctx, &gcsRequest{method: http.MethodPost, url: c.uploadURL("resumable"),
			header: http.Header{"Content-Type": {"application/json; charset=utf-8"},
				"X-Upload-Content-Type":   {contentType},
				"X-Upload-Content-Length": {strconv.FormatInt(f.size, 10)}},
			body: func() io.Reader { return bytes.NewReader(about) }, length: int64(len(about))})
		if err != nil {
			return err
		}
		at, err := answer.Location()
		if err == nil {
			session = at.String()
		}
		return errors.Join(err, decode(answer, nil))
	})
	return session, err
}

// sendChunks uploads a file in a session. After an error it queries how many bytes the server has, and continues there.
// It fails after several tries without progress.
func (c *gcsClient) sendChunks(ctx context.Context, f file, session string) error {
	try, ask := 1, false
	for at := int64(0); ; {
		length := min(c.chunk, f.size-at)
		if ask {
			length = 0
		}
		next, err := c.sendChunk(ctx, f, session, at, length)
		switch {
		case err == nil && next == f.size:
			return nil
		case err == nil && next > at:
			try = 1
		case err == nil && !ask:
			err = errNoProgress
		}
		if err == nil {
			at, ask = next, false
			continue
		}
		if try >= c.tries || !isTransient(err) && !errors.Is(err, errNoProgress) {
			return err
		}
		if err := c.backoff(ctx, try); err != nil {
			return err
		}
		try, ask = try+1, true
	}
}

// sendChunk sends length bytes from an offset, or only a query if length is 0. It returns how many bytes of the file
// the server has.
func (c *gcsClient) sendChunk(ctx context.Context, f file, session string, at, length int64) (int64, error) {
	r := &gcsRequest{method: http.MethodPut, url: session, header: http.Header{}, length: length}
	span := "*"
	if length > 0 {
		span = fmt.Sprintf("%d-%d", at, at+length-1)
		r.body = func() io.Reader { return io.NewSectionReader(f.data, at, length) }
	}
	r.header.Set("Content-Range", fmt.Sprintf("bytes %s/%d", span, f.size))
	answer, err := c.send(ctx, r)
	if code := status(err); code == http.StatusNotFound || code == http.StatusGone {
		return 0, fmt.Errorf("%w: %s", errSession, shortMessage(err))
	}
	if err != nil {
		return 0, err
	}
	if err := decode(answer, nil); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusPermanentRedirect {
		return f.size, nil
	}
	return arrived(answer, f.size)
}

// arrived returns how many bytes of an upload the server has, from a response with status 308.
func arrived(answer *http.Response, size int64) (int64, error) {
	span := answer.Header.Get("Range")
	if span == "" {
		return 0, nil
	}
	_, last, _ := strings.Cut(span, "-")
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 0 || n >= size {
		return 0, fmt.Errorf("invalid response from Google: bytes %q of an upload of %d bytes", span, size)
	}
	return n + 1, nil
}

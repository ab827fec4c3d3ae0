package buckettest

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// GoogleURL returns the URL of a prefix on a Google server, without credentials.
func GoogleURL(endpoint, prefix string) string {
	return "gs://" + Bucket + "/" + prefix + "?anonymous=true&endpoint=" + url.QueryEscape(endpoint)
}

// GoogleServer implements the part of the JSON API of Google Cloud Storage that kumo uses, as documented. It runs in
// this process and has one bucket.
type GoogleServer struct {
	URL string
	// Token is the required Bearer token; "" for none.
	Token string

	mu         sync.Mutex // guards the fields below
	objects    map[string]*googleObject
	sessions   map[string]*googleSession
	generation int64
}

type googleObject struct {
	Name       string            `json:"name"`
	Bucket     string            `json:"bucket"`
	Size       int64             `json:"size,string"`
	Generation int64             `json:"generation,string"`
	Updated    time.Time         `json:"updated"`
	MD5        []byte            `json:"md5Hash,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	data       []byte
}

type googleSession struct {
	about googleObject
	data  []byte
	done  bool
}

// Google starts a server.
func Google(t testing.TB) *GoogleServer {
	g := &GoogleServer{objects: map[string]*googleObject{}, sessions: map[string]*googleSession{}}
	s := serve(g)
	t.Cleanup(s.Close)
	g.URL = s.URL
	return g
}

// EndSessions ends all upload sessions, as the real server does after a week.
func (g *GoogleServer) EndSessions() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.sessions)
}

// DropMD5 removes the MD5 of all objects, as if they were composite objects.
func (g *GoogleServer) DropMD5() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.objects {
		o.MD5 = nil
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": message}})
}

// ServeHTTP answers a request.
func (g *GoogleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength >= 0 && int64(len(body)) != r.ContentLength {
		panic(http.ErrAbortHandler) // the connection was cut
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Token != "" && r.Header.Get("Authorization") != "Bearer "+g.Token {
		refuse(w, http.StatusUnauthorized, "Invalid Credentials")
		return
	}
	path, isUpload := strings.CutPrefix(r.URL.EscapedPath(), "/upload")
	path, isKnown := strings.CutPrefix(path, "/storage/v1/b/"+Bucket+"/o")
	var keys []string
	for i, key := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if key, err = url.PathUnescape(key); err != nil {
			refuse(w, http.StatusBadRequest, "Invalid argument.")
			return
		}
		if i == 0 || key != "" {
			keys = append(keys, key)
		}
	}
	query := r.URL.Query()
	o := g.objects[keys[0]]
	switch {
	case !isKnown:
		refuse(w, http.StatusNotFound, "The specified bucket does not exist.")
	case isUpload:
		g.upload(w, r, query, body)
	case r.Method == http.MethodGet && path == "":
		g.list(w, query)
	case o == nil:
		refuse(w, http.StatusNotFound, "No such object: "+Bucket+"/"+keys[0])
	case r.Method == http.MethodDelete:
		delete(g.objects, keys[0])
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && len(keys) == 6 && keys[1] == "rewriteTo":
		g.rewrite(w, o, keys[5], query.Get("rewriteToken"))
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	case query.Get("alt") == "media":
		media(w, r, o, query.Get("ifGenerationMatch"))
	default:
		_ = json.NewEncoder(w).Encode(o)
	}
}

// rewrite copies an object on the second request.
func (g *GoogleServer) rewrite(w http.ResponseWriter, o *googleObject, to, token string) {
	if token == "" {
		_ = json.NewEncoder(w).Encode(map[string]any{"done": false, "rewriteToken": "half/of+it"})
		return
	}
	if token != "half/of+it" {
		refuse(w, http.StatusBadRequest, "Invalid rewrite token")
		return
	}
	made := *o
	made.Name = to
	g.add(&made)
	_ = json.NewEncoder(w).Encode(map[string]any{"done": true})
}

func (g *GoogleServer) add(o *googleObject) {
	g.generation++
	o.Bucket, o.Generation, o.Updated = Bucket, g.generation, time.Now().UTC()
	g.objects[o.Name] = o
}

func media(w http.ResponseWriter, r *http.Request, o *googleObject, generation string) {
	if generation != "" && generation != strconv.FormatInt(o.Generation, 10) {
		refuse(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
		return
	}
	sum := crc32.Checksum(o.data, crc32.MakeTable(crc32.Castagnoli))
	w.Header().Add("X-Goog-Hash", fmt.Sprintf("crc32c=%s", encode(binary.BigEndian.AppendUint32(nil, sum))))
	w.Header().Add("X-Goog-Hash", fmt.Sprintf("md5=%s", encode(o.MD5)))
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(o.Generation, 10))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", o.Updated, bytes.NewReader(o.data))
}

func encode(b []byte) string {
	text, _ := json.Marshal(b) // cannot fail
	return strings.Trim(string(text), `"`)
}

func (g *GoogleServer) list(w http.ResponseWriter, query url.Values) {
	limit, err := strconv.Atoi(query.Get("maxResults"))
	if err != nil || limit < 1 {
		refuse(w, http.StatusBadRequest, "Invalid maxResults")
		return
	}
	prefix, delimiter, token := query.Get("prefix"), query.Get("delimiter"), query.Get("pageToken")
	answer := struct {
		Items    []*googleObject `json:"items,omitempty"`
		Prefixes []string        `json:"prefixes,omitempty"`
		Next     string          `json:"nextPageToken,omitempty"`
	}{}
	last := ""
	for _, name := range slices.Sorted(maps.Keys(g.objects)) {
		rest, is := strings.CutPrefix(name, prefix)
		if !is || name <= token && token != "" {
			continue
		}
		folder := ""
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			folder = prefix + rest[:i+len(delimiter)]
		}
		if folder != "" && (slices.Contains(answer.Prefixes, folder) || strings.HasPrefix(token, folder)) {
			last = name
			continue
		}
		if len(answer.Items)+len(answer.Prefixes) == limit {
			answer.Next = last
			break
		}
		if last = name; folder != "" {
			answer.Prefixes = append(answer.Prefixes, folder)
		} else {
			answer.Items = append(answer.Items, g.objects[name])
		}
	}
	_ = json.NewEncoder(w).Encode(&answer)
}

func (g *GoogleServer) upload(w http.ResponseWriter, r *http.Request, query url.Values, body []byte) {
	switch id := query.Get("upload_id"); {
	case query.Get("uploadType") == "multipart":
		g.multipart(w, r, body)
	case id != "":
		g.resume(w, r, id, body)
	default:
		s := &googleSession{}
		if json.Unmarshal(body, &s.about) != nil || s.about.Name == "" {
			refuse(w, http.StatusBadRequest, "Required")
			return
		}
		g.generation++
		id = strconv.FormatInt(g.generation, 10)
		g.sessions[id] = s
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path+"?uploadType=resumable&upload_id="+id)
	}
}

func (g *GoogleServer) multipart(w http.ResponseWriter, r *http.Request, body []byte) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var o googleObject
	var parts [2][]byte
	if err == nil && kind == "multipart/related" {
		in := multipart.NewReader(bytes.NewReader(body), params["boundary"])
		for i := range parts {
			part, partErr := in.NextPart()
			if err = partErr; err == nil {
				parts[i], err = io.ReadAll(part)
			}
			if err != nil {
				break
			}
		}
	}
	if err != nil || json.Unmarshal(parts[0], &o) != nil || o.Name == "" {
		refuse(w, http.StatusBadRequest, "Malformed multipart body.")
		return
	}
	o.data = parts[1]
	g.finish(w, &o)
}

// finish stores an object, unless its bytes do not match its MD5.
func (g *GoogleServer) finish(w http.ResponseWriter, o *googleObject) {
	sum := md5.Sum(o.data)
	if o.MD5 != nil && !bytes.Equal(o.MD5, sum[:]) {
		refuse(w, http.StatusBadRequest, "Provided MD5 hash doesn't match calculated MD5 hash.")
		return
	}
	o.MD5, o.Size = sum[:], int64(len(o.data))
	g.add(o)
	_ = json.NewEncoder(w).Encode(o)
}

func (g *GoogleServer) resume(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	s := g.sessions[id]
	if s == nil {
		refuse(w, http.StatusGone, "Gone")
		return
	}
	span, total, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	size, err := strconv.Atoi(total)
	if from, _, is := strings.Cut(span, "-"); is && err == nil && !s.done {
		var at int
		if at, err = strconv.Atoi(from); err == nil && at != len(s.data) {
			refuse(w, http.StatusServiceUnavailable, "Not at the end of what has arrived.")
			return
		}
		s.data = append(s.data, body...)
	}
	switch {
	case err != nil || len(s.data) > size:
		refuse(w, http.StatusBadRequest, "Invalid Content-Range")
	case s.done:
		_ = json.NewEncoder(w).Encode(&s.about)
	case len(s.data) < size:
		if len(s.data) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(s.data)-1))
		}
		w.WriteHeader(http.StatusPermanentRedirect)
	default:
		s.about.data, s.done = s.data, true
		g.finish(w, &s.about)
	}
}

package mime

import (
	"bytes"
	"strings"
	"testing"
)

// frames returns an MP3 of n frames: MPEG 1 layer III, 128 kbit/s at 44.1 kHz, so 417 bytes each.
func frames(n int) string {
	return strings.Repeat("\xFF\xFB\x90\x00"+strings.Repeat("x", 413), n)
}

func TestSniff(t *testing.T) {
	const binary = "\x00\x01\x02 binary"
	for _, c := range []struct{ name, body, declared, want string }{
		{"HTML", " \n<!DOCTYPE HTML><p>", "", "text/html"},
		{"a tag", "<TITLE>x", "", "text/html"},
		{"a tag that goes on", "<articles>", "", "text/plain"},
		{"a comment", "<!-- x", "", "text/html"},
		{"a tight comment", "<!--x", "", "text/plain"},
		{"a tag cut off", "<p", "", "text/plain"},
		{"XML", "\t<?xml version='1.0'?>", "", "text/xml"},
		{"PDF", "%PDF-1.7\n", "*/*", "application/pdf"},
		{"PostScript", "%!PS-Adobe-3", "unknown/unknown", "application/postscript"},
		{"marked text", "\xFE\xFF\x00a", "", "text/plain"},
		{"marked UTF-8", "\xEF\xBB\xBFa", "", "text/plain"},
		{"two bytes of UTF-16 are too few for a signature", "\xFF\xFE\x01", "", "text/plain"},
		{"binary", binary, "", "application/octet-stream"},
		{"an escape is no binary", "\x1B[0m", "", "text/plain"},
		{"nothing", "", "", "text/plain"},
		{"icon", "\x00\x00\x01\x00", "", "image/x-icon"},
		{"GIF", "GIF89a", "", "image/gif"},
		{"WebP", "RIFF1234WEBPVP8", "", "image/webp"},
		{"JPEG", "\xFF\xD8\xFF\xE0", "", "image/jpeg"},
		{"PNG for GIF", "\x89PNG\r\n\x1A\n", "image/gif", "image/png"},
		{"unknown image", "<svg>", "image/svg+xml", "image/svg+xml"},
		{"an image of nothing known", "x", "image/x", "image/x"},
		{"WAVE", "RIFF1234WAVE", "", "audio/wave"},
		{"MIDI for MP3", "MThd\x00\x00\x00\x06", "audio/mpeg", "audio/midi"},
		{"Ogg", "OggS\x00", "", "application/ogg"},
		{"MP4", "\x00\x00\x00\x10ftypmp42\x00\x00\x00\x00", "", "video/mp4"},
		{"MP4 by another brand", "\x00\x00\x00\x18ftypisom\x00\x00\x00\x00iso2mp41", "", "video/mp4"},
		{"no brand of MP4", "\x00\x00\x00\x14ftypisom\x00\x00\x00\x00iso2", "", "application/octet-stream"},
		{"a box that is too large", "\x00\x00\x10\x10ftypmp42", "", "application/octet-stream"},
		{"a box that is too small", "\x00\x00\x00\x00ftypabcd", "", "application/octet-stream"},
		{"WebM", "\x1A\x45\xDF\xA3\x9F\x42\x82\x84webm", "", "video/webm"},
		{"Matroska", "\x1A\x45\xDF\xA3\x9F\x42\x82\x88matroska\x00", "", "application/octet-stream"},
		{"WebM cut off", "\x1A\x45\xDF\xA3\x01\x42\x82", "", "application/octet-stream"},
		{"MP3", frames(2) + "\x00", "", "audio/mpeg"},
		{"one frame is not enough", frames(1) + "\x00", "", "application/octet-stream"},
		{"EOT", strings.Repeat("\x01", 34) + "LP", "", "application/vnd.ms-fontobject"},
		{"WOFF2", "wOF2", "", "font/woff2"},
		{"gzip", "\x1F\x8B\x08", "", "application/x-gzip"},
		{"ZIP", "PK\x03\x04", "", "application/zip"},
		{"declared stays", "%PDF-1.7", "application/octet-stream", "application/octet-stream"},
		{"parameters stay", "x", "text/html; charset=gbk", "text/html;charset=gbk"},
		{"plain text is not HTML", "<html>", "text/plain", "text/plain"},
		{"Apache's plain text", binary, "text/plain; charset=ISO-8859-1", "application/octet-stream"},
		{"anybody else's plain text", binary, "text/plain;charset=gbk", "text/plain;charset=gbk"},
		{"RSS as HTML", "\xEF\xBB\xBF<?xml version='1.0'?><!-- <x> -->\n<!DOCTYPE a><rss version='2.0'>", "text/html",
			"application/rss+xml"},
		{"Atom as HTML", "<feed xmlns='x'>", "text/html", "application/atom+xml"},
		{"RDF as HTML", "<rdf:RDF xmlns='http://purl.org/rss/1.0/' xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>",
			"text/html", "application/rss+xml"},
		{"other RDF", "<rdf:RDF>", "text/html", "text/html"},
		{"XML as XML", "<rss>", "text/xml", "text/xml"},
		{"PDF as HTML", "%PDF-1.4", "text/html; charset=utf-8", "application/pdf"},
		{"PNG as HTML", "\x89PNG\r\n\x1A\n\x00\x00", "text/html", "image/png"},
		{"ZIP as text", "PK\x03\x04", "text/plain;charset=gbk", "application/zip"},
		{"text that begins like a bitmap", "BMW <a href=x>", "text/html", "text/html"},
		{"text that begins like music", "ID3 tags", "text/html", "text/html"},
	} {
		if got := Sniff([]byte(c.body), c.declared, false).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNoSniff(t *testing.T) {
	for _, c := range []struct{ body, declared, want string }{
		{"<html>", "", "text/plain"},
		{"GIF89a", "", "image/gif"},
		{"<rss>", "text/html", "text/html"},
		{"\x89PNG\r\n\x1A\n", "image/gif", "image/gif"},
		{"%PDF-1.4", "text/html", "application/pdf"},
	} {
		if got := Sniff([]byte(c.body), c.declared, true).String(); got != c.want {
			t.Errorf("%q as %s: got %s, want %s", c.body, c.declared, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"text/html;charset=utf-8", `a/b;c="d\"e";f=g`, "a/b;c=\xE9", `a/b;c="\\` + "\xC3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, ok := Parse(in)
		if !ok {
			return
		}
		again, ok := Parse(got.String())
		if !ok || again.String() != got.String() {
			t.Errorf("%q: %q, then %q", in, got, again)
		}
	})
}

func FuzzSniff(f *testing.F) {
	f.Add([]byte(frames(3)), "")
	f.Add([]byte("\x1A\x45\xDF\xA3\x9F\x42\x82\x84webm"), "audio/x")
	f.Add([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x00\x00iso2mp41"), "")
	f.Add([]byte("<?xml?><!--<rss"), "text/html")
	f.Fuzz(func(t *testing.T, body []byte, declared string) {
		if got := Sniff(body, declared, false); got.Main == "" || got.Sub == "" {
			t.Errorf("%q as %q: got %q", body, declared, got)
		}
	})
}

func BenchmarkSniff(b *testing.B) {
	body := bytes.Repeat([]byte("<!DOCTYPE html><title>x</title>"), 1000)
	b.ReportAllocs()
	for b.Loop() {
		Sniff(body, "text/html; charset=utf-8", false)
	}
}

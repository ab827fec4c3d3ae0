package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"kumo/internal/app/get"
	"kumo/internal/content/robots"
	"kumo/internal/engine/check"
	"kumo/internal/engine/seeds"
)

// The functions that read the arguments of the subcommands of kumo check.

func urlArgs(_ context.Context, args []string, in *check.URLIn) (err error) {
	in.Input, in.Base, err = oneOrTwo(args)
	return err
}

func valueArgs(_ context.Context, args []string, in *check.ValueIn) (err error) {
	in.Value, err = only(args)
	return err
}

// robots reads the arguments of check robots: a URL, or a robots.txt file and a URL.
func (s *source) robots(ctx context.Context, args []string, in *check.RobotsIn) error {
	if _, _, err := oneOrTwo(args); err != nil {
		return err
	}
	typed := args[len(args)-1]
	switch {
	case len(args) == 1 && (typed == "-" || isFile(typed)):
		return usagef("a URL is wanted after the file %s", typed)
	case strings.HasPrefix(typed, "/"):
		return usagef("%q is a path: give a whole URL", typed)
	}
	u, err := seeds.ParseURL(typed)
	if err != nil {
		return err
	}
	file := u.Origin() + "/robots.txt"
	if len(args) == 2 {
		file = args[0]
	}
	doc, err := s.open(ctx, file, robots.MaxRedirects)
	switch {
	case errors.Is(err, get.ErrRedirects): // a crawl, too, treats it as a missing robots.txt
		fmt.Fprintf(os.Stderr, "%v: treated as if there were no robots.txt\n", err)
	case err != nil:
		return err
	}
	in.Robots, in.URL, in.Status = doc.body, u.String(), doc.status
	return nil
}

func (s *source) page(ctx context.Context, args []string, in *check.PageIn) error {
	doc, base, err := s.openFirst(ctx, args)
	if err != nil {
		return err
	}
	in.HTML, in.URL, in.Status, in.Header = doc.body, cmp.Or(base, doc.url), doc.status, doc.header
	in.ContentType = cmp.Or(in.ContentType, doc.contentType)
	if s.renders {
		return s.replaceByRendered(ctx, in)
	}
	return nil
}

func (s *source) document(ctx context.Context, args []string, in *check.DocumentIn) error {
	name, err := only(args)
	if err != nil {
		return err
	}
	doc, err := s.open(ctx, name, maxRedirects)
	if err != nil {
		return err
	}
	in.Body = doc.body
	return nil
}

func (s *source) links(ctx context.Context, args []string, in *check.LinksIn) error {
	return s.page(ctx, args, &in.PageIn)
}

func (s *source) sitemap(ctx context.Context, args []string, in *check.SitemapIn) error {
	doc, base, err := s.openFirst(ctx, args)
	if err != nil {
		return err
	}
	in.Body, in.URL = doc.body, cmp.Or(base, doc.url)
	return nil
}

func (s *source) charset(ctx context.Context, args []string, in *check.CharsetIn) error {
	doc, declared, err := s.openFirst(ctx, args)
	if err != nil {
		return err
	}
	in.Body, in.ContentType = doc.body, cmp.Or(declared, doc.contentType)
	return nil
}

func (s *source) lang(ctx context.Context, declared string, args []string, in *check.LangIn) error {
	if _, err := only(args); err != nil {
		return err
	}
	in.Page = &check.PageIn{ContentType: declared}
	return s.page(ctx, args, in.Page)
}

// mime reads the arguments of check mime. It does not use the file name to detect the type.
func (s *source) mime(ctx context.Context, args []string, in *check.MIMEIn) error {
	name, declared, err := oneOrTwo(args)
	if err != nil {
		return err
	}
	if declared == "" && check.IsMediaType(name) && !isFile(name) {
		in.Value = name
		return nil
	}
	doc, err := s.open(ctx, name, maxRedirects)
	if err != nil {
		return err
	}
	in.Value, in.Body = cmp.Or(declared, doc.header.Get("Content-Type")), doc.body
	return nil
}

func (s *source) openFirst(ctx context.Context, args []string) (doc *sourceFile, second string, err error) {
	name, second, err := oneOrTwo(args)
	if err != nil {
		return nil, "", err
	}
	doc, err = s.open(ctx, name, maxRedirects)
	return doc, second, err
}

func only(args []string) (string, error) {
	if len(args) != 1 {
		return "", &usage{errors.New("wrong number of arguments: give one")}
	}
	return args[0], nil
}

func oneOrTwo(args []string) (first, second string, err error) {
	switch len(args) {
	case 1:
		return args[0], "", nil
	case 2:
		return args[0], args[1], nil
	}
	return "", "", &usage{errors.New("wrong number of arguments: give one or two")}
}

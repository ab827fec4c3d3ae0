package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"kumo/internal/check"
	"kumo/internal/robots"
	"kumo/internal/wire"
)

// Each verb of kumo check reads its arguments here.

func urlArgs(_ context.Context, args []string) (in check.URLIn, err error) {
	in.Input, in.Base, err = oneOrTwo(args)
	return in, err
}

func valueArgs(_ context.Context, args []string) (in check.ValueIn, err error) {
	in.Value, err = only(args)
	return in, err
}

// robots reads the arguments of check robots: the URL alone, or what is to be taken for its robots.txt before it.
func (s *source) robots(ctx context.Context, agent string, args []string) (in check.RobotsIn, err error) {
	if _, _, err := oneOrTwo(args); err != nil {
		return in, err
	}
	typed := args[len(args)-1]
	if strings.HasPrefix(typed, "/") {
		return in, usagef("%q is a path: a whole URL is wanted", typed)
	}
	u, err := wire.ParseURL(typed)
	if err != nil {
		return in, err
	}
	file := u.Origin() + "/robots.txt"
	if len(args) == 2 {
		file = args[0]
	}
	doc, err := s.open(ctx, file, robots.MaxRedirects)
	if err != nil {
		return in, err
	}
	return check.RobotsIn{Robots: doc.body, Agent: agent, URL: u.String(), Status: doc.status, Exempt: true}, nil
}

func (s *source) links(ctx context.Context, args []string) (in check.PageIn, err error) {
	doc, url, err := s.openFirst(ctx, args)
	if err != nil {
		return in, err
	}
	return check.PageIn{HTML: doc.body, URL: cmp.Or(url, doc.url), ContentType: doc.contentType(), Header: doc.header}, nil
}

func (s *source) charset(ctx context.Context, args []string) (in check.CharsetIn, err error) {
	doc, declared, err := s.openFirst(ctx, args)
	if err != nil {
		return in, err
	}
	return check.CharsetIn{Body: doc.body, ContentType: cmp.Or(declared, doc.contentType())}, nil
}

// langArgs reads the argument of check lang: a text, which a page is not.
func langArgs(_ context.Context, args []string) (in check.LangIn, err error) {
	name, err := only(args)
	if err != nil {
		return in, err
	}
	if isURL(name) {
		return in, usagef("%q is a URL: the language is told of plain text, in a file or on standard input (-)", name)
	}
	text, err := readFile(name)
	return check.LangIn{Text: string(text)}, err
}

// mime reads the arguments of check mime. What is neither a URL nor a file is a media type.
func (s *source) mime(ctx context.Context, args []string) (in check.MIMEIn, err error) {
	name, declared, err := oneOrTwo(args)
	if err != nil {
		return in, err
	}
	if declared == "" && strings.Contains(name, "/") && !isURL(name) && !isFile(name) {
		return check.MIMEIn{Value: name}, nil
	}
	doc, err := s.open(ctx, name, maxRedirects)
	if err != nil {
		return in, err
	}
	return check.MIMEIn{Value: cmp.Or(declared, doc.contentType()), Body: doc.body}, nil
}

// openFirst opens the first argument and gives the second, if there is one.
func (s *source) openFirst(ctx context.Context, args []string) (doc *document, second string, err error) {
	name, second, err := oneOrTwo(args)
	if err != nil {
		return nil, "", err
	}
	doc, err = s.open(ctx, name, maxRedirects)
	return doc, second, err
}

func only(args []string) (string, error) {
	if len(args) != 1 {
		return "", &usage{errors.New("wrong number of arguments: one is wanted")}
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
	return "", "", &usage{errors.New("wrong number of arguments: one or two are wanted")}
}

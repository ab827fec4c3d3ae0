package ui

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write static/openapi.json")

// TestOpenAPI compares the served description with the endpoints and the types of their answers.
func TestOpenAPI(t *testing.T) {
	want, err := json.MarshalIndent(describe(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	const name = "static/openapi.json"
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not as the endpoints are (%v): go test ./internal/view/web/ui -run TestOpenAPI -update", name, err)
	}
}

type object = map[string]any

// describe returns the REST API in the form of OpenAPI 3.1.
func describe() object {
	s := schemas{}
	paths := object{}
	for _, e := range endpointsOf(nil, &crawlSet{}, &batchSet{}, nil) {
		params := []object{}
		for _, p := range e.params {
			schema := object{"type": p.kind}
			switch {
			case p.name == "limit":
				schema["minimum"], schema["maximum"], schema["default"] = 1, maxLimit, defaultLimit
			case p.name == "bytes":
				schema["minimum"], schema["maximum"], schema["default"] = 1, maxPart, defaultPart
			case p.kind == "integer":
				schema["minimum"], schema["format"] = 0, "int64"
			case p.name == "status":
				schema["pattern"] = "^([0-9]{1,3}|[0-9]xx)?$"
			case p.in == "query" && p.name == "day":
				schema["pattern"] = "^([0-9]{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$"
			case p.name == "of":
				schema["enum"] = []string{"", "other"}
			case p.name == "by":
				schema["enum"] = []string{"", "waiting"}
			case p.name == "using":
				schema["enum"] = []string{"", "index", "scan"}
			case p.name == "day":
				schema["pattern"] = "^([0-9]{4}(-[0-9]{2}){0,2})?$"
			case p.name == "in":
				schema["enum"] = []string{"", "head"}
			case p.name == "as":
				schema["enum"] = append([]string{""}, formats...)
				if strings.HasPrefix(e.path, "/batches") {
					schema["enum"] = append([]string{""}, batchFormats...)
				}
			case p.name == "cursor": // of several days
				schema["pattern"] = "^([0-9]{4}-[0-9]{2}-[0-9]{2}/[^/]+(/[0-9]{1,15})?)?$"
			}
			params = append(params, object{"in": p.in, "name": p.name, "description": p.says, "required": p.required,
				"schema": schema})
		}
		answers := object{"200": object{"description": "The answer",
			"content": object{"application/json": object{"schema": s.of(reflect.TypeOf(e.answer))}}}}
		s.problems(answers, nil)
		paths["/api/v1"+e.path] = object{"get": object{"operationId": e.name, "summary": e.says, "parameters": params,
			"responses": answers}}
	}
	paths["/api/v1"+actPath] = object{"post": s.act()}
	return object{"openapi": "3.1.0", "info": object{"title": "kumo", "version": "1",
		"description": "State and actions of crawls. Fields are stable; new ones may be added. See " +
			"docs/reference/rest.md."},
		"paths": paths, "security": []object{{}, {"token": []string{}}},
		"components": object{"schemas": s, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer",
			"description": "the token in the URL that kumo open prints; not needed with --ui-no-token"}}}}
}

// schemas contains types by name.
type schemas object

// problems adds the possible errors to answers.
func (s schemas) problems(answers object, more map[string]string) {
	all := map[string]string{"400": "The request is invalid", "401": "The token is missing or wrong",
		"404": "Not found",
		"414": "The URL is too long", "421": "Unknown server name", "500": "The query failed",
		"503": "The crawl does not answer, or the query took too long"}
	maps.Copy(all, more)
	for status, says := range all {
		answers[status] = object{"description": says,
			"content": object{"application/problem+json": object{"schema": s.of(reflect.TypeOf(problem{}))}}}
	}
}

// act describes the endpoint for actions.
func (s schemas) act() object {
	names := []string{}
	for _, a := range actions {
		names = append(names, a.Name)
	}
	answers := object{"200": object{"description": "What was done, or would be",
		"content": object{"application/json": object{"schema": s.of(reflect.TypeOf(deed{}))}}}}
	s.problems(answers, map[string]string{"403": "Sent by another site's page",
		"409": "The action failed, or the crawl is not running", "415": "Not JSON"})
	params := []object{}
	for name, schema := range map[string]object{"crawl": {"type": "string"}, "do": {"type": "string", "enum": names}} {
		params = append(params, object{"in": "path", "name": name, "required": true, "schema": schema})
	}
	slices.SortFunc(params, func(a, b object) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	return object{"operationId": "act", "summary": "Performs an action on a crawl; in a cluster, on all nodes. " +
		"Without \"sure\" it only describes what would be done.",
		"parameters":  params,
		"requestBody": object{"required": true, "content": object{"application/json": object{"schema": s.of(reflect.TypeOf(wish{}))}}}, "responses": answers}
}

func (s schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[netip.Addr]():
		return object{"type": "string"}
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float64, reflect.Float32:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if s[name] == nil {
			s[name] = object{} // the type may be recursive
			properties, required := object{}, []string{}
			s.fields(t, properties, &required)
			slices.Sort(required)
			required = slices.Compact(required) // one may hide another
			s[name] = object{"type": "object", "properties": properties, "required": required}
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	return object{"type": "integer", "format": "int64"}
}

func (s schemas) fields(t reflect.Type, properties object, required *[]string) {
	var own, parts []reflect.StructField // fields of the type itself hide those of embedded types
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			parts = append(parts, f)
		} else {
			own = append(own, f)
		}
	}
	for _, f := range append(own, parts...) {
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && tag == "" && f.Type.Kind() == reflect.Pointer: // all of it may be missing
			s.fields(inner, properties, &[]string{})
		case f.Anonymous && tag == "":
			s.fields(inner, properties, required)
		case properties[tag] != nil: // it is hidden
		default:
			properties[tag] = s.of(f.Type)
			if !strings.Contains(opts, "omit") {
				*required = append(*required, tag)
			}
		}
	}
}

// A checker compares answers with the description.
type checker struct{ doc object }

func newChecker(t *testing.T) *checker {
	text, err := os.ReadFile("static/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{}
	if err := json.Unmarshal(text, &c.doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// check returns an error if an answer of an operation does not match its description.
func (c *checker) check(path string, status int, contentType string, body []byte) error {
	all := c.doc["paths"].(object)[path].(object)
	get, asks := all["get"].(object)
	if !asks {
		get = all["post"].(object)
	}
	answer, known := get["responses"].(object)[fmt.Sprint(status)].(object)
	if !known {
		return fmt.Errorf("a status %d is not described", status)
	}
	as, known := answer["content"].(object)[contentType].(object)
	if !known {
		return fmt.Errorf("a type %q is not described", contentType)
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return c.fits(v, as["schema"].(object), "answer")
}

func (c *checker) fits(v any, schema object, at string) error {
	if ref, is := schema["$ref"].(string); is {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		return c.fits(v, c.doc["components"].(object)["schemas"].(object)[name].(object), at)
	}
	kinds := []string{}
	switch kind := schema["type"].(type) {
	case string:
		kinds = append(kinds, kind)
	case []any:
		for _, k := range kind {
			kinds = append(kinds, k.(string))
		}
	}
	kind := "null"
	switch v := v.(type) {
	case bool:
		kind = "boolean"
	case string:
		kind = "string"
	case float64:
		if kind = "number"; v == math.Trunc(v) && slices.Contains(kinds, "integer") {
			kind = "integer"
		}
	case []any:
		kind = "array"
	case object:
		kind = "object"
	}
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("%s is a %s, described is %v", at, kind, kinds)
	}
	switch v := v.(type) {
	case string:
		if schema["format"] == "date-time" {
			if _, err := time.Parse(time.RFC3339, v); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
	case []any:
		for i, x := range v {
			if err := c.fits(x, schema["items"].(object), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case object:
		return c.fitsObject(v, schema, at)
	}
	return nil
}

// fitsObject requires that all members are described, and all required members present.
func (c *checker) fitsObject(v, schema object, at string) error {
	properties, _ := schema["properties"].(object)
	others, _ := schema["additionalProperties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, there := v[name.(string)]; !there {
			return fmt.Errorf("%s lacks %s", at, name)
		}
	}
	for name, x := range v {
		s, known := properties[name].(object)
		if !known && others == nil {
			return fmt.Errorf("%s.%s is not described", at, name)
		}
		if !known {
			s = others
		}
		if err := c.fits(x, s, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

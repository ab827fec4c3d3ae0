package check

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Unmarshal reads a JSON object into in, a pointer to a reader's input. A field that the object lacks, or has as null,
// is left unchanged, unless its need tag marks it as required: the tag's value names the fields of which one must be
// present. Unknown fields are ignored. Error messages use JSON terms, not Go terms.
func Unmarshal(object []byte, in any) error {
	var given map[string]json.RawMessage
	err := json.Unmarshal(object, &given)
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON: byte %d: %w", broken.Offset, err)
	}
	if given == nil {
		return fmt.Errorf("expected an object, not %s", kindOf(object))
	}
	v := reflect.ValueOf(in).Elem()
	need := map[string]bool{} // whether one of the named fields is present
	for _, f := range inputFields(v.Type()) {
		raw, met := given[f.name]
		if met = met && string(raw) != "null"; met {
			if err := set(v.FieldByIndex(f.index), raw); err != nil {
				return fmt.Errorf("field %q: %w", f.name, err)
			}
		}
		need[f.need] = need[f.need] || met
	}
	for _, f := range inputFields(v.Type()) {
		if f.need != "" && !need[f.need] {
			return fmt.Errorf(`field "%s" is missing`, strings.ReplaceAll(f.need, " or ", `" or "`))
		}
	}
	return nil
}

// An inputField is a field of a reader's input.
type inputField struct {
	name  string // JSON name
	need  string // fields of a group; one of them is required; "" if the field is optional
	index []int
}

func inputFields(t reflect.Type) (list []inputField) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			list = append(list, inputField{name, f.Tag.Get("need"), f.Index})
		}
	}
	return list
}

// set reads a value into a field, which is a string, bytes or a bool.
func set(field reflect.Value, raw json.RawMessage) error {
	if field.Kind() == reflect.Bool {
		if json.Unmarshal(raw, field.Addr().Interface()) != nil {
			return fmt.Errorf("expected true or false, not %s", kindOf(raw))
		}
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return fmt.Errorf("expected a string, not %s", kindOf(raw))
	}
	if field.Kind() == reflect.String {
		field.SetString(text)
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if at, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return fmt.Errorf("not base64 (A-Z a-z 0-9 + /, with = at its end) from byte %d on", int64(at)+1)
	}
	field.SetBytes(data)
	return err
}

// kindOf returns the kind of a JSON value, for errors.
func kindOf(value []byte) string {
	switch text := strings.TrimLeft(string(value[:min(len(value), 64)]), " \t\r\n"); {
	case text == "":
		return "nothing"
	case text[0] == '"':
		return "a string"
	case text[0] == '{':
		return "an object"
	case text[0] == '[':
		return "an array"
	case strings.ContainsAny(text[:1], "tfn"):
		return strings.TrimRight(text, " \t\r\n")
	}
	return "a number"
}

// Fields lists the JSON fields of a reader's input or output: those that an input requires, and the others.
func Fields[T any]() (needed, others []string) {
	for _, f := range inputFields(reflect.TypeFor[T]()) {
		if f.need != "" {
			needed = append(needed, f.name)
		} else {
			others = append(others, f.name)
		}
	}
	return needed, others
}

package star

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// A question may allocate maxMemory bytes in total, in use or not, plus some dozens of bytes per step. A question that
// allocates more than lightMemory, or has more than lightSteps, is heavy: only a few heavy questions are answered at
// once, so that the memory of all questions is bounded.
const (
	maxMemory   = 128 << 20
	lightMemory = 4 << 20
	lightSteps  = 100_000
	maxHeavy    = 4
	maxBits     = 2048 // of an integer

	perElement = 64  // bytes of a list element that is newly made
	perEntry   = 128 // bytes of a dict or set entry
	perPointer = 16  // bytes of a copied element
	perPart    = 48  // bytes of a part of a split string
)

var (
	errMemory  = fmt.Errorf("memory limit exceeded: a question may allocate %d MB", maxMemory>>20)
	errInteger = fmt.Errorf("integer too large: at most %d bits", maxBits)
)

// A meter counts the allocations of a question in its thread.
type meter struct {
	thread *starlark.Thread
	used   int64
	last   uint64        // step of the thread that is the limit
	heavy  bool          // holds a slot
	slots  chan struct{} // held by heavy questions
}

func (m *meter) begin() {
	now := m.thread.ExecutionSteps()
	m.last = now + maxSteps
	m.thread.SetMaxExecutionSteps(now + lightSteps)
}

// expire is called when the thread has reached its limit of steps.
func (m *meter) expire(t *starlark.Thread) {
	if t.ExecutionSteps() >= m.last {
		t.Cancel("too many steps")
		return
	}
	m.acquire()
	t.SetMaxExecutionSteps(m.last)
}

const meterKey = "meter"

func meterOf(t *starlark.Thread) *meter { return t.Local(meterKey).(*meter) }

func newSlots() chan struct{} { return make(chan struct{}, min(runtime.GOMAXPROCS(0), maxHeavy)) }

// charge counts n bytes that are about to be allocated.
func (m *meter) charge(n int64) error {
	if n > maxMemory {
		return errMemory
	}
	m.used += n
	if m.used > lightMemory {
		if m.used > maxMemory {
			return errMemory
		}
		m.acquire()
	}
	return nil
}

// acquire waits for a slot. Its holders only compute, for a bounded number of steps.
func (m *meter) acquire() {
	if !m.heavy {
		m.slots <- struct{}{}
		m.heavy = true
	}
}

// reset ends a question.
func (m *meter) reset() {
	if m.heavy {
		<-m.slots
	}
	m.heavy, m.used = false, 0
}

// each counts n elements of the given size.
func (m *meter) each(n int, bytes int64) error {
	if int64(n) > maxMemory/bytes {
		return errMemory
	}
	return m.charge(int64(n) * bytes)
}

// elements counts the elements of an iterable. For other values it does nothing: iterating over them is an error.
func (m *meter) elements(v starlark.Value, bytes int64) error {
	if s, is := v.(starlark.String); is {
		return m.charge(int64(len(s)))
	}
	if n := starlark.Len(v); n >= 0 {
		return m.each(n, bytes)
	}
	it := starlark.Iterate(v)
	if it == nil {
		return nil
	}
	defer it.Done()
	var x starlark.Value
	for it.Next(&x) {
		if err := m.charge(bytes); err != nil {
			return err
		}
	}
	return nil
}

// shallow returns about how many bytes a value takes, without its elements.
func shallow(v starlark.Value) int64 {
	switch v := v.(type) {
	case starlark.String:
		return int64(len(v))
	case starlark.Bytes:
		return int64(len(v))
	case *starlark.List:
		return perPointer * int64(v.Len())
	case starlark.Tuple:
		return perPointer * int64(len(v))
	case *starlark.Dict:
		return perEntry * int64(v.Len())
	case *starlark.Set:
		return perEntry * int64(v.Len())
	}
	return 0
}

// operate applies an operator to two operands, or adds several.
func (m *meter) operate(op syntax.Token, args starlark.Tuple) (z starlark.Value, err error) {
	if op == syntax.PLUS {
		return m.sum(args)
	}
	x, y := args[0], args[1]
	if i, is := x.(starlark.Int); is {
		if j, is := y.(starlark.Int); is {
			if err := checkBits(op, i, j); err != nil {
				return nil, err
			}
			return starlark.Binary(op, x, y)
		}
	}
	switch op {
	case syntax.STAR:
		if _, is := x.(starlark.Int); is {
			x, y = y, x
		}
		n, err := starlark.AsInt32(y)
		if each := shallow(x); err == nil && n > 0 && each > 0 { // otherwise it fails, or the result is empty
			if err := m.each(n, each); err != nil {
				return nil, err
			}
		}
		x, y = args[0], args[1]
	case syntax.PERCENT:
		if s, is := x.(starlark.String); is {
			if err := m.format(string(s), "%", y); err != nil {
				return nil, err
			}
		}
	default:
		if err := m.charge(shallow(x) + shallow(y)); err != nil {
			return nil, err
		}
	}
	return starlark.Binary(op, x, y)
}

// checkBits returns an error if the result would be too large an integer.
func checkBits(op syntax.Token, x, y starlark.Int) error {
	const small = 1 << 30
	i, is := x.Int64()
	j, is2 := y.Int64()
	if is && is2 && i < small && i > -small && j < small && j > -small && op != syntax.LTLT {
		return nil
	}
	bits := 0
	switch op {
	case syntax.PLUS, syntax.MINUS:
		bits = max(bitLen(x), bitLen(y)) + 1
	case syntax.STAR:
		bits = bitLen(x) + bitLen(y)
	case syntax.LTLT:
		bits = bitLen(x) + int(min(max(j, 0), maxBits)) // a count that is not an int64 is an error anyway
	}
	if bits > maxBits {
		return errInteger
	}
	return nil
}

func bitLen(i starlark.Int) int { return i.BigInt().BitLen() }

func (m *meter) sum(args starlark.Tuple) (starlark.Value, error) {
	n, text := int64(0), true
	for _, x := range args {
		_, is := x.(starlark.String)
		n, text = n+shallow(x), text && is
	}
	if err := m.charge(n); err != nil {
		return nil, err
	}
	if text {
		var b strings.Builder
		b.Grow(int(n))
		for _, x := range args {
			b.WriteString(string(x.(starlark.String)))
		}
		return starlark.String(b.String()), nil
	}
	z := args[0]
	for _, y := range args[1:] {
		if err := m.add(z, y); err != nil {
			return nil, err
		}
		var err error
		if z, err = starlark.Binary(syntax.PLUS, z, y); err != nil {
			return nil, err
		}
	}
	return z, nil
}

// add checks one addition of several. For lists, x is copied again by each.
func (m *meter) add(x, y starlark.Value) error {
	if i, is := x.(starlark.Int); is {
		if j, is := y.(starlark.Int); is {
			return checkBits(syntax.PLUS, i, j)
		}
	}
	return m.charge(shallow(x))
}

// operateInPlace is x += y and the like. A list or dict is modified, not copied.
func (m *meter) operateInPlace(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case *starlark.List:
		if _, is := y.(starlark.Iterable); is && op == syntax.PLUS {
			return x, callInPlace(x, "extend", y, m.elements(y, perElement))
		}
	case *starlark.Dict:
		if _, is := y.(*starlark.Dict); is && op == syntax.PIPE {
			return x, callInPlace(x, "update", y, m.charge(shallow(y)))
		}
	}
	return m.operate(op, starlark.Tuple{x, y})
}

func callInPlace(x starlark.Value, method string, y starlark.Value, err error) error {
	if err != nil {
		return err
	}
	f, err := methodOf(x, method)
	if err == nil {
		_, err = f.CallInternal(nil, starlark.Tuple{y}, nil)
	}
	return err
}

// operateAt is x[i] += y and the like.
func (m *meter) operateAt(op syntax.Token, x, i, y starlark.Value) error {
	switch x := x.(type) {
	case *starlark.Dict:
		old, found, err := x.Get(i)
		if err == nil && !found {
			err = fmt.Errorf("key %.*s not in dict", maxKey, i)
		}
		if err == nil {
			if old, err = m.operateInPlace(op, old, y); err == nil {
				err = x.SetKey(i, old)
			}
		}
		return err
	case *starlark.List:
		n, err := starlark.AsInt32(i)
		if err != nil {
			return fmt.Errorf("list index: %w", err)
		}
		at := n
		if n < 0 {
			at += x.Len()
		}
		if at < 0 || at >= x.Len() {
			return fmt.Errorf("list index %d out of range [%d:%d]", n, -x.Len(), x.Len()-1)
		}
		z, err := m.operateInPlace(op, x.Index(at), y)
		if err == nil {
			err = x.SetIndex(at, z)
		}
		return err
	}
	return fmt.Errorf("%s value does not support item assignment", x.Type())
}

const maxKey = 100 // bytes of a key in an error message

// format counts the largest possible result of a template; mark begins each of its fields.
func (m *meter) format(template, mark string, args ...starlark.Value) error {
	n := int64(strings.Count(template, mark))
	each := int64(0)
	for _, a := range args {
		if all, is := a.(starlark.Tuple); is && mark == "%" {
			for _, x := range all {
				each = max(each, textSize(x, maxMemory))
			}
		} else {
			each = max(each, textSize(a, maxMemory))
		}
	}
	if each > 0 && n > maxMemory/each {
		return errMemory
	}
	return m.charge(n*each + int64(len(template)))
}

// textSize returns about how long a value is as text; it stops counting beyond most.
func textSize(v starlark.Value, most int64) int64 {
	if s, is := v.(starlark.String); is {
		return int64(len(s))
	}
	return quotedSize(v, most)
}

// quotedSize is textSize with quoted strings, as within lists.
func quotedSize(v starlark.Value, most int64) int64 {
	e := estimate{most: most}
	e.add(v)
	return e.size
}

// An estimate is the approximate length of a text. It is bounded, as nested values can contain themselves.
type estimate struct{ size, most int64 }

const (
	smallText = 32 // bytes of a value, without its elements
	escaped   = 4  // bytes of a byte that is escaped
)

// add adds a value, and reports whether the size is within the bound.
func (e *estimate) add(v starlark.Value) bool {
	e.size += smallText
	switch v := v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Float:
	case starlark.String:
		e.size += escaped * int64(len(v))
	case starlark.Int:
		if _, is := v.Int64(); !is {
			e.size += int64(bitLen(v) / 3)
		}
	case *starlark.Dict:
		for key, x := range v.Entries() {
			if !e.add(key) || !e.add(x) {
				return false
			}
		}
	case *starlark.List, starlark.Tuple, *starlark.Set:
		for x := range starlark.Elements(v.(starlark.Iterable)) {
			if !e.add(x) {
				return false
			}
		}
	default: // bytes, "x".elems(), range(9), a function
		e.size += perElement + escaped*int64(max(0, starlark.Len(v)))
	}
	return e.size <= e.most
}

// meterMethod returns a metered version of a bound method.
func meterMethod(v starlark.Value) starlark.Value {
	b, is := v.(*starlark.Builtin)
	if !is || b.Receiver() == nil || !slices.Contains(meteredMethods, b.Name()) {
		return v
	}
	return starlark.NewBuiltin(b.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (starlark.Value, error) {
		return meterOf(t).callMethod(b.Name(), b.Receiver(), args, kwargs)
	}).BindReceiver(b.Receiver())
}

// methodOf returns a value's method. Values in filters have no other attributes.
func methodOf(v starlark.Value, name string) (*starlark.Builtin, error) {
	if x, is := v.(starlark.HasAttrs); is {
		f, err := x.Attr(name)
		if b, is := f.(*starlark.Builtin); is || err != nil {
			return b, err
		}
	}
	return nil, fmt.Errorf("%s has no .%s field or method", v.Type(), name)
}

// callFunction calls a builtin function of the language.
func (m *meter) callFunction(f *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value,
	error) {
	for _, v := range args {
		if err := m.argument(f.Name(), v); err != nil {
			return nil, err
		}
	}
	for _, pair := range kwargs {
		if err := m.argument(f.Name(), pair[1]); err != nil {
			return nil, err
		}
	}
	v, err := f.CallInternal(m.thread, args, kwargs)
	return meterMethod(v), err
}

// argument counts what a function allocates for an argument.
func (m *meter) argument(function string, v starlark.Value) error {
	switch function {
	case "getattr":
		return nil
	case "int":
		if s, is := v.(starlark.String); is && len(s) > maxBits {
			return errInteger
		}
		return nil
	case "str", "print", "fail":
		return m.charge(textSize(v, maxMemory))
	case "repr":
		return m.charge(quotedSize(v, maxMemory))
	case "dict", "set":
		return m.elements(v, perEntry)
	}
	return m.elements(v, perElement)
}

func values(kwargs []starlark.Tuple) (all starlark.Tuple) {
	for _, pair := range kwargs {
		all = append(all, pair[1])
	}
	return all
}

// callMethod calls a method that can allocate.
func (m *meter) callMethod(name string, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	if s, is := recv.(starlark.String); is && name == "lower" && len(args)+len(kwargs) == 0 { // frequent in filters
		if err := m.charge(int64(len(s))); err != nil {
			return nil, err
		}
		return starlark.String(strings.ToLower(string(s))), nil
	}
	bound, err := methodOf(recv, name)
	if err != nil {
		return nil, err
	}
	if s, is := recv.(starlark.String); is {
		err = m.stringMethod(name, string(s), args, kwargs)
	} else {
		err = m.otherMethod(name, recv, args)
	}
	if err != nil {
		return nil, err
	}
	return bound.CallInternal(m.thread, args, kwargs)
}

// otherMethod counts what a method of a list, dict or set allocates.
func (m *meter) otherMethod(name string, recv starlark.Value, args starlark.Tuple) error {
	each := int64(perEntry)
	switch name {
	case "extend", "items", "keys", "values":
		each = perElement
	}
	if name != "update" && name != "extend" {
		args = slices.Insert(slices.Clone(args), 0, recv)
	}
	for _, a := range args {
		if err := m.elements(a, each); err != nil {
			return err
		}
	}
	return nil
}

// stringMethod counts what a string's method allocates. Invalid arguments are left to the method.
func (m *meter) stringMethod(name, s string, args starlark.Tuple, kwargs []starlark.Tuple) error {
	switch name {
	case "join":
		return m.join(len(s), args)
	case "format":
		return m.format(s, "{", slices.Concat(args, values(kwargs))...)
	case "replace":
		return m.replace(s, args)
	case "split", "rsplit", "splitlines":
		return m.each(parts(name, s, args), perPart)
	}
	return m.charge(int64(len(s))) // upper and the like
}

func (m *meter) join(sep int, args starlark.Tuple) error {
	if len(args) == 0 {
		return nil
	}
	it := starlark.Iterate(args[0])
	if it == nil {
		return nil
	}
	defer it.Done()
	n := int64(0)
	for x := starlark.Value(nil); it.Next(&x) && n <= maxMemory; n += int64(sep) + shallow(x) {
		if _, is := x.(starlark.String); !is {
			return nil // the method returns an error
		}
	}
	return m.charge(n)
}

func (m *meter) replace(s string, args starlark.Tuple) error {
	if len(args) < 2 {
		return nil
	}
	before, _ := starlark.AsString(args[0])
	after, _ := starlark.AsString(args[1])
	n := int64(len(s))
	if more := int64(len(after) - len(before)); more > 0 {
		times := int64(strings.Count(s, before))
		if times > maxMemory/more {
			return errMemory
		}
		n += times * more
	}
	return m.charge(n)
}

// parts returns an upper bound of the parts of a split string.
func parts(name, s string, args starlark.Tuple) int {
	sep := "\n"
	if name != "splitlines" {
		sep = ""
		if len(args) > 0 {
			sep, _ = starlark.AsString(args[0])
		}
	}
	if sep != "" {
		return strings.Count(s, sep) + 1
	}
	n := 0
	for range strings.FieldsSeq(s) {
		n++
	}
	return n
}

package star

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"kumo/internal/engine/filter"
)

// growing has function bodies that would allocate gigabytes within the limit of steps.
var growing = map[string]string{
	"sum":                 "s = 'x'*1000\n while True: s = s + s",
	"sum of many":         "s = 'x'*1000\n while True: s = s+s+s+s+s+s+s+s",
	"in place":            "s = 'x'*1000\n while True: s += s",
	"in a dict":           "d = {'a': 'x'*1000}\n while True: d['a'] += d['a']",
	"in a list":           "a = ['x'*1000]\n while True: a[-1] += a[-1]",
	"kept":                "s, a = 'x'*100000, []\n while True: a.append(s + 'y')",
	"kept in place":       "s, a = 'x'*100000, []\n while True: s += 'y'; a.append(s)",
	"kept upper":          "s, a = 'x'*100000, []\n while True: a.append(s.upper())",
	"kept lower":          "s, a = 'X'*100000, []\n while True: a.append(s.lower())",
	"kept slices":         "s, a = [0]*100000, []\n while True: a.append(s[1:])",
	"kept string slices":  "s, a = 'x'*100000, []\n while True: a.append(s[::2])",
	"kept difference":     "s, a = set(range(10000)), []\n while True: a.append(s - set())",
	"kept intersection":   "s, a = set(range(10000)), []\n while True: a.append(s & s)",
	"kept argument lists": "s, a = [0]*100000, []\n def f(*all): return all\n while True: a.append(f(*s))",
	"kept keywords":       "s, a = {str(i): i for i in range(10000)}, []\n def f(**all): return all\n while True: a.append(f(**s))",
	"kept values":         "s, a = {i: i for i in range(10000)}, []\n while True: a.append(s.values()); a.append(s.items())",
	"kept integers":       "n, a = 1, []\n while True: n = n * 65537 * 65537; a.append(n)",
	"repeat":              "return 'x' * (1 << 29)",
	"repeat from left":    "return (1 << 29) * 'x'",
	"repeat bytes":        "return b'x' * (1 << 29)",
	"repeat a list":       "return [0] * (1 << 29)",
	"repeat a tuple":      "return (0,) * (1 << 29)",
	"repeat in place":     "s = 'x'\n while True: s *= 1000",
	"list of a range":     "return list(range(1 << 40))",
	"tuple of a range":    "return tuple(range(1 << 40))",
	"set of a range":      "return set(range(1 << 40))",
	"sorted range":        "return sorted(range(1 << 40))",
	"reversed range":      "return reversed(range(1 << 40))",
	"enumerated range":    "return enumerate(range(1 << 40))",
	"zip of ranges":       "return zip(range(1 << 40), range(1 << 40))",
	"bytes of a range":    "return bytes(range(1 << 40))",
	"spread range":        "def f(*all): pass\n f(*range(1 << 40))",
	"extend":              "a = []\n a.extend(range(1 << 40))",
	"extend by itself":    "a = [0]\n while True: a.extend(a)",
	"extend in place":     "a = []\n a += range(1 << 40)",
	"list in place":       "a = [0]\n while True: a += a",
	"list of elements":    "s = 'x' * (1 << 24)\n return list(s.elems())",
	"list of codepoints":  "s = 'x' * (1 << 24)\n return list(s.codepoints())",
	"list of ords":        "s = 'x' * (1 << 24)\n return list(s.elem_ords())",
	"dict union":          "d, a = {i: i for i in range(10000)}, []\n while True: a.append(d | d)",
	"dict in place":       "d, a = {i: i for i in range(10000)}, []\n while True: e = {}; e |= d; a.append(e)",
	"dict of a dict":      "d, a = {i: i for i in range(10000)}, []\n while True: a.append(dict(d))",
	"update":              "d, a = {i: i for i in range(10000)}, []\n while True: e = {}; e.update(d); a.append(e)",
	"set update":          "d, a = set(range(10000)), []\n while True: e = set(); e.update(d); a.append(e)",
	"set union":           "d, a = set(range(10000)), []\n while True: a.append(d.union([1]))",
	"join":                "s = 'x' * (1 << 20)\n return ','.join([s] * 10000)",
	"join, separator":     "s = 'x' * (1 << 20)\n return s.join(['a'] * 10000)",
	"join as a value":     "f = ('x' * (1 << 20)).join\n return f(['a'] * 10000)",
	"join by getattr":     "f = getattr('x' * (1 << 20), 'join')\n return f(['a'] * 10000)",
	"join in parentheses": "return (('x' * (1 << 20)).join)(['a'] * 10000)",
	"replace":             "s = 'x' * (1 << 20)\n return s.replace('x', s)",
	"replace nothing":     "s = 'x' * (1 << 20)\n return s.replace('', s)",
	"split":               "s = 'x,' * (1 << 24)\n return s.split(',')",
	"split spaces":        "s = 'x ' * (1 << 24)\n return s.split()",
	"rsplit":              "s = 'x,' * (1 << 24)\n return s.rsplit(',')",
	"splitlines":          "s = '\\n' * (1 << 25)\n return s.splitlines()",
	"percent":             "s = 'x' * (1 << 20)\n return ('%s' * 10000) % tuple([s] * 10000)",
	"percent, in place":   "s = 'x' * 1000\n while True: t = '%s%s'; t %= (s, s); s = t",
	"percent, dict":       "s = {'a': 'x' * (1 << 20)}\n return ('%(a)s' * 10000) % s",
	"format":              "s = 'x' * (1 << 20)\n return ('{0}' * 10000).format(s)",
	"format, by name":     "s = 'x' * (1 << 20)\n return ('{a}' * 10000).format(a = s)",
	"text of nested":      "a = []\n for i in range(50): a = [a, a]\n return str(a)",
	"repr of nested":      "a = ()\n for i in range(50): a = (a, a)\n return repr(a)",
	"print nested":        "a = {}\n for i in range(50): a = {1: a, 2: a}\n print(a)",
	"fail nested":         "a = []\n for i in range(50): a = [a, a]\n fail(a)",
	"percent nested":      "a = []\n for i in range(50): a = [a, a]\n return '%r' % a",
	"format nested":       "a = []\n for i in range(50): a = [a, a]\n return '{}'.format(a)",
	"answer nested":       "a = []\n for i in range(50): a = [a, a]\n return {'fields': {'a': a}}",
	"square":              "n = 1 << 500\n while True: n = n * n",
	"square in place":     "n = 1 << 500\n while True: n *= n",
	"shift":               "n = 1\n while True: n = n << 500",
	"int":                 "return int('9' * 10000000)",
	"in a comprehension":  "s = 'x' * (1 << 20)\n return [s + str(i) for i in range(100000)]",
	"in a default":        "def f(a = 'x' * (1 << 29)): pass",
	"in a lambda":         "f = lambda: 'x' * (1 << 29)\n return f()",
	"in a condition":      "if 'x' * (1 << 29): pass",
	"in an index":         "return {}['x' * (1 << 29)]",
	"in a target":         "d = {}\n d['x' * (1 << 29)] = 1",
	"in a loop's target":  "d = {}\n for d['x' * (1 << 29)] in [1]: pass",
	"in a loop":           "for c in ('x' * (1 << 29)).elems(): pass",
	"behind and":          "return 1 and -(1 if 'x' * (1 << 29) else 2)",
	"in a dict's key":     "return {'x' * (1 << 29): [('x' * (1 << 29),)]}",
	"in an argument":      "return len(x = 'x' * (1 << 29))",
	"without a list":      "return zip(('x' * (1 << 24)).elems(), ('x' * (1 << 24)).codepoints())",
}

// TestMemoryIsBounded: each way to allocate gigabytes ends with an error before the allocation.
func TestMemoryIsBounded(t *testing.T) {
	text := "n = 0\n"
	names := slices.Sorted(maps.Keys(growing))
	for i, name := range names {
		text += fmt.Sprintf("def f%d(l):\n %s\n", i, growing[name])
	}
	text += "def link(l): return [f0"
	for i := range names[1:] {
		text += fmt.Sprintf(", f%d", i+1)
	}
	s, err := Open(filter.Config{Command: write(t, text+"][l[\"depth\"]](l)"), Default: filter.Drop})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, name := range names {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := s.Ask([]filter.Question{{Point: filter.Link, URL: "http://a.test/", Depth: i}})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if got := a[0].Drop; !strings.Contains(got, errMemory.Error()) && !strings.Contains(got, errInteger.Error()) &&
			!strings.Contains(got, "not an answer: it is too large") {
			t.Errorf("%s: %q", name, got)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 8*maxMemory>>20 { // most of it becomes garbage at once
			t.Errorf("%s: %d MB were allocated", name, n)
		}
	}
	if c := s.Counts(); c.Crashed+c.Nonsense != int64(len(names)) {
		t.Errorf("counted %+v", c)
	}
}

// Top-level code is bounded, too: there, exceeding the limit is a usage error.
func TestMemoryIsBoundedAtTheStart(t *testing.T) {
	err := Check(write(t, "s = 'x' * 1000000\nwhile True: s += s\ndef link(l): pass"))
	if err == nil || !strings.Contains(err.Error(), "line 2: "+errMemory.Error()) {
		t.Error(err)
	}
}

// TestOneQuestionsMemoryIsNotAnothers: the total of many questions may exceed the limit of one.
func TestOneQuestionsMemoryIsNotAnothers(t *testing.T) {
	s, err := Open(filter.Config{Command: write(t, "def link(l): return {'drop': str(len('x' * (60 << 20)))}")})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		a, err := s.Ask([]filter.Question{{Point: filter.Link, URL: "http://a.test/"}})
		if err != nil || a[0].Drop != fmt.Sprint(60<<20) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if len(s.slots) > 0 {
		t.Error("a slot is still taken")
	}
}

// At most as many heavy questions (by memory or steps) are answered at once as there are slots.
func TestHeavyQuestionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(filter.Config{Command: write(t, "def link(l): pass")})
		if err != nil {
			t.Fatal(err)
		}
		s.slots = make(chan struct{}, 1)
		s.fresh = sync.Pool{} // its meters have other slots
		first, second, third, light := s.meter(), s.meter(), s.meter(), s.meter()
		if err := light.charge(lightMemory); err != nil || len(s.slots) != 0 {
			t.Errorf("a light question: %v", err)
		}
		if err := first.charge(lightMemory + 1); err != nil || len(s.slots) != 1 {
			t.Errorf("the first: %v", err)
		}
		passed := make(chan int, 2)
		go func() { _ = second.charge(lightMemory + 1); passed <- 2; second.reset() }()
		go func() { third.expire(third.thread); passed <- 3; third.reset() }()
		synctest.Wait()
		if len(passed) != 0 {
			t.Error("another has not waited")
		}
		first.reset()
		synctest.Wait()
		if len(passed) != 2 || len(s.slots) != 0 {
			t.Error("the others wait, or have not given back their slot")
		}
	})
}

// cheap lists functions and methods that allocate at most a few words, or what one step may.
var cheap = strings.Fields(`None True False abs any all bool chr dir float hasattr hash len max min ord range type
	append clear index insert pop remove get popitem setdefault add discard
	codepoint_ords codepoints count elem_ords elems endswith find isalnum isalpha isdigit islower isspace istitle isupper
	lstrip partition removeprefix removesuffix rfind rindex rpartition rstrip startswith strip`)

// Each function or method of the language must be metered or listed as cheap, including those that new versions add.
func TestEachFunctionIsKnown(t *testing.T) {
	known := slices.Concat(cheap, meteredFunctions, meteredMethods)
	for name := range starlark.Universe {
		if !slices.Contains(known, name) {
			t.Errorf("function %s is not known", name)
		}
	}
	for _, v := range []starlark.HasAttrs{starlark.String(""), starlark.Bytes(""), &starlark.List{}, &starlark.Dict{},
		&starlark.Set{}} {
		for _, name := range v.AttrNames() {
			if !slices.Contains(known, name) {
				t.Errorf("%s.%s is not known", v.Type(), name)
			}
		}
	}
}

// ordinary has expressions, and statements that set x, whose results metering must not change; some are errors.
var ordinary = []string{"1 + 2 - 3 * 4 % 5", "'a' + 'b' + str(1)", "[1] + [2] + [3]", "(1,) + (2,) + (3, 4)",
	"1 + 2.5 + 3", "2.5 * 200000000", "1 << 100", "1 << -1", "1 << 600", "1 << 'a'", "(1 << 100) - 1", "-(1 << 70) * 3",
	"'a' + 1", "1 + 'a'", "[1] + (2,)", "'ab' * 3", "3 * 'ab'", "'' * 2000000000", "'ab' * -1", "[1, 2] * 2", "2 * (1,)",
	"{} * 2", "'%s and %d, %r' % ('a', 1, 'b')", "'%(k)s' % {'k': 'v'}", "'%s' % [1]", "'%d' % 'a'", "'%s %s' % ('a',)",
	"7 % 4", "7.5 % 2", "{1: 2} | {3: 4}", "set([1, 2]) | set([2, 3])", "set([1, 2]) & set([2])", "set([1, 2]) ^ set([2, 3])",
	"set([1, 2]) - set([2])", "6 | 1", "6 & 3", "6 ^ 3", "{} | 1", "'a,b,,c'.split(',')", "'a,b,c'.split(',', 1)",
	"'a,b,c'.rsplit(',', 1)", "' a  b '.split()", "'a\\nb\\n'.splitlines()", "'a\\nb'.splitlines(True)", "'a'.split('')",
	"'a'.split(1)", "'AbC'.lower()", "'AbC'.lower(1)", "'abc'.upper()", "'ab cd'.title()", "'ab'.capitalize()",
	"'a-b'.replace('-', '+')", "'aaa'.replace('a', 'bb', 2)", "'aa'.replace('', '-')", "'a'.replace('a')",
	"','.join(['a', 'b'])", "','.join(('a',))", "','.join(['a', 1])", "','.join(1)", "','.join({'a': 1})",
	"''.join('abc'.elems())", "'{} {0}'.format(1)", "'{} {}'.format(1, 'a')", "'{a}'.format(a = 2)", "'{'.format()",
	"'abc'.join", "['a'].join", "'a'.nosuch()", "[].nosuch", "getattr('a', 'upper')()", "getattr('a', 'x', 3)",
	"getattr('a', 'x')", "hasattr('a', 'upper')", "'abcdef'[1:4]", "'abcdef'[::-2]", "[1, 2, 3][-2:]", "(1, 2, 3)[:1]",
	"range(10)[2:8:3]", "{}[1:2]", "b'abc'[1:]", "{'a': 1}.items()", "{'a': 1}.keys()", "{'a': 1}.values()",
	"dict([('a', 1)], b = 2)", "dict(**{'a': 1})", "list(range(3))", "tuple([1])", "set('ab'.elems())", "sorted([3, 1, 2])",
	"sorted(['b', 'A'], key = lambda s: s.lower(), reverse = True)", "reversed([1, 2])", "enumerate(['a'], 5)",
	"zip([1, 2], 'ab'.elems())", "bytes('abc')", "bytes([65, 66])", "str(1.5)", "repr('a')", "int('12')", "int('ff', 16)",
	"int(base = 2, x = '101')", "int('x')", "list(1)", "list('abc')", "set([1]).union([2], [3])", "set([1, 2]).difference([1])",
	"set([1]).issubset([1, 2])", "[a + b for a in 'xy'.elems() for b in 'xy'.elems() if a != b]", "{a: a * 2 for a in [1, 2]}",
	"(lambda a, b = 1 + 2, *c, **d: [a, b, c, d])(1, *[2, 3], **{'e': 4})", "(lambda *, a: a)(a = 1 + 1)",
	"max(*[1, 3, 2])", "1 if 'a' in 'abc' else 2", "not 1 + 1", "fail('a', 1)", "len('a' + 'b')", "((1)) + (((2)))",
	"1 + 2 == 3 and 'a' + 'b' < 'b'",
	"=x = 1; x += 2; x -= 1; x *= 5; x %= 7; x |= 8; x &= 12; x ^= 5; x <<= 2; x //= 3; x >>= 1",
	"=x = 'a'; x += 'b'", "=x = [1]; y = x; x += (2, 3); x = [x, y]", "=x = [1]; y = x; x = x + [2]; x = [x, y]",
	"=x = {1: 2}; y = x; x |= {3: 4}; x = [x, y]", "=x = [1]; x += 1", "=x = (1,); x += (2,)", "=x = 1; x += 'a'",
	"=x = {'a': 1}; x['a'] += 2; x['b'] += 1", "=x = {'a': 'b'}; x['a'] += 'c'", "=x = [1, 2]; x[-1] += 3",
	"=x = ['a', 'b']; x[-1] += 'c'; x['d'] += 'e'", "=x = ['a']; x[1] += 'b'", "=x = ('a',); x[0] += 'b'",
	"=x = {'a': [1]}; x['a'] += [2]; x['a'] *= 2", "=x = [0, 0]; i = 0; i, x[i + 1] = 1, 2", "=x = {}; x[1 + 1], x['a' + 'b'] = 1, 2",
	"=x = set([1]); x |= set([2])", "=x = 'a'; x.y += 1", "=x = [i for i in range(4)]; x.extend([i + 1 for i in x]); x.append(9)",
	"=x = {}; x.update([('a', 1)], b = 2)", "=def f(a, b = [1] + [2]): return a + b\nx = f([0]); x = x + f(a = [3], *[], **{})",
	"=x = 0\nfor i in range(3): x += i\nelse_ = 1", "=x = ''\nwhile len(x) < 5: x += 'ab'"}

// TestMeteringChangesNothing compares values and errors with those of the plain interpreter.
func TestMeteringChangesNothing(t *testing.T) {
	opts := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
	for _, text := range ordinary {
		body, is := strings.CutPrefix(text, "=")
		if !is {
			body = "x = " + text
		}
		show := func(all starlark.StringDict, err error) string {
			if err != nil {
				return "error " + withLine(err).Error()
			}
			return all["x"].Type() + " " + all["x"].String()
		}
		want := show(starlark.ExecFileOptions(opts, &starlark.Thread{}, "f", body, nil))
		s := &Script{Account: filter.NewAccount(&filter.Config{}), slots: newSlots()}
		f, err := opts.Parse("f", body, 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		rewrite(f)
		program, err := starlark.FileProgram(f, predeclared.Has)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := show(program.Init(s.meter().thread, predeclared)); got != want {
			t.Errorf("%s is %s, want %s", body, got, want)
		}
	}
}

package star

import (
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// rewrite replaces syntax that may allocate memory by calls of metered functions: operators, methods that copy, slices,
// and arguments after * and **. The interpreter limits only steps, and one step can double a string.
//
// The names of these functions begin with a dot, so that scripts cannot use or redefine them. Other syntax has no
// overhead.
func rewrite(f *syntax.File) { statements(f.Stmts) }

func statements(list []syntax.Stmt) {
	for i := range list {
		list[i] = statement(list[i])
	}
}

func statement(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return assignment(s)
	case *syntax.DefStmt:
		parameters(s.Params)
		statements(s.Body)
	case *syntax.ExprStmt:
		s.X = expr(s.X)
	case *syntax.ForStmt:
		target(s.Vars)
		s.X = expr(s.X)
		statements(s.Body)
	case *syntax.WhileStmt:
		s.Cond = expr(s.Cond)
		statements(s.Body)
	case *syntax.IfStmt:
		s.Cond = expr(s.Cond)
		statements(s.True)
		statements(s.False)
	case *syntax.ReturnStmt:
		s.Result = expr(s.Result)
	}
	return s
}

// metered has the operators that can allocate much more than a word.
var metered = map[syntax.Token]bool{syntax.PLUS: true, syntax.MINUS: true, syntax.STAR: true, syntax.PERCENT: true,
	syntax.PIPE: true, syntax.AMP: true, syntax.CIRCUMFLEX: true, syntax.LTLT: true}

// assignment rewrites a statement x = y, x += y or the like.
func assignment(s *syntax.AssignStmt) syntax.Stmt {
	target(s.LHS)
	s.RHS = expr(s.RHS)
	op := s.Op - syntax.PLUS_EQ + syntax.PLUS
	if s.Op == syntax.EQ || !metered[op] || isSum(op) && isNumber(s.RHS) {
		return s
	}
	switch x := unparen(s.LHS).(type) {
	case *syntax.Ident: // x = x + y
		old := &syntax.Ident{NamePos: x.NamePos, Name: x.Name}
		s.RHS, s.Op = call(inPlace+op.String(), s.OpPos, old, s.RHS), syntax.EQ
	case *syntax.IndexExpr:
		return &syntax.ExprStmt{X: call(atIndex+op.String(), s.OpPos, x.X, x.Y, s.RHS)}
	}
	return s
}

// target rewrites expressions within an assignment's target.
func target(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		target(e.X)
	case *syntax.TupleExpr:
		for _, x := range e.List {
			target(x)
		}
	case *syntax.ListExpr:
		for _, x := range e.List {
			target(x)
		}
	case *syntax.IndexExpr:
		e.X, e.Y = expr(e.X), expr(e.Y)
	case *syntax.DotExpr:
		e.X = expr(e.X)
	}
}

// parameters rewrites the default values of parameters.
func parameters(list []syntax.Expr) {
	for _, p := range list {
		if b, is := p.(*syntax.BinaryExpr); is {
			b.Y = expr(b.Y)
		}
	}
}

func expr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		return binary(e)
	case *syntax.CallExpr:
		return callExpr(e)
	case *syntax.DotExpr:
		e.X = expr(e.X)
		if slices.Contains(meteredMethods, e.Name.Name) {
			name := &syntax.Literal{Token: syntax.STRING, TokenPos: e.NamePos, Value: e.Name.Name}
			return call(attribute, e.Dot, e.X, name)
		}
	case *syntax.SliceExpr:
		e.X, e.Lo, e.Hi, e.Step = expr(e.X), expr(e.Lo), expr(e.Hi), expr(e.Step)
		return call(sliced, e.Lbrack, e)
	case *syntax.IndexExpr:
		e.X, e.Y = expr(e.X), expr(e.Y)
	case *syntax.UnaryExpr:
		e.X = expr(e.X)
	case *syntax.ParenExpr:
		e.X = expr(e.X)
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = expr(e.Cond), expr(e.True), expr(e.False)
	case *syntax.TupleExpr:
		exprs(e.List)
	case *syntax.ListExpr:
		exprs(e.List)
	case *syntax.DictExpr:
		exprs(e.List)
	case *syntax.DictEntry:
		e.Key, e.Value = expr(e.Key), expr(e.Value)
	case *syntax.LambdaExpr:
		parameters(e.Params)
		e.Body = expr(e.Body)
	case *syntax.Comprehension:
		e.Body = expr(e.Body)
		for _, c := range e.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				target(c.Vars)
				c.X = expr(c.X)
			case *syntax.IfClause:
				c.Cond = expr(c.Cond)
			}
		}
	}
	return e
}

func exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = expr(list[i])
	}
}

// binary rewrites an operator. a + b + c becomes one call, as the compiler would make it one concatenation.
func binary(e *syntax.BinaryExpr) syntax.Expr {
	if e.Op == syntax.PLUS {
		var terms []syntax.Expr
		var left syntax.Expr = e
		for len(terms) < maxTerms {
			sum, is := unparen(left).(*syntax.BinaryExpr)
			if !is || sum.Op != syntax.PLUS {
				break
			}
			terms, left = append(terms, expr(sum.Y)), sum.X
		}
		terms = append(terms, expr(left))
		slices.Reverse(terms)
		if len(terms) > 2 || !isNumber(terms[0]) && !isNumber(terms[1]) {
			return call(operator+e.Op.String(), e.OpPos, terms...)
		}
		e.X, e.Y = terms[0], terms[1]
		return e
	}
	e.X, e.Y = expr(e.X), expr(e.Y)
	if !metered[e.Op] || isSum(e.Op) && (isNumber(e.X) || isNumber(e.Y)) {
		return e
	}
	return call(operator+e.Op.String(), e.OpPos, e.X, e.Y)
}

const maxTerms = 200 // terms of a sum in one call, which can have 255 arguments

func callExpr(e *syntax.CallExpr) syntax.Expr {
	for i, arg := range e.Args {
		switch a := arg.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ {
				a.Y = expr(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR || a.Op == syntax.STARSTAR {
				a.X = call(spread, a.OpPos, expr(a.X))
				continue
			}
		}
		e.Args[i] = expr(arg)
	}
	dot, is := unparen(e.Fn).(*syntax.DotExpr)
	if !is || !slices.Contains(meteredMethods, dot.Name.Name) {
		e.Fn = expr(e.Fn)
		return e
	}
	e.Fn = &syntax.Ident{NamePos: dot.NamePos, Name: method + dot.Name.Name}
	e.Args = slices.Insert(e.Args, 0, expr(dot.X))
	return e
}

func call(name string, at syntax.Position, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		p, is := e.(*syntax.ParenExpr)
		if !is {
			return e
		}
		e = p.X
	}
}

func isSum(op syntax.Token) bool { return op == syntax.PLUS || op == syntax.MINUS }

// isNumber reports whether an expression is a small number: adding one allocates hardly anything.
func isNumber(e syntax.Expr) bool {
	l, is := e.(*syntax.Literal)
	if !is {
		return false
	}
	switch l.Value.(type) {
	case int64, float64:
		return true
	}
	return false
}

// Names, or their prefixes, of the functions that replace syntax.
const (
	operator  = ".op "
	inPlace   = ".in place "
	atIndex   = ".at index "
	method    = ".method "
	attribute = ".attribute"
	sliced    = ".slice"
	spread    = ".spread"
)

// meteredMethods lists the methods of all types that can allocate more than a few words.
var meteredMethods = []string{"capitalize", "format", "join", "lower", "replace", "rsplit", "split", "splitlines",
	"title", "upper", "items", "keys", "values", "update", "extend", "difference", "intersection", "issubset",
	"issuperset", "symmetric_difference", "union"}

// meteredFunctions lists the builtin functions that can.
var meteredFunctions = []string{"bytes", "dict", "enumerate", "fail", "getattr", "int", "list", "print", "repr",
	"reversed", "set", "sorted", "str", "tuple", "zip"}

var predeclared = declare()

func declare() starlark.StringDict {
	all := starlark.StringDict{}
	add := func(name string, f builtin) {
		all[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
			kwargs []starlark.Tuple) (starlark.Value, error) {
			return f(meterOf(t), args, kwargs)
		})
	}
	for op := range metered {
		add(operator+op.String(), func(m *meter, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return m.operate(op, args)
		})
		add(inPlace+op.String(), func(m *meter, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return m.operateInPlace(op, args[0], args[1])
		})
		add(atIndex+op.String(), func(m *meter, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return starlark.None, m.operateAt(op, args[0], args[1], args[2])
		})
	}
	for _, name := range meteredMethods {
		add(method+name, func(m *meter, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return m.callMethod(name, args[0], args[1:], kwargs)
		})
	}
	for _, name := range meteredFunctions {
		original := starlark.Universe[name].(*starlark.Builtin)
		add(name, func(m *meter, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return m.callFunction(original, args, kwargs)
		})
	}
	add(attribute, func(_ *meter, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		name, _ := starlark.AsString(args[1])
		b, err := methodOf(args[0], name)
		if err != nil {
			return nil, err
		}
		return meterMethod(b), nil
	})
	add(sliced, func(m *meter, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return args[0], m.charge(shallow(args[0]))
	})
	add(spread, func(m *meter, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		each := int64(perElement)
		if _, is := args[0].(starlark.Mapping); is { // its pairs, and the arguments that they become
			each = perElement + perEntry
		}
		return args[0], m.elements(args[0], each)
	})
	return all
}

// A builtin replaces syntax, or a builtin function of the language.
type builtin = func(m *meter, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)

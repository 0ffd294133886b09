package auth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What a filter may ask at most. A walk by keyset needs one comparison and `cf` sends two; the limits leave room for people
// and none for a filter written to exhaust the parser or the database.
const (
	MaxFilterBytes       = 4096 // of the filter as sent, and of its canonical text
	MaxFilterComparisons = 64
	MaxFilterDepth       = 16 // parentheses within parentheses
)

// Op is what one node of a filter does, spelled as in a filter.
type Op string

// The operators. And and Or join two filters; Present takes no value; the others compare an attribute with a value.
const (
	Eq         Op = "eq"
	Ne         Op = "ne"
	Gt         Op = "gt"
	Ge         Op = "ge"
	Lt         Op = "lt"
	Le         Op = "le"
	StartsWith Op = "sw"
	Contains   Op = "co"
	Present    Op = "pr"
	And        Op = "and"
	Or         Op = "or"
)

var comparisonOps = []Op{Eq, Ne, Gt, Ge, Lt, Le, StartsWith, Contains, Present}

// filterAliases are other names that clients use for an attribute, in lower case. An alias counts only where its target does.
var filterAliases = map[string]string{
	"emails":       "email",
	"emails.value": "email",
	"familyname":   "name.familyName",
	"givenname":    "name.givenName",
	"created":      "meta.created",
	"lastmodified": "meta.lastModified",
}

// Filter is one node of a parsed SCIM filter: a comparison, or an and/or of two filters.
type Filter struct {
	Op          Op
	Attr        string  // the attribute in its canonical spelling; empty for And and Or
	Value       string  // a string without its quotes and escapes, a whole number that fits 64 bits as written, true or false
	Quoted      bool    // whether Value was a string
	Left, Right *Filter // of And and Or
}

// ParseFilter reads a SCIM filter over the given attributes: comparisons such as `userName eq "ann"`, joined by and, which
// binds tighter, and or, grouped by parentheses. Operators and attributes are taken in any case. A blank filter is nil.
//
// Sw and co compare with strings only, and true and false have no order, so those pairs are refused. Strings are JSON
// strings; single quotes around them are taken too, as UAA does. Every error is a fault.Invalid with code invalid_filter.
func ParseFilter(s string, attrs ...string) (*Filter, error) {
	p := filterParser{src: s, attrs: attrs}
	if err := p.checkText(); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == endToken {
		return nil, nil
	}
	f, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != endToken {
		return nil, p.unexpected("and, or or the end of the filter", "")
	}
	// Canonical names and escapes may be longer than what was sent, and String promises a text that parses.
	if n := len(f.String()); n > MaxFilterBytes {
		return nil, p.tooLong(n)
	}
	return f, nil
}

// String is the filter's canonical text. Parsing it again, with the same attributes, gives an equal filter.
func (f *Filter) String() string {
	var b strings.Builder
	f.write(&b)
	return b.String()
}

func (f *Filter) write(b *strings.Builder) {
	switch {
	case f == nil:
	case f.Op == And || f.Op == Or:
		f.Left.writeIn(b, f.Op == And && f.Left.is(Or))
		b.WriteString(" " + string(f.Op) + " ")
		f.Right.writeIn(b, f.Right.is(Or) || f.Op == And && f.Right.is(And))
	case f.Op == Present:
		b.WriteString(f.Attr + " pr")
	default:
		b.WriteString(f.Attr + " " + string(f.Op) + " ")
		if f.Quoted {
			writeQuoted(b, f.Value)
		} else {
			b.WriteString(f.Value)
		}
	}
}

func (f *Filter) writeIn(b *strings.Builder, parens bool) {
	if !parens {
		f.write(b)
		return
	}
	b.WriteByte('(')
	f.write(b)
	b.WriteByte(')')
}

func (f *Filter) is(op Op) bool { return f != nil && f.Op == op }

// After tells where a walk by keyset goes on: x, when the filter is `id gt "x"` or demands exactly one such comparison with
// and. A comparison inside an or demands nothing, so it neither counts nor hinders.
func (f *Filter) After() (id string, ok bool) {
	ids := f.demandedAfter(nil)
	if len(ids) != 1 {
		return "", false
	}
	return ids[0], true
}

func (f *Filter) demandedAfter(ids []string) []string {
	switch {
	case f.is(And):
		return f.Right.demandedAfter(f.Left.demandedAfter(ids))
	case f.is(Gt) && f.Attr == "id" && f.Quoted:
		return append(ids, f.Value)
	}
	return ids
}

type filterTokenKind int

const (
	endToken filterTokenKind = iota
	openToken
	closeToken
	wordToken
	stringToken
)

type filterToken struct {
	kind filterTokenKind
	text string // of a word as written, of a string without quotes and escapes
	at   int    // byte offset of its first byte
}

// filterParser descends recursively with one token of lookahead. Only parentheses recurse, so MaxFilterDepth bounds the stack.
type filterParser struct {
	src         string
	attrs       []string
	pos         int // byte offset after tok
	tok         filterToken
	depth       int
	comparisons int
}

func (p *filterParser) or() (*Filter, error)  { return p.chain(Or, p.and) }
func (p *filterParser) and() (*Filter, error) { return p.chain(And, p.term) }

// chain reads operands joined by op, which groups to the left.
func (p *filterParser) chain(op Op, operand func() (*Filter, error)) (*Filter, error) {
	left, err := operand()
	for err == nil && p.word(string(op)) {
		if err = p.advance(); err != nil {
			break
		}
		var right *Filter
		right, err = operand()
		left = &Filter{Op: op, Left: left, Right: right}
	}
	if err != nil {
		return nil, err
	}
	return left, nil
}

func (p *filterParser) term() (*Filter, error) {
	switch {
	case p.tok.kind == openToken:
		return p.group()
	case p.word("not"):
		return nil, p.unexpected("a comparison", "Negation is not supported; compare with ne instead.")
	case p.tok.kind == wordToken:
		return p.comparison()
	}
	return nil, p.unexpected("an attribute or (", "")
}

func (p *filterParser) group() (*Filter, error) {
	if p.depth++; p.depth > MaxFilterDepth {
		return nil, p.unexpected(fmt.Sprintf("a comparison after %d nested parentheses", MaxFilterDepth), "Group less deeply.")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	f, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != closeToken {
		return nil, p.unexpected("and, or or )", "")
	}
	p.depth--
	return f, p.advance()
}

func (p *filterParser) comparison() (*Filter, error) {
	if p.comparisons++; p.comparisons > MaxFilterComparisons {
		return nil, p.unexpected(fmt.Sprintf("the end after %d comparisons", MaxFilterComparisons), "Ask in several requests.")
	}
	attr, err := p.attribute()
	if err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	op := Op(strings.ToLower(p.tok.text))
	if p.tok.kind != wordToken || !slices.Contains(comparisonOps, op) {
		return nil, p.unexpected("an operator", "Use eq, ne, gt, ge, lt, le, sw, co or pr.")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	f := &Filter{Op: op, Attr: attr}
	if op == Present {
		return f, nil
	}
	if err := p.value(f); err != nil {
		return nil, err
	}
	return f, p.advance()
}

// attribute finds the canonical name of the word at hand.
func (p *filterParser) attribute() (string, error) {
	for _, name := range []string{p.tok.text, filterAliases[strings.ToLower(p.tok.text)]} {
		for _, attr := range p.attrs {
			if strings.EqualFold(attr, name) {
				return attr, nil
			}
		}
	}
	if len(p.attrs) == 0 {
		return "", p.unexpected("the end of the filter", "Nothing can be filtered here.")
	}
	return "", p.unexpected("an attribute", "Use one of: "+strings.Join(p.attrs, ", ")+".")
}

// value takes the token at hand as what f compares with.
func (p *filterParser) value(f *Filter) error {
	f.Value, f.Quoted = p.tok.text, p.tok.kind == stringToken
	if f.Quoted {
		return nil
	}
	if f.Op == StartsWith || f.Op == Contains {
		return p.unexpected("a string after "+string(f.Op), "Put text in double quotes.")
	}
	lower := strings.ToLower(p.tok.text)
	switch {
	case p.tok.kind != wordToken:
		return p.unexpected("a value", "Put text in double quotes, or write true, false or a whole number.")
	case lower == "null":
		return p.unexpected("a value", "Null cannot be compared; write pr to find what has a value.")
	case lower == "true" || lower == "false":
		if f.Op != Eq && f.Op != Ne {
			return p.unexpected("a string or a number after "+string(f.Op), "True and false have no order; compare them with eq or ne.")
		}
		f.Value = lower
		return nil
	case !isWholeNumber(p.tok.text):
		return p.unexpected("a value", "Put text in double quotes; only true, false and whole numbers stand without them.")
	}
	if _, err := strconv.ParseInt(p.tok.text, 10, 64); err != nil {
		return p.unexpected("a smaller number", "Whole numbers have at most 64 bits.")
	}
	return nil
}

// isWholeNumber follows JSON: no plus sign and no leading zeros, which belong to text such as "007".
func isWholeNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' && len(digits) > 1 {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// word tells whether the token at hand is this keyword, in any case.
func (p *filterParser) word(keyword string) bool {
	return p.tok.kind == wordToken && strings.EqualFold(p.tok.text, keyword)
}

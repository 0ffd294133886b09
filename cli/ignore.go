package cli

import (
	"regexp"
	"strings"
)

// alwaysIgnored is never uploaded, unless a line of an ignore file that begins with ! brings it back.
const alwaysIgnored = ".cfignore\n.proaignore\n.DS_Store\n.git\n.gitignore\n.hg\n.svn\n_darcs\nmanifest.yaml\nmanifest.yml\n"

// ignoreFiles stand in the root of what is uploaded; a line of the second one wins over those of the first.
var ignoreFiles = []string{".cfignore", ".proaignore"}

// ignoring is a list of patterns as git has them: the last one that fits decides.
type ignoring []ignoreRule

type ignoreRule struct {
	fits    *regexp.Regexp
	keep    bool // the line began with !
	dirOnly bool
}

func parseIgnore(text string) ignoring {
	var rules ignoring
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if rule, ok := parseIgnoreLine(strings.TrimSuffix(line, "\r")); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseIgnoreLine(line string) (ignoreRule, bool) {
	if strings.HasPrefix(line, "#") {
		return ignoreRule{}, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = strings.TrimSuffix(line, " ")
	}
	var rule ignoreRule
	line, rule.keep = strings.CutPrefix(line, "!")
	line, rule.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return rule, false
	}
	anchored := strings.Contains(line, "/")
	expression := "^" + translate(strings.TrimPrefix(line, "/")) + "$"
	if !anchored {
		expression = "^(?:.*/)?" + expression[1:]
	}
	var err error
	rule.fits, err = regexp.Compile(expression)
	return rule, err == nil
}

// translate writes a pattern as a regular expression: ** is any number of steps, * and ? stay within one.
func translate(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || pattern[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case rest == "**" && (i == 0 || pattern[i-1] == '/'):
			b.WriteString(".+")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[' && strings.Contains(rest[1:], "]"):
			class, length := translateClass(rest)
			b.WriteString(class)
			i += length - 1
		case rest[0] == '\\' && len(rest) > 1:
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case rest[0] < 0x80:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String()
}

// translateClass takes [a-z] or [!a-z] from the start of a pattern. A ] right after the bracket belongs to the class.
func translateClass(pattern string) (class string, length int) {
	start, not := 1, ""
	if pattern[1] == '!' || pattern[1] == '^' {
		start, not = 2, "^/"
	}
	end := strings.IndexByte(pattern[min(start+1, len(pattern)):], ']')
	if end < 0 {
		return `\[`, 1
	}
	end += start + 1
	inside := strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "^", `\^`).Replace(pattern[start:end])
	return "[" + not + inside + "]", end + 1
}

// ignores tells whether a path, with slashes and from the root, is left out. What is in a directory that is left out is too.
func (rules ignoring) ignores(path string, dir bool) bool {
	for i, c := range path {
		if c == '/' && rules.decide(path[:i], true) {
			return true
		}
	}
	return rules.decide(path, dir)
}

func (rules ignoring) decide(path string, dir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if r := rules[i]; (dir || !r.dirOnly) && r.fits.MatchString(path) {
			return !r.keep
		}
	}
	return false
}

package cli

import "testing"

func TestIgnore(t *testing.T) {
	for _, c := range []struct {
		rules, path string
		dir, want   bool
	}{
		{"*.log", "debug.log", false, true},
		{"*.log", "deep/down/debug.log", false, true},
		{"*.log", "debug.logs", false, false},
		{"/top", "top", false, true},
		{"/top", "deep/top", false, false},
		{"a/b", "a/b", false, true},
		{"a/b", "x/a/b", false, false},
		{"build/", "build", true, true},
		{"build/", "build", false, false},
		{"build/", "build/x/y", false, true},
		{"build/", "deep/build/x", false, true},
		{"**/tmp", "a/b/tmp", false, true},
		{"**/tmp", "tmp", false, true},
		{"a/**", "a/b/c", false, true},
		{"a/**", "a", true, false},
		{"a/**/z", "a/z", false, true},
		{"a/**/z", "a/b/c/z", false, true},
		{"a/*/z", "a/b/c/z", false, false},
		{"*.log\n!keep.log", "keep.log", false, false},
		{"!keep.log\n*.log", "keep.log", false, true},
		{"logs\n!logs/keep", "logs/keep", false, true}, // as in git: what is in a directory that is left out cannot come back
		{"logs/*\n!logs/keep", "logs/keep", false, false},
		{"file?", "file1", false, true},
		{"file?", "file/", false, false},
		{"file[0-9]", "file7", false, true},
		{"file[!0-9]", "file7", false, false},
		{"file[!0-9]", "filex", false, true},
		{"[]]x", "]x", false, true},
		{"odd[", "odd[", false, true},
		{"# comment", "# comment", false, false},
		{`\#file`, "#file", false, true},
		{`\!file`, "!file", false, true},
		{"spaces   ", "spaces", false, true},
		{"crlf\r\nnext\r", "crlf", false, true},
		{"a+b(c).$", "a+b(c).$", false, true},
		{"grüße*", "grüße.txt", false, true},
		{alwaysIgnored, ".git/config", false, true},
		{alwaysIgnored, "manifest.yml", false, true},
		{alwaysIgnored + "!manifest.yml", "manifest.yml", false, false},
		{alwaysIgnored, "src/main.go", false, false},
		{"", "anything", false, false},
	} {
		if got := parseIgnore(c.rules).ignores(c.path, c.dir); got != c.want {
			t.Errorf("%q leaves out %q: %v, want %v", c.rules, c.path, got, c.want)
		}
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!a[b-", "a/b.log")
	f.Add("[]\n[!]\n\\", "x")
	f.Fuzz(func(_ *testing.T, rules, path string) { parseIgnore(rules).ignores(path, false) })
}

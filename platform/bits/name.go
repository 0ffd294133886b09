package bits

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

const (
	maxName = 4096 - 256 // the kernel's limit for a path, less what stands before it where a node unpacks the layer
	maxStep = 255        // the kernel's limit for one step of it
	maxShow = 80         // of a name in a sentence
)

// cleanName is where an entry goes, relative to the root; "." is the root itself. What could be taken for another place,
// by anything that unpacks the layer later, is refused rather than repaired.
func cleanName(raw string) (string, error) {
	switch {
	case raw == "":
		return "", fault.Unprocessable("The archive holds an entry without a name. Make the archive again.")
	case strings.ContainsRune(raw, 0):
		return "", refuse(raw, "has a zero byte in its name")
	case !utf8.ValidString(raw):
		return "", refuse(raw, "has a name that is not UTF-8. Rename it")
	case strings.ContainsRune(raw, '\\'):
		return "", refuse(raw, "has a backslash in its name. Rename it, or make the archive with forward slashes")
	case raw[0] == '/':
		return "", refuse(raw, "has an absolute name. Names must begin in the app's directory")
	case len(raw) > 1 && raw[1] == ':' && (raw[0]|0x20 >= 'a' && raw[0]|0x20 <= 'z'):
		return "", refuse(raw, "begins with a drive letter. Names must begin in the app's directory")
	case len(raw) > maxName:
		return "", refuse(raw, "has a name of more than %d bytes. Shorten it", maxName)
	}
	for step := range strings.SplitSeq(raw, "/") {
		if err := checkStep(raw, step); err != nil {
			return "", err
		}
	}
	return path.Clean(raw), nil
}

func checkStep(raw, step string) error {
	switch {
	case step == "..":
		return refuse(raw, "leads out of the app's directory with \"..\"")
	case len(step) > maxStep:
		return refuse(raw, "has a file or directory name of more than %d bytes. Shorten it", maxStep)
	case strings.HasPrefix(step, ".wh."):
		return refuse(raw, "has a name that begins with \".wh.\", which in an image means that a file is deleted. Rename it")
	}
	return nil
}

// checkLink holds a symbolic link to the tree. Its directory is a real one, because nothing goes through a link. From there
// the target climbs by the ".." it begins with, which may reach the root and not more. After that it only goes down: through
// directories of the tree, or through other links, which are held to the same rule. So it cannot leave, however links are
// chained; that would not hold if ".." were allowed after a name, because the name may be a link.
func checkLink(at, target string) error {
	switch {
	case target == "" || strings.ContainsRune(target, 0) || !utf8.ValidString(target):
		return refuse(at, "is a symbolic link with a broken target. Make it again")
	case target[0] == '/':
		return refuse(at, "is a symbolic link to an absolute path. Link to a file of the app instead")
	case len(target) > maxName:
		return refuse(at, "is a symbolic link with a target of more than %d bytes. Shorten it", maxName)
	}
	depth, down := strings.Count(at, "/"), false
	for step := range strings.SplitSeq(target, "/") {
		switch step {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return refuse(at, "is a symbolic link that leads out of the app's directory. Link to a file of the app instead")
			}
			if down {
				return refuse(at, "is a symbolic link whose target goes down and up again. Link to the place directly")
			}
		default:
			down = true
		}
	}
	return nil
}

// refuse says which entry breaks which rule. The rule is the middle of a sentence, and may go on with what to do.
func refuse(name, rule string, args ...any) *fault.Error {
	return fault.Unprocessable("The archive's entry %s "+rule+".", append([]any{shown(name)}, args...)...)
}

// shown is a name as a sentence can carry it.
func shown(name string) string {
	if len(name) <= maxShow {
		return strconv.QuoteToASCII(name)
	}
	return strconv.QuoteToASCII(strings.ToValidUTF8(name[:maxShow/2], "") + "…" + strings.ToValidUTF8(name[len(name)-maxShow/2:], ""))
}

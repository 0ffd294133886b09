package launch

import "bytes"

// A line of a sidecar begins with its mark: MarkStart, the sidecar's name, MarkEnd. A line of the main process has none.
//
// RS STX name ETX: text does not begin so. JSON text sequences (RFC 7464) begin with RS too, but not with RS STX, and
// terminal sequences begin with ESC. An app can forge a mark, in its own log. A reader that knows the release also asks
// whether it has a sidecar of that name, and not even binary output is mistaken then.
const (
	MarkStart = "\x1e\x02"
	MarkEnd   = "\x03"
)

// Mark is what a line of that sidecar begins with.
func Mark(sidecar string) string {
	return MarkStart + sidecar + MarkEnd
}

// Parse takes the mark off a line. A line without one is the main process's: the name is empty and the line as it was.
func Parse(line []byte) (sidecar string, text []byte) {
	rest, marked := bytes.CutPrefix(line, []byte(MarkStart))
	if !marked {
		return "", line
	}
	end := bytes.Index(rest[:min(len(rest), maxName+len(MarkEnd))], []byte(MarkEnd))
	if end < 0 || !fitName(string(rest[:end])) {
		return "", line
	}
	return string(rest[:end]), rest[end+len(MarkEnd):]
}

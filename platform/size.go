package platform

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/proa-dev/proa/kit/fault"
)

// Unlimited is the log rate of a process that may log as fast as it can.
const Unlimited = -1

// The largest sizes anyone may ask for. They are beyond every machine there is, and far below what an integer holds.
const (
	MaxMegabytes = 16 << 20 // 16 TB of memory or disk for one instance
	MaxLogRate   = 1 << 40  // 1 TB of log a second
)

const (
	sizeExpected = "must be a number with a unit such as 256MB."
	maxSizeText  = 32
	maxClipped   = 60
	megabyte     = 1 << 20
)

// sizeUnits count by 1024, as Cloud Foundry does.
var sizeUnits = map[string]float64{
	"B": 1,
	"K": 1 << 10, "KB": 1 << 10, "KIB": 1 << 10,
	"M": 1 << 20, "MB": 1 << 20, "MIB": 1 << 20,
	"G": 1 << 30, "GB": 1 << 30, "GIB": 1 << 30,
	"T": 1 << 40, "TB": 1 << 40, "TIB": 1 << 40,
}

// ParseMegabytes reads a size of memory or disk, such as 256MB, 512m or 1.5G, in whole megabytes.
func ParseMegabytes(text string) (int, error) {
	mb, wrong := megabytes(text)
	if wrong != "" {
		return 0, fault.Unprocessable("The size '%s' %s", clipText(text), wrong)
	}
	return mb, nil
}

// ParseLogRate reads what a process may log in a second, such as 16K, in bytes. -1 is Unlimited, and 0 needs no unit.
func ParseLogRate(text string) (int64, error) {
	rate, wrong := logRate(text)
	if wrong != "" {
		return 0, fault.Unprocessable("The log rate '%s' %s", clipText(text), wrong)
	}
	return rate, nil
}

// megabytes also says what is wrong, in words that follow the name of the thing.
func megabytes(text string) (mb int, wrong string) {
	bytes, ok := parseBytes(text)
	switch {
	case !ok:
		return 0, sizeExpected
	case bytes < megabyte:
		return 0, "must be at least 1MB."
	case bytes/megabyte > MaxMegabytes:
		return 0, "must be at most " + FormatMegabytes(MaxMegabytes) + "."
	}
	return int(bytes / megabyte), ""
}

func logRate(text string) (rate int64, wrong string) {
	switch text = strings.TrimSpace(text); text {
	case "-1":
		return Unlimited, ""
	case "0":
		return 0, ""
	}
	bytes, ok := parseBytes(text)
	switch {
	case !ok:
		return 0, "must be a number with a unit such as 16KB, or -1 for no limit."
	case bytes > MaxLogRate:
		return 0, "must be at most " + FormatLogRate(MaxLogRate) + "."
	}
	return int64(bytes), ""
}

// parseBytes drops a fraction of a byte. What it returns may be larger than any integer.
func parseBytes(text string) (float64, bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	end := strings.LastIndexAny(text, "0123456789") + 1
	if end == 0 || len(text) > maxSizeText || strings.Trim(text[:end], "0123456789.") != "" || text[0] == '.' {
		return 0, false
	}
	number, err := strconv.ParseFloat(text[:end], 64)
	factor, known := sizeUnits[text[end:]]
	if err != nil || !known {
		return 0, false
	}
	return number * factor, true
}

// FormatMegabytes writes a size as manifests do: 256M, or 1G when it is whole.
func FormatMegabytes(mb int) string {
	switch {
	case mb > 0 && mb%(1<<20) == 0:
		return fmt.Sprintf("%dT", mb>>20)
	case mb > 0 && mb%(1<<10) == 0:
		return fmt.Sprintf("%dG", mb>>10)
	}
	return fmt.Sprintf("%dM", mb)
}

// FormatLogRate writes a log rate as manifests do: 16K, 1023B, or -1 for no limit.
func FormatLogRate(bytes int64) string {
	if bytes <= 0 {
		return strconv.FormatInt(bytes, 10)
	}
	for i, unit := range []string{"T", "G", "M", "K"} {
		if shift := 40 - 10*i; bytes%(1<<shift) == 0 {
			return fmt.Sprintf("%d%s", bytes>>shift, unit)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// clipText keeps a sentence short and on one line, whatever it is about.
func clipText(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxClipped {
		return string(runes[:maxClipped]) + "…"
	}
	return s
}

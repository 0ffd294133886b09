package env

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size: "512", "10MB" (powers of 1000) or "64KiB" (powers of 1024).
type Bytes int64

// expected says in words what a variable of this type holds, and is empty when the type is not
// supported.
func expected(ptr any) string {
	switch ptr.(type) {
	case *string, *Secret:
		return "a text"
	case *bool:
		return "true or false"
	case *int, *int64:
		return "a whole number"
	case *time.Duration:
		return "a duration such as 30s or 5m"
	case *Bytes:
		return "a size such as 10MB or 64KiB"
	case *[]string:
		return "a list separated by commas"
	case **url.URL:
		return "a full URL such as https://auth.example.com"
	case *[]netip.Prefix:
		return "a list of networks separated by commas, such as 10.0.0.0/8,::1/128"
	case encoding.TextUnmarshaler:
		return "a valid " + strings.TrimPrefix(fmt.Sprintf("%T", ptr), "*")
	}
	return ""
}

// mayEcho says whether a wrong value can be shown. A URL may hold a password.
func mayEcho(ptr any) bool {
	switch ptr.(type) {
	case *Secret, **url.URL:
		return false
	}
	return true
}

// parse reads text into ptr. Its error is only a sign: the sentence for people comes from expected.
func parse(ptr any, text string) (err error) {
	switch p := ptr.(type) {
	case *string:
		*p = text
		return nil
	case *Secret:
		*p = Secret(text)
		return nil
	}
	text = strings.TrimSpace(text)
	switch p := ptr.(type) {
	case *bool:
		*p, err = strconv.ParseBool(text)
	case *int:
		*p, err = strconv.Atoi(text)
	case *int64:
		*p, err = strconv.ParseInt(text, 10, 64)
	case *time.Duration:
		*p, err = time.ParseDuration(text)
	case *Bytes:
		*p, err = parseBytes(text)
	case *[]string:
		*p = list(text)
	case **url.URL:
		*p, err = parseURL(text)
	case *[]netip.Prefix:
		*p, err = parsePrefixes(text)
	case encoding.TextUnmarshaler:
		err = p.UnmarshalText([]byte(text))
	}
	return err
}

// list splits at commas and drops empty items.
func list(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "" || u.Host == "" {
		return nil, errors.New("not absolute")
	}
	return u, nil
}

// parsePrefixes also takes a single address, as the network of just that address.
func parsePrefixes(text string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, item := range list(text) {
		if addr, err := netip.ParseAddr(item); err == nil {
			out = append(out, netip.PrefixFrom(addr.WithZone(""), addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, err
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

var units = map[string]int64{
	"": 1, "B": 1,
	"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}

func parseBytes(text string) (Bytes, error) {
	digits := strings.TrimRight(text, "BKMGTIbkmgti ")
	unit, ok := units[strings.ToUpper(strings.TrimSpace(text[len(digits):]))]
	if !ok {
		return 0, errors.New("unknown unit")
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxInt64/unit {
		return 0, errors.New("out of range")
	}
	return Bytes(n * unit), nil
}

package platform

import "testing"

func TestParseMegabytes(t *testing.T) {
	for text, want := range map[string]int{
		"256MB": 256, "256M": 256, "512m": 512, "1G": 1024, "1GB": 1024, "1gib": 1024, "1T": 1 << 20, "2048K": 2, "1.5G": 1536,
		"0.5G": 512, "1048576B": 1, " 64M ": 64, "1500K": 1, "16T": MaxMegabytes,
	} {
		if got, err := ParseMegabytes(text); err != nil || got != want {
			t.Errorf("ParseMegabytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"256":        "The size '256' must be a number with a unit such as 256MB.",
		"":           "The size '' must be a number with a unit such as 256MB.",
		"MB":         "The size 'MB' must be a number with a unit such as 256MB.",
		"-1M":        "The size '-1M' must be a number with a unit such as 256MB.",
		"1e3M":       "The size '1e3M' must be a number with a unit such as 256MB.",
		"5BB":        "The size '5BB' must be a number with a unit such as 256MB.",
		"1.2.3M":     "The size '1.2.3M' must be a number with a unit such as 256MB.",
		".5G":        "The size '.5G' must be a number with a unit such as 256MB.",
		"1P":         "The size '1P' must be a number with a unit such as 256MB.",
		"12 MB":      "The size '12 MB' must be a number with a unit such as 256MB.",
		"512K":       "The size '512K' must be at least 1MB.",
		"0M":         "The size '0M' must be at least 1MB.",
		"17T":        "The size '17T' must be at most 16T.",
		"99999999TB": "The size '99999999TB' must be at most 16T.",
	} {
		if _, err := ParseMegabytes(text); err == nil || err.Error() != want {
			t.Errorf("ParseMegabytes(%q) says %v; want %s", text, err, want)
		}
	}
}

func TestParseLogRate(t *testing.T) {
	for text, want := range map[string]int64{"-1": Unlimited, "0": 0, "64K": 65536, "64KB": 65536, "1M": 1 << 20, "100B": 100, "0B": 0} {
		if got, err := ParseLogRate(text); err != nil || got != want {
			t.Errorf("ParseLogRate(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"16": "The log rate '16' must be a number with a unit such as 16KB, or -1 for no limit.",
		"-2": "The log rate '-2' must be a number with a unit such as 16KB, or -1 for no limit.",
		"2T": "The log rate '2T' must be at most 1T.",
	} {
		if _, err := ParseLogRate(text); err == nil || err.Error() != want {
			t.Errorf("ParseLogRate(%q) says %v; want %s", text, err, want)
		}
	}
}

func TestFormatSizes(t *testing.T) {
	for mb, want := range map[int]string{256: "256M", 1024: "1G", 1536: "1536M", 1 << 20: "1T", 0: "0M"} {
		if got := FormatMegabytes(mb); got != want {
			t.Errorf("FormatMegabytes(%d) = %s; want %s", mb, got, want)
		}
	}
	for rate, want := range map[int64]string{-1: "-1", 0: "0", 1023: "1023B", 16384: "16K", 1 << 20: "1M", 3 << 30: "3G"} {
		if got := FormatLogRate(rate); got != want {
			t.Errorf("FormatLogRate(%d) = %s; want %s", rate, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"256MB", "1.5G", "-1", "0", "64K", "16T", "99999999999999999999999999999999T", "1GiB", "ß5M", "5\u0130B"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if mb, err := ParseMegabytes(text); err == nil {
			if mb < 1 || mb > MaxMegabytes {
				t.Fatalf("ParseMegabytes(%q) = %d, which is out of bounds", text, mb)
			}
			if again, err := ParseMegabytes(FormatMegabytes(mb)); err != nil || again != mb {
				t.Fatalf("%d MB became %d: %v", mb, again, err)
			}
		}
		if rate, err := ParseLogRate(text); err == nil {
			if rate < Unlimited || rate > MaxLogRate {
				t.Fatalf("ParseLogRate(%q) = %d, which is out of bounds", text, rate)
			}
			if again, err := ParseLogRate(FormatLogRate(rate)); err != nil || again != rate {
				t.Fatalf("%d bytes became %d: %v", rate, again, err)
			}
		}
	})
}

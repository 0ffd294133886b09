package platform

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// HostOf makes a host of an app's name: what a host cannot hold becomes a hyphen.
func HostOf(app string) string { return label(app, maxLabel) }

// RandomHost is a host that is most likely free: the app's name and two words.
func RandomHost(app string) string {
	words := "-" + pick(adjectives) + "-" + pick(nouns)
	return label(app, maxLabel-len(words)) + words
}

func label(name string, limit int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if text := b.String(); text != "" && !strings.HasSuffix(text, "-") {
			b.WriteByte('-')
		}
	}
	text := b.String()
	if text = strings.Trim(text[:min(len(text), limit)], "-"); text == "" {
		return "app" // a name of signs only
	}
	return text
}

func pick[T any](words []T) T {
	n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(words)))) // never fails: the runtime ends the program first
	return words[n.Int64()]
}

// 64 times 64 words: whoever finds a host taken tries again, and the name of the app stands before them.
var (
	adjectives = strings.Fields(`able agile amber bold brave breezy bright brisk broad calm clear clever coral cosy crisp curious dapper deep eager early
		easy fair fast fine fluent fond free fresh gentle glad golden grand green happy hardy honest jolly keen kind light lively lucky mellow merry mild
		neat nimble noble pale patient placid plucky polite proud quick quiet rapid ready silver smooth steady sunny swift warm`)
	nouns = strings.Fields(`anchor atoll bay beacon boat bow breeze bridge buoy cape channel cliff coast compass coral cove crane crew current deck delta dock
		dolphin dune ferry fjord gale gull harbour hull island jetty kayak keel lagoon lantern mast moon oar ocean otter pearl pier port quay reef rudder sail
		sand seal shell shore skiff sloop spray star stern storm surf tide tiller tug wave whale`)
)

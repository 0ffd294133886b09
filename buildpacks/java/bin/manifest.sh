# Finds an executable Java archive and reads its manifest. For bin/detect and bin/build, which run in the app's directory.
# shellcheck shell=bash

# jar prints the one archive in the app's directory, and nothing when there are none or several.
jar() {
	local found
	shopt -s nullglob
	found=(*.jar)
	shopt -u nullglob
	[ ${#found[@]} != 1 ] || echo "${found[0]}"
}

# manifest prints the manifest: that of the app's directory, which is an unpacked archive then, or of the one archive in it.
manifest() {
	local archive
	if [ -f META-INF/MANIFEST.MF ]; then
		cat META-INF/MANIFEST.MF
	else
		archive=$(jar)
		[ -z "$archive" ] || unzip -p -- "./$archive" META-INF/MANIFEST.MF 2>/dev/null || true
	fi
}

# attribute prints one of the manifest's main attributes, which end at the first empty line. A line that begins with a space
# goes on with the one before: no line is longer than 72 bytes.
attribute() {
	manifest | LC_ALL=C awk -v name="$1:" '
		{ sub(/\r$/, "") }
		/^ / { text = text substr($0, 2); next }
		{ print_if_meant() }
		$0 == "" { text = ""; exit }
		{ text = $0 }
		END { print_if_meant() }
		function print_if_meant() {
			if (tolower(substr(text, 1, length(name))) == tolower(name)) {
				value = substr(text, length(name) + 1)
				gsub(/^ +| +$/, "", value)
				print value
			}
		}'
}

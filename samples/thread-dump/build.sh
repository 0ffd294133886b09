#!/usr/bin/env bash
# Builds thread-dump.jar: the Java app, and beside its classes the program of the sidecar.
set -euo pipefail
cd "$(dirname "$0")"

rm -rf build thread-dump.jar
mkdir build
javac --release 17 -d build/classes src/Shop.java
jar --create --file thread-dump.jar --main-class Shop -C build/classes .
CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -o build/debug-sidecar ./debug-sidecar

# The sidecar of an app that is pushed as a jar is added to the jar.
(cd build && zip -q ../thread-dump.jar -u debug-sidecar)
